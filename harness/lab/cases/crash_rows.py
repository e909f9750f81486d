"""The rows of the crash matrix: what was proven of the kill, what came of it, and whether the verdict says the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka_trial.report.row_files import rows_in
from lab.cases.crash_matrix import FROZEN, POINTS
from lab.cases.crash_proof import Proof

ROWS_NAME = "cases.jsonl"
CASE = 2
AT_LEAST_ONCE, AT_MOST_ONCE, EXACTLY_ONCE, NONE = "at-least-once", "at-most-once", "exactly-once", "none"
LOSSES = ("skipped", "unseen", "overtaken")
DOUBLES = ("duplicate-effect", "stale-state")
# What each delivers includes what it is listed with.
INCLUDES: Mapping[str, tuple[str, ...]] = {
    EXACTLY_ONCE: (EXACTLY_ONCE, AT_LEAST_ONCE, AT_MOST_ONCE),
    AT_LEAST_ONCE: (AT_LEAST_ONCE,),
    AT_MOST_ONCE: (AT_MOST_ONCE,),
    NONE: (),
}


@dataclass(frozen=True)
class CrashRow:
    """One trial of a cell. `anomalies`: how many instances were found, violations and tolerated ones; `raw`: records
    without an effect and with several, counted from the events by nobody's rules.

    `verdict` is pass, fail, unknown, or `not begun`; `told` the fault's evidence, or what left it open.
    """

    cell: str
    seed: int
    nth: int
    claim: str
    proof: Proof
    verdict: str
    anomalies: Mapping[str, int]
    violations: tuple[str, ...]
    raw: tuple[int, int]
    told: str
    kafka_version: str
    consumer_digest: str
    source_digest: str
    scenario_digest: str
    versions: Mapping[str, str] = field(default_factory=dict)
    commit: str = ""
    case: int = CASE

    @property
    def reached(self) -> bool:
        """Whether it fills a cell: the kill was at a point, and there is a verdict."""
        return self.proof.point in (*POINTS, FROZEN) and self.verdict in ("pass", "fail")

    @property
    def delivered(self) -> str:
        """The guarantee that was in fact delivered here, by the anomalies that were found."""
        return delivered(self.anomalies)

    @property
    def elsewhere(self) -> tuple[int, int]:
        """How many records were lost, and how many doubled, beyond those that were at stake at the kill."""
        lost, doubled = self.raw
        return max(0, lost - self.proof.commits_without_effect), max(0, doubled - self.proof.effects_without_commit)

    @property
    def contradictions(self) -> tuple[str, ...]:
        """What does not agree: the verdict with claim and delivery, or the judge's counts with the raw events."""
        kept = self.claim in INCLUDES[self.delivered]
        found = []
        if (self.verdict == "pass") is not kept:
            found.append(f"{self.verdict}, and it delivered {self.delivered} of the {self.claim} claimed")
        if self.delivered != delivered({LOSSES[0]: self.raw[0], DOUBLES[0]: self.raw[1]}):
            counted = f"{self.raw[0]} records have no effect and {self.raw[1]} several"
            found.append(f"{counted}, and the judge's counts say {self.delivered}")
        return tuple(found)


def delivered(anomalies: Mapping[str, int]) -> str:
    """Returns the strongest guarantee that these anomalies leave: of effects that are lost or doubled."""
    lost = any(anomalies.get(name) for name in LOSSES)
    doubled = any(anomalies.get(name) for name in DOUBLES)
    return {(False, False): EXACTLY_ONCE, (False, True): AT_LEAST_ONCE, (True, False): AT_MOST_ONCE}.get(
        (lost, doubled), NONE
    )


def weakest(guarantees: Sequence[str]) -> str:
    """Returns what is left of several: what each of them includes."""
    kept = [name for name in INCLUDES if all(name in INCLUDES[one] for one in guarantees)]
    return kept[0] if kept else NONE


def read_rows(file: Path) -> list[CrashRow]:
    """Returns the rows of the crash matrix, see `row_files.py`. Other cases' are left out."""
    return [row for row in rows_in(file, _of_table) if row is not None]


def _of_table(table: dict[str, Any]) -> CrashRow | None:
    if table["case"] != CASE:
        return None
    lists = {name: tuple(table[name]) for name in ("violations", "raw")}
    return CrashRow(**{**table, **lists, "proof": Proof(**table["proof"])})

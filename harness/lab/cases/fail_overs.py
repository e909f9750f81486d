"""Case 3: a group that fails over to a mirror in three ways, under both policies: what each loses and does again.

A row is a trial of the suite fail-over, by one way and under one policy, in the suite's own situation or another one;
the sound consumer is the same. Rows are appended to `reports/fail_overs.jsonl`; what made them is part of them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from kafka_trial import registry
from kafka_trial.errors import KafkaTrialError
from kafka_trial.history.store import RunFolder, raw_lines
from kafka_trial.report.row_files import append_row, rows_in
from kafka_trial.scenario import MIRROR_POLICIES, Mirror, Scenario, Step, Topic
from kafka_trial.trial.console import Console
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.spec import make_trial_spec
from lab.calibration.source_digests import judging_digest, making_digest
from lab.cases.crash_campaign import consumer_digest, text_digest
from lab.repository import git_revision, reports_folder

ROWS_NAME: Final = "fail_overs.jsonl"
RUNS: Final = Path("trial-runs") / "fail-overs"
CONSUMER: Final = "python-at-least-once"
SUITE: Final = "fail-over"
WAYS: Final = {"translated": "pass", "raw": "fail", "by-timestamp": "fail"}  # and what a trial of each must come to
USUAL, EMPTY, TRUNCATED, BEHIND = "", "partitions are empty", "the source is truncated", "the group is far behind"
RECREATED, BACK = "the topic was deleted and created again", "the group goes back, and MirrorMaker copies both ways"
SITUATIONS: Final = (USUAL, EMPTY, TRUNCATED, BEHIND, RECREATED, BACK)  # all but the first by translation alone
SEEDS: Final = (1, 2, 3, 4, 5)
TRIES: Final = 2  # of what the machine made unknown
Cell = tuple[str, str, str, int]  # way, policy, situation, seed


@dataclass(frozen=True)
class FailOverRow:
    """One trial. Of the records that the group had committed past when it left: how many it has been told to do again
    (`back`), and how many a translation explains (`bound`, None: not known); and how many it was told to leave out
    (`ahead`). `lost`: records that nobody handled, by the verdict; `again`: deliveries of records that had been
    delivered before."""

    way: str
    policy: str
    seed: int
    verdict: str
    violations: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    figures: Mapping[str, int | None] = field(default_factory=dict)
    kafka: str = ""
    digest: str = ""
    commit: str = ""
    situation: str = USUAL


def scenario_of(way: str, policy: str, situation: str = USUAL) -> Scenario:
    """Returns the suite's scenario, by one way and under one policy, in one of SITUATIONS."""
    asked = registry.find_scenario(SUITE)
    steps = tuple(replace(step, options={"way": way}) for step in asked.schedule)
    asked = replace(
        asked, name=f"{SUITE}-{way}-{policy}", schedule=steps, mirror=replace(asked.mirror or Mirror(), policy=policy)
    )
    if situation == EMPTY:  # so few records that some partitions are empty when the group leaves
        load = replace(asked.load, opening_burst=20, rate_per_s=50, key_count=2000)
        return replace(asked, topic=Topic(partitions=80), load=load, schedule=(replace(steps[0], at_s=1),))
    if situation == TRUNCATED:
        deleted = Step("records-deleted", "all", at_s=1, for_s=2, options={"once_due": True})
        return replace(asked, schedule=(deleted, replace(steps[0], at_s=3, after="healed")))
    if situation == RECREATED:
        return replace(asked, mirror=replace(asked.mirror or Mirror(), policy=policy, source_topics_recreated=True))
    if situation == BACK:
        back = Step("fail-back", "all", at_s=1, for_s=2, after="stable")
        mirror = replace(asked.mirror or Mirror(), policy=policy, both_ways=True)
        return replace(asked, schedule=(*steps, back), mirror=mirror)
    if situation == BEHIND:  # it handles some hundred records a second
        return replace(asked, load=replace(asked.load, opening_burst=6000, rate_per_s=1200))
    return asked


def cells() -> list[Cell]:
    """Returns what is tried: way, policy, situation and seed; each kind once before one is tried again."""
    kinds = [(way, policy, USUAL) for way in WAYS for policy in MIRROR_POLICIES]
    kinds += [("translated", policy, situation) for situation in SITUATIONS[1:] for policy in MIRROR_POLICIES[:1]]
    return [(*kind, seed) for seed in SEEDS for kind in kinds]


def digest() -> str:
    """Returns what a row was made by: harness, consumer and what is asked."""
    asked = repr([scenario_of(*kind) for *kind, _ in cells()])
    return text_digest(making_digest(), judging_digest(), consumer_digest(registry.find_consumer(CONSUMER)), asked)


def try_missing(*, until_s: float | None, say: Callable[[str], object]) -> None:
    """Tries what has no answer of today yet, each kind once before one is tried again, and appends its rows; begins
    none after `until_s`."""
    file, made_by = reports_folder() / ROWS_NAME, digest()
    own = [row for row in read_rows(file) if row.digest == made_by]
    done = {_cell(row) for row in own if row.verdict != "unknown"}
    tried = [_cell(row) for row in own]
    with Session(console=Console(quiet=True)) as session:
        for cell in cells():
            if cell in done or tried.count(cell) >= TRIES:
                continue
            if until_s is not None and time.monotonic() > until_s:
                return
            row = replace(_tried(session, *cell), digest=made_by, commit=git_revision())
            append_row(file, row)
            told = [row.way, row.policy, *([row.situation] if row.situation else []), f"seed {row.seed}"]
            say(f"{', '.join(told)}: {', '.join([row.verdict, *row.violations])}")


def _cell(row: FailOverRow) -> Cell:
    return row.way, row.policy, row.situation, row.seed


def _tried(session: Session, way: str, policy: str, situation: str, seed: int) -> FailOverRow:
    folder = RUNS / f"{way}-{policy}-{SITUATIONS.index(situation)}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    spec = make_trial_spec(scenario_of(way, policy, situation), registry.find_consumer(CONSUMER), seed=seed)
    ((_, outcome),) = session.try_many([TrialRequest(spec, folder)])
    if isinstance(outcome, KafkaTrialError):
        return FailOverRow(way, policy, seed, "unknown", reasons=(str(outcome),), situation=situation)
    return replace(row_of(outcome, way, policy, seed), situation=situation)


def row_of(outcome: TrialOutcome, way: str, policy: str, seed: int) -> FailOverRow:
    """Returns what came of a trial."""
    verdict = outcome.verdict
    counted = {name: verdict.counts.get(name, 0) for name in ("skipped", "redelivered", "illegal-redelivery")}
    figures = {"lost": counted["skipped"], "again": counted["redelivered"] + counted["illegal-redelivery"]}
    return FailOverRow(
        way,
        policy,
        seed,
        verdict.verdict,
        tuple(sorted({one.anomaly for one in verdict.violations})),
        verdict.reasons,
        figures | moves_of(outcome.folder),
        outcome.folder.read_json("run.json")["kafka"],
    )


def moves_of(folder: RunFolder) -> dict[str, int | None]:
    """Returns how far back and ahead of its last positions the group was told to begin, and how far back a translation
    explains, over all partitions; nothing where it never came to the mirror."""
    told = next((line for line in raw_lines(folder.history / "run.jsonl") if line["kind"] == "failed_over"), None)
    if told is None:
        return {}
    entries = [entry for entry in told["entries"] if entry["committed_offset"] is not None]
    begun = [(entry["started_offset"], entry["committed_offset"]) for entry in entries]
    moves = [there - committed for there, committed in begun if there is not None]
    bounds = [entry["earliest_offset"] for entry in entries]
    whole = None if None in bounds else sum(entry["committed_offset"] - entry["earliest_offset"] for entry in entries)
    return {"back": -sum(min(0, one) for one in moves), "ahead": sum(max(0, one) for one in moves), "bound": whole}


def read_rows(file: Path) -> list[FailOverRow]:
    """Returns the rows of a file, see `row_files.py`."""
    return rows_in(file, _of_table)


def _of_table(table: dict[str, Any]) -> FailOverRow:
    return FailOverRow(**(table | {name: tuple(table[name]) for name in ("violations", "reasons")}))


def newest(rows: Sequence[FailOverRow]) -> Iterator[FailOverRow]:
    """Yields of each trial the last row, of those that the newest harness made."""
    by_cell = {_cell(row): row for row in rows if row.digest == rows[-1].digest}
    yield from by_cell.values()

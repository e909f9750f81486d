"""Case 4, two cures as trials: a topic of their own for large records, and a claim check in place of the payload.

Each is measured beside the same consumer without it, on the same orders: the most memory of its member, how long the
backlog took, and how long its small records did; judged as any trial is. Of two topics each has a consumer, and a
trial of its own: brokers that both share are not measured.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from kafka_trial import registry
from kafka_trial.errors import KafkaTrialError, UnjudgeableError
from kafka_trial.history.store import HistoryTail, RunFolder
from kafka_trial.report.row_files import append_row, rows_in
from kafka_trial.trial.console import Console
from kafka_trial.trial.consumer_files import folder_digest
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.spec import make_trial_spec
from kafka_trial.workload.payload import PayloadFiles
from lab.calibration.source_digests import judging_digest, making_digest
from lab.cases.large_records import PLAIN, value_of
from lab.repository import git_revision, reports_folder

ROWS_NAME: Final = "large_record_cures.jsonl"
FOLDER: Final = registry.CHECKOUT / "fixtures" / "large-records"
RUNS: Final = Path("trial-runs") / "large-records"
LARGE_BYTES, SMALL_BYTES = 1_000_000, 1_000
SMALL_FOR_EACH: Final = 4  # so many small records for each large one
SEED: Final = 1
LANES: Final = 4
SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True)
class CureCell:
    """One trial: a scenario and a consumer of `fixtures/large-records`, how many records the backlog has where that is
    another number than the scenario's, and which samples they are of: (size in bytes, how many such files)."""

    name: str
    scenario: str
    consumer: str
    records: int | None = None
    samples: tuple[tuple[int, int], ...] = ()

    def request(self) -> TrialRequest:
        """Returns the trial to ask for, in an empty folder of its own."""
        folder, values = RUNS / self.name, RUNS / f"{self.name}-values"
        for old in (folder, values):
            shutil.rmtree(old, ignore_errors=True)
        scenario = registry.find_scenario(str(FOLDER / f"{self.scenario}.toml"))
        if self.records is not None:
            scenario = replace(scenario, load=replace(scenario.load, opening_burst=self.records))
        trial_spec = make_trial_spec(scenario, FOLDER / f"{self.consumer}.toml", seed=SEED)
        if self.samples:
            trial_spec = replace(trial_spec, payload=PayloadFiles(samples=_written(values, self.samples)))
        return TrialRequest(trial_spec, folder)


SMALL, LARGE = (SMALL_BYTES, SMALL_FOR_EACH), (LARGE_BYTES, 1)
CELLS: Final = (
    CureCell("payload-in-kafka", "backlog", "default-prefetch"),
    CureCell("claim-check", "references", "claim-check"),
    CureCell("one-topic", "mixed", "default-prefetch", samples=(SMALL, LARGE)),
    CureCell("small-topic", "mixed", "default-prefetch", 480, (SMALL,)),
    CureCell("large-topic", "mixed", "default-prefetch", 120, (LARGE,)),
)


@dataclass(frozen=True)
class Drained:
    """What a run's history says of its opening backlog. `peak_bytes`: the most memory of its member, by samples of once
    a second. From when the first record was handed out: `drain_s` until the last one was done, `small_s` until the
    last small one was; None where one is undone, or there is none."""

    peak_bytes: int
    drain_s: float | None
    small_s: float | None
    records: int
    small: int


@dataclass(frozen=True)
class CureRow:
    """One trial: its verdict, and what was measured."""

    cell: str
    seed: int
    verdict: str
    violations: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    drained: Drained | None = None
    kafka: str = ""
    digest: str = ""
    commit: str = ""


def digest() -> str:
    """Returns what a row was made by: harness, consumers and scenarios, and this module."""
    return f"{making_digest()}-{judging_digest()}-{folder_digest(FOLDER)}"


def try_missing(wanted: Sequence[CureCell], *, until_s: float | None, say: Callable[[str], object]) -> None:
    """Tries what has no row of today yet, one after the other, and appends its rows; begins none after `until_s`."""
    file = reports_folder() / ROWS_NAME
    done = {row.cell for row in read_rows(file) if row.digest == digest()}
    asked = {cell.request(): cell for cell in wanted if cell.name not in done}
    if not asked:
        return
    with Session(console=Console(quiet=True), lanes=LANES) as session:
        for request, outcome in session.try_many(list(asked), side_by_side=1, until_s=until_s):
            row = row_of(asked[request], outcome)
            append_row(file, row)
            say(f"{row.cell}: {', '.join([row.verdict, *row.violations, *row.reasons])}; {row.drained}")


def row_of(cell: CureCell, outcome: TrialOutcome | KafkaTrialError) -> CureRow:
    """Returns what came of a trial."""
    about: dict[str, Any] = {"cell": cell.name, "seed": SEED, "digest": digest(), "commit": git_revision()}
    if isinstance(outcome, KafkaTrialError):
        return CureRow(verdict="not begun", reasons=(str(outcome),), **about)
    verdict = outcome.verdict
    return CureRow(
        verdict=verdict.verdict,
        violations=tuple(sorted({one.anomaly for one in verdict.violations})),
        reasons=tuple(verdict.reasons),
        drained=drained_of(outcome.folder, cell),
        kafka=outcome.folder.read_json("run.json")["kafka"],
        **about,
    )


def drained_of(folder: RunFolder, cell: CureCell) -> Drained:
    """Returns what the history says of the backlog: the records that were sent first, as many as it has.

    Raises:
        UnjudgeableError: it was not acknowledged, or nobody was sampled.
    """
    sizes, places = _sent(folder)
    backlog = cell.records or registry.find_scenario(str(FOLDER / f"{cell.scenario}.toml")).load.opening_burst
    opening = {*list(sizes)[:backlog]}
    first = [place for place, record in places.items() if record in opening]
    told = list(HistoryTail(folder.history, "consumer-*.jsonl").new_events())
    begun = [one.time_ns for one in told if one.kind == "delivered"]
    peaks = [
        int(one.details["rss_bytes"])
        for one in HistoryTail(folder.history, "run.jsonl").new_events()
        if one.kind == "resources"
    ]
    if not first or not begun or not peaks:
        raise UnjudgeableError(f"{folder.path}: no record was acknowledged and handed out, or no memory was sampled")
    done = {(one.partition, one.offset): one.time_ns for one in reversed(told) if one.kind == "processed"}
    small = [place for place in first if sizes[places[place]] <= SMALL_BYTES]
    return Drained(
        peak_bytes=max(peaks),
        drain_s=_last_s(first, done, min(begun)),
        small_s=_last_s(small, done, min(begun)),
        records=len(first),
        small=len(small),
    )


def read_rows(file: Path) -> list[CureRow]:
    """Returns the rows of a file, see `row_files.py`."""
    return rows_in(file, _of_table)


Place = tuple[int | None, int | None]


def _sent(folder: RunFolder) -> tuple[dict[str | None, int], dict[Place, str | None]]:
    """Returns the size of each record by its id, in the order of sending, and the id at each place of the log."""
    sends = [one for one in HistoryTail(folder.history, "workload.jsonl").new_events() if one.kind == "send"]
    sizes = {one.id: int(one.details["size_bytes"]) for one in sends if one.outcome == "invoke"}
    return sizes, {(one.partition, one.offset): one.id for one in sends if one.outcome == "ok"}


def _last_s(places: Sequence[Place], done: Mapping[Place, int], since_ns: int) -> float | None:
    if not places or any(place not in done for place in places):
        return None
    return round((max(done[place] for place in places) - since_ns) / SECOND_NS, 3)


def _written(folder: Path, samples: Sequence[tuple[int, int]]) -> Path:
    """Writes so many samples of each size, none like another, and returns the folder."""
    folder.mkdir(parents=True)
    for size_bytes, count in samples:
        for number in range(count):
            value = value_of(PLAIN, size_bytes)[:-1] + bytes([number])
            (folder / f"{size_bytes}-{number}").write_bytes(value)
    return folder


def _of_table(table: Mapping[str, Any]) -> CureRow:
    drained = None if table["drained"] is None else Drained(**table["drained"])
    nested: dict[str, Any] = {name: tuple(table[name]) for name in ("violations", "reasons")}
    return CureRow(**(dict(table) | nested | {"drained": drained}))

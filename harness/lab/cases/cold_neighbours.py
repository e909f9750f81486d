"""Case 3: what a neighbour that reads cold segments does to a group at the end of the log, against a control.

Each seed is tried twice: with the neighbour of the suite cold-neighbour, and without it. The same group, load and
topic; the same seconds are looked at. Rows are appended to `reports/cold_neighbours.jsonl`; what made them is part of
them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from kafka_trial import registry
from kafka_trial.errors import KafkaTrialError
from kafka_trial.history.event import Event
from kafka_trial.history.store import RunFolder
from kafka_trial.report.row_files import append_row, rows_in
from kafka_trial.scenario import Scenario
from kafka_trial.trial.console import Console
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.spec import make_trial_spec
from lab.calibration.source_digests import judging_digest, making_digest
from lab.cases.crash_campaign import consumer_digest, text_digest
from lab.repository import git_revision, reports_folder

CASE: Final = 3
ROWS_NAME: Final = "cold_neighbours.jsonl"
RUNS: Final = Path("trial-runs") / "cold-neighbours"
CONSUMER: Final = "python-batch-auto-commit/prompt"
SUITE: Final = "cold-neighbour"
FAULT: Final = "cold-reads"
SEEDS: Final = (1, 2, 3, 4, 5)
NS_PER_MS: Final = 1e6
NS_PER_S: Final = 1e9
FIGURES: Final = {  # what is measured of each trial, and what it is
    "handled_p50_ms": "from the send of a record until it was handled, median",
    "handled_p99_ms": "the same, of 99 in 100",
    "handled_max_ms": "the same, the longest",
    "acknowledged_p50_ms": "from the send until its acknowledgement, median",
    "acknowledged_p99_ms": "the same, of 99 in 100",
    "lag_records": "records sent and not handled yet, the most at one time",
}


@dataclass(frozen=True)
class ColdNeighbourRow:
    """One trial; `figures`: those of FIGURES, of the records that were sent while the neighbour was at work, or would
    have been; `told`: what shows that it read from the disks."""

    neighbour: bool
    seed: int
    verdict: str
    violations: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    bit: bool = False
    told: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    kafka: str = ""
    digest: str = ""
    commit: str = ""

    @property
    def usable(self) -> bool:
        """Whether it ran as asked: its figures count, whatever the verdict is."""
        return bool(self.figures) and (self.bit or not self.neighbour)


def scenario_of(*, neighbour: bool) -> Scenario:
    """Returns the suite's scenario; without the neighbour it lasts as long."""
    asked = registry.find_scenario(SUITE)
    if neighbour:
        return asked
    (step,) = asked.schedule
    return replace(asked, name=f"{SUITE}-control", schedule=(), min_faults_s=step.at_s + step.for_s)


def digest() -> str:
    """Returns what a row was made by: harness, consumer and what is asked."""
    asked = repr([scenario_of(neighbour=one) for one in (True, False)])
    return text_digest(making_digest(), judging_digest(), consumer_digest(registry.find_consumer(CONSUMER)), asked)


def try_missing(*, until_s: float | None, say: Callable[[str], object]) -> None:
    """Tries what has no row of today yet, and appends its rows; begins none after `until_s`."""
    file, made_by = reports_folder() / ROWS_NAME, digest()
    done = {(row.seed, row.neighbour) for row in read_rows(file) if row.digest == made_by and row.usable}
    todo = [(seed, one) for seed in SEEDS for one in (seed % 2 == 1, seed % 2 == 0) if (seed, one) not in done]
    with Session(console=Console(quiet=True)) as session:
        for seed, neighbour in todo:
            if until_s is not None and time.monotonic() > until_s:
                return
            row = replace(_tried(session, seed, neighbour=neighbour), digest=made_by, commit=git_revision())
            append_row(file, row)
            told = ", ".join([row.verdict, *row.violations, f"{row.figures.get('handled_p99_ms', 0):.0f} ms"])
            say(f"{'with' if neighbour else 'without'} the neighbour, seed {seed}: {told}")


def _tried(session: Session, seed: int, *, neighbour: bool) -> ColdNeighbourRow:
    folder = RUNS / f"{'with' if neighbour else 'without'}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    spec = make_trial_spec(scenario_of(neighbour=neighbour), registry.find_consumer(CONSUMER), seed=seed)
    ((_, outcome),) = session.try_many([TrialRequest(spec, folder)])
    if isinstance(outcome, KafkaTrialError):
        return ColdNeighbourRow(neighbour, seed, "not begun", reasons=(str(outcome),))
    return row_of(outcome, seed, neighbour=neighbour)


def row_of(outcome: TrialOutcome, seed: int, *, neighbour: bool) -> ColdNeighbourRow:
    """Returns what came of a trial."""
    verdict = outcome.verdict
    return ColdNeighbourRow(
        neighbour,
        seed,
        verdict.verdict,
        tuple(sorted({one.anomaly for one in verdict.violations})),
        verdict.reasons,
        bool(verdict.faults) and all(fault.bit for fault in verdict.faults),
        "; ".join(fault.evidence for fault in verdict.faults),
        figures_of(outcome.folder),
        outcome.folder.read_json("run.json")["kafka"],
    )


def figures_of(folder: RunFolder) -> dict[str, float]:
    """Returns FIGURES of the records that were sent while the fault was in force, or, without one, while it would have
    been; none where there is no such record."""
    sent: dict[int, int] = {}  # by the number of the send
    acknowledged: dict[tuple[int | None, int | None], tuple[int, int]] = {}
    handled: dict[tuple[int | None, int | None], int] = {}
    window: list[Event] = []
    for event in folder.events():
        place = event.partition, event.offset
        if event.kind == "send" and event.outcome == "invoke":
            sent[event.seq] = event.time_ns
        elif event.kind == "send" and event.outcome == "ok" and event.op in sent:
            acknowledged[place] = sent[event.op], event.time_ns
        elif event.kind == "processed":
            handled[place] = min(event.time_ns, handled.get(place, event.time_ns))
        elif event.kind in ("injected", "healing") or (event.kind == "phase" and event.details["phase"] == "faults"):
            window.append(event)
    begin_ns, end_ns = _window(window)
    times = [
        (sent_ns, acknowledged_ns, handled[place])
        for place, (sent_ns, acknowledged_ns) in acknowledged.items()
        if begin_ns <= sent_ns < end_ns and place in handled
    ]
    return _figures(np.array(times, np.int64)) if times else {}


def _window(events: Iterable[Event]) -> tuple[int, int]:
    """Returns from when to when the fault was in force; without one, from and to when it is asked for."""
    at_ns = {event.kind: event.time_ns for event in events}
    (step,) = registry.find_scenario(SUITE).schedule
    begin_ns = at_ns.get("injected", at_ns["phase"] + int(step.at_s * NS_PER_S))
    return begin_ns, at_ns.get("healing", begin_ns + int(step.for_s * NS_PER_S))


def _figures(times: Any) -> dict[str, float]:
    """`times`: of each record when it was sent, acknowledged and handled, in nanoseconds."""
    sent, acknowledged, handled = times.T
    took_ms = {"handled": (handled - sent) / NS_PER_MS, "acknowledged": (acknowledged - sent) / NS_PER_MS}
    found = {f"{name}_p{part}_ms": float(np.percentile(took_ms[name], part)) for name in took_ms for part in (50, 99)}
    steps = np.concatenate([np.ones(len(sent), np.int64), -np.ones(len(handled), np.int64)])
    order = np.argsort(np.concatenate([sent, handled]), kind="stable")
    found |= {"handled_max_ms": float(took_ms["handled"].max()), "lag_records": float(np.cumsum(steps[order]).max())}
    return {name: round(found[name], 1) for name in FIGURES}


def read_rows(file: Path) -> list[ColdNeighbourRow]:
    """Returns the rows of a file, see `row_files.py`."""
    return rows_in(file, _of_table)


def _of_table(table: dict[str, Any]) -> ColdNeighbourRow:
    return ColdNeighbourRow(**(table | {name: tuple(table[name]) for name in ("violations", "reasons")}))


def control_pairs(rows: Sequence[ColdNeighbourRow]) -> list[tuple[ColdNeighbourRow, ColdNeighbourRow]]:
    """Returns of each seed the trial without and the one with the neighbour, the last of each that was as asked; of the
    newest rows."""
    newest = [row for row in rows if row.digest == rows[-1].digest and row.usable] if rows else []
    by_seed = {(row.seed, row.neighbour): row for row in newest}
    seeds = sorted({seed for seed, _ in by_seed})
    return [
        (by_seed[seed, False], by_seed[seed, True])
        for seed in seeds
        if (seed, True) in by_seed and (seed, False) in by_seed
    ]

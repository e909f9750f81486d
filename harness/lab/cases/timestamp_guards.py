"""Case 2, without a crash: one entity's records come from several partitions at once, and the newest is to stand.

Each guard keeps a row for each entity and compares timestamps; one does so in the write itself, the other looks before
it works. No member is hurt: the records have no key, so that those of one entity are with several members at once. That
they were is counted from the handlers' own lines; a trial without it says nothing of a guard.
"""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kafka_trial import registry
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.errors import KafkaTrialError
from kafka_trial.history.event import Event
from kafka_trial.report.row_files import append_row, rows_in
from kafka_trial.scenario import Burst, Load, Scenario, scenario_to_table
from kafka_trial.trial.console import Console
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.spec import make_trial_spec
from lab.calibration.source_digests import judging_digest, making_digest
from lab.cases.crash_campaign import RUNS, consumer_digest, text_digest
from lab.repository import git_revision, reports_folder

ROWS_NAME: Final = "timestamp_guards.jsonl"
SEED: Final = 5
UNKEYED: Final = Scenario(
    "unkeyed-entities",
    "records of twenty entities without a key, a burst in the end, no faults",
    load=Load(
        opening_burst=500, keyed=False, entities=True, key_count=20, quiet_after_s=3.0, bursts=(Burst(2.5, 300),)
    ),
    min_faults_s=4.0,
)


@dataclass(frozen=True)
class Guard:
    """One way to keep an older record from writing over a newer one; `keeps`: whether it does."""

    name: str
    title: str
    consumer: str
    keeps: bool


GUARDS: Final = (
    Guard(
        "guard-atomic",
        "a condition in the write itself",
        "fixtures/crash-matrix/newest-by-one-statement.toml",
        keeps=True,
    ),
    Guard("guard-racy", "a look before the work", "fixtures/faulty/checks-before-it-writes/consumer.toml", keeps=False),
)


@dataclass(frozen=True)
class GuardRow:
    """One trial of a guard. `at_once`: how many pairs of records of one entity two members had in hand at one time;
    `stale`: how many rows ended with an older record than they had shown."""

    guard: str
    seed: int
    at_once: int
    stale: int
    verdict: str
    violations: tuple[str, ...]
    told: str
    digest: str
    versions: dict[str, Any]
    commit: str
    kafka_version: str = DEFAULT_VERSION

    @property
    def proven(self) -> bool:
        """Whether there was something to guard against, and a verdict."""
        return self.at_once > 0 and self.verdict in ("pass", "fail")


def request_of(guard: Guard, folder: Path, *, seed: int = SEED) -> TrialRequest:
    """Returns the trial to ask for."""
    return TrialRequest(make_trial_spec(UNKEYED, registry.CHECKOUT / guard.consumer, seed=seed), folder)


def try_missing(guards: Sequence[Guard], *, until_s: float | None, say: Callable[[str], object]) -> None:
    """Tries each guard that has no row of today yet, and appends its row; begins none after `until_s`."""
    file = reports_folder() / ROWS_NAME
    done = {(row.guard, row.digest) for row in read_rows(file) if row.proven}
    todo = [guard for guard in guards if (guard.name, digest_of(guard)) not in done]
    if not todo or (until_s is not None and time.monotonic() > until_s):
        return
    with Session(console=Console(quiet=True)) as session:
        for guard in todo:
            folder = RUNS / guard.name
            shutil.rmtree(folder, ignore_errors=True)
            ((_, outcome),) = session.try_many([request_of(guard, folder)], until_s=until_s)
            if isinstance(outcome, KafkaTrialError):
                say(f"{guard.name}: {outcome}")
                continue
            row = row_of(guard, outcome)
            append_row(file, row)
            say(f"{guard.name}: {row.verdict}, {row.stale} rows stale, {row.at_once} pairs at once")


def row_of(guard: Guard, outcome: TrialOutcome, *, seed: int = SEED) -> GuardRow:
    """Returns what came of a trial."""
    verdict, metadata = outcome.verdict, outcome.folder.read_json("run.json")
    return GuardRow(
        guard=guard.name,
        seed=seed,
        at_once=at_once(outcome.folder.events()),
        stale=verdict.counts.get("stale-state", 0),
        verdict=verdict.verdict,
        violations=tuple(sorted({violation.anomaly for violation in verdict.violations})),
        told="; ".join(verdict.reasons),
        digest=digest_of(guard),
        versions={name: metadata[name] for name in ("kafka_trial", "kafka", "toxiproxy", "python")}
        | metadata["libraries"],
        commit=git_revision(),
    )


def at_once(events: Iterable[Event]) -> int:
    """Returns how many pairs of records of one entity were with two members at one time, by when handlers began and
    ended."""
    entities: dict[str | None, str] = {}  # by id: a send says its entity when it begins, its place when it is answered
    places: dict[tuple[int | None, int | None], str | None] = {}
    handled: dict[tuple[str, int | None, int | None], list[int]] = defaultdict(list)
    for event in events:
        place = (event.partition, event.offset)
        if event.kind == "send" and event.details.get("entity") is not None:
            entities[event.id] = event.details["entity"]
        elif event.kind == "send" and event.outcome == "ok":
            places[place] = event.id
        elif event.kind in ("delivered", "processed"):
            handled[event.source, *place].append(event.time_ns)
    spans = [
        (entities.get(places.get(at[1:])), at[0], min(times), max(times))
        for at, times in handled.items()
        if len(times) > 1
    ]
    own: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
    for entity, source, began_ns, ended_ns in spans:
        if entity is not None:
            own[entity].append((source, began_ns, ended_ns))
    return sum(
        one[0] != other[0] and max(one[1], other[1]) < min(one[2], other[2])
        for pieces in own.values()
        for number, one in enumerate(pieces)
        for other in pieces[:number]
    )


def digest_of(guard: Guard) -> str:
    """Returns what a row is made by: the harness, the consumer and what was asked."""
    asked = repr(scenario_to_table(UNKEYED))
    return text_digest(making_digest(), judging_digest(), consumer_digest(registry.CHECKOUT / guard.consumer), asked)


def read_rows(file: Path) -> list[GuardRow]:
    """Returns the rows of a file, see `row_files.py`."""
    return rows_in(file, lambda table: GuardRow(**{**table, "violations": tuple(table["violations"])}))


def standing(rows: Sequence[GuardRow]) -> dict[str, GuardRow]:
    """Returns the row that stands for each guard: the last one that proves something, else the last one."""
    tried = {row.guard: row for row in rows}
    return {**tried, **{row.guard: row for row in rows if row.proven}}

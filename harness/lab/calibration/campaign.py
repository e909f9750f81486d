"""Calibration: every consumer on its suites, several times; the harness itself is on trial here.

Each attempt becomes one line of `reports/calibration.jsonl`, appended and never rewritten: a stopped calibration goes
on where it stopped. A change of what makes histories (`source_digests.py`) begins anew, a changed consumer or scenario
its own trials. A change of the judge alone asks for no trial: the histories that are kept are judged again. The page is
made of the rows and of nothing else.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kafka_trial import registry
from kafka_trial.cluster.wiring import LANES
from kafka_trial.errors import FAIL, PASS, KafkaTrialError
from kafka_trial.history.store import SUFFIX, RunFolder, pack
from kafka_trial.report.explain import TABLE
from kafka_trial.report.row_files import append_row
from kafka_trial.scenario import scenario_to_table
from kafka_trial.trial.console import Console
from kafka_trial.trial.consumer_files import folder_digest
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from lab.calibration.attempts import (
    NOT_BEGUN,
    ROWS_NAME,
    Attempt,
    Row,
    ask,
    at_times_of,
    expected_of,
    grid,
    header_of,
    newest,
    read_rows,
    shuffled,
)
from lab.calibration.page import page
from lab.calibration.source_digests import judging_digest, making_digest
from lab.calibration.table import committed_table, table_bytes
from lab.repository import git_revision, reports_folder

PAGE = "calibration.md"
RUNS = Path("trial-runs") / "calibration"
LANES_EACH = 6  # of a trial of three members
STORED = Path("fixtures") / "histories" / "zoo"


def calibrate(
    *,
    times: int,
    minutes: float | None,
    only: Sequence[str] | None,
    suites: Sequence[str] | None = None,
    sinning: bool = False,
    side_by_side: int | None = None,
    store: bool = False,
    shuffle: int | None = None,
) -> int:
    """Runs what is missing of the grid, then writes the page; begins no trial after `minutes`.

    `sinning` leaves the sound ones out. With `shuffle` the order is drawn at random from that seed: what is done when
    time is up is a fair sample of all. Of a trial that came out as it must what was asked and seen is kept, to be
    judged again; of any other all, and it is named. With `store` the first right trial of each sin and twin is packed
    into `fixtures/histories/zoo`, where none of it lies there yet.

    Raises:
        InputError: this is no checkout, or `only` or `suites` name what does not exist.
    """
    rows = reports_folder() / ROWS_NAME
    tried = [row for row in read_rows(rows) if row.making_digest == making_digest() and row.verdict != NOT_BEGUN]
    done = {(row.attempt, row.trial_digest): row for row in tried}
    attempts = [attempt for attempt in grid(times=times, only=only, suites=suites) if attempt.sin or not sinning]
    wanted = [(one, trial_digest(one)) for one in (attempts if shuffle is None else shuffled(attempts, seed=shuffle))]
    todo = [attempt for attempt, digest in wanted if (attempt, digest) not in done]
    until_s = None if minutes is None else time.monotonic() + minutes * 60
    with Console() as console:
        _judge_again([done[one] for one in wanted if one in done], rows, console)
    # Where there is no time at all none is begun, and what is kept of earlier trials stays.
    asked = {request_of(attempt): attempt for attempt in (todo if minutes != 0 else ())}
    ended = 0
    lanes = max(LANES, LANES_EACH * (side_by_side or 1))
    with Console() as console, Session(console=Console(quiet=True), lanes=lanes) as session:
        for one, outcome in session.try_many(list(asked), side_by_side=side_by_side, until_s=until_s):
            ended += 1
            row = row_of(asked[one], outcome)
            try:
                if store and isinstance(outcome, TrialOutcome) and row.as_expected:
                    row = replace(row, stored=_store(row.attempt, outcome.folder))
            finally:
                append_row(rows, row)  # whatever became of the store
            console.say(f"{ended}/{len(todo)} {asked[one]} seed {asked[one].seed}: {_told(row, one)}")
        if ended < len(todo):
            console.say(f"time is up: {len(todo) - ended} of {len(todo)} trials still to run")
    return write_page()


def write_page() -> int:
    """Writes the page and the wheel's table; 1 when a row of the newest source contradicts what it must show."""
    folder = reports_folder()
    rows = read_rows(folder / ROWS_NAME)
    (folder / PAGE).write_text(page(rows))
    TABLE.write_bytes(table_bytes(committed_table(folder)))
    return PASS if all(row.as_expected for row in newest(rows)) else FAIL


def stored_history(attempt: Attempt) -> Path | None:
    """Returns where the history of a sin or a twin is stored, on its header's suite; None for references, what has no
    sin, and the silent."""
    header = header_of(attempt.consumer)
    if attempt.sin is False or header is None or registry.is_silent(attempt.consumer):
        return None
    if attempt.scenario != header.suite:
        return None
    return registry.CHECKOUT / STORED / f"{attempt.consumer}{SUFFIX}"


def stored_digest(file: Path) -> str:
    """Returns what a row calls the stored history of its very trial by."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def source_digest() -> str:
    """Returns a digest of the harness: rows of another one are not taken for this one's."""
    return folder_digest(registry.PACKAGE)


def trial_digest(attempt: Attempt) -> str:
    """Returns a digest of an attempt's consumer and scenario: once they have changed, it is tried again."""
    scenario = repr(scenario_to_table(registry.find_scenario(attempt.scenario)))
    consumer = folder_digest(registry.find_consumer(attempt.consumer).parent)
    return hashlib.sha256(f"{consumer} {scenario}".encode()).hexdigest()[:16]


def _judge_again(rows: Sequence[Row], file: Path, console: Console) -> None:
    """Judges those of the rows again whose judge has changed, or what they must show, and whose history is kept;
    appends what comes out."""
    from kafka_trial.check import check_run

    for row in rows:
        folder = RunFolder(_folder(row.attempt) / "run")
        expected, at_times = expected_of(row.attempt), at_times_of(row.attempt)
        same = row.judging_digest == judging_digest() and (row.expected, row.at_times) == (expected, at_times)
        if same or not folder.history.is_dir():
            continue
        verdict = check_run(folder)
        again = replace(
            row,
            verdict=verdict.verdict,
            violations=tuple(sorted({violation.anomaly for violation in verdict.violations})),
            reasons=tuple(verdict.reasons),
            source_digest=source_digest(),
            judging_digest=judging_digest(),
            commit=git_revision(),
            rejudged=True,
            expected=expected,
            at_times=at_times,
        )
        append_row(file, again)
        console.say(
            f"judged again: {row.attempt} seed {row.attempt.seed}: {', '.join([again.verdict, *again.violations])}"
        )


def _folder(attempt: Attempt) -> Path:
    return RUNS / f"{attempt}-seed-{attempt.seed}"


def request_of(attempt: Attempt) -> TrialRequest:
    """Returns the trial to ask for, in an empty folder of its own."""
    folder = _folder(attempt)
    shutil.rmtree(folder, ignore_errors=True)  # of a calibration that was stopped in the midst of this one
    folder.mkdir(parents=True)
    return ask(attempt, folder)


def row_of(attempt: Attempt, outcome: TrialOutcome | KafkaTrialError) -> Row:
    """Returns what came out of an attempt, by the harness and the consumer of today."""
    header = header_of(attempt.consumer)
    about: dict[str, Any] = {
        "expected": expected_of(attempt),
        "at_times": at_times_of(attempt),
        "source_digest": source_digest(),
        "making_digest": making_digest(),
        "judging_digest": judging_digest(),
        "trial_digest": trial_digest(attempt),
        "commit": git_revision(),
        "silent": registry.is_silent(attempt.consumer),
        "twin_of": header.sin if header is not None and header.sound else "",
    }
    if isinstance(outcome, KafkaTrialError):
        return Row(attempt, verdict=NOT_BEGUN, violations=(), reasons=(str(outcome),), faults_bit=(), **about)
    verdict, metadata = outcome.verdict, outcome.folder.read_json("run.json")
    versions = {name: metadata[name] for name in ("kafka_trial", "kafka", "toxiproxy", "python")} | metadata[
        "libraries"
    ]
    return Row(
        attempt,
        verdict=verdict.verdict,
        violations=tuple(sorted({violation.anomaly for violation in verdict.violations})),
        reasons=tuple(verdict.reasons),
        faults_bit=tuple(fault.bit for fault in verdict.faults),
        versions=versions,
        **about,
    )


def _store(attempt: Attempt, folder: RunFolder) -> str:
    """Packs a history where none of its consumer is stored yet; returns the digest of the file, else nothing."""
    file = stored_history(attempt)
    if file is None or file.exists():
        return ""
    pack(folder, file)
    return stored_digest(file)


def _told(row: Row, one: TrialRequest) -> str:
    """Says what came out; of what came out right only spec and history are kept."""
    told = ", ".join([row.verdict, *row.violations])
    assert one.out is not None
    if row.as_expected:
        for name in ("cache", "logs"):
            shutil.rmtree(one.out / name, ignore_errors=True)
        return told
    return f"{told}: NOT as it must be, see {one.out}"

"""The zoo on its stored histories: real trials of every sin and twin, judged again by the judge of today."""

from __future__ import annotations

from pathlib import Path

import pytest

import stored_verdicts
from kafka_trial import registry
from kafka_trial.check import check_run
from kafka_trial.history.store import SUFFIX, unpack
from lab.calibration.attempts import ROWS_NAME, Attempt, Row, at_times_of, expected_of, grid, read_rows
from lab.calibration.campaign import STORED, stored_digest, stored_history
from lab.repository import reports_folder

TOLD = {row.stored: row for row in read_rows(reports_folder() / ROWS_NAME) if row.stored}
ZOO = [attempt for attempt in grid(times=1) if (file := stored_history(attempt)) and file.exists()]


def test_every_stored_history_is_looked_at() -> None:
    """None lies there unread, of a consumer that has gone or is called otherwise; and some do."""
    stored = set((registry.CHECKOUT / STORED).rglob(f"*{SUFFIX}"))
    assert stored
    assert stored == {stored_history(attempt) for attempt in ZOO}


def test_five_histories_or_more_are_of_trials_that_calibration_tells_of() -> None:
    """Their rows say what the judge said then."""
    assert len({stored_digest(file) for attempt in ZOO if (file := stored_history(attempt))} & TOLD.keys()) >= 5


@pytest.mark.spark
@pytest.mark.rotates(every=3)
@pytest.mark.parametrize("attempt", ZOO, ids=str)
def test_a_stored_history_shows_what_its_header_promises(attempt: Attempt, tmp_path: Path) -> None:
    """A sin exactly its anomalies, as far as its evidence goes; a twin none; and all what the row of its trial says."""
    file = stored_history(attempt)
    assert file is not None
    folder = unpack(file, tmp_path / "run")
    verdict = check_run(folder)
    assert stored_verdicts.fresh_verdict(folder) == stored_verdicts.stored_verdict(file)
    row = Row(
        attempt,
        expected_of(attempt),
        verdict.verdict,
        tuple(sorted({violation.anomaly for violation in verdict.violations})),
        tuple(verdict.reasons),
        tuple(fault.bit for fault in verdict.faults),
        silent=registry.is_silent(attempt.consumer),
        at_times=at_times_of(attempt),
    )
    assert row.as_expected, row
    assert all(row.faults_bit)
    told = TOLD.get(stored_digest(file), row)
    assert (told.verdict, told.violations, told.reasons) == (row.verdict, row.violations, row.reasons)

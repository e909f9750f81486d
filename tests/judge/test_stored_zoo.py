"""The zoo on its stored histories: real trials of every sin and twin, judged again by the judge of today."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial import registry
from kafka_trial.calibrate import STORED, stored_history
from kafka_trial.calibration import Attempt, Row, expected_of, grid
from kafka_trial.history.packed import SUFFIX, unpack
from kafka_trial.judging import check_run

ZOO = [attempt for attempt in grid(times=1) if (file := stored_history(attempt)) and file.exists()]


def test_every_stored_history_is_looked_at() -> None:
    """None lies there unread, of a consumer that has gone or is called otherwise; and some do."""
    stored = set((registry.CHECKOUT / STORED).rglob(f"*{SUFFIX}"))
    assert stored
    assert stored == {stored_history(attempt) for attempt in ZOO}


@pytest.mark.spark
@pytest.mark.parametrize("attempt", ZOO, ids=str)
def test_a_stored_history_shows_what_its_header_promises(attempt: Attempt, tmp_path: Path) -> None:
    """A sin exactly its anomalies, as far as its evidence goes; a twin none."""
    file = stored_history(attempt)
    assert file is not None
    verdict = check_run(unpack(file, tmp_path / "run"))
    row = Row(
        attempt,
        expected_of(attempt),
        verdict.verdict,
        tuple(sorted({violation.anomaly for violation in verdict.violations})),
        tuple(verdict.reasons),
        tuple(fault.bit for fault in verdict.faults),
        silent=registry.is_silent(attempt.consumer),
    )
    assert row.as_expected, row
    assert all(row.faults_bit)

"""Records of one entity without a key lie in several partitions: what the entity's row shows when all is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial.cluster.postgres import find_postgres
from kafka_trial.errors import StartError
from kafka_trial.trial.session import Session, TrialOutcome
from lab.cases.timestamp_guards import GUARDS, Guard, request_of, row_of
from requirements import missing

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_only_an_atomic_guard_keeps_the_newest(guard: Guard, kafka_trial_session: Session, tmp_path: Path) -> None:
    """Members write one row at once: a condition in the write holds, a look before it does not."""
    try:
        find_postgres()
    except StartError as error:
        missing("postgres", str(error))
    ((_, outcome),) = kafka_trial_session.try_many([request_of(guard, tmp_path / "run")])
    assert isinstance(outcome, TrialOutcome), outcome
    row = row_of(guard, outcome)
    expected = ("pass", ()) if guard.keeps else ("fail", ("stale-state",))
    assert (row.verdict, row.violations, row.proven) == (*expected, True), outcome.text

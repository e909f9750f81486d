"""The PostgreSQL of a trial dies in the middle of it: nobody is blamed, what there was is kept, and nothing stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial import registry
from kafka_trial.cluster.postgres import find_postgres
from kafka_trial.errors import UNKNOWN, StartError
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.spec import make_trial_spec
from postgres import killed_in_steady
from requirements import missing

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]


def test_a_trial_whose_postgres_was_killed_is_unknown(kafka_trial_session: Session, tmp_path: Path) -> None:
    """Its members exit, for their database is gone; the reason named is the database, and the status 4."""
    try:
        find_postgres()
    except StartError as error:
        missing("postgres", str(error))
    scenario = registry.find_scenario(str(Path(__file__).with_name("quick.toml")))
    trial_spec = make_trial_spec(scenario, registry.find_consumer("python-postgres-upserts"), seed=5)
    run = tmp_path / "run"
    with killed_in_steady(run) as left:
        (outcome,) = (outcome for _, outcome in kafka_trial_session.try_many([TrialRequest(trial_spec, run)]))
    assert isinstance(outcome, TrialOutcome), outcome
    verdict = outcome.verdict
    assert (verdict.verdict, verdict.exit) == ("unknown", UNKNOWN), outcome.text
    assert "the trial's PostgreSQL has died (exit -9)" in verdict.reasons[0], outcome.text
    assert [event for event in outcome.folder.events() if event.kind == "effect"], "what was read before is kept"
    assert (outcome.folder.logs / "postgres.log").stat().st_size > 0
    assert left() == []

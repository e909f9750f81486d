"""Records of one entity without a key lie in several partitions: what the entity's row shows when all is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial import registry
from kafka_trial.cluster.postgres import find_postgres
from kafka_trial.errors import StartError
from kafka_trial.trial.session import Session, Trialed, TrialRequest
from kafka_trial.trial.spec import make_trial_spec
from requirements import missing

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]


@pytest.mark.parametrize(
    ("consumer", "expected"),
    [("python-postgres-newest-orders", ("pass", [])), ("checks-before-it-writes", ("fail", ["stale-state"]))],
)
def test_only_an_atomic_guard_keeps_the_newest(
    consumer: str, expected: tuple[str, list[str]], kafka_trial_session: Session, tmp_path: Path
) -> None:
    """Members write one row at once: a condition in the write holds, a look before it does not."""
    try:
        find_postgres()
    except StartError as error:
        missing("postgres", str(error))
    scenario = registry.find_scenario(str(Path(__file__).with_name("unkeyed-entities.toml")))
    trial_spec = make_trial_spec(scenario, registry.find_consumer(consumer), seed=5)
    (outcome,) = (outcome for _, outcome in kafka_trial_session.try_many([TrialRequest(trial_spec, tmp_path / "run")]))
    assert isinstance(outcome, Trialed), outcome
    verdict = outcome.verdict
    assert (verdict.verdict, [one.anomaly for one in verdict.violations]) == expected, outcome.text

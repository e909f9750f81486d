"""A broker is lost in the commit of a transaction: the consumer that is exactly once stays so."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial import registry
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.spec import make_trial_spec

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]

SCENARIO = Path(__file__).with_name("transaction-coordinator-lost.toml")


def test_a_transaction_survives_its_coordinator(kafka_trial_session: Session, tmp_path: Path) -> None:
    """Killed when it has answered the commit, and before it has it: each broker died there, and the claim holds."""
    scenario = registry.find_scenario(str(SCENARIO))
    trial_spec = make_trial_spec(scenario, registry.find_consumer("python-transactional"), seed=1)
    (outcome,) = (outcome for _, outcome in kafka_trial_session.try_many([TrialRequest(trial_spec, tmp_path / "run")]))
    assert isinstance(outcome, TrialOutcome), outcome
    verdict = outcome.verdict
    assert verdict.verdict == "pass", outcome.text
    assert verdict.claim.delivery == "exactly-once"
    assert {"duplicate-effect", "skipped", "offset-outside-transaction"} <= set(verdict.judged), verdict.judged
    for fault, place in zip(verdict.faults, ("after its answer had arrived", "before the broker had it"), strict=True):
        assert (fault.bit, place in fault.evidence, "ended by signal 9" in fault.evidence) == (True, True, True), fault

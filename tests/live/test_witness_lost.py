"""A witness that dies in mid-trial acquits nobody: the verdict is unknown, and says why."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from kafka_trial import registry
from kafka_trial.errors import KafkaTrialError
from kafka_trial.history.store import HistoryTail
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import wait_until
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.spec import make_trial_spec

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]

WITNESSES = {"offsets_log": "offsets", "request_log": "requests-b0", "observe": "observer"}


@pytest.fixture(scope="module")
def bereft(
    kafka_trial_session: Session, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, TrialOutcome | KafkaTrialError]:
    """Runs a trial for each witness, which is killed with -9 while the load flows; the outcomes by witness."""
    scenario = registry.find_scenario(str(Path(__file__).with_name("quick.toml")))
    trial_spec = make_trial_spec(scenario, registry.find_consumer("python-at-least-once"), seed=5)
    asked = {TrialRequest(trial_spec, tmp_path_factory.mktemp(name) / "run"): name for name in WITNESSES}
    outcomes = {}
    with ThreadGroup("killers") as thread_group:
        for one, name in asked.items():
            assert one.out is not None
            thread_group.start(name, _kill_in_steady, one.out, name)
        for one, outcome in kafka_trial_session.try_many(list(asked)):
            outcomes[asked[one]] = outcome
    return outcomes


@pytest.mark.parametrize("name", WITNESSES)
def test_a_dead_witness_makes_the_verdict_unknown(name: str, bereft: dict[str, TrialOutcome | KafkaTrialError]) -> None:
    """With the witness named, and nobody acquitted or convicted."""
    trial_outcome = bereft[name]
    assert isinstance(trial_outcome, TrialOutcome), trial_outcome
    told = [reason for reason in trial_outcome.verdict.reasons if WITNESSES[name] in reason or name in reason]
    assert trial_outcome.verdict.verdict == "unknown", trial_outcome.text
    assert told, trial_outcome.text
    assert name in (trial_outcome.folder.end_told() or "")


def _kill_in_steady(run: Path, name: str) -> None:
    follower = HistoryTail(run / "history", "run.jsonl")
    wait_until(
        lambda: any(event.details.get("phase") == "steady" for event in follower.new_events()),
        within_s=180,
        what=f"the steady phase of {run}",
    )
    (witness,) = [process for process in psutil.process_iter(["cmdline"]) if _is(process, name, run)]
    witness.kill()


def _is(process: psutil.Process, name: str, run: Path) -> bool:
    given = process.info["cmdline"] or []
    return f"kafka_trial.witness.{name}" in given and str(run / "history") in given

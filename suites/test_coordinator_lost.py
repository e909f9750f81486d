"""The broker that coordinates the group is killed with -9 and started again."""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Scenario, Step

SCENARIO = Scenario(
    name="coordinator-lost",
    summary="the coordinator's broker killed with -9, restarted",
    schedule=(Step("broker-kill", "coordinator", at_s=1, for_s=5),),
)


def test_coordinator_lost(trial: Trial) -> None:
    """Given a group at work, when its coordinator is killed with -9 and comes back, then the claim holds."""
    trial(SCENARIO).must_pass()

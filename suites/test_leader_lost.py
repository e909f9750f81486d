"""The broker that leads a partition is killed with -9 and started again."""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Scenario, Step

SCENARIO = Scenario(
    name="leader-lost",
    summary="a partition leader's broker killed with -9, restarted",
    schedule=(Step("broker-kill", "leader", at_s=1, for_s=5),),
)


def test_leader_lost(trial: Trial) -> None:
    """Given a group at work, when a partition leader is killed with -9 and comes back, then the claim holds."""
    trial(SCENARIO).must_pass()

"""One member's network stands still for longer than its session; connections stay, nothing moves, then all does."""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Scenario, Step

SCENARIO = Scenario(
    name="stalled-network",
    summary="one member's network stalled past its session",
    schedule=(Step("stall", "member", at_s=1, for_s=12),),
)


def test_stalled_network(trial: Trial) -> None:
    """Given a group at work, when one member's network stands still past its session, then the claim holds."""
    trial(SCENARIO).must_pass()

"""Members come and go in quick succession: the group rebalances again and again under load."""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Scenario, Step

SCENARIO = Scenario(
    name="rebalance-storm",
    summary="members join and leave in quick succession",
    schedule=(
        Step("join", "all", at_s=1, for_s=3),
        Step("leave", "member", at_s=5, for_s=3),
        Step("join", "all", at_s=9, for_s=3),
    ),
)


def test_rebalance_storm(trial: Trial) -> None:
    """Given three members at work, when others join and leave in quick succession, then the claim holds."""
    trial(SCENARIO).must_pass()

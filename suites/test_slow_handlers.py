"""Handlers are slow while members come and go: every effect takes 50 ms, so that a rebalance comes amid a batch."""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Load, Scenario, Step

SCENARIO = Scenario(
    name="slow-handlers",
    summary="members join and leave while every effect takes 50 ms",
    load=Load(rate_per_s=200),
    schedule=(
        Step("handler-slow", "all", at_s=1, for_s=12, options={"delay_s": 0.05}),
        Step("join", "all", at_s=4, for_s=4),
        Step("leave", "member", at_s=10, for_s=4),
    ),
)


def test_slow_handlers(trial: Trial) -> None:
    """Given three members with a backlog, when others join and leave amid their work, then the claim holds."""
    trial(SCENARIO).must_pass()

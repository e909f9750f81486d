"""A new version of the consumer goes out: member after member is told to stop, and comes back as a new process."""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Scenario, Step

SCENARIO = Scenario(
    name="rolling-deploy",
    summary="members stopped with SIGTERM and started again, one after the other",
    schedule=tuple(Step("terminate", "member", at_s=at_s, for_s=1) for at_s in (1, 7, 13)),
)


def test_rolling_deploy(trial: Trial) -> None:
    """Given three members at work, when one after the other is stopped and started again, then the claim holds."""
    trial(SCENARIO).must_pass()

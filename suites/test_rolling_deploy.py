"""As in a deployment, a member is told to stop and comes back as a new process; twice more, whichever it is."""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Scenario, Step

SCENARIO = Scenario(
    name="rolling-deploy",
    summary="a member stopped with SIGTERM, started again, three times",
    schedule=tuple(Step("terminate", "member", at_s=at_s, for_s=1) for at_s in (1, 7, 13)),
)


def test_rolling_deploy(trial: Trial) -> None:
    """Given three members at work, when one is stopped and started again, three times, then the claim holds."""
    trial(SCENARIO).must_pass()

"""As in a deployment, a member is told to stop and comes back as a new process; twice more, whichever it is.

Each when the group has taken the last one in again, as a deployment waits for readiness.
"""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Scenario, Step

SCENARIO = Scenario(
    name="rolling-deploy",
    summary="a member stopped with SIGTERM, started again, three times",
    schedule=(
        Step("terminate", "member", for_s=1),
        Step("terminate", "member", for_s=1, after="stable"),
        Step("terminate", "member", for_s=1, after="stable"),
    ),
)


def test_rolling_deploy(trial: Trial) -> None:
    """Given three members at work, when one is stopped and started again, three times, then the claim holds."""
    trial(SCENARIO).must_pass()

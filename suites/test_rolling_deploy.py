"""As in a deployment, each member is told to stop and comes back as a new process, one after the other.

Each when the group has taken the last one in again, as a deployment waits for readiness.
"""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Scenario, Step

SCENARIO = Scenario(
    name="rolling-deploy",
    summary="each member stopped with SIGTERM and started again, one after the other",
    schedule=(Step("terminate", "each-member", for_s=1, after="stable"),),
)


def test_rolling_deploy(trial: Trial) -> None:
    """Given three members at work, when each of them is stopped and started again in turn, then the claim holds."""
    trial(SCENARIO).must_pass()

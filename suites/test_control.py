"""No faults: what a consumer does on a healthy cluster. Every other suite is read against this one."""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Scenario

SCENARIO = Scenario(
    name="control",
    summary="no faults",
    min_faults_s=3,
)


def test_control(trial: Trial) -> None:
    """Given three members on a healthy cluster, when nothing is broken, then the claim holds."""
    trial(SCENARIO).must_pass()

"""Every broker is stopped in order and started again, one after the other, as an operator would."""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Scenario, Step

SCENARIO = Scenario(
    name="rolling-restart",
    summary="all brokers restarted, one after the other",
    schedule=(Step("rolling-restart", "all", at_s=1, for_s=0),),
)


def test_rolling_restart(trial: Trial) -> None:
    """Given a group at work, when every broker is restarted in turn, then the claim holds."""
    trial(SCENARIO).must_pass()

"""One member is frozen for longer than its session, whatever it told the brokers: the group gives its partitions away,
then it wakes up.
"""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Scenario, Step

SCENARIO = Scenario(
    name="member-paused",
    summary="one member stopped (SIGSTOP) past its session, then continued",
    schedule=(Step("pause", "member", at_s=1, for_s=10, options={"expire_session": True}),),
)


def test_member_paused(trial: Trial) -> None:
    """Given three members at work, when one is frozen past its session and woken again, then the claim holds."""
    trial(SCENARIO).must_pass()

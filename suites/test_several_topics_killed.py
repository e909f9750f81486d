"""As several-topics, and a member is killed with -9 in mid-work and comes back as a new process.

The new owner of a partition goes on at the committed offset of that partition, of that topic.
"""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import FurtherTopic, Scenario, Step

SCENARIO = Scenario(
    name="several-topics-killed",
    summary="a group that reads a large topic and a small one; a member is killed with -9 and restarted",
    schedule=(Step("kill", "member", for_s=2),),
    further_topics=(FurtherTopic("small", opening_burst=1000, rate_per_s=60),),
)


def test_several_topics_killed(trial: Trial) -> None:
    """Given a group that reads two topics, when a member is killed and started again, then the claim holds on both."""
    trial(SCENARIO).must_pass()

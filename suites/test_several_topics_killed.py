"""As several-topics, and a member is killed with -9 in mid-work and comes back as a new process.

Whoever takes its partitions over goes on where the commits of each topic say.
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

"""A topic comes while a group is at work that subscribes by a pattern: it is one of its topics from then on.

Who subscribes by a pattern learns of the topic within its metadata age, or from its coordinator (KIP-848); by then the
topic has records. The drain is long enough for the default age of five minutes.
"""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import FurtherTopic, Limits, Scenario, Step, Topic

SCENARIO = Scenario(
    name="topic-created",
    summary="a topic is created that the group's pattern matches, and gets records at once",
    schedule=(Step("topic-created", "all", at_s=1, for_s=12, options={"topic": "new"}),),
    further_topics=(FurtherTopic("new", topic=Topic(partitions=4), opening_burst=1000, rate_per_s=60, later=True),),
    limits=Limits(drain_s=420),
)


def test_topic_created(trial: Trial) -> None:
    """Given a group that subscribes by a pattern, when a topic comes that it matches, then the claim holds on both."""
    trial(SCENARIO).must_pass()

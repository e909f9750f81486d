"""A group that reads a large topic and a small one: neither waits for the other, and each has positions of its own.

With a claim of `lag_age_max_s`, no record of the small topic may wait until the large one is done.
"""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import FurtherTopic, Scenario

SCENARIO = Scenario(
    name="several-topics",
    summary="a group that reads a large topic and a small one, at work for some seconds",
    min_faults_s=8.0,
    further_topics=(FurtherTopic("small", opening_burst=1000, rate_per_s=60),),
)


def test_several_topics(trial: Trial) -> None:
    """Given a group that reads two topics, when nothing happens, then the claim holds on both."""
    trial(SCENARIO).must_pass()

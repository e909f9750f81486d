"""Partitions are added while runs of one key wait to be done: most keys belong to another partition from then on.

Who reads the topic notices within its metadata age; the drain is long enough for the default of five minutes.
"""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Burst, Limits, Load, Scenario, Step, Topic

SCENARIO = Scenario(
    name="partitions-added",
    summary="12 partitions become 20 while hot keys come in bursts",
    topic=Topic(partitions=12),
    load=Load(
        rate_per_s=150, keys="runs", bursts=tuple(Burst(at_s=second + 0.5, records=600) for second in range(1, 7))
    ),
    schedule=(Step("partitions-added", "all", at_s=1, for_s=12),),
    limits=Limits(drain_s=420),
)


def test_partitions_added(trial: Trial) -> None:
    """Given a topic in use, when keys move to partitions that were added, then the claim holds."""
    trial(SCENARIO).must_pass()

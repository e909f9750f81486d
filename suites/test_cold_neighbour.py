"""Another group reads rolled segments from the disks, over and over, while the group on trial reads the end of the log.

A claim of `lag_age_max_s` is kept beside it, too: a neighbour excuses nobody.
"""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Load, Scenario, Step, Topic

SCENARIO = Scenario(
    name="cold-neighbour",
    summary="another group reads rolled segments that only the disks have, and never commits",
    topic=Topic(configs={"segment.bytes": "1048576"}),
    load=Load(opening_burst=2000, rate_per_s=200, size_bytes_min=10_000, size_bytes_max=10_000),
    schedule=(Step("cold-reads", "all", at_s=1, for_s=8),),
)


def test_cold_neighbour(trial: Trial) -> None:
    """Given a group at the end of its log, when another reads what only the disks have, then the claim holds."""
    trial(SCENARIO).must_pass()

"""A third of the records have no value, a third no key, and a member is killed in mid-work.

In a compacted topic a record without a value deletes its key: whoever reads the topic meets one sooner or later. It is
a record like any other, to be handled once and in order. Only consumers whose team is ready for it are asked.
"""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Load, Scenario, Step

SCENARIO = Scenario(
    name="tombstones",
    summary="a third of the records have no value and a third no key; a member killed with -9, restarted",
    load=Load(null_values=1 / 3, null_keys=1 / 3),
    schedule=(Step("kill", "member", for_s=2),),
)


def test_tombstones(trial: Trial) -> None:
    """Given records without a value or a key, when a member is killed and started again, then the claim holds."""
    trial(SCENARIO).must_pass()

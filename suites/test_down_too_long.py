"""All members are down for longer than retention holds: when they come back, their committed offsets are gone.

What expired while nobody ran is no member's fault, and is named. What came after it is still there: whoever comes back
has to go on at the first record there is, not at the end, and not where nothing is any more.
"""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Load, Scenario, Step

SCENARIO = Scenario(
    name="down-too-long",
    summary="all members down while all that the topic holds is deleted, and more comes",
    load=Load(rate_per_s=150),
    members=3,
    schedule=(
        *(Step("terminate", f"member:{index}", at_s=1, for_s=11) for index in range(3)),
        Step("records-deleted", "all", at_s=8, for_s=1),
    ),
)


def test_down_too_long(trial: Trial) -> None:
    """Given a group that is away, when all it had not read is deleted and more comes, then the claim holds."""
    trial(SCENARIO).must_pass()

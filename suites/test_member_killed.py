"""A member is killed with -9 in mid-work and comes back as a new process; once more, whichever it is.

The second kill comes when the first has been lived down: until the session has expired and the group has rebalanced,
members may wait and have nothing in hand.
"""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Scenario, Step

SCENARIO = Scenario(
    name="member-killed",
    summary="a member killed with -9, restarted, twice",
    schedule=(Step("kill", "member", for_s=2), Step("kill", "member", for_s=2, after="stable")),
)


def test_member_killed(trial: Trial) -> None:
    """Given three members at work, when one is killed with -9 and started again, twice, then the claim holds."""
    trial(SCENARIO).must_pass()

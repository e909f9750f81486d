"""One member is frozen for a while, and retention deletes what lay there, once the group has had the time to do it.

What the group has committed past goes at once; the rest when it has had as long as its claim gives it to converge. So a
consumer that comes back to its work loses nothing; one that stays behind does, and `auto.offset.reset` hides it.
"""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Load, Scenario, Step

SCENARIO = Scenario(
    name="overtaken",
    summary="one member stopped for a while, then all that the group had the time to do is deleted",
    load=Load(rate_per_s=75),
    schedule=(
        Step("pause", "member", at_s=1, for_s=4),
        Step("records-deleted", "all", at_s=5.5, for_s=3, options={"once_due": True}),
    ),
)


def test_overtaken(trial: Trial) -> None:
    """Given a member that was frozen, when what it had the time to do is deleted, then the claim holds."""
    trial(SCENARIO).must_pass()

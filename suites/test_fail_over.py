"""The cluster of a group is lost, and the group goes on at a mirror, at the positions that MirrorMaker has translated.

Nothing may be skipped, and nothing done again from before the position that the group has on the mirror. The report
says how far back that was, and how far it may be.
"""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Load, Mirror, Scenario, Step

SCENARIO = Scenario(
    name="fail-over",
    summary="the cluster is lost, and the group goes on at a mirror, at the positions that MirrorMaker translated",
    load=Load(opening_burst=1000, rate_per_s=200),
    mirror=Mirror(),
    schedule=(Step("fail-over", "all", at_s=9, for_s=2),),
)


def test_fail_over(trial: Trial) -> None:
    """Given a group whose cluster is lost, when it goes on at the mirror, then the claim holds across the move."""
    trial(SCENARIO).must_pass()

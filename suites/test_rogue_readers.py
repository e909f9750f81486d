"""Nothing is broken, for long enough to see what members read of which no commit tells, and what they read again.

With a claim of `no_rogue_reader` no member may read without a commit, in the group or beside it. With one of
`reads_cold_bytes_max` none may read far behind the end of the log, as a neighbour would that hurts everyone else.
"""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Scenario

SCENARIO = Scenario(
    name="rogue-readers",
    summary="no faults, for half a minute: members read what they commit, once, and near the end of the log",
    min_faults_s=30,
)


def test_rogue_readers(trial: Trial) -> None:
    """Given members that read for half a minute, when nothing is broken, then the claim holds of what they read."""
    trial(SCENARIO).must_pass()

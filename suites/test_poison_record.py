"""A few records have a value that nobody can decode.

No retry helps. Whoever claims that records are handled has to set such a record aside, or to discard it, and to say so
(an outcome, or an effect with its id); then what lies behind it comes to its turn. A consumer that tries it for ever is
stuck, one that ends over it has exited, and one that goes on without a word has skipped it: all are failures of the
claim. Only consumers whose team is ready for such a record are asked.
"""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Load, Scenario

SCENARIO = Scenario(
    name="poison-record",
    summary="no faults; one record in 250 has a value that nobody can decode",
    load=Load(unreadable_values=0.004),
    min_faults_s=5,
)


def test_poison_record(trial: Trial) -> None:
    """Given three members on a healthy cluster, when some records cannot be decoded, then the claim holds."""
    trial(SCENARIO).must_pass()

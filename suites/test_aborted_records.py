"""A part of the load is taken back: written in transactions that are aborted. Nobody may take it for the rest.

Producers crash, and change their minds; what they wrote stays in the log, with a marker behind it that says so. Whoever
claims exactly-once reads committed records only, and finds gaps between the offsets.
"""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Load, Scenario

SCENARIO = Scenario(
    name="aborted-records",
    summary="no faults; a twentieth of the steady load in transactions that are aborted",
    load=Load(aborted_ratio=0.05),
    min_faults_s=3,
)


def test_aborted_records(trial: Trial) -> None:
    """Given three members on a healthy cluster, when records are taken back by their producer, then the claim holds."""
    trial(SCENARIO).must_pass()

"""No faults, but large records in bursts of one key: one partition has much to do, its neighbours nothing."""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Load, Scenario

SCENARIO = Scenario(
    name="hot-runs",
    summary="records of 0.2 to 0.25 MB in bursts of 200 to 300 of one key, no faults",
    load=Load(
        opening_burst=20,
        rate_per_s=15,
        records_max=330,
        keys="runs",
        key_count=20,
        size_bytes_min=200_000,
        size_bytes_max=250_000,
    ),
    min_faults_s=20,
)


def test_hot_runs(trial: Trial) -> None:
    """Given large records in bursts of one key, when nothing is broken, then every partition is done in time."""
    trial(SCENARIO).must_pass()

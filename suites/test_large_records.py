"""Records up to 5 MB, hot keys, and one member killed in mid-work."""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Load, Scenario, Step

SCENARIO = Scenario(
    name="large-records",
    summary="records of 0.1 to 5 MB with a hot key, one member killed with -9",
    load=Load(
        opening_burst=60,
        rate_per_s=8,
        records_max=400,
        keys="hot",
        key_count=20,
        size_bytes_min=100_000,
        size_bytes_max=5_000_000,
    ),
    schedule=(Step("kill", "member", at_s=1, for_s=2),),
    min_faults_s=8,
)


def test_large_records(trial: Trial) -> None:
    """Given records of up to 5 MB, when one member is killed with -9 and started again, then the claim holds."""
    trial(SCENARIO).must_pass()

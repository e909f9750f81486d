"""The group falls so far behind that brokers have its next records in the remote tier only (KIP-405), and reads on from
there until it is back at what is on their disks."""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Load, Scenario, Step, Topic

TOPIC = Topic(
    configs={
        "remote.storage.enable": "true",
        "segment.bytes": "1048576",
        "local.retention.ms": "1000",
        "retention.ms": "3600000",
    }
)
SCENARIO = Scenario(
    name="remote-reads",
    summary="the group falls behind and reads on in the remote tier of a tiered topic",
    topic=TOPIC,
    load=Load(opening_burst=1000, rate_per_s=200, size_bytes_min=10_000, size_bytes_max=10_000),
    schedule=(Step("remote-reads", "all", at_s=1, for_s=2),),
)


def test_remote_reads(trial: Trial) -> None:
    """Given a group that is far behind, when its next records are in the remote tier only, then the claim holds."""
    trial(SCENARIO).must_pass()

"""As remote-reads, and brokers cannot read the remote tier at first: they answer such a fetch with an error.

Nothing is lost: whoever asks again gets the records when the tier is there again.
"""

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
    name="remote-reads-fail",
    summary="the group falls behind, and brokers cannot read the remote tier of a tiered topic for a while",
    topic=TOPIC,
    load=Load(opening_burst=1000, rate_per_s=200, size_bytes_min=10_000, size_bytes_max=10_000),
    schedule=(Step("remote-reads", "all", at_s=1, for_s=5, options={"fails": True}),),
)


def test_remote_reads_fail(trial: Trial) -> None:
    """Given a group that is far behind, when reads of the remote tier fail for a while, then the claim holds."""
    trial(SCENARIO).must_pass()

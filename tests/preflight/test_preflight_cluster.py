"""What preflight says of a real cluster, and what then happens to a record just below the limit, and just above it."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

import kafka
import orjson
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from kafka.errors import MessageSizeTooLargeError

from kafka_trial.cli import main
from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.errors import FAIL, NOT_BEGUN, PASS, WRONG_INPUT
from kafka_trial.kafka_protocol import cluster_queries
from kafka_trial.kafka_protocol.connection import Brokers
from kafka_trial.preflight.size_settings import BROKER, SIZE_SETTINGS
from kafka_trial.process.waiting import wait_until

pytestmark = pytest.mark.cluster

LIMIT = 20_000  # of the topic
RECORD = 19_928  # a batch of one record: 61 + 3 for its length + 3 + 1 + 3 + 1 + the record
LIBRARIES = ("librdkafka", "kafka-python")


@pytest.fixture(scope="module")
def at(cluster_pool: ClusterPool) -> Iterator[tuple[str, str]]:
    """A cluster's address, and a topic there that takes batches of 20,000 bytes."""
    topic = f"preflight-{secrets.token_hex(4)}"
    with cluster_pool.cluster_for(DEFAULT_VERSION) as cluster, Admin(cluster.observer_bootstrap) as admin:
        admin.create_topic(topic, partitions=3, replication_factor=3, configs={"max.message.bytes": str(LIMIT)})
        yield cluster.observer_bootstrap, topic


def preflight(at: tuple[str, str], capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """Returns the exit status and the answer."""
    asked = ["preflight", "--bootstrap", at[0], "--topic", at[1], "--consumers", "1", "--json", *words]
    status = main(asked)
    return status, orjson.loads(capsys.readouterr().out)


def send(library: str, at: tuple[str, str], value: bytes) -> str:
    """Sends a record and returns what became of it: "stored", or the error's name."""
    if library == "librdkafka":
        told: list[str] = []
        producer = Producer({"bootstrap.servers": at[0], "linger.ms": 0, "log_level": 0})
        producer.produce(
            at[1], value, partition=0, on_delivery=lambda error, _: told.append(error.name() if error else "stored")
        )
        producer.flush(30)
        return told[0]
    producer = kafka.KafkaProducer(bootstrap_servers=at[0].split(","))
    try:
        producer.send(at[1], value, partition=0).get(timeout=30)
    except MessageSizeTooLargeError:
        return "MSG_SIZE_TOO_LARGE"
    finally:
        producer.close()
    return "stored"


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("size", "status", "becomes"), [(RECORD, PASS, "stored"), (RECORD + 1, FAIL, "MSG_SIZE_TOO_LARGE")]
)
def test_the_topics_limit_is_where_preflight_says(
    library: str, size: int, status: int, becomes: str, at: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It names hop and limit before; then a real producer sends the record, in a batch of its own."""
    batches = ["--producer-setting", f"batch.size={LIMIT}"] if library == "librdkafka" else []
    ended, told = preflight(at, capsys, "--producer-library", library, *batches, "--record-max", str(size))
    refused = None if status == PASS else "broker, batch: max.message.bytes"
    assert (ended, told["refused_by"], told["record_limit_bytes"]) == (status, refused, RECORD)
    assert send(library, at, b"v" * size) == becomes


def test_without_a_record_the_largest_that_the_topic_takes_is_planned(
    at: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Partitions, their leaders and all settings are the cluster's; each partition may hold that record once."""
    ended, told = preflight(at, capsys)
    limits = {
        hop["setting"]: (hop["limit_bytes"], hop["origin"])
        for hop in told["hops"]
        if not hop["hop"].startswith("consumer")
    }
    assert (ended, told["heap_bytes"], told["fetch_response_bytes"]) == (PASS, 3 * RECORD, RECORD)
    assert limits["max.message.bytes"] == (LIMIT, "set")


@pytest.mark.parametrize(
    ("library", "refused_by", "settings"),
    [
        ("librdkafka", None, {"message.max.bytes": 1000, "fetch.max.bytes": 4000, "max.partition.fetch.bytes": 1000}),
        (
            "librdkafka",
            "consumer: receive.message.max.bytes",
            {"message.max.bytes": 1000, "fetch.max.bytes": 4000, "receive.message.max.bytes": 8000},
        ),
        ("kafka-python", None, {"fetch_max_bytes": 4000, "max_partition_fetch_bytes": 1000}),
        (
            "kafka-python",
            "consumer: receive_message_max_bytes",
            {"fetch_max_bytes": 4000, "max_partition_fetch_bytes": 1000, "receive_message_max_bytes": 8000},
        ),
    ],
    ids=["librdkafka-fetch", "librdkafka-receive", "kafka-python-fetch", "kafka-python-receive"],
)
def test_a_consumers_limits_refuse_or_not_as_preflight_says(
    library: str,
    refused_by: str | None,
    settings: dict[str, int],
    at: tuple[str, str],
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Limits of fetches below the record's size return it whole; a limit of responses drops the connection."""
    words = [f"{name}={value}" for name, value in settings.items()]
    _, told = preflight(at, capsys, "--consumer-library", library, "--consumer-setting", *words)
    assert told["refused_by"] == refused_by
    assert send("librdkafka", at, b"v" * RECORD) == "stored"
    caplog.set_level(logging.DEBUG, logger="kafka")
    logger = logging.getLogger("kafka_trial.tests.preflight")
    read = _read_librdkafka if library == "librdkafka" else _read_kafka_python
    assert read(at, settings, logger, caplog) == ("refused" if refused_by else RECORD)


@pytest.mark.parametrize(
    ("codec", "size", "refused"), [("gzip", 200_000, False), ("zstd", 36_000, False), ("zstd", 45_000, True)]
)
def test_librdkafka_gives_up_on_a_bomb_of_zstd(
    codec: str, size: int, refused: bool, at: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Zeros, some dozen bytes on the wire: gzip opens all of it; zstd does not open half of the limit, as predicted."""
    settings = {"message.max.bytes": 1000, "fetch.max.bytes": 4000, "receive.message.max.bytes": 100_000}
    words = ["--compression", codec, "--compression-ratio", "500", "--record-max", str(size)]
    words += ["--consumer-library", "librdkafka", "--consumer-setting"]
    _, told = preflight(at, capsys, *words, *(f"{name}={value}" for name, value in settings.items()))
    assert told["refused_by"] == ("consumer, zstd: receive.message.max.bytes" if refused else None)
    partition, offset = _sent_compressed(at, codec, size)
    consumer = Consumer({"bootstrap.servers": at[0], "group.id": at[1], "enable.auto.commit": False, **settings})
    try:
        consumer.assign([TopicPartition(at[1], partition, offset)])

        def outcome() -> object:
            record = consumer.poll(0.2)
            if record is None:
                return None
            return record.error().name() if record.error() else len(record.value())

        came = wait_until(outcome, within_s=20, what="a record, or its refusal", every_s=0.0)
    finally:
        consumer.close()
    assert came == ("_BAD_COMPRESSION" if refused else size)


def _sent_compressed(at: tuple[str, str], codec: str, size: int) -> tuple[int, int]:
    """Sends a record of zeros, compressed, and returns its partition and offset."""
    stored: list[tuple[int, int]] = []
    producer = Producer({"bootstrap.servers": at[0], "linger.ms": 0, "compression.type": codec, "log_level": 0})
    producer.produce(
        at[1],
        bytes(size),
        partition=2,
        on_delivery=lambda _, record: stored.append((record.partition(), record.offset())),
    )
    producer.flush(30)
    return stored[0]


def _refused(caplog: pytest.LogCaptureFixture, words: str) -> bool:
    return any(words in record.getMessage() for record in caplog.records)


def _read_librdkafka(
    at: tuple[str, str], settings: dict[str, int], logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> object:
    whole = {"bootstrap.servers": at[0], "group.id": at[1], "enable.auto.commit": False, **settings}
    consumer = Consumer(whole, logger=logger)
    try:
        consumer.assign([TopicPartition(at[1], 0, OFFSET_BEGINNING)])

        def outcome() -> object:
            record = consumer.poll(0.2)
            if record is not None and record.error() is None:
                return len(record.value())
            return "refused" if _refused(caplog, "increase receive.message.max.bytes") else None

        return wait_until(outcome, within_s=20, what="a record, or its refusal", every_s=0.0)
    finally:
        consumer.close()


def _read_kafka_python(
    at: tuple[str, str], settings: dict[str, int], logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> object:
    consumer = kafka.KafkaConsumer(bootstrap_servers=at[0].split(","), enable_auto_commit=False, **settings)
    try:
        partition = kafka.TopicPartition(at[1], 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)

        def outcome() -> object:
            for records in consumer.poll(timeout_ms=200).values():
                return len(records[0].value)
            return "refused" if _refused(caplog, "Invalid frame length") else None

        return wait_until(outcome, within_s=20, what="a record, or its refusal", every_s=0.0)
    finally:
        consumer.close()


def test_a_groups_members_are_its_consumers(at: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """Two members share three partitions; a group without members is an error that says what to do."""
    settings = {"bootstrap.servers": at[0], "group.id": f"{at[1]}-two", "log_level": 0}
    members = [Consumer({**settings, "client.id": name}) for name in "ab"]
    try:
        for member in members:
            member.subscribe([at[1]])

        def shared() -> bool:
            for member in members:
                member.poll(0.05)
            return all(member.assignment() for member in members)

        wait_until(shared, within_s=60, what="both to have partitions", every_s=0.0)
        asked = ["preflight", "--bootstrap", at[0], "--topic", at[1], "--json", "--group"]
        assert main([*asked, f"{at[1]}-two"]) == PASS
        assert orjson.loads(capsys.readouterr().out)["heap_bytes"] == 2 * RECORD
        assert main([*asked, f"{at[1]}-none"]) == WRONG_INPUT
        assert "Say --consumers" in capsys.readouterr().err
    finally:
        for member in members:
            member.close()


def test_what_is_not_there_is_told(at: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """No such topic; nobody at the address."""
    assert main(["preflight", "--bootstrap", at[0], "--topic", "none-such", "--consumers", "1"]) == WRONG_INPUT
    assert "--topic none-such: there is no such topic" in capsys.readouterr().err
    assert main(["preflight", "--bootstrap", "127.0.0.1:1", "--topic", at[1], "--consumers", "1"]) == NOT_BEGUN
    assert "no broker answers at 127.0.0.1:1" in capsys.readouterr().err


def test_brokers_have_the_defaults_of_the_table(at: tuple[str, str]) -> None:
    """Those that the cluster of the tests does not set itself."""
    ours: Sequence[str] = ("message.max.bytes", "replica.fetch.max.bytes", "log.segment.bytes")
    defaults = {setting.name: str(setting.default) for setting in SIZE_SETTINGS[BROKER, ""] if setting.name not in ours}
    with Brokers(at[0]) as brokers:
        found = brokers.anyone(lambda connection: cluster_queries.metadata(connection, []))
        brokers.by_id = dict(found.brokers)
        node = min(found.brokers)
        told = brokers.broker(node, lambda to: cluster_queries.broker_configs(to, node, [*defaults]))
    assert told == defaults

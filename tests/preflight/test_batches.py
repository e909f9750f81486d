"""The size of a record in estimates and batches: against the libraries' own arithmetic."""

from __future__ import annotations

from fractions import Fraction

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from confluent_kafka import KafkaException, Producer
from kafka.record.default_records import DefaultRecordBatchBuilder

from kafka_trial.preflight.batches import batch_bytes, estimate_bytes, largest, librdkafka_bytes

# Value bytes, then what Kafka 3.9.2's own AbstractRecords.estimateSizeInBytesUpperBound and
# DefaultRecordBatch.sizeInBytes say without a key, and with one of 10 bytes.
OF_JAVA = [
    (0, 85, 68, 95, 78),
    (63, 148, 132, 158, 142),
    (64, 150, 134, 160, 144),
    (1000, 1086, 1070, 1096, 1080),
    (8191, 8277, 8262, 8287, 8272),
    (8192, 8279, 8264, 8289, 8274),
    (1048400, 1048487, 1048472, 1048497, 1048482),
    (1048511, 1048598, 1048583, 1048608, 1048593),
]


@pytest.mark.parametrize(("value", "estimate", "batch", "estimate_with_key", "batch_with_key"), OF_JAVA)
def test_java_counts_the_same(
    value: int, estimate: int, batch: int, estimate_with_key: int, batch_with_key: int
) -> None:
    """At every place where a length takes one byte more."""
    assert (estimate_bytes(value, 0), batch_bytes(value, 0)) == (estimate, batch)
    assert (estimate_bytes(value + 10, 10), batch_bytes(value + 10, 10)) == (estimate_with_key, batch_with_key)


@pytest.mark.parametrize("value", [1, 63, 64, 1000, 8191, 8192, 1048400])
@pytest.mark.parametrize("key", [0, 10, 100])
def test_the_python_clients_count_the_same(value: int, key: int) -> None:
    """Both estimates, and a batch that kafka-python really builds."""
    key_given, value_given = b"k" * key or None, b"v" * value
    estimates = {
        kind.estimate_size_in_bytes(key_given, value_given, []) for kind in (DefaultRecordBatchBuilder, AiokafkaBuilder)
    }
    built = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 30)
    built.append(0, 0, key_given, value_given, [])
    assert estimates == {estimate_bytes(key + value, key)}
    assert len(built.build()) == batch_bytes(key + value, key)


def test_librdkafka_counts_the_same() -> None:
    """It takes a record that needs exactly message.max.bytes, and refuses one byte more; nobody need listen."""
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "message.max.bytes": 2000, "log_level": 0})
    fits = largest(lambda size: librdkafka_bytes(size) <= 2000)
    producer.produce("t", b"v" * (fits - 10), b"k" * 10)
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        producer.produce("t", b"v" * (fits - 9), b"k" * 10)
    producer.purge()


def test_librdkafkas_queue_takes_values_up_to_its_own_size() -> None:
    """The value alone counts against queue.buffering.max.kbytes."""
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "queue.buffering.max.kbytes": 1, "log_level": 0})
    with pytest.raises(BufferError):
        producer.produce("t", b"v" * 1025)
    producer.produce("t", b"v" * 1024, b"k" * 100)
    producer.purge()


def test_compression_divides_all_but_the_head() -> None:
    """61 + the encoded record ÷ the ratio, upwards."""
    assert batch_bytes(1000, 0, ratio=Fraction(9, 2)) == 61 + 225  # 1009 / 4.5 = 224.2


def test_the_largest_record_is_found_to_the_byte() -> None:
    """Whatever is refused at once gives 0."""
    assert [largest(lambda size: size <= 12345), largest(lambda size: size < 0)] == [12345, 0]

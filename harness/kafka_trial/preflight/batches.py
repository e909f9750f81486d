"""How many bytes a record takes: in the estimates of producers, and in a record batch (version 2).

Kafka's documentation, "Message Format": a batch is 61 bytes and its records; a record is its length, attributes (1
byte), timestamp and offset deltas (1 byte each in a batch of one record), key, value and headers, each after its own
length. Lengths are zigzag varints. Sizes of records here are those of key, value and headers together.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final

BATCH_OVERHEAD_BYTES: Final = 61  # DefaultRecordBatch.RECORD_BATCH_OVERHEAD in Kafka's clients
RECORD_OVERHEAD_BYTES_MAX: Final = 21  # DefaultRecord.MAX_RECORD_OVERHEAD
LIBRDKAFKA_OVERHEAD_BYTES: Final = 36  # RD_KAFKAP_MESSAGE_V2_MAX_OVERHEAD in rdkafka_proto.h: 5 + 1 + 10 + 4 × 5
RECORD_BYTES_MAX: Final = 1 << 41  # beyond any limit there is


def varint_bytes(value: int) -> int:
    """Returns how many bytes a zigzag varint takes."""
    zigzag = value << 1 if value >= 0 else (-value << 1) - 1
    return max(1, -(-zigzag.bit_length() // 7))


def estimate_bytes(record_bytes: int, key_bytes: int) -> int:
    """Returns what Java's producer, kafka-python and aiokafka compare with their largest request, before compression.

    61 + 21 + the lengths of key and value + 1 (count of headers) + the record:
    `AbstractRecords.estimateSizeInBytesUpperBound`, `DefaultRecordBatchBuilder.estimate_size_in_bytes`. Each header
    adds the two lengths in front of its name and its value.
    """
    return BATCH_OVERHEAD_BYTES + RECORD_OVERHEAD_BYTES_MAX + _fields_bytes(record_bytes, key_bytes)


def librdkafka_bytes(record_bytes: int) -> int:
    """Returns what librdkafka compares with `message.max.bytes`: 36 + the record (`rd_kafka_msg_max_wire_size`)."""
    return LIBRDKAFKA_OVERHEAD_BYTES + record_bytes


def batch_bytes(record_bytes: int, key_bytes: int, *, ratio: Fraction = Fraction(1)) -> int:
    """Returns the size of a batch that holds this one record: 61 + the encoded record ÷ the compression ratio, upwards.

    The 61 bytes of the batch itself are never compressed.
    """
    body = 3 + _fields_bytes(record_bytes, key_bytes)
    return BATCH_OVERHEAD_BYTES + divided(varint_bytes(body) + body, ratio)


def divided(size_bytes: int, ratio: Fraction) -> int:
    """Returns a size divided by a compression ratio, rounded upwards."""
    return -(-size_bytes * ratio.denominator // ratio.numerator)


def largest(passes: Callable[[int], bool]) -> int:
    """Returns the largest record in bytes that passes; 0 where none does. What is larger must pass no better."""
    low, high = 0, RECORD_BYTES_MAX
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if passes(middle) else (low, middle - 1)
    return low


def _fields_bytes(record_bytes: int, key_bytes: int) -> int:
    key = min(key_bytes, record_bytes)
    return varint_bytes(key or -1) + varint_bytes(record_bytes - key) + 1 + record_bytes

"""The Fetch request: what a partition's leader has from a position on, up to the high watermark.

Version 4 is the oldest that Kafka 4 still answers, and the first with an isolation level.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from kafka_trial.kafka_protocol.connection import Connection, NoAnswerError
from kafka_trial.kafka_protocol.errors import error_name
from kafka_trial.kafka_protocol.primitives import DecodeError, Reader

FETCH: Final = (1, 4)
FETCH_BYTES_MAX: Final = 1 << 20
_READ_UNCOMMITTED: Final = 0


@dataclass(frozen=True, slots=True)
class Fetched:
    """One answer: `data` holds whole batches (and perhaps a torn last one), from the one that has the position."""

    high_watermark: int
    last_stable_offset: int
    data: bytes


def fetch(connection: Connection, topic: str, partition: int, position: int, *, wait_ms: int) -> Fetched:
    """Returns what the leader has from `position` on, waiting up to `wait_ms` for the first byte.

    Raises:
        NoAnswerError: no answer, or an error code.
    """
    name = topic.encode()
    body = struct.pack(">iiiib", -1, wait_ms, 1, FETCH_BYTES_MAX, _READ_UNCOMMITTED)
    body += struct.pack(f">ih{len(name)}s", 1, len(name), name)
    body += struct.pack(">iiqi", 1, partition, position, FETCH_BYTES_MAX)
    return connection.ask(FETCH, body, _fetched, broker_waits_s=wait_ms / 1000)


def _fetched(reader: Reader) -> Fetched:
    reader.int32()  # throttle time
    answers = reader.array(lambda: (reader.string(), reader.array(lambda: _partition(reader))))
    if [len(partitions) for _, partitions in answers] != [1]:
        raise DecodeError("not exactly the one partition asked for")
    code, fetched = answers[0][1][0]
    if code:
        raise NoAnswerError(f"fetch: {error_name(code)}", code=code)
    return fetched


def _partition(reader: Reader) -> tuple[int, Fetched]:
    reader.int32()  # the partition
    code, high_watermark, last_stable_offset = reader.int16(), reader.int64(), reader.int64()
    reader.nullable_array(lambda: (reader.int64(), reader.int64()))  # aborted transactions: for read-committed only
    return code, Fetched(high_watermark, last_stable_offset, reader.nullable_blob() or b"")

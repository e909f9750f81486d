"""Fetching from a partition's leader with Kafka's own Fetch request, on one plain connection.

A consumer library would do, but hides what the witness of the offsets log must see: control records and producers.
Version 4 of the request is the oldest that Kafka 4 still answers and the first with an isolation level.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass
from typing import Final

from kafka_trial.errors import KafkaTrialError
from kafka_trial.witness.primitives import DecodeError, Reader

_FETCH, _VERSION = 1, 4
_CLIENT: Final = b"kafka-trial-witness"
_READ_UNCOMMITTED: Final = 0
_ANSWER_BYTES_MAX: Final = 1 << 28
FETCH_BYTES_MAX: Final = 1 << 20
OFFSET_OUT_OF_RANGE: Final = 1
ERRORS = {
    -1: "UNKNOWN_SERVER_ERROR",
    OFFSET_OUT_OF_RANGE: "OFFSET_OUT_OF_RANGE",
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    5: "LEADER_NOT_AVAILABLE",
    6: "NOT_LEADER_OR_FOLLOWER",
    9: "REPLICA_NOT_AVAILABLE",
    29: "TOPIC_AUTHORIZATION_FAILED",
    56: "KAFKA_STORAGE_ERROR",
}


class FetchError(KafkaTrialError):
    """The broker did not answer, or refused; look the leader up again and retry."""

    def __init__(self, message: str, *, code: int | None = None) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Fetched:
    """One answer: `data` holds batches, from the one that holds the position asked for; up to the high watermark."""

    high_watermark: int
    last_stable_offset: int
    data: bytes


class FetchConnection:
    """One connection to one broker; every answer is awaited within `answer_within_s` on top of the broker's wait."""

    def __init__(self, host: str, port: int, *, answer_within_s: float = 5.0) -> None:
        self._address = f"{host}:{port}"
        self._answer_within_s = answer_within_s
        self._correlation = 0
        try:
            self._socket = socket.create_connection((host, port), timeout=answer_within_s)
        except OSError as error:
            raise FetchError(f"{self._address}: {error}") from error

    def fetch(self, topic: str, partition: int, position: int, *, wait_ms: int) -> Fetched:
        """Returns what the leader has from `position` on, waiting up to `wait_ms` for the first byte.

        Raises:
            FetchError: no answer, or an error code.
        """
        self._correlation += 1
        try:
            self._socket.sendall(_request(self._correlation, topic, partition, position, wait_ms))
            answer = self._answer(time.monotonic() + wait_ms / 1000 + self._answer_within_s)
            return _fetched(Reader(answer), self._correlation, self._address)
        except (OSError, DecodeError) as error:
            raise FetchError(f"{self._address}: {error}") from error

    def close(self) -> None:
        self._socket.close()

    def _answer(self, deadline_s: float) -> bytes:
        size = struct.unpack(">i", self._received(4, deadline_s))[0]
        if not 0 < size <= _ANSWER_BYTES_MAX:
            raise DecodeError(f"an answer of {size} bytes")
        return self._received(size, deadline_s)

    def _received(self, size: int, deadline_s: float) -> bytes:
        taken = bytearray()
        while len(taken) < size:
            self._socket.settimeout(max(0.001, deadline_s - time.monotonic()))
            part = self._socket.recv(min(1 << 20, size - len(taken)))
            if not part:
                raise ConnectionResetError("the broker closed the connection")
            taken += part
        return bytes(taken)


def _request(correlation: int, topic: str, partition: int, position: int, wait_ms: int) -> bytes:
    name = topic.encode()
    body = struct.pack(f">hhih{len(_CLIENT)}s", _FETCH, _VERSION, correlation, len(_CLIENT), _CLIENT)
    body += struct.pack(">iiiib", -1, wait_ms, 1, FETCH_BYTES_MAX, _READ_UNCOMMITTED)
    body += struct.pack(f">ih{len(name)}s", 1, len(name), name)
    body += struct.pack(">iiqi", 1, partition, position, FETCH_BYTES_MAX)
    return struct.pack(">i", len(body)) + body


def _fetched(reader: Reader, correlation: int, address: str) -> Fetched:
    if reader.int32() != correlation:
        raise DecodeError("the answer to another request")
    reader.int32()  # throttle time
    answers = reader.array(lambda: (reader.string(), reader.array(lambda: _partition(reader, address))))
    reader.end()
    if [len(partitions) for _, partitions in answers] != [1]:
        raise DecodeError("not exactly the one partition asked for")
    return answers[0][1][0]


def _partition(reader: Reader, address: str) -> Fetched:
    partition, code, high_watermark, last_stable_offset = (
        reader.int32(),
        reader.int16(),
        reader.int64(),
        reader.int64(),
    )
    reader.nullable_array(lambda: (reader.int64(), reader.int64()))  # aborted transactions: read-committed only
    data = reader.nullable_blob() or b""
    if code:
        name = ERRORS.get(code, "an error")
        raise FetchError(f"{address}: {name} ({code}) for partition {partition}", code=code)
    return Fetched(high_watermark, last_stable_offset, data)

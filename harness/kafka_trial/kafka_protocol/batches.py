"""Record batches as they lie in a log (magic 2): with the producer of each, and with control records.

Kafka's clients hide control records and producers from their users; the witness of the offsets log needs both, to
know which transactional commits took effect, and at which place of the log.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Final, TypeVar

from kafka_trial.kafka_protocol.codecs import uncompressed
from kafka_trial.kafka_protocol.primitives import DecodeError, Reader

_HEADER = struct.Struct(">qiibIhiqqqhii")
_SIZE_OFFSET: Final = 12  # the batch's length counts what comes after it
_COMPRESSION, _LOG_APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0x07, 0x08, 0x10, 0x20
_ABORT, _COMMIT = 0, 1
ABORT, COMMIT = "abort", "commit"
Written = TypeVar("Written")


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a batch; `time_ms` is its create time (for the coordinators' records: when the broker wrote it), or
    where the topic says `message.timestamp.type=LogAppendTime`, its broker's.

    `headers` are pairs of name and value; a name that is no text is made one.
    """

    offset: int
    time_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch: `next_offset` is the position after it, also where compaction took its last records.

    Of a control batch `producer_epoch` is the epoch that the coordinator ended the transaction with. `log_time_ms` is
    when the broker appended it, where that counts in place of its producer's times.
    """

    base_offset: int
    next_offset: int
    base_time_ms: int
    producer_id: int
    producer_epoch: int
    transactional: bool
    control: bool
    compression: int
    count: int
    payload: bytes
    log_time_ms: int | None = None

    def may_hold(self, text: bytes) -> bool:
        """Tells whether a record of the batch may contain `text`: cheap, and never wrong with False."""
        return self.compression != 0 or text in self.payload


def batches(data: bytes) -> Iterator[Batch]:
    """Yields the whole batches of a fetch answer; what a size limit cut off at the end is left for the next fetch.

    Raises:
        DecodeError: a batch of an older format (magic 0, 1), or bytes that are none.
    """
    place = 0
    while place + _HEADER.size <= len(data):
        fields = _HEADER.unpack_from(data, place)
        base_offset, size, magic = fields[0], fields[1], fields[3]
        if magic != 2:
            raise DecodeError(f"a batch at offset {base_offset} has magic {magic}, expected 2")
        end = place + _SIZE_OFFSET + size
        if end > len(data):
            return
        if end < place + _HEADER.size:
            raise DecodeError(f"a batch at offset {base_offset} of {size} bytes is shorter than its header")
        yield _batch(fields, data[place + _HEADER.size : end])
        place = end


def records(batch: Batch) -> Iterator[Record]:
    """Yields the records of a batch.

    Raises:
        DecodeError: bytes that are none, or a compression that nobody knows.
    """
    reader = Reader(uncompressed(batch.payload, batch.compression, base_offset=batch.base_offset))
    for _ in range(batch.count):
        size = reader.varint()
        left_bytes = reader.left_bytes
        yield _record(batch, reader)
        if left_bytes - reader.left_bytes != size:
            raise DecodeError(f"a record of {size} bytes in the batch at {batch.base_offset} has another length")
    reader.end()


def ended(batch: Batch, written: MutableMapping[int, list[Written]]) -> tuple[str | None, list[Written]]:
    """Returns how a control batch ends a transaction, and takes out of `written` what was written in it.

    `written` goes by producer id. The end is ABORT or COMMIT, and None for other control batches, which end nothing.

    Raises:
        DecodeError: bytes that are no control record.
    """
    control = next(records(batch), None)
    if control is None or control.key is None:
        raise DecodeError(f"a control batch at offset {batch.base_offset} without a control record")
    key = Reader(control.key)
    key.int16()  # version
    end = {_ABORT: ABORT, _COMMIT: COMMIT}.get(key.int16())
    return end, [] if end is None else written.pop(batch.producer_id, [])


def _batch(fields: tuple[int, ...], payload: bytes) -> Batch:
    (
        base_offset,
        _,
        _,
        _,
        _,
        attributes,
        last_delta,
        base_time_ms,
        max_time_ms,
        producer_id,
        producer_epoch,
        _,
        count,
    ) = fields
    return Batch(
        base_offset,
        base_offset + last_delta + 1,
        base_time_ms,
        producer_id,
        producer_epoch,
        transactional=bool(attributes & _TRANSACTIONAL),
        control=bool(attributes & _CONTROL),
        compression=attributes & _COMPRESSION,
        count=count,
        payload=payload,
        log_time_ms=max_time_ms if attributes & _LOG_APPEND_TIME else None,
    )


def _record(batch: Batch, reader: Reader) -> Record:
    reader.int8()  # attributes: none are defined
    time_ms = batch.base_time_ms + reader.varint()
    time_ms = time_ms if batch.log_time_ms is None else batch.log_time_ms
    offset = batch.base_offset + reader.varint()
    key, value = _blob(reader), _blob(reader)
    headers = tuple((_name(reader), _blob(reader)) for _ in range(reader.varint()))
    return Record(offset, time_ms, key, value, headers)


def _name(reader: Reader) -> str:
    return (_blob(reader) or b"").decode(errors="backslashreplace")


def _blob(reader: Reader) -> bytes | None:
    size = reader.varint()
    return None if size < 0 else reader.raw(size)

"""Record batches: fetched from a partition's leader, and read as they lie in a log (magic 2), producers and all.

Kafka's clients hide control records and producers from their users; the witness of the offsets log needs both, to
know which transactional commits took effect, and at which place of the log. Batches are compressed as producers sent
them: gzip, snappy, lz4, zstd. Version 4 of the Fetch request is the oldest that Kafka 4 still answers, and the first
with an isolation level.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Final, TypeVar

from kafka_trial.kafka_protocol.connection import Connection, NoAnswerError
from kafka_trial.kafka_protocol.primitives import DecodeError, Reader, error_name

FETCH: Final = (1, 4)
REPLICA_FETCH: Final = (1, 11)  # the first that followers answer too (KIP-392)
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


def fetch_replica(connection: Connection, topic: str, partition: int, position: int) -> Fetched:
    """Returns what the broker that is asked has in its own replica from `position` on, as far as all replicas have it.

    Raises:
        NoAnswerError: no answer, or an error code: it has no replica, or does not know yet how far the others are.
    """
    name = topic.encode()
    body = struct.pack(">iiiibii", -1, 0, 0, FETCH_BYTES_MAX, _READ_UNCOMMITTED, 0, -1)  # no session
    body += struct.pack(f">ih{len(name)}s", 1, len(name), name)
    body += struct.pack(">iiiqqi", 1, partition, -1, position, -1, FETCH_BYTES_MAX)
    return connection.ask(REPLICA_FETCH, body + struct.pack(">ih", 0, 0), _fetched_of_replica)


def _fetched_of_replica(reader: Reader) -> Fetched:
    reader.int32()  # throttle time
    refused = reader.int16()
    reader.int32()  # session
    return _the_one(reader, lambda: _replica(reader), refused)


def _replica(reader: Reader) -> tuple[int, Fetched]:
    reader.int32()  # the partition
    code, high_watermark, last_stable_offset = reader.int16(), reader.int64(), reader.int64()
    reader.int64()  # log start
    reader.nullable_array(lambda: (reader.int64(), reader.int64()))
    reader.int32()  # the replica to read from: another one
    return code, Fetched(high_watermark, last_stable_offset, reader.nullable_blob() or b"")


def _fetched(reader: Reader) -> Fetched:
    reader.int32()  # throttle time
    return _the_one(reader, lambda: _partition(reader))


def _the_one(reader: Reader, partition: Callable[[], tuple[int, Fetched]], refused: int = 0) -> Fetched:
    answers = reader.array(lambda: (reader.string(), reader.array(partition)))
    if not refused and [len(partitions) for _, partitions in answers] != [1]:
        raise DecodeError("not exactly the one partition asked for")
    code, fetched = (refused, None) if refused else answers[0][1][0]
    if fetched is None or code:
        raise NoAnswerError(f"fetch: {error_name(code)}", code=code)
    return fetched


def _partition(reader: Reader) -> tuple[int, Fetched]:
    reader.int32()  # the partition
    code, high_watermark, last_stable_offset = reader.int16(), reader.int64(), reader.int64()
    reader.nullable_array(lambda: (reader.int64(), reader.int64()))  # aborted transactions: for read-committed only
    return code, Fetched(high_watermark, last_stable_offset, reader.nullable_blob() or b"")


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


XERIAL: Final = b"\x82SNAPPY\0"  # the framing of Java's producers; others send one plain block
_XERIAL_HEADER_BYTES: Final = 16
_NONE, _GZIP, _SNAPPY = 0, 1, 2
_STREAMS: Final = {3: "lz4", 4: "zstd"}
_GZIP_WINDOW: Final = 31


def uncompressed(payload: bytes, compression: int, *, base_offset: int) -> bytes:
    """Returns the records of the batch at `base_offset`; `compression` is the number in its attributes.

    Raises:
        DecodeError: they are not what their batch says, or of a compression nobody knows.
    """
    if compression == _NONE:
        return payload
    if compression == _GZIP:
        try:
            return zlib.decompress(payload, wbits=_GZIP_WINDOW)
        except zlib.error as error:
            raise _damaged(base_offset, error) from error
    import pyarrow as pa  # here: witnesses start quickly, and seldom meet these

    try:
        if compression == _SNAPPY:
            return _snappy(payload)
        if compression in _STREAMS:
            with pa.CompressedInputStream(pa.BufferReader(payload), _STREAMS[compression]) as stream:
                return bytes(stream.read())
    except (OSError, pa.ArrowException, struct.error, IndexError) as error:
        raise _damaged(base_offset, error) from error
    raise DecodeError(f"the batch at offset {base_offset} has compression {compression}, which is none")


def _damaged(base_offset: int, error: Exception) -> DecodeError:
    return DecodeError(f"the batch at offset {base_offset} cannot be uncompressed: {error}")


def _snappy(payload: bytes) -> bytes:
    if not payload.startswith(XERIAL):
        return _snappy_block(payload)
    blocks, place = [], _XERIAL_HEADER_BYTES
    while place < len(payload):
        (size,) = struct.unpack_from(">i", payload, place)
        blocks.append(_snappy_block(payload[place + 4 : place + 4 + size]))
        place += 4 + size
    return b"".join(blocks)


def _snappy_block(block: bytes) -> bytes:
    import pyarrow as pa

    size, shift, place = 0, 0, 0
    while True:  # its length, as a varint, stands first
        byte = block[place]
        size |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return bytes(pa.Codec("snappy").decompress(block, decompressed_size=size))

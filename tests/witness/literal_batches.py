"""Record batches as bytes, in a few words: what a broker answers to a fetch."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence

TRANSACTIONAL, CONTROL, GZIP, ZSTD = 0x10, 0x20, 1, 4
ABORT, COMMIT, LEADER_CHANGE = 0, 1, 2  # types of control records
KeyValue = tuple[bytes | None, bytes | None]


def _headers(value: str) -> bytes:
    return _varint(1) + _blob(b"kt-id") + _blob(value.encode()) if value else _varint(0)


def _varint(value: int) -> bytes:
    zigzag, out = (value << 1) ^ (value >> 63), bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*out, zigzag])


def _blob(raw: bytes | None) -> bytes:
    return _varint(-1) if raw is None else _varint(len(raw)) + raw


def batch_of(
    base: int,
    entries: Sequence[KeyValue],
    *,
    attributes: int = 0,
    producer_id: int = -1,
    epoch: int = 0,
    name: str = "",
) -> bytes:
    """Returns a batch of records; each has the header `kt-id`, if a name is given: the name and its number."""
    payload = b""
    for delta, (key, value) in enumerate(entries):
        body = b"\0" + _varint(delta) + _varint(delta) + _blob(key) + _blob(value) + _headers(name and f"{name}{delta}")
        payload += _varint(len(body)) + body
    if attributes & 7 == GZIP:
        payload = gzip.compress(payload)
    last = len(entries) - 1
    rest = (
        struct.pack(">ibIhiqqqhii", 0, 2, 0, attributes, last, 1000, 1000, producer_id, epoch, -1, len(entries))
        + payload
    )
    return struct.pack(">qi", base, len(rest)) + rest


def marker_of(base: int, producer_id: int, kind: int, *, epoch: int = 0) -> bytes:
    """Returns the control batch that ends a producer's transaction."""
    control = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0)
    return batch_of(base, [control], attributes=TRANSACTIONAL | CONTROL, producer_id=producer_id, epoch=epoch)

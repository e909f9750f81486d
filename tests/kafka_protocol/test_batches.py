"""Every compression that producers use comes out as it went in; damage is named, never taken for an end."""

from __future__ import annotations

import gzip
import struct

import pyarrow as pa
import pytest

from kafka_trial.kafka_protocol.batches import XERIAL, uncompressed
from kafka_trial.kafka_protocol.primitives import DecodeError

PLAIN = b"records " * 1000


def _stream(name: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, name) as stream:
        stream.write(PLAIN)
    return bytes(sink.getvalue())


def _block(plain: bytes) -> bytes:
    return bytes(pa.Codec("snappy").compress(plain))


def _xerial() -> bytes:
    blocks = [_block(PLAIN[:3000]), _block(PLAIN[3000:])]
    return XERIAL + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(one)) + one for one in blocks)


@pytest.mark.parametrize(
    ("compression", "payload"),
    [
        (0, PLAIN),
        (1, gzip.compress(PLAIN)),
        (2, _block(PLAIN)),
        (2, _xerial()),
        (3, _stream("lz4")),
        (4, _stream("zstd")),
    ],
    ids=["none", "gzip", "snappy", "snappy framed by Java", "lz4", "zstd"],
)
def test_a_batch_is_uncompressed(compression: int, payload: bytes) -> None:
    """Whatever its producer chose."""
    assert uncompressed(payload, compression, base_offset=7) == PLAIN


@pytest.mark.parametrize("compression", [1, 2, 3, 4, 7])
def test_damage_is_named_with_its_place(compression: int) -> None:
    """Bytes that are no such compression, and a compression that is none."""
    with pytest.raises(DecodeError, match="at offset 7"):
        uncompressed(b"\x00\x01nonsense", compression, base_offset=7)

"""The compressions of record batches, as brokers store what producers sent: gzip, snappy, lz4, zstd."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Final

from kafka_trial.kafka_protocol.primitives import DecodeError

if TYPE_CHECKING:
    from kafka_trial.kafka_protocol.batches import Batch

XERIAL: Final = b"\x82SNAPPY\0"  # the framing of Java's producers; others send one plain block
_XERIAL_HEADER_BYTES: Final = 16
_NONE, _GZIP, _SNAPPY = 0, 1, 2
_STREAMS: Final = {3: "lz4", 4: "zstd"}
_GZIP_WINDOW: Final = 31


def plain_batch(batch: Batch) -> bytes:
    """Returns the records of a batch, uncompressed.

    Raises:
        DecodeError: they are not what their batch says, or of a compression nobody knows.
    """
    if batch.compression == _NONE:
        return batch.payload
    if batch.compression == _GZIP:
        try:
            return zlib.decompress(batch.payload, wbits=_GZIP_WINDOW)
        except zlib.error as error:
            raise _damaged(batch, error) from error
    import pyarrow as pa  # here: witnesses start quickly, and seldom meet these

    try:
        if batch.compression == _SNAPPY:
            return _snappy(batch.payload)
        if batch.compression in _STREAMS:
            with pa.CompressedInputStream(pa.BufferReader(batch.payload), _STREAMS[batch.compression]) as stream:
                return bytes(stream.read())
    except (OSError, pa.ArrowException, struct.error, IndexError) as error:
        raise _damaged(batch, error) from error
    raise DecodeError(f"the batch at offset {batch.base_offset} has compression {batch.compression}, which is none")


def _damaged(batch: Batch, error: Exception) -> DecodeError:
    return DecodeError(f"the batch at offset {batch.base_offset} cannot be uncompressed: {error}")


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

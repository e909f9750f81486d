"""The compressions of record batches, as brokers store what producers sent: gzip, snappy, lz4, zstd."""

from __future__ import annotations

import struct
import zlib
from typing import Final

from kafka_trial.kafka_protocol.primitives import DecodeError

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

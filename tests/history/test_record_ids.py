"""Checksums of values: of the bytes, and of what they say."""

from __future__ import annotations

import zlib

import pytest

from kafka_trial.history.record_ids import PARSED_BYTES_MAX, checksums

SENT = b'{"id":"r1","n":7,"key":null,"pad":"a b","price":1.0}'


@pytest.mark.parametrize(
    ("body", "same"),
    [
        (b'{"n": 7, "id": "r1", "pad": "a b", "price": 1, "key": null}', True),
        (b'{\n "price": 1e0, "id": "r1", "n": 7.0, "key": null, "pad": "a\\u0020b"}', True),
        (b'{"id":"r1","n":8,"key":null,"pad":"a b","price":1.0}', False),
        (b'{"id":"r1","n":7,"pad":"a b","price":1.0}', False),
        (b'{"id":"r1","n":"7","key":null,"pad":"a b","price":1.0}', False),
    ],
    ids=["another order and spacing", "other numbers and letters of the same", "another number", "a key less", "text"],
)
def test_json_that_was_written_anew_says_the_same(body: bytes, *, same: bool) -> None:
    """The bytes are others in every case."""
    one, other = checksums(SENT), checksums(body)
    assert (one["checksum"] == other["checksum"], one["json_checksum"] == other["json_checksum"]) == (False, same)


@pytest.mark.parametrize(
    "body", [b"", b"7", b"r1\0x", b'{"id":', b"[" * 100_000, b"{" + b" " * PARSED_BYTES_MAX + b"}", b'{"n":"\xff"}']
)
def test_what_is_no_json_has_the_checksum_of_its_bytes_only(body: bytes) -> None:
    """Nor what is no object or list, or too long to be read."""
    assert checksums(body) == {"checksum": zlib.crc32(body), "json_checksum": None}


def test_no_value_has_no_checksum() -> None:
    """A tombstone."""
    assert checksums(None) == {"checksum": None, "json_checksum": None}

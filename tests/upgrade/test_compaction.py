"""When the cleaner has been over a log twice, by what is left in it."""

from __future__ import annotations

import pytest

from kafka_trial.kafka_protocol.batches import Record
from kafka_trial.upgrade.reload import count_tombstones, not_clean


def log(*written: tuple[int, bytes, bytes | None]) -> list[Record]:
    """Records by offset, key and value."""
    return [Record(offset, 0, key, value) for offset, key, value in written]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ([], None),
        (log((0, b"a", b"1"), (3, b"b", b"")), None),  # an empty value is none
        (log((0, b"a", b"1"), (3, b"b", None)), "a tombstone at offset 3"),
        (log((0, b"a", b"1"), (3, b"b", b"2"), (9, b"a", b"3")), "one key at the offsets 0 and 9"),
    ],
    ids=["nothing", "clean", "after one pass", "before any"],
)
def test_two_passes_leave_no_tombstone_and_no_key_twice(written: list[Record], why: str | None) -> None:
    """After one the tombstones are still there, before it the records that they end."""
    assert not_clean(written) == why


def test_tombstones_are_counted() -> None:
    """Records without a value, of whatever key."""
    assert count_tombstones(log((0, b"a", b"1"), (1, b"a", None), (2, b"b", None), (3, b"c", b""))) == 2

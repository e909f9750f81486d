"""The map of offsets: by the ids of records, whatever the mirror has made of their places."""

from __future__ import annotations

import pytest

from kafka_trial.mirror.offset_map import OffsetMap, ReadRecord, offset_map

GAP = 3  # an offset of the source without a record


def _read_records(pairs: dict[int, str], partition: int = 0) -> list[ReadRecord]:
    return [ReadRecord(partition, offset, id_) for offset, id_ in pairs.items()]


@pytest.fixture
def shifted() -> OffsetMap:
    """Records a to e at 0, 1, 2, 4, 5; on the mirror at 100 to 104."""
    source = _read_records({0: "a", 1: "b", 2: "c", GAP + 1: "d", GAP + 2: "e"})
    return offset_map(source, _read_records(dict(enumerate("abcde", 100))))


def test_an_offset_is_that_of_the_same_record(shifted: OffsetMap) -> None:
    """Other offsets and other partitions have none."""
    assert [shifted.offset_of(0, there) for there in (100, 103, 104, 99, 105)] == [0, 4, 5, None, None]
    assert shifted.offset_of(1, 100) is None
    assert (shifted.missing, shifted.duplicates, shifted.unexpected) == ((), 0, ())


def test_a_position_is_after_the_records_before_it(shifted: OffsetMap) -> None:
    """Below the first one it is the first, past the end as far past it; no position stays none."""
    assert [shifted.position_of(0, there) for there in (0, 100, 101, 103, 104, 105, 107)] == [0, 0, 1, 3, 5, 6, 8]
    assert [shifted.position_of(0, -1), shifted.position_of(7, 100)] == [-1, 0]


def test_what_the_mirror_has_twice_has_two_offsets_and_takes_no_position_back() -> None:
    """A mirror that was started again copies its last records once more."""
    told = offset_map(_read_records(dict(enumerate("abcd"))), _read_records(dict(enumerate("abcbcd", 10))))
    assert [told.offset_of(0, there) for there in range(10, 16)] == [0, 1, 2, 1, 2, 3]
    assert [told.position_of(0, there) for there in range(10, 17)] == [0, 1, 2, 3, 3, 3, 4]
    assert (told.duplicates, told.missing) == (2, ())


def test_what_one_side_lacks_is_named() -> None:
    """A record that never came across; one of nobody; one that lies in another partition there."""
    source = [*_read_records({0: "a", 1: "b"}), *_read_records({0: "c"}, partition=1)]
    mirror = [*_read_records({5: "a", 6: "x"}), *_read_records({9: "b"}, partition=1)]
    told = offset_map(source, mirror)
    assert told.missing == ((0, 1), (1, 0))
    assert told.unexpected == ((0, 6), (1, 9))
    assert (told.position_of(0, 6), told.position_of(0, 7)) == (1, 2)


def test_what_the_source_has_no_longer_is_where_it_was_acknowledged() -> None:
    """The mirror has it still: it is nobody's; or never had it: it is not missing there."""
    written = _read_records(dict(enumerate("abcd")))
    told = offset_map(written[2:], _read_records(dict(enumerate("bcd", 100))), acknowledged=written)
    assert (told.missing, told.unexpected, told.duplicates) == ((), (), 0)
    assert [told.offset_of(0, there) for there in (100, 101, 102)] == [1, 2, 3]
    assert [told.position_of(0, there) for there in (100, 101, 103)] == [1, 2, 4]

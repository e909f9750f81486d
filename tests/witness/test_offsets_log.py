"""The reader of the offsets log on literal batches: which events, for which groups, and what happens to damage."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka_trial.history.event import from_line
from kafka_trial.history.recorder import Recorder
from kafka_trial.kafka_protocol.batches import batches, ended, records
from kafka_trial.kafka_protocol.primitives import DecodeError
from kafka_trial.witness.offsets_log import LogReader
from witness.literal_batches import (
    ABORT,
    COMMIT,
    GZIP,
    LEADER_CHANGE,
    LZ4,
    TRANSACTIONAL,
    ZSTD,
    KeyValue,
    batch_of,
    marker_of,
)


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _key(group: str, *, partition: int = 0) -> bytes:
    return b"\0\1" + _string(group) + _string("t") + struct.pack(">i", partition)


def _value(committed_offset: int) -> bytes:
    return b"\0\3" + struct.pack(">qi", committed_offset, -1) + _string("") + struct.pack(">q", 5)


def _committed(group: str, *offsets: int) -> list[KeyValue]:
    return [(_key(group), _value(offset)) for offset in offsets]


@contextmanager
def _reader(folder: Path) -> Iterator[tuple[LogReader, Any]]:
    with Recorder(folder, "offsets") as recorder:

        def seen() -> list[tuple[Any, ...]]:
            events = map(from_line, recorder.path.read_bytes().splitlines())
            return [
                (event.kind, event.details["log_offset"], event.committed_offset)
                if event.committed_offset is not None
                else (event.kind, event.details["log_offset"])
                for event in events
            ]

        yield LogReader(6, ["g"], recorder), seen


def _take(reader: LogReader, *raw: bytes, position: int = 0) -> None:
    for batch in batches(b"".join(raw)):
        reader.take(batch, position)


def test_a_batch_knows_its_place_its_producer_and_its_records() -> None:
    """Offsets and times are sums of base and delta; a null value stays null."""
    (batch,) = batches(batch_of(40, [(b"a", b"1"), (b"b", None)], attributes=TRANSACTIONAL, producer_id=9))
    assert (batch.base_offset, batch.next_offset, batch.producer_id, batch.transactional) == (40, 42, 9, True)
    assert [(one.offset, one.time_ms, one.key, one.value) for one in records(batch)] == [
        (40, 1000, b"a", b"1"),
        (41, 1001, b"b", None),
    ]


def test_a_batch_that_a_size_limit_cut_off_is_left_for_the_next_fetch() -> None:
    """Whole batches only."""
    first, second = batch_of(0, _committed("g", 1)), batch_of(1, _committed("g", 2))
    assert [batch.base_offset for batch in batches(first + second[:-1])] == [0]
    assert [batch.base_offset for batch in batches(first + second[:20])] == [0]


@pytest.mark.parametrize(
    ("kind", "end", "left"),
    [
        (ABORT, ("abort", ["a"]), {2: ["b"]}),
        (COMMIT, ("commit", ["a"]), {2: ["b"]}),
        (LEADER_CHANGE, (None, []), {1: ["a"], 2: ["b"]}),
    ],
    ids=["abort", "commit", "leader change"],
)
def test_a_control_batch_ends_its_producers_transaction(
    kind: int, end: tuple[str | None, list[str]], left: dict[int, list[str]]
) -> None:
    """Others' stay open; other control records end nothing."""
    (batch,) = batches(marker_of(0, 1, kind))
    written = {1: ["a"], 2: ["b"]}
    assert (ended(batch, written), written) == (end, left)


def test_only_the_groups_followed_are_recorded(tmp_path: Path) -> None:
    """Another group's records in the same partition, and in the same batch, leave nothing."""
    with _reader(tmp_path) as (reader, seen):
        _take(reader, batch_of(0, _committed("other", 1) + _committed("g", 2)), batch_of(2, _committed("gg", 3)))
        assert seen() == [("committed", 1, 2)]


@pytest.mark.parametrize("compression", [GZIP, LZ4])
def test_compressed_batches_are_opened(compression: int, tmp_path: Path) -> None:
    """A broker may be told to compress its offsets log."""
    with _reader(tmp_path) as (reader, seen):
        _take(reader, batch_of(0, _committed("g", 1), attributes=compression))
        assert seen() == [("committed", 0, 1)]


def test_records_before_the_position_are_not_recorded_twice(tmp_path: Path) -> None:
    """A fetch answers with the whole batch that holds the position."""
    with _reader(tmp_path) as (reader, seen):
        _take(reader, batch_of(0, _committed("g", 1, 2, 3)), position=2)
        assert seen() == [("committed", 2, 3)]


def test_an_aborted_transaction_takes_its_commits_back(tmp_path: Path) -> None:
    """Each producer's marker decides on its own commits only; they stay in the history, marked."""
    with _reader(tmp_path) as (reader, seen):
        _take(
            reader,
            batch_of(0, _committed("g", 1), attributes=TRANSACTIONAL, producer_id=7),
            batch_of(1, _committed("g", 2), attributes=TRANSACTIONAL, producer_id=8),
            marker_of(2, 7, ABORT),
            batch_of(3, _committed("g", 3)),
            marker_of(4, 8, COMMIT),
        )
        assert seen() == [
            ("committed", 0, 1),
            ("committed", 1, 2),
            ("transaction_marker", 2),
            ("commit_aborted", 0, 1),
            ("committed", 3, 3),
            ("transaction_marker", 4),
        ]


def test_what_is_open_at_the_snapshot_is_told(tmp_path: Path) -> None:
    """A producer that committed twice and was not ended, by its first commit; ended ones and strangers are not told."""
    with _reader(tmp_path) as (reader, seen):
        _take(
            reader,
            batch_of(0, _committed("g", 1), attributes=TRANSACTIONAL, producer_id=8),
            batch_of(1, _committed("g", 2), attributes=TRANSACTIONAL, producer_id=7, epoch=5),
            batch_of(2, _committed("g", 3), attributes=TRANSACTIONAL, producer_id=7, epoch=5),
            batch_of(3, _committed("x", 3), attributes=TRANSACTIONAL, producer_id=9),
            marker_of(4, 8, COMMIT),
        )
        reader.record_open()
        assert seen()[3:] == [("transaction_marker", 4), ("transaction_open", 1)]
    event = from_line((tmp_path / "offsets.jsonl").read_bytes().splitlines()[-1])
    assert (event.details["producer_id"], event.details["producer_epoch"], event.source_wall_ns) == (7, 5, 10**9)


def test_a_strangers_marker_says_nothing(tmp_path: Path) -> None:
    """A transaction without commits of our group leaves no line."""
    with _reader(tmp_path) as (reader, seen):
        _take(reader, batch_of(0, _committed("x", 1), attributes=TRANSACTIONAL, producer_id=7), marker_of(1, 7, ABORT))
        assert seen() == []


def test_tombstones_are_events_of_their_own(tmp_path: Path) -> None:
    """No commit any more; no group any more."""
    with _reader(tmp_path) as (reader, seen):
        _take(reader, batch_of(0, [(_key("g"), None), (b"\0\2" + _string("g"), None)]))
        assert seen() == [("commit_tombstone", 0), ("group_tombstone", 1)]


@pytest.mark.parametrize(
    "entry",
    [(_key("g"), _value(1)[:-1]), (_key("g")[:-1], _value(1)), (b"\0\2" + _string("g"), b"\0\3g")],
    ids=["value cut short", "key cut short", "garbage group"],
)
def test_what_cannot_be_decoded_is_told_and_the_rest_is_read(tmp_path: Path, entry: KeyValue) -> None:
    """One damaged record costs one record, and the claim to know all."""
    with _reader(tmp_path) as (reader, seen):
        _take(reader, batch_of(0, [*_committed("g", 1), entry, *_committed("g", 2)]))
        assert seen() == [("committed", 0, 1), ("undecodable", 1), ("committed", 2, 2)]
        assert reader.undecodable == 1


def test_another_groups_damaged_value_does_not_blind(tmp_path: Path) -> None:
    """Its key says that it is not ours; its value is never looked at."""
    with _reader(tmp_path) as (reader, seen):
        _take(reader, batch_of(0, [(_key("x"), b"\x7f"), *_committed("g", 2)]))
        assert seen() == [("committed", 1, 2)]


def test_a_record_that_is_not_as_long_as_it_says_is_told(tmp_path: Path) -> None:
    """What follows it in the batch cannot be trusted either."""
    raw = bytearray(batch_of(0, _committed("g", 1)))
    raw[61] += 2  # the length of the first record, zig-zag
    with _reader(tmp_path) as (reader, seen):
        _take(reader, bytes(raw))
        assert (seen()[-1], reader.undecodable) == (("undecodable", 0), 1)


def test_a_compression_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    """Nothing is guessed about what it holds."""
    with _reader(tmp_path) as (reader, seen):
        _take(reader, batch_of(0, _committed("g", 1), attributes=ZSTD))
        assert (seen(), reader.undecodable) == ([("undecodable", 0)], 1)


def test_share_records_and_unknown_types_are_named_unreadable(tmp_path: Path) -> None:
    """They are in the history, so that nobody believes they were not there."""
    with _reader(tmp_path) as (reader, seen):
        _take(reader, batch_of(0, [(b"\0\x0b" + _string("g"), b"?"), (b"\0\x63" + _string("g"), b"?")]))
        assert seen() == [("unreadable", 0), ("unreadable", 1)]


def test_a_batch_of_an_old_format_is_refused() -> None:
    """Magic 1 has no producers: nobody could follow transactions in it."""
    old = bytearray(batch_of(0, _committed("g", 1)))
    old[16] = 1
    with pytest.raises(DecodeError, match="magic 1"):
        list(batches(bytes(old)))

"""The offsets log of an audit: compaction seen by missing offsets, and what of the log counts for a window.

Of the window filter: a window from 10 to 20, on a few commits of partition 0.
"""

from __future__ import annotations

from typing import Any

import pytest

from kafka_trial.audit.offsets import Gaps, WindowFilter
from kafka_trial.kafka_protocol.batches import Batch

MS = 1_000_000


def _batch(base: int, end: int, *, count: int | None = None, at_ms: int = 50, control: bool = False) -> Batch:
    size = end - base if count is None else count
    return Batch(base, end, at_ms, -1, -1, transactional=False, control=control, compression=0, count=size, payload=b"")


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([_batch(0, 4), _batch(4, 9)], (0, -1)),
        ([_batch(0, 4), _batch(7, 9)], (3, 7)),
        ([_batch(0, 4, count=1), _batch(4, 9)], (3, 4)),
        ([_batch(5, 9)], (5, 5)),
        ([_batch(2, 4, at_ms=1), _batch(7, 9, at_ms=2), _batch(9, 12)], (0, -1)),
        ([_batch(0, 1), _batch(1, 2, count=0, control=True)], (0, -1)),
    ],
    ids=["whole", "between", "inside", "at the start", "before the window", "a control batch"],
)
def test_missing_offsets_are_counted_from_the_window_on(batches: list[Batch], expected: tuple[int, int]) -> None:
    """The window begins at 10 ms: what was missing before is as compaction leaves it."""
    holes = Gaps(10 * MS, 0)
    for batch in batches:
        holes.take(batch)
    assert (holes.count, holes.whole_offset) == expected


class _Pen:
    """Keeps what is written: (kind, place in the log)."""

    def __init__(self) -> None:
        self.written: list[tuple[str, int]] = []

    def record(self, kind: str, *, time_ns: int | None = None, **fields: Any) -> int:
        self.written.append((kind, fields["log_offset"]))
        return 0


def _sieved(
    *told: tuple[str, int, int, dict[str, Any]], topic_id: str | None = None
) -> tuple[list[tuple[str, int]], WindowFilter]:
    """Takes (kind, time, committed offset, more); the place in the log is the number of the event."""
    event_writer = _Pen()
    window_filter = WindowFilter(event_writer, topic="t", topic_id=topic_id, from_ns=10, until_ns=20)
    for place, (kind, at_ns, value, more) in enumerate(told):
        fields = {"topic": "t", "partition": 0, "committed_offset": value, "log_offset": place, "source_wall_ns": at_ns}
        window_filter.record(kind, **(fields | more))
    window_filter.begin()
    return event_writer.written, window_filter


def _commit(at_ns: int, value: int, **more: Any) -> tuple[str, int, int, dict[str, Any]]:
    return "committed", at_ns, value, more


def _group(at_ns: int, **more: Any) -> tuple[str, int, int, dict[str, Any]]:
    return "group", at_ns, 0, {"member_id": None} | more


def test_before_the_window_only_what_stands_counts() -> None:
    """The last record of each key, in the log's order, as compaction would leave it."""
    written, window_filter = _sieved(_commit(1, 5), _group(2), _commit(3, 7), _group(4), _commit(11, 9))
    assert (written, window_filter.inside) == ([("committed", 2), ("group", 3), ("committed", 4)], 1)


def test_a_tombstone_before_the_window_takes_its_member_away() -> None:
    """Type 8 is a member's assignment; the tombstone itself stands for it."""
    gone = ("group_tombstone", 2, 0, {"member_id": "m", "record_type": 8})
    written, _ = _sieved(("member_assignment", 1, 0, {"member_id": "m"}), gone, _commit(11, 9))
    assert written == [("group_tombstone", 1), ("committed", 2)]


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ([_commit(15, 6)], [(0, 9), (1, 6), (2, 8), (3, 9)]),
        ([_commit(15, 12)], [(0, 9), (1, 12)]),
    ],
    ids=["fell: followed until it is back", "did not fall: nothing after the window"],
)
def test_after_the_window_only_a_fall_is_followed(last: list[Any], expected: list[tuple[int, int]]) -> None:
    """Up to the commit that recovered it; what comes then belongs to another window."""
    written, window_filter = _sieved(_commit(11, 9), *last, _commit(21, 8), _commit(22, 9), _commit(23, 3))
    assert ([place for _, place in written], window_filter.committed[0]) == (
        [place for place, _ in expected],
        last[0][2],
    )


def test_commits_of_other_topics_are_left_out() -> None:
    """They are another audit's."""
    written, _ = _sieved(_commit(11, 9, topic="u"), _commit(12, 9))
    assert written == [("committed", 1)]


def test_commits_of_another_topic_of_that_name_are_counted_and_left_out() -> None:
    """It was deleted, and one made again that has another id; a broker that writes no id leaves all in."""
    commits = _commit(11, 900, topic_id="U"), _commit(12, 901, topic_id="U"), _commit(13, 3, topic_id="T")
    written, window_filter = _sieved(*commits, _commit(14, 4), topic_id="T")
    assert (written, window_filter.earlier, window_filter.earlier_until_ns) == (
        [("committed", 2), ("committed", 3)],
        2,
        12,
    )
    assert len(_sieved(*commits)[0]) == 3


def test_an_aborted_commit_leaves_what_stood_before_it() -> None:
    """Inside the window the position goes back to it; before the window nothing is claimed."""
    aborted = ("commit_aborted", 13, 9, {"log_offset": 1})
    _, inside = _sieved(_commit(11, 5), _commit(12, 9, producer_id=1), aborted)
    written, _ = _sieved(_commit(1, 5), _commit(2, 9, producer_id=1), ("commit_aborted", 3, 9, {"log_offset": 1}))
    assert (inside.committed, inside.fallen, written) == ({0: 5}, set(), [])

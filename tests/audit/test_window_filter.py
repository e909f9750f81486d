"""The window filter: what of the offsets log counts for a window from 10 to 20, on a few commits of partition 0."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_trial.audit.window_filter import WindowFilter


class _Pen:
    """Keeps what is written: (kind, place in the log)."""

    def __init__(self) -> None:
        self.written: list[tuple[str, int]] = []

    def record(self, kind: str, *, time_ns: int | None = None, **fields: Any) -> int:
        self.written.append((kind, fields["log_offset"]))
        return 0


def _sieved(*told: tuple[str, int, int, dict[str, Any]]) -> tuple[list[tuple[str, int]], WindowFilter]:
    """Takes (kind, time, committed offset, more); the place in the log is the number of the event."""
    event_writer = _Pen()
    window_filter = WindowFilter(event_writer, topic="t", from_ns=10, until_ns=20)
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


def test_an_aborted_commit_leaves_what_stood_before_it() -> None:
    """Inside the window the position goes back to it; before the window nothing is claimed."""
    aborted = ("commit_aborted", 13, 9, {"log_offset": 1})
    _, inside = _sieved(_commit(11, 5), _commit(12, 9, producer_id=1), aborted)
    written, _ = _sieved(_commit(1, 5), _commit(2, 9, producer_id=1), ("commit_aborted", 3, 9, {"log_offset": 1}))
    assert (inside.committed, inside.fallen, written) == ({0: 5}, set(), [])

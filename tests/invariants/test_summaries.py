"""Every partition as one row: literal histories, each of at most eight lines. Times are milliseconds from the start."""

from __future__ import annotations

from typing import Any

import pytest

from histories import (
    Line,
    after,
    assigned,
    at_once,
    batch_of,
    committed,
    delivered,
    effect,
    handled,
    later,
    on,
    phase,
    processed,
    told,
    tombstone,
    with_settings,
)
from kafka_trial.model.summaries import summaries

DONE = [assigned("m0"), handled("m0", 0, 1)]


def summary(lines: list[Line | list[Line]], *names: str, **frame: Any) -> list[tuple[Any, ...]]:
    """The named columns of the row of each partition."""
    return told(summaries(batch_of(lines, **frame)), *names)


def test_what_is_done_and_what_is_left() -> None:
    """Of the first partition all is done and committed, of the second all is left: its first record is the proof."""
    lines = [*DONE, committed(2), phase("drain"), after(11)]
    names = ("slice", "records", "end", "committed", "open", "lag", "backlog", "open_offset", "open_source", "open_seq")
    assert summary(lines, *names, partitions=2) == [
        (0, 2, 2, 2, 0, 0, 0, "never", -1, -1),
        (1, 2, 2, None, 2, 2, 2, 0, 1, 3),
    ]


def test_when_it_was_done_and_when_it_moved() -> None:
    """Of the second partition nothing was ever done: it moved at no time."""
    names = ("all_handled_ns", "converged_ns", "moved_ns", "commit_source", "commit_seq", "regression_seq")
    lines = [*DONE, committed(1), committed(2), phase("drain")]
    assert summary(lines, *names, partitions=2) == [
        (None, 70, 70, 4, 1, -1),
        ("never", "never", None, -1, -1, -1),
    ]


def test_all_is_handled_when_the_last_record_above_the_position_is() -> None:
    """Record 0 was done before record 1, and nothing is committed."""
    lines = [assigned("m0"), processed("m0", 1), processed("m0", 0)]
    assert summary(lines, "all_handled_ns", "open", "lag") == [(30, 0, 2)]


def test_it_has_converged_since_its_position_stays_at_the_end() -> None:
    """At the end, below it for a second, and at the end again, twice: the fall and the return are no progress."""
    lines = [*DONE, committed(2), committed(1), after(1), committed(2), committed(2)]
    names = ("committed", "converged_ns", "moved_ns", "commit_seq", "regression_seq")
    assert summary(lines, *names) == [(2, 1080, 60, 3, -1)]


def test_a_position_that_fell_and_stays_is_the_cause() -> None:
    """The commit that fell first, not the further one, and not one from which it came back."""
    lines = [*DONE, committed(2), committed(1), committed(2), committed(1), committed(0)]
    assert summary(lines, "committed", "lag", "converged_ns", "regression_source", "regression_seq") == [
        (0, 2, "never", 4, 3)
    ]


def test_it_has_converged_when_the_last_record_was_done_after_it_was_committed() -> None:
    """Committed at 30 ms, done at 1040 ms."""
    lines = [assigned("m0"), processed("m0", 0), committed(2), after(1), processed("m0", 1)]
    assert summary(lines, "converged_ns", "moved_ns", "all_handled_ns") == [(1040, 1040, None)]


def test_a_record_that_was_skipped_does_not_keep_it_from_converging() -> None:
    """Committed past at 30 ms, and never done: that has a name of its own."""
    assert summary([assigned("m0"), processed("m0", 1), committed(2)], "converged_ns", "open") == [(30, 0)]


def test_without_a_record_that_was_done_it_has_not_converged_before_its_position() -> None:
    """Below the position nothing was done, and above it nothing is."""
    assert summary([assigned("m0"), committed(2)], "converged_ns", "moved_ns") == [(20, 20)]
    assert summary([assigned("m0"), committed(1)], "converged_ns", "moved_ns") == [("never", 20)]


def test_under_at_most_once_the_position_is_all() -> None:
    """Nothing is done after the commit."""
    at_most_once = with_settings(delivery="at-most-once")
    lines = [assigned("m0"), committed(2), after(1), processed("m0", 0)]
    assert summary(lines, "converged_ns", settings=at_most_once) == [(20,)]
    assert summary(lines, "converged_ns") == [(1030,)]


def test_where_progress_is_elsewhere_what_was_done_is_all() -> None:
    """What is committed in Kafka means nothing."""
    elsewhere = with_settings(progress="sink")
    lines = [*DONE, after(1), committed(2), phase("drain")]
    names = ("committed", "open", "lag", "converged_ns", "backlog")
    assert summary(lines, *names, settings=elsewhere) == [(None, 0, 2, 50, 0)]
    assert summary([*DONE[:1], handled("m0", 0)], "open", "converged_ns", settings=elsewhere) == [(1, "never")]


@pytest.mark.parametrize(
    ("last", "left", "moved"),
    [
        ([processed("m0", 1), at_once(phase("snapshot"))], 0, 50),
        ([phase("snapshot"), later(processed("m0", 1), 1)], 1, 40),
        ([phase("snapshot"), delivered("m0", 1)], 1, 40),
        ([effect(1), at_once(phase("snapshot"))], 0, 50),
    ],
    ids=["done just then", "done just after", "delivered after", "its effect just then"],
)
def test_only_what_had_happened_by_the_snapshot_counts(last: list[Line], left: int, moved: int) -> None:
    """In the same instant, and not a nanosecond later."""
    lines = [assigned("m0"), handled("m0", 0), delivered("m0", 1), *last]
    assert summary(lines, "open", "moved_ns", snapshot=False) == [(left, moved)]


@pytest.mark.parametrize(
    ("last", "committed_offset", "converged"),
    [
        ([committed(2), at_once(phase("snapshot"))], 2, 60),
        ([phase("snapshot"), committed(2)], None, "never"),
        ([committed(2), phase("snapshot"), committed(1)], 2, 60),
        ([committed(2), phase("snapshot"), tombstone()], 2, 60),
        ([committed(2), tombstone()], None, "never"),
        ([committed(3), committed(2)], 2, 60),
    ],
    ids=["just then", "after it", "fallen after it", "deleted after it", "deleted", "beyond the end"],
)
def test_the_position_is_that_of_the_snapshot(
    last: list[Line | list[Line]], committed_offset: int | None, converged: Any
) -> None:
    """What stood when the trial was looked at."""
    lines = [*DONE, *last]
    assert summary(lines, "committed", "converged_ns", snapshot=False) == [(committed_offset, converged)]


@pytest.mark.parametrize(
    ("before", "left"),
    [
        ([], 2),
        ([processed("m0", 0)], 2),
        ([processed("m0", 0), committed(1)], 1),
        ([committed(2)], 2),
        ([committed(1), processed("m0", 0), processed("m0", 1)], 1),
    ],
    ids=["nothing", "done and not committed", "done and committed", "committed and not done", "one of them committed"],
)
def test_the_backlog_is_what_was_left_when_the_drain_began(before: list[Line | list[Line]], left: int) -> None:
    """Not done, or not committed past, whichever are more; what is done in the drain does not make it less."""
    lines = [assigned("m0"), *before, phase("drain"), processed("m0", 0), processed("m0", 1), committed(2)]
    assert summary(lines, "backlog") == [(left,)]


def test_what_was_done_in_the_instant_of_the_drain_was_not_left() -> None:
    """The last record, and its commit."""
    elsewhere = with_settings(progress="sink")
    done = [assigned("m0"), processed("m0", 0), processed("m0", 1), at_once(phase("drain"))]
    assert summary(done, "backlog", settings=elsewhere) == [(0,)]
    assert summary([*done[:2], phase("drain"), later(done[2], 1)], "backlog", settings=elsewhere) == [(1,)]
    assert summary([*DONE, committed(2), at_once(phase("drain"))], "backlog") == [(0,)]


def test_without_a_drain_there_is_no_backlog() -> None:
    """Nobody asked it to come to an end."""
    assert summary([assigned("m0")], "backlog") == [(0,)]


def test_the_longest_handler_of_each_partition() -> None:
    """Two seconds in one, one in the other."""
    slow = [delivered("m0", 0), on(1, delivered("m0", 0)), after(1), on(1, processed("m0", 0)), after(1)]
    lines = [assigned("m0", 0, 1), *slow, processed("m0", 0), handled("m0", 1)]
    rows = summaries(batch_of(lines, partitions=3))
    assert rows["longest_ns"].tolist() == [2_030_000_000, 1_010_000_000, 0]

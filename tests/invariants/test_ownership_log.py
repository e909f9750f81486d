"""Who was given a partition by the offsets log, from which place to which: literal histories of at most eight lines."""

from __future__ import annotations

import pytest

from histories import Line, batch_of, gone, holds, on, owner, told
from kafka_trial.model.ownership_log import filled, logged_assignments

NEVER = "never"


@pytest.mark.parametrize(
    ("lines", "assignment_records", "whole"),
    [
        ([owner("m0")], [(0, 1, NEVER)], [NEVER]),
        ([owner("m0"), owner("m1"), owner("m0")], [(0, 1, 2), (1, 2, 3), (0, 3, NEVER)], [2, 3, NEVER]),
        ([owner("m0", "m1"), owner("m0")], [(0, 1, 2), (1, 1, 2), (0, 2, NEVER)], [2, 2, NEVER]),
        ([holds("m0", 0), holds("m0")], [(0, 1, 2)], [NEVER]),
        ([holds("m0", 0), gone("m0"), holds("m1", 0)], [(0, 1, 2), (1, 3, NEVER)], [3, NEVER]),
        ([holds("m0", 0), holds("m0"), holds("m1"), holds("m1", 0)], [(0, 1, 2), (1, 4, NEVER)], [4, NEVER]),
        ([holds("m0", 0), holds("m0", pending=[0]), holds("m0")], [(0, 1, 2), (0, 2, 3)], [2, NEVER]),
        ([holds("m0", 0), holds("m1", 0), holds("m1")], [(0, 1, NEVER), (1, 2, 3)], [NEVER, 3]),
        ([holds("m0", 0), holds("m1", 0), holds("m1"), holds("m0")], [(0, 1, 4), (1, 2, 3)], [NEVER, 3]),
        ([holds("m0", 0), owner("m1")], [(0, 1, 2), (1, 2, NEVER)], [2, NEVER]),
        ([holds("m0", 0), holds("m0"), owner("m1")], [(0, 1, 2), (1, 3, NEVER)], [3, NEVER]),
        ([owner("m0"), holds("m1", 0)], [(0, 1, 2), (1, 2, NEVER)], [2, NEVER]),
        ([owner("m7"), owner("m0")], [(-1, 1, 2), (0, 2, NEVER)], [2, NEVER]),
        ([holds("m0", 0), holds("m1", 0), holds("m0"), holds("m1"), holds("m0", 0)], None, [3, 5, NEVER]),
    ],
    ids=[
        "classic",
        "from hand to hand",
        "two at once",
        "released",
        "gone",
        "released and taken later",
        "pending",
        "held by both and released by one",
        "released by the one, then by the other",
        "taken over by the classic protocol",
        "released and taken over",
        "taken over by KIP-848",
        "an id that was seen on no lane",
        "held by both, released by both and taken again",
    ],
)
def test_a_grant_lasts_until_the_next_record_says_otherwise(
    lines: list[Line], assignment_records: list[tuple[object, ...]] | None, whole: list[object]
) -> None:
    """(member, place, until) as the records say; and until when, if the last owner stays until another gets it."""
    batch = batch_of(lines)
    assert (
        assignment_records is None
        or told(logged_assignments(batch), "member", "log_offset", "until_log_offset") == assignment_records
    )
    assert told(filled(batch), "until_log_offset") == [(until,) for until in whole]


def test_each_partition_has_its_own_grants() -> None:
    """Both are m0's; the first goes to m1, the second is released and goes to m1 much later."""
    lines = [holds("m0", 0, 1), holds("m0"), holds("m1", 0), holds("m1", 0, 1), on(2, owner("m0")), on(2, owner())]
    batch = batch_of(lines, partitions=3)
    assert told(logged_assignments(batch), "slice", "member", "log_offset", "until_log_offset", "time_ns", "seq") == [
        (0, 0, 1, 2, 10, 0),
        (0, 1, 3, 4, 30, 2),
        (0, 1, 4, NEVER, 40, 3),
        (1, 0, 1, 2, 10, 0),
        (1, 1, 4, NEVER, 40, 3),
        (2, 0, 5, NEVER, 50, 4),
    ]
    assert told(filled(batch), "until_log_offset") == [(3,), (4,), (NEVER,), (4,), (NEVER,), (NEVER,)]


def test_nobody_was_given_anything() -> None:
    """A history without group records."""
    assert (len(logged_assignments(batch_of([]))), len(filled(batch_of([])))) == (0, 0)

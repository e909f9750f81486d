"""When a member held a partition by its own word: literal histories, each of at most eight lines."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    after,
    answered,
    assigned,
    batch_of,
    commit,
    delivered,
    exited,
    judged,
    on,
    owner,
    processed,
    revoked,
    said,
    started,
    told,
    with_settings,
)
from kafka_trial.model.ownership_epochs import BY_EXIT, STILL_OPEN, member_lines, ownership_epochs
from kafka_trial.model.rows import Kind

HERE = {"topic": "t", "partition": 0}
STOPPED = said("m0", "stopped")
LOST = said("m0", "lost", entries=[HERE])
STRANGER = said("m9", "assigned", entries=[HERE | {"partition": 1}])  # whose process nobody saw start


@pytest.mark.parametrize(
    ("ends", "closed"),
    [
        ([], ("never", "never", STILL_OPEN)),
        ([revoked("m0")], (2, 20, Kind.REVOKED)),
        ([LOST], (2, 20, Kind.LOST)),
        ([revoked("m0"), LOST], (2, 20, Kind.REVOKED)),
        ([STOPPED], ("never", "never", STILL_OPEN)),
        ([exited("m0")], (2, 20, BY_EXIT)),
        ([STOPPED, exited("m0")], (3, 30, BY_EXIT)),
        ([STOPPED, revoked("m0")], (3, 30, Kind.REVOKED)),
        ([revoked("m0"), STOPPED], (2, 20, Kind.REVOKED)),
        ([revoked("m0", 1), revoked("m1")], ("never", "never", STILL_OPEN)),
        ([assigned("m0", 1), exited("m1")], ("never", "never", STILL_OPEN)),
    ],
    ids=[
        "never",
        "revoked",
        "lost",
        "revoked and lost",
        "stopped",
        "exited",
        "stopped and exited",
        "stopped and revoked",
        "revoked and stopped",
        "another partition and another member",
        "another one assigned and another one gone",
    ],
)
def test_a_possession_closes_at_the_first_of_what_ends_it(ends: list[Line], closed: tuple[object, ...]) -> None:
    """A callback that lists the partition, or the end of its own process."""
    rows = told(ownership_epochs(batch_of([assigned("m0"), *ends], partitions=2)), "close_seq", "close_ns", "closed_by")
    assert rows[0] == closed


def test_possessions_are_told_by_partition_and_incarnation() -> None:
    """m0 has both partitions, one of them twice; then m1 has one, and m0's next incarnation the other."""
    lines = [assigned("m0", 0, 1), assigned("m0", 1), assigned("m1", 0), exited("m0"), started("m0-1")]
    held = ownership_epochs(batch_of([*lines, assigned("m0-1", 1)], partitions=2))
    names = ("slice", "source", "incarnation", "member", "open_seq", "open_ns", "close_seq", "closed_by", "before")
    assert told(held, *names) == [
        (0, 2, 0, 0, 1, 10, 3, BY_EXIT, -1),
        (0, 4, 2, 1, 1, 30, "never", STILL_OPEN, -1),
        (1, 2, 0, 0, 1, 10, 2, Kind.ASSIGNED, -1),
        (1, 2, 0, 0, 2, 20, 3, BY_EXIT, 2),
        (1, 3, 1, 0, 1, 60, "never", STILL_OPEN, -1),
    ]


def test_every_word_falls_into_the_possession_that_is_open() -> None:
    """Before the first, in it, after it was revoked, in the next one, and there when the member has said it stops."""
    inside = [assigned("m0"), delivered("m0", 0), revoked("m0"), processed("m0", 0), assigned("m0")]
    lines = [delivered("m0", 5), *inside, delivered("m0", 1), STOPPED, processed("m0", 1)]
    own = member_lines(batch_of(lines))
    assert told(own, "seq", "opens", "ownership_epoch", "revoked") == [
        (1, False, -1, False),
        (2, True, 0, False),
        (3, False, 0, False),
        (4, False, -1, True),
        (5, False, -1, True),
        (6, True, 1, False),
        (7, False, 1, False),
        (9, False, 1, False),
    ]


@pytest.mark.parametrize(("progress", "attempts"), [("transaction", [0, 0, 1, 1, 2]), ("kafka", [0] * 5)])
def test_a_failed_commit_begins_anew_where_progress_is_in_transactions(progress: str, attempts: list[int]) -> None:
    """What was asked for, or stored, begins nothing."""
    ends = [commit("m0", 1, "ok"), commit("m0", 2, "fail"), delivered("m0", 1), commit("m0", 2, "fail")]
    own = member_lines(batch_of([assigned("m0"), *ends], settings=with_settings(progress=progress)))
    assert own["attempt"].tolist() == attempts


def test_of_a_stranger_neither_life_nor_member_is_known() -> None:
    """Beside a single member that was seen to start."""
    held = ownership_epochs(batch_of([STRANGER, on(1, assigned("m0"))], members=1, partitions=2))
    assert told(held, "incarnation", "member") == [(0, 0), (-1, -1)]


def test_what_was_answered_to_another_member_is_no_floor_of_a_stranger() -> None:
    """m1 was told to start at 1 in partition 0; a member whose process nobody saw start takes partition 1 over."""
    first = [on(1, line) for line in (assigned("m0"), delivered("m0", 0), revoked("m0"))]
    lines = [*first, answered("m1", 1), STRANGER, on(1, delivered("m9", 0))]
    assert judged("redelivered", lines, partitions=2) == [{"offset": 0, "floor": 0}]


def test_a_grant_to_nobody_knows_whom_is_no_loss_of_a_stranger() -> None:
    """It may be the stranger itself that was given the partition."""
    assert judged("zombie-work", [on(0, STRANGER), owner("m7"), after(1), delivered("m9", 0)]) == []

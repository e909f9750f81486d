"""When a member had lost a partition without being told: literal histories, each of at most eight lines."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    after,
    assigned,
    at_once,
    batch_of,
    commit,
    delivered,
    exited,
    holds,
    judged,
    later,
    on,
    owner,
    processed,
    revoked,
    said,
    started,
    stood_still,
    told,
)

FROZEN = [assigned("m0"), delivered("m0", 0), owner("m1")]
REFUSED_ALL = said("m0", "commit", outcome="fail", message="UNKNOWN_MEMBER_ID")
NO_LOSS = ("never", -1)


def test_a_possession_that_was_not_lost_has_no_window() -> None:
    """Told at its end, whatever that was."""
    windows = batch_of([assigned("m0"), delivered("m0", 0), revoked("m0"), assigned("m0")]).zombies
    assert told(windows, "loss", "loss_ns", "told_seq", "told_ns", "by_refusal", "until_ns") == [
        (-1, "never", 3, 30, False, 30),
        (-1, "never", "never", "never", False, "never"),
    ]


@pytest.mark.parametrize(
    ("lines", "loss"),
    [
        ([assigned("m0"), owner("m1")], (20, 0)),
        ([assigned("m0"), at_once(owner("m1"))], (10, 0)),
        ([owner("m1"), later(assigned("m0"), 1)], NO_LOSS),
        ([assigned("m0"), owner("m0"), owner("m1"), owner("m1")], (30, 1)),
        ([assigned("m0"), owner("m0")], NO_LOSS),
        ([assigned("m0"), owner("m0", "m1")], NO_LOSS),
        ([assigned("m0"), owner("m7")], (20, 0)),
        ([assigned("m0"), on(1, owner("m1"))], NO_LOSS),
        ([assigned("m0"), revoked("m0"), owner("m1")], NO_LOSS),
        ([assigned("m0"), owner("m1"), at_once(revoked("m0"))], (20, 0)),
        ([holds("m0", 0), assigned("m0"), holds("m1", 0)], NO_LOSS),
        ([holds("m0", 0), assigned("m0"), holds("m0"), holds("m1", 0)], (40, 1)),
        ([assigned("m0"), owner()], NO_LOSS),
    ],
    ids=[
        "to another",
        "in the instant in which it was assigned",
        "before it was assigned",
        "to another at last",
        "to itself",
        "to both",
        "to an id that was seen on no lane",
        "another partition",
        "after it was told",
        "in the instant in which it was told",
        "while it still held it by the log",
        "once it held it no more by the log",
        "to nobody",
    ],
)
def test_a_loss_is_the_first_record_that_gives_the_partition_to_others(
    lines: list[Line], loss: tuple[object, ...]
) -> None:
    """While the member held it by its own word, and did not by the log."""
    assert told(batch_of(lines, partitions=2).zombies, "loss_ns", "loss")[0] == loss


@pytest.mark.parametrize(
    ("lines", "heard"),
    [
        ([revoked("m0")], (3, 40, False)),
        ([commit("m0", 1, "fail"), revoked("m0")], (3, 40, True)),
        ([commit("m0", 1, "ok"), commit("m0", 1), revoked("m0")], (5, 60, False)),
        ([REFUSED_ALL, commit("m0", 1, "fail")], (3, 40, True)),
        ([commit("m0", 1, "fail"), REFUSED_ALL], (3, 40, True)),
        ([REFUSED_ALL, REFUSED_ALL], (3, 40, True)),
        ([revoked("m0"), commit("m0", 1, "fail")], (3, 40, False)),
        ([on(1, commit("m0", 1, "fail")), revoked("m0")], (4, 50, False)),
        ([commit("m1", 1, "fail"), exited("m0")], (3, 50, False)),
        ([said("m1", "commit", outcome="fail"), exited("m0")], (3, 50, False)),
        ([], ("never", "never", False)),
    ],
    ids=[
        "at its end",
        "by a refusal",
        "not by what was stored or asked for",
        "by a refusal of everything",
        "by a refusal before one of everything",
        "by the first refusal",
        "at its end before a refusal",
        "not by a refusal of another partition",
        "not by another member's refusal",
        "not by another member's refusal of everything",
        "never",
    ],
)
def test_a_loss_is_told_by_a_refusal_or_by_the_end_of_the_possession(
    lines: list[Line], heard: tuple[object, ...]
) -> None:
    """Whichever comes first in the member's own file."""
    windows = batch_of([*FROZEN, *lines], partitions=2).zombies
    assert told(windows, "told_seq", "told_ns", "by_refusal")[0] == heard


@pytest.mark.parametrize("refusal", [commit("m0", 1, "fail"), REFUSED_ALL])
def test_a_refusal_before_the_loss_tells_nothing_of_it(refusal: Line) -> None:
    """Nor one in the very instant in which it was lost."""
    before = batch_of([assigned("m0"), refusal, owner("m1"), at_once(refusal), revoked("m0")]).zombies
    assert told(before, "told_seq", "by_refusal") == [(4, False)]
    just_after = batch_of([assigned("m0"), refusal, owner("m1"), later(refusal, 1), revoked("m0")]).zombies
    assert told(just_after, "told_seq", "by_refusal") == [(3, True)]


def test_a_refusal_in_an_earlier_life_tells_the_next_one_nothing() -> None:
    """Nor does a later one to the life before it: each reads its own file."""
    first = [assigned("m0"), owner("m1"), exited("m0"), started("m0-1"), assigned("m0-1"), owner("m1")]
    windows = batch_of([*first, said("m0-1", "commit", outcome="fail")]).zombies
    assert told(windows, "told_seq", "by_refusal") == [(2, False), (2, True)]


@pytest.mark.parametrize(
    ("lines", "until"),
    [
        ([revoked("m0"), processed("m0", 0)], 50),
        ([processed("m0", 0), revoked("m0")], 50),
        ([commit("m0", 1, "fail"), processed("m0", 0), delivered("m0", 1), processed("m0", 1)], 50),
        ([delivered("m0", 1), revoked("m0"), processed("m0", 1), processed("m0", 0)], 70),
        ([delivered("m0", 1), revoked("m0"), processed("m0", 0), processed("m0", 1)], 70),
        ([revoked("m0")], 40),
    ],
    ids=["finished after it", "finished before it", "begun after it", "the later of two", "of two", "never finished"],
)
def test_what_is_in_hand_when_told_may_be_finished(lines: list[Line], until: int) -> None:
    """The window lasts until the last of the handlers ends that had begun by then."""
    assert told(batch_of([*FROZEN, *lines]).zombies, "until_ns") == [(until,)]


def test_every_possession_has_its_own_window() -> None:
    """m0 lost the first of its partitions untold, m1 the second; both handlers end late."""
    held = [assigned("m0", 0, 2), assigned("m1", 1), delivered("m0", 0), on(1, delivered("m1", 0))]
    lost = [owner("m1"), on(1, owner("m0")), revoked("m0", 0), on(1, revoked("m1"))]
    done = [processed("m0", 0), on(1, processed("m1", 0))]
    windows = batch_of([*held, *lost, *done], partitions=3).zombies
    assert told(windows, "loss", "loss_ns", "told_ns", "until_ns") == [
        (0, 50, 70, 90),
        (1, 60, 80, 100),
        (-1, "never", "never", "never"),
    ]


@pytest.mark.parametrize(
    ("wait", "found"),
    [(after(0.49), 0), (after(0.491), 1), (stood_still(0.2), 0)],
    ids=["as long as sources differ", "longer", "a short standstill"],
)
def test_zombie_work_is_told_from_half_a_second_after_the_loss_on(wait: Line, found: int) -> None:
    """What is handled before that may have been handled before the loss."""
    assert len(judged("zombie-work", [*FROZEN, wait, processed("m0", 0)])) == found


def test_zombie_work_is_told_by_partition() -> None:
    """m0 lost partition 1 only, and works on both."""
    held = [assigned("m0", 0, 1), on(1, owner("m1")), after(1)]
    lines = [*held, delivered("m0", 0), on(1, delivered("m0", 0)), on(1, processed("m0", 0)), revoked("m0", 0, 1)]
    found = judged("zombie-work", [*lines, on(1, delivered("m0", 1))], partitions=2)
    assert found == [{"offset": 0, "what": "delivered"}, {"offset": 0, "what": "processed"}]


def test_refusals_of_everything_are_read_file_by_file() -> None:
    """m0 says more before its own than m1 does."""
    m1 = [assigned("m1", 1), on(1, owner("m0")), said("m1", "commit", outcome="fail")]
    windows = batch_of([*FROZEN, processed("m0", 0), delivered("m0", 1), *m1, REFUSED_ALL], partitions=2).zombies
    assert told(windows, "told_seq", "by_refusal") == [(5, True), (2, True)]

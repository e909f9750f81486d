"""When a member had lost a partition without being told: literal histories, each of at most eight lines."""

from __future__ import annotations

import pytest

from group_lines import heartbeat, synced
from histories import (
    Line,
    after,
    assigned,
    at_once,
    batch_of,
    commit,
    delivered,
    exited,
    finding,
    holds,
    judged,
    lasting,
    later,
    on,
    owner,
    processed,
    revoked,
    said,
    started,
    stood_still,
    told,
    undecided,
)
from kafka_trial.model.zombies import zombie_windows

FROZEN = [assigned("m0"), delivered("m0", 0), owner("m1")]
EXPELLED = lasting(heartbeat("m0", error=25), 0)
UNTOLD = (-1, "never")
REFUSED_ALL = said("m0", "commit", outcome="fail", message="UNKNOWN_MEMBER_ID")
NO_LOSS = ("never", -1)


def test_a_possession_that_was_not_lost_has_no_window() -> None:
    """Over at its end, whatever that was."""
    windows = zombie_windows(batch_of([assigned("m0"), delivered("m0", 0), revoked("m0"), assigned("m0")]))
    assert told(windows, "loss", "loss_ns", "told_ns", "told_seq", "until_ns") == [
        (-1, "never", "never", -1, 30),
        (-1, "never", "never", -1, "never"),
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
    assert told(zombie_windows(batch_of(lines, partitions=2)), "loss_ns", "loss")[0] == loss


@pytest.mark.parametrize(
    ("lines", "heard"),
    [
        ([EXPELLED], (3, 50)),
        ([heartbeat("m0"), EXPELLED, EXPELLED], (4, 60)),
        ([EXPELLED, synced("m0", 1)], (3, 50)),
        ([synced("m0", 1), EXPELLED], (3, 50)),
        ([synced("m0", 0), EXPELLED], (4, 60)),
        ([synced("m0", 0), synced("m0", 1)], (4, 60)),
        ([EXPELLED, revoked("m0")], (3, 50)),
        ([at_once(revoked("m0")), at_once(EXPELLED)], UNTOLD),
        ([revoked("m0"), EXPELLED], UNTOLD),
        ([commit("m0", 1, "fail"), REFUSED_ALL], UNTOLD),
        ([heartbeat("m1", error=25), synced("m1", 1)], UNTOLD),
        ([], UNTOLD),
    ],
    ids=[
        "by a fencing error",
        "by the first one",
        "by an error before a rejoin",
        "by a rejoin before an error",
        "not by a rejoin with the partition",
        "not by the first of two rejoins",
        "before its end",
        "not at its end",
        "not after its end",
        "not by its own word",
        "not by what another member was told",
        "never",
    ],
)
def test_a_loss_is_told_by_the_first_answer_that_says_so(lines: list[Line], heard: tuple[object, ...]) -> None:
    """While the ownership epoch is open."""
    windows = zombie_windows(batch_of([synced("m0", 0), *FROZEN, *lines], partitions=2))
    assert told(windows, "told_seq", "told_ns")[0] == heard


def test_an_answer_before_the_loss_tells_nothing_of_it() -> None:
    """Nor one in the very instant in which it was lost."""
    before = zombie_windows(batch_of([assigned("m0"), EXPELLED, owner("m1"), at_once(EXPELLED), revoked("m0")]))
    assert told(before, "told_seq", "told_ns") == [UNTOLD]
    just_after = zombie_windows(batch_of([assigned("m0"), EXPELLED, owner("m1"), later(EXPELLED, 1), revoked("m0")]))
    assert told(just_after, "told_seq") == [(3,)]


def test_an_answer_in_an_earlier_life_tells_the_next_one_nothing() -> None:
    """Nor does a later one to the life before it."""
    first = [assigned("m0"), owner("m1"), exited("m0"), started("m0-1"), assigned("m0-1"), owner("m1")]
    windows = zombie_windows(batch_of([*first, EXPELLED]))
    assert told(windows, "told_seq") == [(-1,), (2,)]


@pytest.mark.parametrize(
    ("wait", "loss"),
    [(after(0), 1), (exited("m0"), 0)],
    ids=["while it holds the partition", "not once its process has gone"],
)
def test_a_failed_commit_leaves_open_what_it_knew_where_nobody_saw_its_fetches(wait: Line, loss: int) -> None:
    """It may have been told, or its client ran out of time."""
    lines = [*FROZEN, REFUSED_ALL, wait, after(1), delivered("m0", 1)]
    assert undecided("split-ownership", lines) == loss


@pytest.mark.parametrize(
    ("lines", "until"),
    [
        ([revoked("m0"), processed("m0", 0)], 50),
        ([processed("m0", 0), revoked("m0")], 50),
        ([EXPELLED, processed("m0", 0), revoked("m0")], 60),
        ([delivered("m0", 1), revoked("m0"), processed("m0", 1), processed("m0", 0)], 70),
        ([delivered("m0", 1), revoked("m0"), processed("m0", 0), processed("m0", 1)], 70),
        ([revoked("m0")], 40),
    ],
    ids=["finished after it", "finished before it", "told before it", "the later of two", "of two", "never finished"],
)
def test_what_is_in_hand_when_told_may_be_finished(lines: list[Line], until: int) -> None:
    """The window lasts until the last of the handlers ends that had begun by then."""
    assert told(zombie_windows(batch_of([*FROZEN, *lines])), "until_ns") == [(until,)]


def test_every_possession_has_its_own_window() -> None:
    """m0 lost the first of its partitions untold, m1 the second; both handlers end late."""
    held = [assigned("m0", 0, 2), assigned("m1", 1), delivered("m0", 0), on(1, delivered("m1", 0))]
    lost = [owner("m1"), on(1, owner("m0")), revoked("m0", 0), on(1, revoked("m1"))]
    done = [processed("m0", 0), on(1, processed("m1", 0))]
    windows = zombie_windows(batch_of([*held, *lost, *done], partitions=3))
    assert told(windows, "loss", "loss_ns", "until_ns") == [(0, 50, 90), (1, 60, 100), (-1, "never", "never")]


@pytest.mark.parametrize(
    ("wait", "found"),
    [(after(0.49), 0), (after(0.491), 1), (stood_still(0.2), 0)],
    ids=["as long as sources differ", "longer", "a short stall"],
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


def test_failed_commits_of_everything_are_read_file_by_file() -> None:
    """m0 says more before its own than m1 does; m1's comes later than its delivery."""
    m1 = [
        assigned("m1", 1),
        on(1, owner("m0")),
        after(1),
        on(1, delivered("m1", 0)),
        said("m1", "commit", outcome="fail"),
    ]
    lines = [*FROZEN, processed("m0", 0), delivered("m0", 1), REFUSED_ALL, *m1, delivered("m0", 2)]
    found = finding("split-ownership", lines, partitions=2, records=3)
    assert sum(found.undecided.values()) == 1


def test_failed_commits_of_everything_are_read_by_their_times() -> None:
    """The clock was set back a little between two of them."""
    lines = [*FROZEN, after(1), REFUSED_ALL, after(-0.1), REFUSED_ALL, after(1), delivered("m0", 1)]
    assert undecided("split-ownership", lines) == 1

"""Epochs of commits: literal histories, each of at most eight lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from histories import (
    GROUP,
    Line,
    after,
    asked,
    committed,
    finding,
    gone,
    holds,
    judged,
    lasting,
    not_judged,
    on,
    owner,
    undecided,
)

GROUP_GONE = Line("offsets", "group_tombstone", {"group": GROUP, "record_type": 2})


def test_stale_generation_holds() -> None:
    """Every commit carries the generation of its time."""
    lines = [owner("m0"), committed(1, by="m0", epoch=1), owner("m0", epoch=2), committed(2, by="m0", epoch=2)]
    assert judged("stale-generation", lines) == []


def test_stale_generation_is_broken_in_a_classic_group() -> None:
    """The group is in generation 2, and a commit of generation 1 was accepted."""
    found = finding("stale-generation", [owner("m0"), owner("m0", epoch=2), committed(1, by="m0", epoch=1)])
    assert [(one.attributes, one.events) for one in found.instances] == [
        (
            {"log_offset": 3, "committed_offset": 1, "epoch": 1, "current_epoch": 2, "member": "m0"},
            ("offsets#1", "requests-b0#2", "offsets#2"),
        )
    ]


def test_stale_generation_is_broken_under_kip_848_before_4_3() -> None:
    """The member has epoch 5, commits with 4, and no assignment epoch excuses it."""
    found = judged(
        "stale-generation", [holds("m0", 0, epoch=4), holds("m0", 0, epoch=5), committed(1, by="m0", epoch=4)]
    )
    assert [(one["epoch"], one["current_epoch"]) for one in found] == [(4, 5)]


def test_stale_generation_is_broken_where_the_partition_was_assigned_later() -> None:
    """KIP-1251 does not let an epoch pass that is older than the assignment of the partition."""
    lines = [holds("m0", epoch=4), holds("m0", 0, epoch=5, since=5), committed(1, by="m0", epoch=4)]
    assert [one["current_epoch"] for one in judged("stale-generation", lines)] == [5]


def test_stale_generation_is_broken_where_the_partition_was_given_up() -> None:
    """The epoch is that of the assignment, but the member does not own the partition any more."""
    lines = [holds("m0", 0, epoch=4, since=4), holds("m0", epoch=5), committed(1, by="m0", epoch=4)]
    assert [one["current_epoch"] for one in judged("stale-generation", lines)] == [5]


def test_stale_generation_only_looks_broken_under_kip_1251() -> None:
    """The partition has been the member's since epoch 3, and is still: epoch 4 will do."""
    lines = [holds("m0", 0, epoch=4, since=3), holds("m0", 0, epoch=5, since=3), committed(1, by="m0", epoch=4)]
    assert judged("stale-generation", lines) == []


def test_stale_generation_only_looks_broken_while_the_partition_is_being_given_up() -> None:
    """Pending revocation is still ownership."""
    lines = [holds("m0", 0, epoch=4, since=3), holds("m0", pending=[0], epoch=5, since=3)]
    assert judged("stale-generation", [*lines, committed(1, by="m0", epoch=4)]) == []


def test_stale_generation_only_looks_broken_where_it_was_refused() -> None:
    """Refused is not committed."""
    lines = [owner("m0"), owner("m0", epoch=2), asked("OFFSET_COMMIT", "m0", 1, error=22, epoch=1)]
    assert judged("stale-generation", lines) == []


def test_stale_generation_only_looks_broken_where_the_rebalance_came_after() -> None:
    """The line is written when the answer has been sent; the order of effect is that of the offsets log."""
    lines = [owner("m0"), committed(1), owner("m0", epoch=2), asked("OFFSET_COMMIT", "m0", 1, epoch=1)]
    assert judged("stale-generation", lines) == []


def test_stale_generation_only_looks_broken_by_another_members_epoch() -> None:
    """Members of KIP-848 have epochs of their own."""
    lines = [holds("m0", 0, epoch=4), holds("m1", 1, epoch=5), committed(1, by="m0", epoch=4)]
    assert judged("stale-generation", lines) == []


def test_stale_generation_only_looks_broken_without_an_epoch() -> None:
    """An operator, or a consumer outside any group, commits with epoch -1."""
    assert judged("stale-generation", [owner("m0", epoch=2), committed(1, by="operator", epoch=-1)]) == []


def test_stale_generation_only_looks_broken_after_the_member_is_gone() -> None:
    """It has no current epoch then."""
    lines = [holds("m0", 0, epoch=5), gone("m0"), committed(1, by="m0", epoch=4)]
    assert judged("stale-generation", lines) == []


def test_stale_generation_is_undecided_where_nobody_told_the_epoch() -> None:
    """No group record lies before the commit."""
    assert undecided("stale-generation", [committed(1, by="m0", epoch=1), owner("m0")]) == 1


def test_stale_generation_is_not_judged_without_the_offsets_log() -> None:
    """The witness did not read to the end."""
    assert "offsets" in not_judged("stale-generation", [committed(1, by="m0", epoch=1)], whole=False)


STALE = [owner("m0"), owner("m0", epoch=2)]
ONE = committed(1)[0]
ASKED = asked("OFFSET_COMMIT", "m0", 1, epoch=1)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([ONE, after(0.065), ASKED], 1),
        ([ONE, after(0.066), ASKED], 0),
        ([ASKED, after(0.04), ONE], 1),
        ([ASKED, after(0.041), ONE], 0),
        ([ONE, after(9), lasting(ASKED, 9)], 1),
        ([ONE, asked("OFFSET_COMMIT", "m0", 2, epoch=1)], 0),
        ([ONE, on(1, ASKED)], 0),
        ([ONE, asked("OFFSET_COMMIT", "m0", 1, epoch=2)], 0),
        ([ONE, asked("OFFSET_COMMIT", "m0", 1, epoch=3)], 0),
        ([ONE, asked("OFFSET_COMMIT", "m0", 1, epoch=0)], 1),
        ([ONE, replace(ASKED, fields=ASKED.fields | {"source_wall_ns": None})], 0),
    ],
    ids=[
        "as long before its answer as its request took and the logs differ",
        "longer before its answer",
        "as long after its answer as the logs differ",
        "longer after its answer",
        "a request that took long",
        "another position",
        "another partition",
        "the generation of its time",
        "a later one than its time's",
        "an even older one",
        "at nobody knows what time",
    ],
)
def test_stale_generation_is_of_the_commit_that_the_request_may_have_made(lines: list[Line], found: int) -> None:
    """The request took 25 ms until its answer was sent; the two logs differ by 50 ms at most."""
    assert len(judged("stale-generation", [*STALE, *lines], partitions=2)) == found


def test_stale_generation_only_looks_broken_where_the_commit_may_be_the_one_before_the_rebalance() -> None:
    """The same position twice, before the second generation and in it: the innocent reading is the first."""
    lines = [owner("m0"), committed(1), owner("m0", epoch=2), committed(1), ASKED]
    assert judged("stale-generation", lines) == []


@pytest.mark.parametrize(
    ("lines", "current"),
    [
        ([owner("m0", epoch=7), holds("m0", 0, epoch=3)], [3]),
        ([holds("m0", 0, epoch=7), owner("m0", epoch=3)], [3]),
        ([owner("m0", epoch=7), holds("m0", 0, epoch=2)], []),
        ([holds("m0", 0, epoch=7), owner("m0", epoch=2)], []),
        ([holds("m0", 0, epoch=3), holds("m1", 1, epoch=7)], [3]),
        ([holds("m0", 0, epoch=7), holds("m0", 0, epoch=2)], []),
        ([holds("m0", 0, epoch=7), owner("m1", epoch=7), holds("m0", 0, epoch=3)], [3]),
        ([owner("m0", epoch=3), GROUP_GONE], []),
        ([holds("m0", 0, epoch=3), GROUP_GONE], []),
        ([GROUP_GONE, owner("m0", epoch=3)], [3]),
    ],
    ids=[
        "by its own record, which is later",
        "by the group's, which is later",
        "its own later one is no newer",
        "the group's later one is no newer",
        "another member's does not count",
        "the last one counts",
        "its own is the last of several",
        "the group is gone",
        "the group is gone after its own",
        "the group was gone",
    ],
)
def test_the_epoch_of_a_member_is_what_the_last_record_before_the_commit_says(
    lines: list[Line], current: list[int]
) -> None:
    """Its own under KIP-848, the group's in the classic protocol; the commit was asked for with 2."""
    found = judged("stale-generation", [*lines, committed(1, by="m0", epoch=2)], partitions=2)
    assert [one["current_epoch"] for one in found] == current


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([holds("m0", 0, epoch=5, since=4)], 0),
        ([holds("m0", 0, epoch=5, since=5)], 1),
        ([holds("m0", 0, epoch=5)], 1),
        ([holds("m0", 1, epoch=5, since=3)], 1),
        ([holds("m1", 0, epoch=5, since=3), holds("m0", 1, epoch=5, since=3)], 1),
        ([holds("m0", 0, epoch=4, since=3), holds("m1", 0, epoch=6, since=6), holds("m0", 0, epoch=6, since=3)], 0),
        ([holds("m0", 0, epoch=5, since=3), owner("m0", epoch=5)], 1),
        ([holds("m0", 0, epoch=2, since=1), holds("m0", epoch=5)], 1),
        ([holds("m0", 0, epoch=2, since=1), holds("m0", epoch=3), holds("m0", 0, epoch=5, since=5)], 1),
    ],
    ids=[
        "since this very epoch",
        "since a later one",
        "since nobody knows when",
        "another partition",
        "another member",
        "another member as well",
        "by the group's record",
        "given up",
        "given up and given again",
    ],
)
def test_kip_1251_lets_an_epoch_pass_that_is_not_older_than_the_assignment(lines: list[Line], found: int) -> None:
    """Of this partition to this member, in force when it committed with epoch 4."""
    assert len(judged("stale-generation", [*lines, committed(1, by="m0", epoch=4)], partitions=2)) == found


def test_stale_generation_is_told_of_each() -> None:
    """Two positions of one partition, and one of another, whose member was seen on no lane."""
    there = [on(1, committed(3)[0]), on(1, asked("OFFSET_COMMIT", "m7", 3, epoch=1))]
    lines = [*STALE, committed(2, by="m0", epoch=1), committed(1, by="m0", epoch=1), there]
    found = finding("stale-generation", lines, partitions=2, members=2)
    names = [
        (one.partition, one.attributes["committed_offset"], one.attributes.get("member")) for one in found.instances
    ]
    assert names == [(0, 2, "m0"), (0, 1, "m0"), (1, 3, None)]

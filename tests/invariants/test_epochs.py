"""Epochs of commits: literal histories, each of at most eight lines."""

from __future__ import annotations

from histories import asked, committed, finding, gone, holds, judged, not_judged, owner, undecided


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

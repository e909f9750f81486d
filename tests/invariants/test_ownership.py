"""Ownership: literal histories, each of at most eight lines."""

from __future__ import annotations

from histories import (
    after,
    assigned,
    commit,
    committed,
    delivered,
    exited,
    finding,
    handled,
    holds,
    judged,
    not_judged,
    owner,
    processed,
    revoked,
    said,
)


def test_split_ownership_holds() -> None:
    """One owner after the other."""
    assert judged("split-ownership", [holds("m0", 0), holds("m0"), holds("m1", 0)]) == []


def test_split_ownership_is_broken_by_the_log() -> None:
    """The partition was given to m1 while m0 still had it; further records inside are the same split."""
    found = finding("split-ownership", [holds("m0", 0), holds("m1", 0), holds("m1", 0), holds("m0")])
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"log_offset": 2, "by": "log"}, ("offsets#0", "offsets#1"))
    ]


def test_split_ownership_is_broken_in_one_classic_record() -> None:
    """One group record gives the partition to both."""
    assert judged("split-ownership", [owner("m0", "m1")]) == [{"log_offset": 1, "by": "log"}]


def test_split_ownership_only_looks_broken_while_a_revocation_is_pending() -> None:
    """Only what is assigned counts, not what is pending revocation."""
    assert judged("split-ownership", [holds("m0", 0), holds("m0", pending=[0]), holds("m1", 0)]) == []


FROZEN = [assigned("m0"), delivered("m0", 0), owner("m1"), assigned("m1"), after(1)]


def test_split_ownership_is_broken_though_told() -> None:
    """Its commit was refused, so it knew; a second later it takes the next record, and m1 holds the partition."""
    lines = [*FROZEN, processed("m0", 0), commit("m0", 1, "fail"), after(1), delivered("m0", 1)]
    found = finding("split-ownership", lines)
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"offset": 1, "by": "told"}, ("consumer-m0-0#4", "consumer-m0-0#5"))
    ]


def test_split_ownership_only_looks_broken_while_untold() -> None:
    """Nobody told the member: that is `zombie-work`."""
    assert judged("split-ownership", [*FROZEN, processed("m0", 0), delivered("m0", 1)]) == []


def test_split_ownership_is_not_judged_without_the_offsets_log() -> None:
    """The witness did not read to the end."""
    assert "offsets" in not_judged("split-ownership", [holds("m0", 0), holds("m1", 0)], whole=False)


def test_work_after_revoke_holds() -> None:
    """What was in hand was finished inside the callback."""
    assert judged("work-after-revoke", [assigned("m0"), handled("m0", 0), revoked("m0")]) == []


def test_work_after_revoke_is_broken() -> None:
    """The record in hand was finished after the callback had returned."""
    found = finding("work-after-revoke", [assigned("m0"), delivered("m0", 0), revoked("m0"), processed("m0", 0)])
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"offset": 0, "what": "processed"}, ("consumer-m0-0#3", "consumer-m0-0#4"))
    ]


def test_work_after_lost_is_broken_too() -> None:
    """`lost` takes the partition away as `revoked` does."""
    lost = said("m0", "lost", entries=[{"topic": "t", "partition": 0}])
    found = judged("work-after-revoke", [assigned("m0"), lost, delivered("m0", 0)])
    assert [one["what"] for one in found] == ["delivered"]


def test_work_after_revoke_only_looks_broken_after_a_new_assignment() -> None:
    """The partition came back before the record was finished."""
    lines = [assigned("m0"), delivered("m0", 0), revoked("m0"), assigned("m0"), processed("m0", 0)]
    assert judged("work-after-revoke", lines) == []


def test_work_after_revoke_only_looks_broken_by_another_partition() -> None:
    """What was revoked was partition 1."""
    lines = [assigned("m0", 0, 1), delivered("m0", 0), revoked("m0", 1), processed("m0", 0)]
    assert judged("work-after-revoke", lines) == []


def test_work_after_revoke_is_not_judged_without_own_word() -> None:
    """Nobody said what was worked on."""
    assert "own word" in not_judged("work-after-revoke", [owner("m0")])


def test_zombie_work_holds() -> None:
    """The partition was revoked before others got it."""
    lines = [owner("m0"), assigned("m0"), handled("m0", 0), revoked("m0"), owner("m1"), assigned("m1"), after(1)]
    assert judged("zombie-work", [*lines, handled("m1", 1)]) == []


def test_zombie_work_is_counted() -> None:
    """A second after others got the partition the member finishes what it held; nobody had told it."""
    found = finding("zombie-work", [*FROZEN, processed("m0", 0)])
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"offset": 0, "what": "processed"}, ("offsets#0", "consumer-m0-0#3"))
    ]


def test_zombie_work_only_looks_so_within_the_tolerance() -> None:
    """Between the log and a member's file, less than half a second is no order."""
    assert judged("zombie-work", [assigned("m0"), delivered("m0", 0), owner("m1"), processed("m0", 0)]) == []


def test_zombie_work_ends_when_the_member_is_told() -> None:
    """After its commit was refused it is no zombie any more."""
    lines = [*FROZEN, commit("m0", 1, "fail"), processed("m0", 0)]
    assert judged("zombie-work", lines) == []


def test_zombie_work_ends_with_a_refusal_that_names_no_partition() -> None:
    """Some consumers only say that a commit failed."""
    lines = [*FROZEN, said("m0", "commit", outcome="fail", message="UNKNOWN_MEMBER_ID"), processed("m0", 0)]
    assert judged("zombie-work", lines) == []


def test_zombie_work_is_not_judged_without_the_offsets_log() -> None:
    """Nobody knows who owned what."""
    assert "offsets" in not_judged("zombie-work", [*FROZEN, processed("m0", 0)], whole=False)


def test_a_new_process_begins_a_new_possession() -> None:
    """The incarnation that died closes its possession; the next one's work is its own."""
    lines = [owner("m0"), assigned("m0"), delivered("m0", 0), exited("m0", signal=9), owner("m1"), assigned("m1")]
    assert judged("zombie-work", [*lines, committed(0), handled("m1", 0)]) == []

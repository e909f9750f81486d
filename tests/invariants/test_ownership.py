"""Ownership: literal histories, each of at most eight lines."""

from __future__ import annotations

import pytest

from group_lines import heartbeat
from histories import (
    Line,
    after,
    assigned,
    commit,
    committed,
    delivered,
    exited,
    fetched,
    finding,
    gone,
    handled,
    holds,
    judged,
    lasting,
    later,
    not_judged,
    on,
    owner,
    processed,
    revoked,
    said,
)
from kafka_trial.model.trial_context import TOLERANCE_NS


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
    assert "reported no delivered record" in not_judged("work-after-revoke", [owner("m0")])


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


def test_zombie_work_goes_on_when_a_commit_failed() -> None:
    """The member says so, with or without the partition; no broker told it that it has lost anything."""
    for failed in (commit("m0", 1, "fail"), said("m0", "commit", outcome="fail", message="timed out")):
        assert len(judged("zombie-work", [*FROZEN, failed, processed("m0", 0)])) == 1


def test_zombie_work_is_not_judged_without_the_offsets_log() -> None:
    """Nobody knows who owned what."""
    assert "offsets" in not_judged("zombie-work", [*FROZEN, processed("m0", 0)], whole=False)


def test_a_new_process_begins_a_new_possession() -> None:
    """The incarnation that died closes its ownership epoch; the next one's work is its own."""
    lines = [owner("m0"), assigned("m0"), delivered("m0", 0), exited("m0", signal=9), owner("m1"), assigned("m1")]
    assert judged("zombie-work", [*lines, committed(0), handled("m1", 0)]) == []


@pytest.mark.parametrize(
    ("lines", "places"),
    [
        ([holds("m0", 0), holds("m1", 0)], [2]),
        ([holds("m0", 0), holds("m1", 0), holds("m0"), holds("m1"), holds("m0", 0), holds("m1", 0)], [2, 6]),
        ([holds("m0", 0), holds("m1", 0), holds("m1"), holds("m1", 0)], [2, 4]),
        ([holds("m0", 0), holds("m1", 0), holds("m2", 0)], [2]),
        ([holds("m0", 0), holds("m0", 0), holds("m0"), holds("m1", 0)], []),
        ([holds("m0", 0), on(1, holds("m1", 1))], []),
        ([holds("m0", 0), holds("m0", pending=[0]), holds("m1", 0), holds("m1", pending=[0]), holds("m0", 0)], []),
        ([owner("m0"), owner("m1"), owner("m0")], []),
        ([owner("m0"), holds("m1", 0)], []),
        ([holds("m0", 0), owner("m1")], []),
        ([holds("m0", 0), gone("m0"), holds("m1", 0)], []),
        ([owner("m0", "m1"), owner("m0"), owner("m0", "m1")], [1, 3]),
        ([holds("m0", 0), holds("m1", 0), holds("m0"), holds("m0", 0)], [2, 4]),
    ],
    ids=[
        "two at once",
        "twice",
        "given back and taken again",
        "a third one inside",
        "one after the other",
        "two partitions",
        "pending on either side",
        "classic hands",
        "taken over by KIP-848",
        "taken over by the classic protocol",
        "it is gone",
        "two classic records",
        "the first one leaves and comes back",
    ],
)
def test_split_ownership_is_told_where_two_begin_to_own_a_partition(lines: list[Line], places: list[int]) -> None:
    """By the offsets log; a further record inside is no further split."""
    found = judged("split-ownership", lines, partitions=2, members=3)
    assert [one["log_offset"] for one in found] == places


def test_split_ownership_is_proved_by_the_record_that_lasts_longest() -> None:
    """Of two partitions; in the second m0 is released before m2 gets it, and m1 is not."""
    lines = [holds("m0", 0, 1), holds("m1", 1), holds("m0", 0), holds("m2", 1)]
    found = finding("split-ownership", lines, partitions=2, members=3)
    assert [(one.partition, one.events) for one in found.instances] == [
        (1, ("offsets#0", "offsets#1")),
        (1, ("offsets#1", "offsets#3")),
    ]


TOLD = [*FROZEN, processed("m0", 0), lasting(heartbeat("m0", error=25), 0)]
NEXT = fetched("m0", 1, size_bytes=99)


@pytest.mark.parametrize(
    ("lines", "offsets"),
    [
        ([later(lasting(NEXT, 0), TOLERANCE_NS), after(1), delivered("m0", 1)], []),
        ([later(lasting(NEXT, 0), TOLERANCE_NS + 1), after(1), delivered("m0", 1)], [1]),
        ([after(1), NEXT, after(1), delivered("m0", 1), delivered("m0", 2)], [1, 2]),
        ([after(1), NEXT, after(1), processed("m0", 1)], [1]),
        ([after(1), NEXT, after(1), delivered("m1", 1)], []),
        ([after(1), NEXT, revoked("m0"), delivered("m0", 1)], []),
        ([after(1), NEXT, revoked("m0"), assigned("m0"), delivered("m0", 1)], []),
        ([after(1), NEXT, revoked("m1"), owner(), after(1), delivered("m0", 1)], [1]),
        ([after(1), NEXT, owner("m0"), after(1), delivered("m0", 1)], []),
        ([after(1), NEXT, owner("m0"), after(0.48), delivered("m0", 1)], [1]),
        ([on(1, assigned("m0")), after(1), on(1, NEXT), after(1), on(1, delivered("m0", 1))], []),
    ],
    ids=[
        "fetched as long after as sources differ",
        "fetched longer after",
        "twice",
        "what it completes, though it tells of no delivery",
        "what the other one does",
        "without an ownership epoch",
        "in its next ownership epoch",
        "the other one gave it up, and the log to nobody",
        "the log gave it back",
        "the log gave it back just then",
        "in another partition",
    ],
)
def test_split_ownership_though_told_is_what_it_fetches_after_the_answer(lines: list[Line], offsets: list[int]) -> None:
    """While the log gives the partition to another member."""
    found = judged("split-ownership", [*TOLD, *lines], records=3, partitions=2)
    assert [one["offset"] for one in found] == offsets


def test_split_ownership_though_told_is_of_the_partition_that_others_were_given() -> None:
    """m0 was told that it is out of the group; m1 has got the second partition only."""
    lost = [assigned("m0", 0, 1), on(1, owner("m1")), after(1), heartbeat("m0", error=25), after(1)]
    more = [fetched("m0", 0, size_bytes=9), on(1, fetched("m0", 0, size_bytes=9)), after(1)]
    found = finding("split-ownership", [*lost, *more, delivered("m0", 0), on(1, delivered("m0", 0))], partitions=2)
    assert [(one.partition, one.events) for one in found.instances] == [(1, ("requests-b0#2", "consumer-m0-0#3"))]


def test_work_after_revoke_is_proved_by_the_last_callback_of_its_partition() -> None:
    """Revoked twice; and of another partition in between."""
    lines = [assigned("m0", 0, 1), revoked("m0"), assigned("m0"), revoked("m0", 0), revoked("m0", 1)]
    late = [delivered("m0", 0), on(1, processed("m0", 0)), processed("m0", 0)]
    found = finding("work-after-revoke", [*lines, *late], partitions=2)
    assert [(one.partition, one.attributes["what"], one.events) for one in found.instances] == [
        (0, "delivered", ("consumer-m0-0#4", "consumer-m0-0#6")),
        (0, "processed", ("consumer-m0-0#4", "consumer-m0-0#8")),
        (1, "processed", ("consumer-m0-0#5", "consumer-m0-0#7")),
    ]


def test_work_after_revoke_is_each_members_own() -> None:
    """m0's callback says nothing of m1, which holds the partition; commits are no work."""
    lines = [assigned("m0"), revoked("m0"), assigned("m1"), handled("m1", 0), commit("m0", 1), commit("m0", 1, "ok")]
    assert judged("work-after-revoke", lines) == []


LOST_0 = said("m0", "lost", entries=[{"topic": "t", "partition": 0}])


@pytest.mark.parametrize(
    ("lines", "late"),
    [
        ([delivered("m0", 0), LOST_0, processed("m0", 0)], []),
        ([delivered("m0", 0), delivered("m0", 1), LOST_0, processed("m0", 1), processed("m0", 0)], []),
        ([delivered("m0", 0), revoked("m0"), processed("m0", 0)], [0]),
        ([delivered("m0", 0), LOST_0, delivered("m0", 1), processed("m0", 1)], [1, 1]),
        ([delivered("m0", 0), LOST_0, processed("m0", 1)], [1]),
        ([delivered("m0", 0), LOST_0, processed("m0", 0), processed("m0", 0)], [0]),
        ([delivered("m0", 0), LOST_0, assigned("m0"), revoked("m0"), processed("m0", 0)], [0]),
    ],
    ids=["in hand", "two in hand", "revoked, not lost", "begun since", "never begun", "ended twice", "revoked since"],
)
def test_work_after_revoke_only_looks_broken_for_what_was_in_hand_when_it_was_lost(
    lines: list[Line], late: list[int]
) -> None:
    """Lost is said afterwards: the handler may end, and no other may begin."""
    assert [one["offset"] for one in judged("work-after-revoke", [assigned("m0"), *lines])] == late

"""Starvation: literal histories; what repeats is written once. W is 10 s for these settings, a round a third of it."""

from __future__ import annotations

from histories import (
    Line,
    after,
    assigned,
    delivered,
    fault,
    finding,
    handled,
    judged,
    not_judged,
    processed,
    revoked,
    stood_still,
    undecided,
)

NAME = "starved-partition"
FRAME = {"records": 12, "partitions": 3, "old": True}
ALL = assigned("m0", 0, 1, 2)


def others(seconds: int, *partitions: int, first: int = 0) -> list[Line]:
    """A record of each of the partitions, every two seconds."""
    return [
        line
        for offset in range(seconds // 2)
        for line in (after(2), *(processed("m0", first + offset, partition=one) for one in partitions))
    ]


def test_a_member_takes_its_partitions_in_turn() -> None:
    """Four times round all three."""
    assert judged(NAME, [ALL, others(16, 0, 1, 2)], **FRAME) == []


def test_starved_partition_is_broken() -> None:
    """Sixteen seconds long the records of partitions 1 and 2 are done, and only then the first of partition 0."""
    found = finding(NAME, [ALL, others(16, 1, 2), handled("m0", 0)], **FRAME)
    assert [(one.partition, one.attributes, one.events) for one in found.instances] == [
        (0, {"offset": 0, "member": "m0", "lasted_ms": 16170}, ("observer#1", "consumer-m0-0#18"))
    ]


def test_starved_partition_is_broken_where_it_is_given_up_at_last() -> None:
    """Its next owner does what this one passed over."""
    lines = [ALL, others(16, 1, 2), revoked("m0", 0), assigned("m1", 0), handled("m1", 0)]
    assert [one["member"] for one in judged(NAME, lines, **FRAME)] == ["m0"]


def test_starved_partition_only_looks_broken_beside_a_single_other() -> None:
    """It may still be emptying the one answer that it fetched from partition 1."""
    assert judged(NAME, [ALL, others(16, 1), handled("m0", 0)], **FRAME) == []


def test_starved_partition_only_looks_broken_while_its_handler_runs() -> None:
    """Record 0 was delivered, and takes its time."""
    assert judged(NAME, [ALL, delivered("m0", 0), others(16, 1, 2), processed("m0", 0)], **FRAME) == []


def test_starved_partition_only_looks_broken_where_another_member_works() -> None:
    """m0 does nothing at all: idle, paused or stuck, but not unfair."""
    lines = [assigned("m0", 0), assigned("m1", 1, 2)]
    work = [
        Line("consumer-m1-0", one.kind, one.fields | {"member": "m1"}) if one.source else one
        for one in others(16, 1, 2)
    ]
    assert judged(NAME, [*lines, work, handled("m0", 0)], **FRAME) == []


def test_starved_partition_only_looks_broken_until_its_record_is_there() -> None:
    """The records were appended only after the snapshot, as far as anybody knows."""
    assert judged(NAME, [ALL, others(16, 1, 2), handled("m0", 0)], records=12, partitions=3) == []


def test_starved_partition_only_looks_broken_under_a_fault() -> None:
    """The leader of partition 0 was away."""
    assert judged(NAME, [ALL, fault("broker-kill", None), others(16, 1, 2), handled("m0", 0)], **FRAME) == []


def test_starved_partition_leaves_what_still_waits_to_its_own_names() -> None:
    """Never done: unseen, and stuck."""
    assert judged(NAME, [ALL, others(16, 1, 2)], **FRAME) == []


def test_starved_partition_is_undecided_where_the_machine_stood_still() -> None:
    """A second is over a quarter of the session timeout."""
    lines = [ALL, others(8, 1, 2), stood_still(1), others(8, 1, 2, first=4), handled("m0", 0)]
    assert undecided(NAME, lines, **FRAME) == 1


def test_starved_partition_is_not_judged_without_records() -> None:
    """Nothing can wait where nothing is."""
    assert not_judged(NAME, [ALL, after(16)], records=0) == "no record was delivered by the consumer's own word"

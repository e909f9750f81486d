"""Orphaned partitions: literal histories, each of at most eight lines."""

from __future__ import annotations

import pytest

from histories import (
    GROUP,
    Line,
    after,
    assigned,
    at_once,
    fault,
    finding,
    generation,
    gone,
    healed,
    holds,
    judged,
    log_end,
    not_judged,
    on,
    owner,
    phase,
    stood_still,
    undecided,
    with_settings,
)

NAME = "orphan-partition"
GROUP_GONE = Line("offsets", "group_tombstone", {"group": GROUP, "record_type": 2})


def test_orphan_partition_holds() -> None:
    """Somebody has it, for however long."""
    assert judged(NAME, [owner("m0"), after(30)]) == []


def test_orphan_partition_is_broken_in_a_classic_group() -> None:
    """The group is at rest with a member that was given nothing: nobody reads the partition."""
    found = finding(NAME, [owner("m0"), owner(idle=["m0"]), after(11)])
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"log_offset": 2, "members": 1, "lasted_ms": 11010}, ("offsets#1",))
    ]


def test_orphan_partition_is_broken_under_kip_848() -> None:
    """One member gave it up, the other one never got it."""
    found = judged(NAME, [holds("m0", 0), holds("m1", 1), holds("m0"), after(11)])
    assert [(one["log_offset"], one["members"]) for one in found] == [(3, 2)]


def test_orphan_partition_is_broken_where_its_owner_is_gone() -> None:
    """Its session expired; the member that is left was never given the partition."""
    assert [one["members"] for one in judged(NAME, [holds("m0", 0), holds("m1", 1), gone("m0"), after(11)])] == [1]


def test_orphan_partition_only_looks_broken_while_the_group_rebalances() -> None:
    """Each time before the bound has passed there is another record."""
    lines = [owner(idle=["m0"]), after(8), owner(idle=["m0"], epoch=2), after(8), owner("m0", epoch=3), after(11)]
    assert judged(NAME, lines) == []


def test_orphan_partition_only_looks_broken_without_members() -> None:
    """Nobody is there to own it."""
    assert judged(NAME, [owner("m0"), owner(), after(30)]) == []


def test_orphan_partition_only_looks_broken_when_all_of_kip_848_are_gone() -> None:
    """The last member's session expired."""
    assert judged(NAME, [holds("m0", 0), gone("m0"), after(30)]) == []


def test_orphan_partition_only_looks_broken_while_a_revocation_is_pending() -> None:
    """The member still has it, slow as it is to give it up."""
    assert judged(NAME, [holds("m0", 0), holds("m0", pending=[0], epoch=2), after(11)]) == []


def test_orphan_partition_only_looks_broken_under_a_fault() -> None:
    """What the environment can explain is no anomaly."""
    assert judged(NAME, [owner(idle=["m0"]), after(2), fault("broker-kill", None), after(30)]) == []


def test_orphan_partition_only_looks_broken_where_only_a_consumer_names_it() -> None:
    """Nobody but the consumer ever spoke of partition 7."""
    assert judged(NAME, [owner("m0"), assigned("m0", 7), after(30)]) == []


def test_orphan_partition_is_undecided_where_the_machine_stood_still() -> None:
    """For over a quarter of the session timeout nobody could do anything."""
    assert undecided(NAME, [owner(idle=["m0"]), after(6), stood_still(1), after(6)]) == 1


def test_orphan_partition_is_not_judged_without_the_offsets_log() -> None:
    """Nobody knows who owned what."""
    assert "not known to be complete" in not_judged(NAME, [owner(idle=["m0"]), after(11)], whole=False)


def test_orphan_partition_is_not_judged_without_a_snapshot() -> None:
    """The trial did not get there."""
    assert "snapshot" in not_judged(NAME, [owner(idle=["m0"]), after(11)], snapshot=False)


IDLE = owner(idle=["m0"])


@pytest.mark.parametrize(("wait_s", "found"), [(9.99, 0), (9.991, 1)], ids=["the bound", "longer"])
def test_orphan_partition_is_broken_after_more_than_the_bound(wait_s: float, found: int) -> None:
    """From the record to the next one, or to the snapshot."""
    assert len(judged(NAME, [IDLE, after(wait_s)])) == found
    assert len(judged(NAME, [IDLE, after(wait_s), owner("m0", epoch=2)])) == found
    assert len(judged(NAME, [IDLE, after(wait_s), phase("snapshot"), after(30)], snapshot=False)) == found


def test_orphan_partition_is_told_of_each_rest_and_partition() -> None:
    """Of three partitions one is m0's all the time, one m1's in the end, one nobody's."""
    first = [holds("m0", 0), holds("m1", 7), after(11)]
    found = finding(NAME, [*first, holds("m1", 1), after(12), holds("m1", 1), after(5)], partitions=3)
    told = [
        (one.partition, one.attributes["lasted_ms"], one.attributes["members"], one.events) for one in found.instances
    ]
    assert told == [
        (1, 11010, 2, ("offsets#1",)),
        (2, 11010, 2, ("offsets#1",)),
        (2, 12010, 2, ("offsets#2",)),
    ]


@pytest.mark.parametrize(
    ("lines", "members"),
    [
        ([IDLE], [1]),
        ([owner(idle=["m0", "m1"])], [2]),
        ([owner(idle=["m0"]), GROUP_GONE], []),
        ([holds("m0", 1), GROUP_GONE], [1]),
        ([holds("m0", 1), holds("m1", 1), gone("m1")], [1]),
        ([holds("m0", 1), gone("m0"), holds("m0", 1)], [1]),
        ([IDLE, holds("m1", 1)], [2]),
        ([owner("m0"), owner(idle=["m0"], epoch=2)], [1]),
        ([owner("m0"), generation(2)], []),
        ([owner("m0"), GROUP_GONE, holds("m0", 1)], [1]),
    ],
    ids=[
        "one that was given nothing",
        "two",
        "the group is gone",
        "a classic group is gone",
        "one is gone",
        "it came back",
        "in both protocols",
        "taken away",
        "a record that says nothing of partitions",
        "the group was gone, and its assignment records with it",
    ],
)
def test_orphan_partition_only_looks_broken_without_members_in_the_group(lines: list[Line], members: list[int]) -> None:
    """As the group records tell by then."""
    found = judged(NAME, [*lines, after(11)])
    assert [one["members"] for one in found] == members


@pytest.mark.parametrize(
    ("lines", "lasted"),
    [
        ([IDLE, after(11), fault("stall", "m0")], [11010]),
        ([IDLE, after(2), fault("stall", "m0"), healed(), after(11)], [11010]),
        ([IDLE, after(11), fault("stall", "m0"), after(1), healed(), after(11)], [11010, 11010]),
        ([fault("stall", "m0"), IDLE, after(2), healed(), after(11)], [11010]),
        ([IDLE, after(6), fault("stall", "m0"), healed(), after(6)], []),
        ([fault("stall", "m0"), fault("pause", "m1", number=1), IDLE, healed(), after(11)], []),
        ([fault("stall", "m0"), healed(), IDLE, after(11)], [11010]),
    ],
    ids=[
        "before a fault",
        "after a fault",
        "before and after a fault",
        "a fault was in force",
        "parted by a fault",
        "one of two goes on",
        "long after",
    ],
)
def test_orphan_partition_is_told_of_the_time_without_faults(lines: list[Line], lasted: list[int]) -> None:
    """Each stretch by itself must be longer than the bound."""
    assert [one["lasted_ms"] for one in judged(NAME, lines)] == lasted


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([IDLE, after(6), stood_still(0.75), after(6)], 1),
        ([IDLE, after(6), stood_still(0.5), stood_still(0.5), after(6)], 1),
        ([IDLE, after(6), stood_still(0.1), stood_still(0.76), stood_still(0.1), after(6)], 0),
        ([stood_still(2), IDLE, after(11)], 1),
        ([stood_still(2), at_once(IDLE), after(11)], 0),
        ([IDLE, after(11), phase("snapshot"), after(2), stood_still(1.9)], 1),
        ([IDLE, after(11), phase("snapshot"), after(1), stood_still(1.02)], 0),
    ],
    ids=[
        "a quarter of the session",
        "half a second twice",
        "the longest of several",
        "before it",
        "until it began",
        "after it",
        "from before its end",
    ],
)
def test_orphan_partition_is_excused_by_a_stall_in_its_time(lines: list[Line], found: int) -> None:
    """Of over a quarter of the session timeout."""
    shown = any(line.fields.get("phase") == "snapshot" for line in lines)
    told = finding(NAME, lines, snapshot=not shown)
    assert (len(told.instances), sum(told.undecided.values())) == (found, 1 - found)


MORE = Line("observer", "topic", {"topic": "t", "topic_id": "T", "partitions": 2})


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([IDLE, log_end(0), MORE, after(14.9)], []),
        ([log_end(0), IDLE, MORE, after(15)], [0]),
        ([log_end(0), IDLE, MORE, after(5), on(1, log_end(0)), after(14)], [0]),
        ([log_end(0), IDLE, MORE, on(1, log_end(0)), after(14.99)], [0]),
        ([log_end(0), IDLE, MORE, on(1, log_end(0)), after(15)], [0, 1]),
    ],
    ids=["within the metadata age", "after it", "not yet of the new one", "as long, of the new one", "of the new one"],
)
def test_a_partition_that_was_added_is_nobodys_after_the_bound_and_the_metadata_age(
    lines: list[Line], found: list[int]
) -> None:
    """Ten seconds and five, since it was seen."""
    told = finding(NAME, lines, records=0, settings=with_settings(metadata_age_s=5.0))
    assert [one.partition for one in told.instances] == found

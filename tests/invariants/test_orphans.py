"""Orphaned partitions: literal histories, each of at most eight lines."""

from __future__ import annotations

from histories import after, assigned, fault, finding, gone, holds, judged, not_judged, owner, stood_still, undecided

NAME = "orphan-partition"


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

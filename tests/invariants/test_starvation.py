"""Starvation: literal histories; what repeats is written once. W is 10 s for these settings, a round a third of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import (
    BEGUN_NS,
    SECOND_NS,
    WALL_NS,
    Line,
    after,
    assigned,
    at_once,
    batch_of,
    delivered,
    effect,
    fault,
    finding,
    handled,
    judged,
    not_judged,
    on,
    phase,
    processed,
    revoked,
    stood_still,
    told,
    undecided,
)
from kafka_trial.model.starvation import waits, whole_rounds, worked

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
    assert not_judged(NAME, [ALL, after(16)], records=0) == "the consumer reported no delivered record"


def test_starved_partition_is_broken_by_three_whole_rounds() -> None:
    """Twelve seconds hold three of them, ten hold two."""
    assert [one["lasted_ms"] for one in judged(NAME, [ALL, others(12, 1, 2), handled("m0", 0)], **FRAME)] == [12130]
    assert judged(NAME, [ALL, others(10, 1, 2), handled("m0", 0)], **FRAME) == []


def test_starved_partition_only_looks_broken_where_it_takes_one_other_at_a_time() -> None:
    """Twelve seconds of partition 1, and then as many of partition 2: in no round both."""
    lines = [ALL, others(12, 1), others(12, 2), handled("m0", 0)]
    assert judged(NAME, lines, **FRAME) == []


def test_starved_partition_only_looks_broken_by_what_its_last_owner_waited() -> None:
    """m0 has had it for six seconds only; before that it was m1's, which did nothing at all."""
    lines = [assigned("m0", 1, 2), assigned("m1", 0), handled("m1", 0), others(10, 1, 2), revoked("m1", 0)]
    late = [assigned("m0", 0), others(6, 1, 2, first=5), handled("m0", 1)]
    assert judged(NAME, [*lines, *late], **FRAME) == []


def test_starved_partition_is_told_of_each() -> None:
    """Two are passed over by m0 for the sake of two others; the fifth, m1's, is not."""
    lines = [assigned("m0", 0, 1, 2, 3), assigned("m1", 4), others(16, 1, 2), handled("m1", 0)]
    starved = [line for number in (3, 0) for line in (delivered("m0", 0, partition=number),)]
    done = [processed("m0", 0, partition=number) for number in (0, 3)]
    found = finding(NAME, [*lines, *starved, *done], records=12, partitions=5, old=True)
    assert [(one.partition, one.attributes["offset"]) for one in found.instances] == [(0, 0), (3, 0)]


BEGAN_NS = WALL_NS + BEGUN_NS
M0 = assigned("m0")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([M0, after(12), handled("m0", 0)], [(0, 2, 10, 12020, 0, 2, 2)]),
        ([M0, after(11), handled("m0", 0)], []),
        ([M0, handled("m0", 0), after(12), handled("m0", 1)], [(0, 2, 30, 12040, 1, 2, 4)]),
        ([M0, handled("m0", 1), after(12), handled("m0", 0)], [(0, 2, 30, 12040, 0, 2, 4)]),
        ([M0, after(12), revoked("m0"), handled("m1", 0)], [(0, 2, 10, 12020, 0, 2, 2)]),
        ([M0, handled("m0", 0), after(12), revoked("m0"), handled("m1", 1)], [(0, 2, 30, 12040, 1, 2, 4)]),
        ([M0, after(12), revoked("m0")], []),
        ([M0, handled("m0", 0, 1, 2), after(12), revoked("m0")], []),
        ([M0, after(12), delivered("m0", 0)], []),
        ([M0, after(12), delivered("m1", 0), after(12), processed("m0", 0)], [(0, 2, 10, 12020, 0, 3, 1)]),
        ([M0, after(6), effect(1), after(6), handled("m0", 0)], []),
        ([M0, after(6), processed("m1", 1), after(6), handled("m0", 0)], []),
        ([M0, delivered("m0", 0), after(12), processed("m0", 0)], []),
        ([M0, delivered("m1", 0), after(12), processed("m0", 0)], [(0, 2, 20, 12030, 0, 2, 2)]),
        ([M0, on(1, delivered("m0", 0)), after(12), handled("m0", 0)], [(0, 2, 10, 12030, 0, 2, 3)]),
        ([handled("m0", 1), after(9), M0, after(9), handled("m0", 0)], []),
        ([M0, handled("m0", 1), after(13), phase("snapshot"), handled("m0", 0)], []),
        ([M0, after(13), phase("snapshot"), revoked("m0"), handled("m0", 0)], []),
        ([M0, after(12), revoked("m0"), at_once(phase("snapshot")), handled("m0", 0)], [(0, 2, 10, 12020, 0, 2, 2)]),
    ],
    ids=[
        "from the assignment to the first move",
        "two whole rounds only",
        "from one move to the next",
        "of the lower record",
        "to the revocation",
        "from a move to the revocation",
        "of records that nobody handles",
        "with nothing left",
        "of a record that is never done",
        "to a delivery to another member",
        "with an effect in between",
        "with a completion by another member in between",
        "with the record in hand",
        "with the record in another member's hand",
        "with another partition's record in hand",
        "not from a move before the assignment",
        "over at the snapshot",
        "given up after the snapshot",
        "given up at the snapshot",
    ],
)
def test_a_wait_lasts_while_nothing_happens_on_a_partition_with_records(
    lines: list[Line | list[Line]], expected: list[tuple[int, ...]]
) -> None:
    """Inside one ownership epoch, for three whole rounds at least, and over by the snapshot."""
    found = waits(batch_of(lines, records=3, partitions=2, old=True, snapshot=False))
    names = ("slice", "source", "since_ns", "until_ns", "offset", "end_source", "end_seq")
    assert told(found, *names) == expected


@pytest.mark.parametrize(
    ("appended_s", "waited"),
    [({0: -5, 1: -5}, (0, 10)), ({0: 3, 1: 3}, (0, 3000)), ({0: 3, 1: 2}, (1, 2000)), ({0: 2, 1: 3}, (0, 2000))],
)
def test_a_wait_begins_with_the_record_that_was_appended_first(
    appended_s: dict[int, int], waited: tuple[int, int]
) -> None:
    """Of several at once the lowest; not before the ownership epoch."""
    control = {offset: {"source_wall_ns": BEGAN_NS + s * SECOND_NS} for offset, s in appended_s.items()}
    found = waits(batch_of([M0, after(17), handled("m0", 0, 1)], control=control))
    assert told(found, "offset", "since_ns") == [waited]


def test_a_record_that_was_done_before_does_not_wait() -> None:
    """m1 had done record 0 already; m0 takes it once more, after record 1."""
    lines = [assigned("m1"), handled("m1", 0), revoked("m1"), M0, after(12), handled("m0", 1), handled("m0", 0)]
    assert told(waits(batch_of(lines, old=True)), "offset") == [(1,)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([M0, processed("m0", 0)], [(0, 2, 0)]),
        ([M0, processed("m0", 0), processed("m0", 1)], [(0, 2, 0)]),
        ([M0, processed("m0", 0), after(4), processed("m0", 1)], [(0, 2, 0), (0, 2, 1)]),
        ([M0, on(1, processed("m0", 0)), processed("m1", 0)], [(0, 3, 0), (1, 2, 0)]),
        ([M0, delivered("m0", 0), effect(0)], []),
        ([M0, processed("m0", 0), at_once(phase("snapshot")), after(4), processed("m0", 1)], [(0, 2, 0)]),
        ([M0, phase("snapshot"), processed("m0", 1)], []),
    ],
)
def test_it_has_worked_in_the_rounds_in_which_it_finished_a_record(
    lines: list[Line], expected: list[tuple[int, int, int]]
) -> None:
    """Once a round and partition, until the snapshot; the first round here is the thirtieth of the clock."""
    found = worked(batch_of(lines, partitions=2, snapshot=False))
    assert [(at, source, number - 30) for at, source, number in told(found, "slice", "source", "round")] == expected


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 9))
def test_whole_rounds(since: int, lasted: int, size: int) -> None:
    """Those that begin and end inside a stretch of time."""
    first, end = whole_rounds(np.array([since]), np.array([since + lasted]), size)
    inside = [one for one in range(121) if since <= one * size and (one + 1) * size <= since + lasted]
    assert list(range(int(first[0]), int(end[0]))) == inside

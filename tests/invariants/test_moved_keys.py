"""Order per key across partitions: literal histories; key k is sent to partition 0, and later to partition 1.

A line may have waited for half a second before it was read, where nothing was measured.
"""

from __future__ import annotations

from typing import Any

import pytest

from histories import (
    TOPIC,
    Line,
    after,
    asked,
    assigned,
    at_once,
    delivered,
    finding,
    judged,
    later,
    measured,
    not_judged,
    own_time,
    owner,
    processed,
    with_settings,
)

NAME = "reordered-across-partitions"
FRAME: dict[str, Any] = {"records": ["k", "k"], "partitions": 2}
MORE = Line("observer", "topic", {"topic": TOPIC, "topic_id": "T", "partitions": 3})
OWN = [assigned("m0", 0), assigned("m1", 1)]


def sends(partition: int, offset: int = 0, *, key: str = "k", outcome: str = "ok") -> list[Line]:
    """The workload sends a record, and hears of it ten milliseconds later."""
    name = f"r{partition}-{offset}" if partition else f"r{offset}"
    about = {"topic": TOPIC, "id": name, "key": key}
    place = {"partition": partition, "offset": offset} if outcome == "ok" else {}
    return [
        Line("workload", "send", about | {"outcome": "invoke", "checksum": 1}),
        Line("workload", "send", about | place | {"outcome": outcome}),
    ]


def done(member: str, partition: int, offset: int = 0) -> list[Line]:
    """Delivered and processed, one after the other."""
    return [delivered(member, offset, partition=partition), processed(member, offset, partition=partition)]


MOVED = [MORE, *OWN, *sends(0), *sends(1)]


def test_what_was_sent_before_is_done_before() -> None:
    """Partition 0 is done when the record of partition 1 is begun."""
    assert judged(NAME, [MOVED, done("m0", 0), after(1), done("m1", 1)], **FRAME) == []


def test_order_across_partitions_is_broken() -> None:
    """The later record is done by another member, and a second afterwards the earlier one."""
    found = finding(NAME, [MOVED, done("m1", 1), after(1), done("m0", 0)], **FRAME)
    assert [(one.partition, one.attributes, one.events) for one in found.instances] == [
        (
            0,
            {"offset": 0, "later_offset": 0, "later_partition": 1},
            ("workload#1", "workload#2", "consumer-m1-0#2", "consumer-m0-0#3"),
        )
    ]


def test_order_across_partitions_is_broken_while_the_earlier_one_is_in_hand() -> None:
    """It had begun before, and ends a second after the later one was begun."""
    lines = [delivered("m0", 0), delivered("m1", 0, partition=1), after(1), processed("m0", 0)]
    assert judged(NAME, [MOVED, lines, processed("m1", 0, partition=1)], **FRAME) != []


def test_order_across_partitions_is_broken_by_one_member() -> None:
    """It has both partitions, and its lines are in their order, however close."""
    both = [MORE, assigned("m0", 0, 1), *sends(0), *sends(1)]
    assert judged(NAME, [both, done("m0", 1), done("m0", 0)], **FRAME) != []
    assert judged(NAME, [both, done("m0", 0), done("m0", 1)], **FRAME) == []


def test_order_across_partitions_only_looks_broken_by_lines_that_were_read_late() -> None:
    """The line of the earlier one may have waited; by as much as was measured of its member."""
    lines = [*done("m1", 1), after(0.4), *done("m0", 0)]
    read = [measured("m0", 0.1), measured("m1", 0.1)]
    known = [*read, *lines, after(1), *read]
    assert judged(NAME, [*MOVED, *lines], **FRAME) == []
    assert judged(NAME, [*MOVED, *known], **FRAME) != []


@pytest.mark.parametrize(
    "sent",
    [
        [*sends(1), *sends(0)],
        [sends(0)[0], *sends(1), sends(0)[1]],
        [sends(0)[0], sends(1)[0], sends(0)[1], sends(1)[1]],
        [*sends(0)[:1], at_once(sends(0)[1]), at_once(sends(1)[0]), sends(1)[1]],
        [*sends(0), *sends(1, key="other")],
        [*sends(0), *sends(1, outcome="info")],
    ],
    ids=["sent after it", "around it", "beside it", "in one instant", "of another key", "nobody knows if it was"],
)
def test_order_across_partitions_only_looks_broken_where_nothing_was_sent_before(sent: list[Line]) -> None:
    """The earlier one must have been acknowledged when the later one was sent."""
    found = finding(NAME, [MORE, *OWN, *sent, done("m1", 1), after(1), done("m0", 0)], **FRAME)
    assert found.instances == ()


def test_order_across_partitions_only_looks_broken_by_what_was_never_done() -> None:
    """That is skipped, or unseen: of order it says nothing."""
    assert judged(NAME, [MOVED, done("m1", 1), after(1), delivered("m0", 0)], **FRAME) == []


def test_order_across_partitions_only_looks_broken_by_a_redelivery() -> None:
    """First completions count."""
    assert judged(NAME, [MOVED, done("m0", 0), after(1), done("m1", 1), after(1), done("m0", 0)], **FRAME) == []


def test_order_across_partitions_only_looks_broken_by_an_attempt_that_failed() -> None:
    """The later one was begun, and failed; the handler that ended with it begun in time."""
    failed = [delivered("m1", 0, partition=1), processed("m1", 0, partition=1, outcome="failed")]
    assert judged(NAME, [MOVED, failed, after(1), done("m0", 0), after(1), done("m1", 1)], **FRAME) == []


def test_order_inside_a_partition_is_no_affair_of_it() -> None:
    """Both records of partition 0, the later one first: that is a reordered key."""
    sent = [*sends(0), *sends(0, 1), *sends(1)]
    lines = [MORE, *OWN, *sent, done("m0", 0, 1), done("m0", 0), after(1), done("m1", 1)]
    assert judged(NAME, lines, **FRAME) == []


def test_each_late_record_is_found_once_with_the_first_that_came_too_early() -> None:
    """Two of partition 0 are late by two of partition 1."""
    sent = [*sends(0), *sends(0, 1), *sends(1), *sends(1, 1)]
    lines = [MORE, *OWN, *sent, done("m1", 1), done("m1", 1, 1), after(1), done("m0", 0), done("m0", 0, 1)]
    assert [(one["offset"], one["later_offset"]) for one in judged(NAME, lines, **FRAME)] == [(0, 0), (1, 0)]


def test_any_later_one_counts_not_only_the_next() -> None:
    """The second that was sent to partition 1 is begun first."""
    sent = [*sends(0), *sends(1), *sends(1, 1)]
    lines = [MORE, *OWN, *sent, done("m1", 1, 1), after(1), done("m0", 0), after(1), done("m1", 1)]
    assert [(one["offset"], one["later_offset"]) for one in judged(NAME, lines, **FRAME)] == [(0, 1)]


def test_one_printed_line_does_not_switch_the_sink_off() -> None:
    """Of the two records no line is printed; the sink hears of them in the wrong order."""
    sent = [*sends(0), *sends(1), *sends(0, 1)]
    effects = [Line("sink", "effect", {"id": name, "outcome": "ok"}) for name in ("r1-0", "r0")]
    lines = [MORE, *OWN, *sent, done("m0", 0, 1), *effects]
    found = finding(NAME, lines, settings=with_settings(sink="http"), **FRAME)
    assert [(one.partition, one.attributes["offset"]) for one in found.instances] == [(0, 0)]


def test_a_key_may_come_back() -> None:
    """From 0 to 1 and to 0 again: the third record waits for the second."""
    sent = [*sends(0), *sends(1), *sends(0, 1)]
    lines = [MORE, *OWN, *sent, done("m0", 0), done("m0", 0, 1), after(1), done("m1", 1)]
    found = finding(NAME, lines, **FRAME)
    assert [(one.partition, one.attributes["later_partition"]) for one in found.instances] == [(1, 0)]


@pytest.mark.parametrize(("effects", "found"), [(("r1-0", "r0"), 1), (("r0", "r1-0"), 0)])
def test_effects_tell_of_order_across_partitions_where_nothing_is_printed(effects: list[str], found: int) -> None:
    """The sink's file is one order of what reached it."""
    lines = [Line("sink", "effect", {"id": name, "outcome": "ok"}) for name in effects]
    quiet = with_settings(events="none", sink="http")
    about = [asked("HEARTBEAT", "m0", 0), owner("m0")]
    assert finding(NAME, [MORE, *sends(0), *sends(1), *about, lines], settings=quiet, **FRAME).count == found


def test_order_across_partitions_needs_partitions_that_were_added() -> None:
    """Without them every key stays where it is, and the claim holds; where they are there, a key must have moved."""
    done_both = [*done("m0", 0), *done("m1", 1)]
    assert not_judged(NAME, [*OWN, *sends(0), done_both], **FRAME).startswith("no partition was added")
    assert not_judged(NAME, [MORE, *OWN, *sends(0), done_both], **FRAME).startswith("partitions were added, and yet")


def test_order_across_partitions_only_looks_broken_where_nobody_knows_when() -> None:
    """Lines out of a buffer bear no time: the later one may have been begun when it was read. Those of m0 bear one."""
    lines = [
        *(MORE, own_time(assigned("m0", 0), 0), assigned("m1", 1)),
        *(*sends(0), *sends(1), *done("m1", 1), after(1)),
        *(own_time(line, 0) for line in done("m0", 0)),
    ]
    assert judged(NAME, lines, settings=with_settings(stdout="buffered"), **FRAME) == []
    assert judged(NAME, lines, **FRAME) != []


@pytest.mark.parametrize(("nanoseconds", "found"), [(0, 0), (1, 1)])
def test_order_across_partitions_is_broken_beyond_the_tolerance(nanoseconds: int, found: int) -> None:
    """The later one had been begun half a second before the earlier one was read to be done: they may touch."""
    ended = later(processed("m0", 0), 490_000_000 + nanoseconds)
    lines = [*MOVED, delivered("m0", 0), *done("m1", 1), ended]
    assert len(judged(NAME, lines, **FRAME)) == found


def test_order_across_partitions_only_looks_broken_inside_an_untold_loss() -> None:
    """The group gave partition 0 to m1, and nobody told m0, which finishes late what it had in hand."""
    held = [MORE, assigned("m0", 0), *sends(0), *sends(1), delivered("m0", 0)]
    lines = [*held, owner("m1"), assigned("m1", 0, 1), *done("m1", 1), after(1), processed("m0", 0)]
    assert judged(NAME, lines, **FRAME) == []
    assert judged(NAME, [line for line in lines if line != owner("m1")], **FRAME) != []


@pytest.mark.parametrize(("seconds", "found"), [(0.05, 1), (0.005, 0)])
def test_outputs_tell_of_order_across_partitions_by_the_times_of_their_brokers(seconds: float, found: int) -> None:
    """They lie in two partitions of an output topic, which have no order; clocks may differ by ten milliseconds."""
    outputs = [
        own_time(Line("sink", "effect", {"id": name, "outcome": "ok", "topic": "out", "partition": at, "offset": 5}), 0)
        for at, name in enumerate(("r1-0", "r0"))
    ]
    quiet = with_settings(events="none", sink="topic")
    lines = [
        MORE,
        owner("m0"),
        *sends(0),
        *sends(1),
        outputs[0],
        later(outputs[1], round(seconds * 1e9)),
        measured("m0", 0),
    ]
    assert finding(NAME, lines, settings=quiet, **FRAME).count == found

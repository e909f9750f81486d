"""Which answers a member heard: literal histories, each of at most eight lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from histories import Line, after, asked, batch_of, fault, healed, lasting, later, read_late, told
from kafka_trial.model.kernels import NEVER
from kafka_trial.model.response_delivery import (
    answers_of,
    maybe_received,
    received_ns,
    surely_received,
)
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import table
from kafka_trial.model.trial_context import LOG_TOLERANCE_NS

REFUSED = asked("OFFSET_COMMIT", "m0", 1, error=22)
WAIT = after(0.2)


def over(connection: str, line: Line, **fields: str) -> Line:
    """A request over that connection."""
    return replace(line, fields=line.fields | {"connection": connection} | fields)


ASKED = over("c1", REFUSED)
STALL = [fault("stall", "m0"), WAIT]
HEALED = [WAIT, healed(), WAIT]
SURE, MAYBE, NO = (True, True), (False, True), (False, False)


def first_answer(lines: list[Line]) -> tuple[bool, bool]:
    """Whether the first commit request of a history was surely heard, and maybe."""
    batch = batch_of([WAIT, *lines])
    answers = answers_of(batch, batch.of(Kind.COMMIT_REQUEST).sorted_by("seq"))
    about = batch.trial_context
    return bool(surely_received(about, answers)[0]), bool(maybe_received(about, answers)[0])


@pytest.mark.parametrize(
    ("lines", "heard"),
    [
        ([ASKED], SURE),
        ([REFUSED], SURE),
        ([ASKED, *STALL, *HEALED], MAYBE),
        ([ASKED, WAIT, *STALL, *HEALED], SURE),
        ([*STALL, *HEALED, ASKED], SURE),
        ([*STALL, healed(), lasting(ASKED, 0.3)], MAYBE),
        ([*STALL, ASKED, *HEALED], NO),
        ([*STALL, REFUSED, *HEALED], MAYBE),
        ([*STALL, ASKED, *HEALED, ASKED], SURE),
        ([*STALL, ASKED, ASKED, *HEALED], NO),
        ([*STALL, ASKED, *HEALED, over("c2", REFUSED)], NO),
        ([*STALL, ASKED, *HEALED, lasting(ASKED, 1)], NO),
        ([*STALL, ASKED], NO),
        ([*STALL, read_late(ASKED, 1.79e9), *HEALED], SURE),
    ],
    ids=[
        "no fault",
        "no fault, and no connection known",
        "just before a fault: it may still have been on its way",
        "before a fault",
        "after a fault",
        "asked for inside a fault, answered after it",
        "held, and the connection ended",
        "held, on a connection that is not known",
        "held, and the connection went on",
        "held, and the connection went on inside only",
        "held, and another connection went on",
        "held, and what went on had been asked before the heal",
        "held to the end",
        "stamped in 1970, long before a fault, by a clock that was never set",
    ],
)
def test_an_answer_is_heard_outside_faults_or_where_its_connection_went_on(
    lines: list[Line], heard: tuple[bool, bool]
) -> None:
    """Surely, maybe."""
    assert first_answer(lines) == heard


BEAT = replace(REFUSED, fields=REFUSED.fields | {"api": "CONSUMER_GROUP_HEARTBEAT", "error": 0})
OPENED, REPLACED = over("c1", BEAT), [after(0.5), over("c2", BEAT)]
SLOW = asked("HEARTBEAT", "m1", 1, took_ms=500)


@pytest.mark.parametrize(
    ("lines", "heard"),
    [
        ([OPENED, lasting(ASKED, 0.5), *REPLACED], MAYBE),
        ([OPENED, lasting(ASKED, 0.49), *REPLACED], SURE),
        ([OPENED, lasting(ASKED, 0.5), after(5.3), ASKED, *REPLACED], SURE),
        ([OPENED, lasting(ASKED, 0.5), after(4.7), ASKED, *REPLACED], MAYBE),
        ([OPENED, lasting(ASKED, 0.5), after(9)], SURE),
        ([OPENED, lasting(ASKED, 0.5), after(0.5), over("c2", REFUSED)], SURE),
        ([lasting(ASKED, 0.5), *REPLACED], SURE),
        ([OPENED, lasting(REFUSED, 0.5), *REPLACED], SURE),
        ([OPENED, SLOW, after(1.9), ASKED, *REPLACED], MAYBE),
        ([OPENED, SLOW, after(2.2), ASKED, *REPLACED], SURE),
        ([OPENED, replace(SLOW, source="requests-b1"), ASKED, *REPLACED], SURE),
        ([OPENED, replace(SLOW, fields=SLOW.fields | {"api": "JOIN_GROUP"}), ASKED, *REPLACED], SURE),
        ([OPENED, *STALL, lasting(ASKED, 0.5), *HEALED, ASKED, *REPLACED], MAYBE),
    ],
    ids=[
        "its client had closed the connection, perhaps",
        "no client closes one so soon",
        "the connection was used seconds later",
        "what came later may have been asked before",
        "no other connection took its place",
        "another connection, without heartbeats",
        "a client of the classic protocol",
        "on a connection that is not known",
        "it may have waited for another one",
        "it cannot have waited any more",
        "another broker was slow",
        "a join waits for others",
        "held besides",
    ],
)
def test_what_a_slow_broker_answers_is_not_surely_heard_where_another_connection_was_opened(
    lines: list[Line], heard: tuple[bool, bool]
) -> None:
    """A client of KIP-848 that waits no longer closes its connection, and the broker answers into that."""
    assert first_answer(lines) == heard


@pytest.mark.parametrize(
    ("does", "heard"),
    [
        (["delays-answers"], MAYBE),
        (["freezes"], MAYBE),
        (["kills", "loses-answers"], NO),
        (["cuts-off", "leaves-requests-open"], SURE),
        (["stops"], SURE),
        (["stops-broker", "leaves-requests-open"], SURE),
        ([], NO),
    ],
)
def test_a_fault_that_delays_leaves_open_what_one_that_loses_does_not(
    does: list[str], heard: tuple[bool, bool]
) -> None:
    """Where the connection did not go on; of one that is not known, and does not say what it does, the worst."""
    assert first_answer([fault("a fault that is new", "m0", does=does), WAIT, ASKED, *HEALED]) == heard


@pytest.mark.parametrize(
    ("target", "heard"),
    [
        ({"member": "m1", "target": "member: m1"}, SURE),
        ({"target": "all: all"}, NO),
        ({"target": "coordinator: b0"}, NO),
        ({"target": "leader:3: b0"}, NO),
        ({"target": "coordinator: b1"}, SURE),
    ],
    ids=["of another member", "of all", "on the way to this broker", "to a leader", "on the way to another broker"],
)
def test_a_fault_reaches_the_lanes_and_brokers_of_its_target(target: dict[str, str], heard: tuple[bool, bool]) -> None:
    """The answer is m0's, from broker 0."""
    line = fault("stall", None)
    there = replace(line, fields=line.fields | target)
    assert first_answer([there, WAIT, ASKED, *HEALED]) == heard


def on_b0(*does: str) -> list[Line]:
    """A fault of the broker that answers m0."""
    line = fault("a fault that is new", None, does=[*does])
    return [replace(line, fields=line.fields | {"target": "coordinator: b0"}), WAIT]


PAUSE = on_b0("stops-broker", "freezes-broker")


@pytest.mark.parametrize(
    ("lines", "heard"),
    [
        ([*PAUSE, *HEALED, ASKED], MAYBE),
        ([*PAUSE, ASKED, *HEALED], MAYBE),
        ([*PAUSE, *HEALED, ASKED, after(4.9), ASKED], SURE),
        ([*PAUSE, *HEALED, ASKED, after(4.5), ASKED], MAYBE),
        ([*PAUSE, *HEALED, after(4.9), ASKED], SURE),
        ([*PAUSE, *HEALED, ASKED, after(4.9), over("c2", REFUSED)], MAYBE),
        ([*PAUSE, *HEALED, replace(ASKED, source="requests-b1")], SURE),
        ([ASKED, WAIT, *PAUSE, *HEALED], SURE),
        ([*PAUSE, *HEALED, lasting(ASKED, 0.5)], MAYBE),
        ([*PAUSE, WAIT, ASKED, after(9)], MAYBE),
        ([*PAUSE, *HEALED, REFUSED], MAYBE),
        ([*on_b0("stops-broker"), *HEALED, ASKED], SURE),
        ([*PAUSE, *HEALED, fault("stall", "m0", number=1), ASKED, WAIT, healed(1), after(4.9), ASKED], SURE),
        ([*PAUSE, *HEALED, fault("stall", "m0", number=1), ASKED, healed(1), WAIT, ASKED], MAYBE),
    ],
    ids=[
        "into a connection that was closed, perhaps",
        "before the heal is told",
        "the connection was used seconds later",
        "what came later may have waited too",
        "nothing waits so long",
        "another connection was used",
        "another broker answered",
        "before it stood still",
        "asked before, answered after it",
        "never healed",
        "on a connection that is not known",
        "a broker that was down answers nothing that waited",
        "held besides, and the connection was used seconds later",
        "held besides, and what came later may have waited too",
    ],
)
def test_what_a_broker_answers_when_it_continues_may_go_into_a_connection_that_was_closed(
    lines: list[Line], heard: tuple[bool, bool]
) -> None:
    """Clients may have given up what waited while it stood still."""
    assert first_answer(lines) == heard


def test_what_went_on_after_a_broker_stood_still_is_heard_when_it_was_sent() -> None:
    """The seconds for which it may be left open put nothing off."""
    batch = batch_of([*PAUSE, *HEALED, ASKED, after(5.1), ASKED])
    answers = answers_of(batch, batch.of(Kind.COMMIT_REQUEST).sorted_by("seq"))
    assert received_ns(batch.trial_context, answers).tolist() == answers["sent_ns"].tolist()


def test_a_fault_counts_from_when_it_began_to_be_put_in_force() -> None:
    """Toxics are in place before the journal says so."""
    injected = fault("stall", "m0")
    injecting = replace(injected, kind="injecting")
    assert first_answer([injecting, WAIT, ASKED, WAIT, injected, *HEALED]) == NO
    assert first_answer([WAIT, ASKED, WAIT, injected, *HEALED]) == SURE


def test_faults_that_overlap_are_one() -> None:
    """What the first held the second holds on: only what went on after both was heard."""
    both = [*STALL, ASKED, fault("stall", "m0", number=1), healed(), WAIT, ASKED, WAIT]
    assert first_answer([*both, healed(1)]) == NO
    assert first_answer([*both, healed(1), WAIT, ASKED]) == SURE


def test_an_answer_that_was_held_is_heard_when_the_fault_is_over() -> None:
    """At the latest, give or take the clocks; outside faults when it was sent."""
    batch = batch_of([ASKED, WAIT, *STALL, ASKED, *HEALED, ASKED])
    answers = answers_of(batch, batch.of(Kind.COMMIT_REQUEST).sorted_by("seq"))
    heard = table(received_ns=received_ns(batch.trial_context, answers), sent_ns=answers["sent_ns"])
    assert told(heard, "sent_ns", "received_ns") == [(10, 10), (430, 640 + LOG_TOLERANCE_NS / 1e6), (850, 850)]


def test_a_connection_of_another_lane_is_another_one() -> None:
    """Even of the same name."""
    elsewhere = over("c1", asked("OFFSET_COMMIT", "m1", 1))
    assert first_answer([*STALL, ASKED, *HEALED, elsewhere]) == NO


def test_what_just_touches_a_fault_lies_inside() -> None:
    """Clocks of request log and nemesis differ by a few milliseconds."""
    held = [fault("stall", "m0"), WAIT, healed()]
    assert first_answer([*held, later(lasting(ASKED, 0), LOG_TOLERANCE_NS)]) == MAYBE
    assert first_answer([*held, later(lasting(ASKED, 0), LOG_TOLERANCE_NS + 1)]) == SURE


def test_without_faults_everything_was_heard() -> None:
    """There is nothing to be held by."""
    batch = batch_of([])
    nobody = answers_of(batch, batch.of(Kind.COMMIT_REQUEST))
    assert received_ns(batch.trial_context, nobody).tolist() == []
    assert NEVER not in received_ns(batch.trial_context, nobody)

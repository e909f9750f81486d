"""Liveness of processes: literal histories, each of at most eight lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from group_lines import joined, synced
from histories import (
    EXAMPLE,
    Line,
    after,
    at_once,
    exited,
    fault,
    finding,
    healed,
    history,
    judged,
    later,
    not_judged,
    started,
    stood_still,
    undecided,
    with_settings,
)
from kafka_trial.judge.judge import judge_events

LEFT = [exited("m0", code=0, asked="stop"), exited("m1", signal=9, asked="kill")]
OVERDUE = exited("m0", signal=9, asked="overdue", asked_ns=103_000_000_000, within_s=15)


@pytest.mark.parametrize("name", ["crash-loop", "unbounded-close"])
def test_it_holds(name: str) -> None:
    """One stopped when it was asked to, the other was killed by the harness."""
    assert judged(name, LEFT) == []


@pytest.mark.parametrize("name", ["crash-loop", "unbounded-close"])
def test_it_is_not_judged_where_nothing_ran(name: str) -> None:
    """No member's process was started."""
    assert not_judged(name, [], members=0) == "no member's process was started"


@pytest.mark.parametrize("name", ["crash-loop", "unbounded-close"])
def test_it_does_not_apply_to_a_history_of_an_earlier_version(name: str) -> None:
    """Its exits do not say who asked for them; the plain failures speak for it."""
    missing = finding(name, [exited("m0", signal=9)]).not_judged
    assert missing is not None
    assert not missing.applies


AGAIN = [exited("m0", code=1, asked="no"), started("m0-1"), exited("m0-1", signal=11, asked="no")]


def test_crash_loop_is_broken() -> None:
    """Twice by itself, and started again in between."""
    found = finding("crash-loop", AGAIN)
    assert [(one.topic, one.attributes, one.events) for one in found.instances] == [
        (
            None,
            {"member": "m0", "exits": 2, "ending": "by signal 11"},
            ("consumer-m0-0#1", "consumer-m0-1#1"),
        )
    ]


def test_crash_loop_only_looks_broken_where_it_exits_once() -> None:
    """Two members once each: plain failures, no loop."""
    assert judged("crash-loop", [exited("m0", code=1, asked="no"), exited("m1", code=1, asked="no")]) == []


def test_crash_loop_only_looks_broken_where_the_harness_ends_it() -> None:
    """Killed, started, crashed, started, stopped with status 1 when asked: one exit is its own."""
    lines = [exited("m0", signal=9, asked="kill"), started("m0-1"), exited("m0-1", code=1, asked="no")]
    assert judged("crash-loop", [*lines, started("m0-2"), exited("m0-2", code=1, asked="stop")]) == []


def test_unbounded_close_is_broken() -> None:
    """Asked to stop, and killed fifteen seconds later."""
    found = finding("unbounded-close", [after(15), OVERDUE])
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"member": "m0", "incarnation": 0, "within_s": 15.0}, ("consumer-m0-0#1",))
    ]


@pytest.mark.parametrize("fault_line", [fault("terminate", "m0"), fault("pause", "m1")])
def test_unbounded_close_is_no_fault_of_what_ends_it_or_of_another_member(fault_line: Line) -> None:
    """The fault that asks it to stop hinders nobody, and one on another member not this one."""
    assert len(judged("unbounded-close", [fault_line, after(15), OVERDUE])) == 1


def test_unbounded_close_is_no_fault_of_what_began_after_it() -> None:
    """Its network was held once it had been killed."""
    assert len(judged("unbounded-close", [after(15), OVERDUE, fault("stall", "m0")])) == 1


@pytest.mark.parametrize("excuse", [fault("stall", "m0"), fault("broker-pause", None), stood_still(4)])
def test_unbounded_close_only_looks_broken_where_it_was_hindered(excuse: Line) -> None:
    """Its network held, a broker frozen, the machine still for over a quarter of its time: nobody can tell."""
    assert undecided("unbounded-close", [after(9), excuse, after(6), OVERDUE]) == 1


def test_crash_loop_is_told_of_each_member_with_its_last_exit() -> None:
    """m1 three times, m0 twice; the first, the second and the last prove it."""
    again = [exited("m0", code=1, asked="no"), started("m0-1"), exited("m0-1", code=7, asked="no")]
    thrice = [exited("m1", code=1, asked="no"), started("m1-1"), exited("m1-1", code=1, asked="no")]
    lines = [*thrice, *again, started("m1-2"), exited("m1-2", signal=6, asked="no")]
    found = finding("crash-loop", lines)
    assert [(one.attributes, one.events) for one in found.instances] == [
        (
            {"member": "m0", "exits": 2, "ending": "with status 7"},
            ("consumer-m0-0#1", "consumer-m0-1#1"),
        ),
        (
            {"member": "m1", "exits": 3, "ending": "by signal 6"},
            ("consumer-m1-0#1", "consumer-m1-1#1", "consumer-m1-2#1"),
        ),
    ]


HELD = fault("stall", "m0")
IN_TIME = 103_000_000_000  # when it was asked to stop


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([HELD, after(0.91), at_once(healed()), after(14)], 0),
        ([HELD, after(0.9), at_once(healed()), after(14)], 1),
        ([HELD, healed(), after(14)], 1),
        ([after(5), HELD, healed(), after(9)], 0),
        ([after(14), at_once(HELD)], 0),
        ([fault("kill", "m0"), fault("stall", "m1", number=1), after(14)], 1),
        ([fault("stall", "m1"), fault("broker-kill", None, number=1), after(14)], 0),
        ([fault("restart", None), after(14)], 1),
    ],
    ids=[
        "healed in the instant in which it was asked",
        "healed just before",
        "healed long before",
        "healed meanwhile",
        "since just before the end",
        "what ends it, and what is on another",
        "one on another, and one on brokers",
        "what ends members",
    ],
)
def test_unbounded_close_is_hindered_by_what_was_in_force_while_it_closed(lines: list[Line], found: int) -> None:
    """From when it was asked until it was killed."""
    told = finding("unbounded-close", [*lines, OVERDUE])
    assert (len(told.instances), sum(told.undecided.values())) == (found, 1 - found)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([after(9), stood_still(3.75), after(5)], 1),
        ([after(9), stood_still(3.751), after(5)], 0),
        ([stood_still(5), after(14)], 1),
        ([after(5), stood_still(1), stood_still(4), stood_still(1), after(9)], 0),
    ],
    ids=["a quarter of its time", "more than that", "before it was asked", "the longest of several"],
)
def test_unbounded_close_is_excused_by_a_stall_of_over_a_quarter_of_its_time(lines: list[Line], found: int) -> None:
    """It had fifteen seconds."""
    told = finding("unbounded-close", [*lines, OVERDUE])
    assert (len(told.instances), sum(told.undecided.values())) == (found, 1 - found)


def test_unbounded_close_is_told_of_each_incarnation() -> None:
    """Two of m0, and m1 where nobody knows when it was asked and how long it had."""
    again = [started("m0-1"), exited("m0-1", signal=9, asked="overdue", asked_ns=IN_TIME, within_s=2.5)]
    lines = [OVERDUE, *again, exited("m1", signal=9, asked="overdue")]
    found = finding("unbounded-close", lines)
    told = [
        (one.attributes["member"], one.attributes["incarnation"], one.attributes.get("within_s"))
        for one in found.instances
    ]
    assert sorted(told, key=str) == [("m0", 0, 15.0), ("m0", 1, 2.5), ("m1", 0, None)]


def test_unbounded_close_of_one_that_was_asked_nobody_knows_when() -> None:
    """Only what is in force when it is killed may have hindered it."""
    overdue = exited("m0", signal=9, asked="overdue", within_s=15)
    assert len(judged("unbounded-close", [HELD, healed(), after(5), overdue])) == 1
    assert undecided("unbounded-close", [HELD, after(5), overdue]) == 1


@pytest.mark.parametrize(
    ("joins", "found"),
    [
        ([after(5), joined("m0", took_ms=20_000)], 0),
        ([at_once(joined("m0", took_ms=13_200))], 0),
        ([after(5), joined("m0", took_ms=18_000)], 1),
        ([after(5), joined("m1", took_ms=20_000)], 1),
        ([], 1),
    ],
    ids=["across the stop", "since just before it was asked", "after it was asked", "another member's", "none"],
)
def test_unbounded_close_of_one_whose_join_the_group_held_back_is_left_open(joins: list[Line], found: int) -> None:
    """Asked at 103 s, killed at 117.01: a lost member's session had to end first, which the member cannot hasten."""
    told = finding("unbounded-close", [after(14), OVERDUE, *joins])
    assert (len(told.instances), sum(told.undecided.values())) == (found, 1 - found)


@pytest.mark.parametrize(("took_ms", "found"), [(8_700, 0), (7_000, 1)], ids=["at once", "two seconds later"])
def test_unbounded_close_behind_one_join_after_the_other(took_ms: float, found: int) -> None:
    """Its join is answered while it is to stop, and its sync, asked after that, only when it has gone."""
    first: list[Line] = [after(7), joined("m0", took_ms=8_000), after(7), OVERDUE]
    told = finding("unbounded-close", [*first, after(2), synced("m0", took_ms=took_ms)])
    assert (len(told.instances), sum(told.undecided.values())) == (found, 1 - found)


def test_unbounded_close_counts_where_the_team_says_how_long_a_stop_may_take() -> None:
    """Fifteen seconds, by its own word; and of a join that was answered before nobody waits any more."""
    lines = [after(14), OVERDUE, after(5), joined("m0", took_ms=20_000)]
    assert len(judged("unbounded-close", lines, settings=with_settings(declared=("stop.within_s",)))) == 1
    assert len(judged("unbounded-close", [after(10), joined("m0", took_ms=12_000), after(4), OVERDUE])) == 1


def test_unbounded_close_of_one_whose_join_was_answered_as_the_clock_began() -> None:
    """It was killed fifty milliseconds later, and a nanosecond."""
    lines = [at_once(joined("m0", took_ms=0)), later(exited("m0", signal=9, asked="overdue", asked_ns=0), 50_000_001)]
    begin_ns = max(event.time_ns for event in history(lines) if event.kind == "request")
    events = [replace(event, time_ns=max(0, event.time_ns - begin_ns)) for event in history(lines)]
    untold = [event for event in events if event.kind != "clock"]
    assert len(judge_events(untold, EXAMPLE).findings["unbounded-close"].instances) == 1

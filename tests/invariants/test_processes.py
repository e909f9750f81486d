"""Liveness of processes: literal histories, each of at most eight lines."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    after,
    exited,
    fault,
    finding,
    judged,
    not_judged,
    started,
    stood_still,
    undecided,
)

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

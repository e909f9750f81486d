"""Evidence of process, group and broker faults, judged from literal samples."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_trial.nemesis import evidence_processes as evidence
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.samples import GroupSnapshot, Leader, ProcessSnapshot, TopicSnapshot

RUNS = ProcessSnapshot(0, 77, states=("S",), cpu_s=1.0, sockets=3)
STOPPED = replace(RUNS, states=("T",))
GONE = ProcessSnapshot(0, 77, exit_code=-9)


@pytest.mark.parametrize(
    ("inside", "bit"),
    [
        ([STOPPED, STOPPED], True),
        ([RUNS, RUNS], False),
        ([STOPPED, replace(STOPPED, states=("T", "S"))], False),
        ([STOPPED, replace(STOPPED, cpu_s=1.2)], False),
        ([GONE, GONE], False),
    ],
)
def test_paused(inside: list[ProcessSnapshot], bit: bool) -> None:
    """A pause bit when every process of the group is stopped and its CPU time stands still."""
    assert evidence.paused(RUNS, inside).bit is bit


@pytest.mark.parametrize(
    ("before", "after", "bit"),
    [
        (RUNS, GONE, True),
        (RUNS, RUNS, False),
        (RUNS, replace(GONE, exit_code=1), False),
        (RUNS, replace(GONE, sockets=2), False),
        (GONE, GONE, False),
    ],
)
def test_killed(before: ProcessSnapshot, after: ProcessSnapshot, bit: bool) -> None:
    """A kill bit when the target itself ended by signal 9 and its sockets are gone."""
    assert evidence.killed(before, after).bit is bit


@pytest.mark.parametrize(("exit_code", "bit"), [(0, True), (143, True), (-15, True), (-9, False), (None, False)])
def test_terminated(exit_code: int | None, bit: bool) -> None:
    """A termination is an exit that no signal 9 caused."""
    assert evidence.terminated(RUNS, replace(GONE, exit_code=exit_code)).bit is bit


def test_replaced() -> None:
    """A restart shows as another process that runs."""
    assert evidence.replaced(RUNS, replace(RUNS, pid=78)).bit
    assert not evidence.replaced(RUNS, RUNS).bit


G1 = GroupSnapshot(0, 4, frozenset({"a", "b"}), 2)


@pytest.mark.parametrize(
    ("after", "change", "bit"),
    [
        (GroupSnapshot(1, 5, frozenset({"a", "b", "c"})), 1, True),
        (GroupSnapshot(1, 5, frozenset({"a"})), -1, True),
        (GroupSnapshot(1, 5, frozenset({"a"})), 1, False),
        (GroupSnapshot(1, 5, frozenset({"a", "b", "c"})), -1, False),
        (G1, 1, False),
    ],
)
def test_rebalanced(after: GroupSnapshot, change: int, bit: bool) -> None:
    """A forced rebalance shows in the offsets log: a later epoch, and the members it was about."""
    assert evidence.rebalanced(G1, [after], members_change=change).bit is bit


LED_BY_1 = TopicSnapshot(0, (Leader(0, 1, 3, (1, 2, 3)), Leader(1, 2, 3, (1, 2, 3))), coordinator=2, controller=3)
LED_BY_2 = TopicSnapshot(0, (Leader(0, 2, 4, (2, 3)), Leader(1, 2, 3, (2, 3))), coordinator=2, controller=3)
DOWN = Evidence(True, "process 9 ended by signal 9")


@pytest.mark.parametrize(
    ("role", "bit"), [("partition 0", True), ("partition 1", False), ("coordinator", False), ("controller", False)]
)
def test_broker_down_moves_its_role(role: str, bit: bool) -> None:
    """A broker's loss is shown by its process and by its role moving away; other roles prove nothing."""
    assert evidence.broker_down(DOWN, LED_BY_1, [LED_BY_1, LED_BY_2], 1, role=role).bit is bit


def test_broker_down_by_a_bystander() -> None:
    """Nothing moved, or the process lives: not bitten."""
    assert not evidence.broker_down(DOWN, LED_BY_1, [LED_BY_1], 1, role="partition 0").bit
    alive = Evidence(False, "it still runs")
    assert not evidence.broker_down(alive, LED_BY_1, [LED_BY_2], 1, role="partition 0").bit


def test_moved_names_what_the_broker_lost() -> None:
    """Leaders that moved before an epoch rose, or to nobody, are no move."""
    nobody = replace(LED_BY_2, leaders=(Leader(0, -1, 4, ()),), coordinator=None)
    assert evidence.moved(LED_BY_1, [LED_BY_2], 1) == {"partition 0": "epoch 3 → broker 2 epoch 4"}
    stale = replace(LED_BY_1, leaders=(Leader(0, 2, 3, (2, 3)),))
    assert evidence.moved(LED_BY_1, [nobody, stale], 1) == {}
    assert evidence.moved(LED_BY_1, [replace(LED_BY_1, coordinator=3)], 2) == {"coordinator": "→ broker 3"}


def test_leader_moved() -> None:
    """A leader move shows as another broker in a later epoch."""
    assert evidence.leader_moved(LED_BY_1, [LED_BY_2], 0).bit
    assert not evidence.leader_moved(LED_BY_1, [LED_BY_1], 0).bit
    assert not evidence.leader_moved(LED_BY_1, [], 0).bit


def test_isr_whole_again() -> None:
    """The ISR is whole when the broker is back wherever it was before."""
    assert evidence.isr_whole(LED_BY_1, 1, LED_BY_1)
    assert not evidence.isr_whole(LED_BY_2, 1, LED_BY_1)

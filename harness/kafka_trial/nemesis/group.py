"""Forced rebalances: a member more, a member less, judged from the offsets log."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_trial.nemesis import evidence_processes as evidence
from kafka_trial.nemesis.fault import Evidence, fault
from kafka_trial.nemesis.samples import GroupLook
from kafka_trial.nemesis.scene import Scene

REBALANCE_WITHIN_S = 12.0  # a classic group waits for each member's next poll
START_WITHIN_S = 12.0  # of a guest's process: on a busy machine a JVM takes its time


def _join_complete(scene: Scene, seen: Evidence) -> Evidence:
    return seen.with_details(**scene.group_since())


@fault("join", targets=("all",), blast="members", heals=True, complete=_join_complete)
def join(scene: Scene) -> Iterator[Evidence]:
    """Starts a further member; it leaves again when it heals. Two rebalances."""
    before = scene.group_look("before")
    guest = scene.ground.group.join()
    try:
        yield _rebalanced(scene, before, members_change=1, within_s=START_WITHIN_S + REBALANCE_WITHIN_S)
    finally:
        scene.ground.group.leave(guest)


@fault("leave", targets=("member",), blast="members", heals=True, complete=_join_complete)
def leave(scene: Scene) -> Iterator[Evidence]:
    """Has a member leave; its next incarnation joins when it heals. Two rebalances."""
    before = scene.group_look("before")
    member = scene.member()
    scene.injected()  # it is hit now, however long it takes to go
    scene.ground.group.leave(member)
    try:
        yield _rebalanced(scene, before, members_change=-1, within_s=REBALANCE_WITHIN_S)
    finally:
        scene.member_again()


def _rebalanced(scene: Scene, before: GroupLook, *, members_change: int, within_s: float) -> Evidence:
    def judge(inside: list[GroupLook]) -> Evidence:
        return evidence.rebalanced(before, inside, members_change=members_change)

    inside = scene.hold_until(lambda: scene.group_look("inside"), lambda looks: judge(looks).bit, within_s=within_s)
    return judge(inside)

"""Forced rebalances: a member more, a member less, judged from the offsets log."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_trial.nemesis import evidence_processes as evidence
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.fault import fault
from kafka_trial.nemesis.injection import Injection
from kafka_trial.nemesis.samples import GroupSnapshot

REBALANCE_WITHIN_S = 12.0  # a classic group waits for each member's next poll
START_WITHIN_S = 12.0  # of an extra member's process: on a busy machine a JVM takes its time


def _join_complete(injection: Injection, seen: Evidence) -> Evidence:
    return seen.with_details(**injection.group_since())


@fault("join", targets=("all",), scope="members", heals=True, complete=_join_complete)
def join(injection: Injection) -> Iterator[Evidence]:
    """Starts a further member; it leaves again when it heals. Two rebalances."""
    before = injection.group_snapshot("before")
    extra_member = injection.context.group.join()
    try:
        yield _rebalanced(injection, before, members_change=1, within_s=START_WITHIN_S + REBALANCE_WITHIN_S)
    finally:
        injection.context.group.leave(extra_member)


@fault("leave", targets=("member",), scope="members", heals=True, complete=_join_complete)
def leave(injection: Injection) -> Iterator[Evidence]:
    """Has a member leave; its next incarnation joins when it heals. Two rebalances."""
    before = injection.group_snapshot("before")
    member = injection.member()
    injection.injected()  # it is hit now, however long it takes to go
    injection.context.group.leave(member)
    try:
        yield _rebalanced(injection, before, members_change=-1, within_s=REBALANCE_WITHIN_S)
    finally:
        injection.member_again()


def _rebalanced(injection: Injection, before: GroupSnapshot, *, members_change: int, within_s: float) -> Evidence:
    def judge(inside: list[GroupSnapshot]) -> Evidence:
        return evidence.rebalanced(before, inside, members_change=members_change)

    inside = injection.hold_until(
        lambda: injection.group_snapshot("inside"), lambda looks: judge(looks).bit, within_s=within_s
    )
    return judge(inside)

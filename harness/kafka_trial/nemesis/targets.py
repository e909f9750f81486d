"""Targets: from a role to members, brokers and proxies, read again just before each injection.

Roles: `member` (one that runs and is no extra member of a `join`, drawn from the seed; `member:1` by index),
`coordinator` (of the group), `leader` (of a partition, drawn so that it is neither coordinator nor controller where
that is possible; `leader:3` by partition), `controller`, `all` (every member). A network fault on a broker's role
reaches every leased lane's proxy to it.
"""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_trial.cluster.cluster import node_name
from kafka_trial.errors import InputError, UnjudgeableError, WaitTimeout, unknown_name
from kafka_trial.nemesis.context import FaultContext
from kafka_trial.nemesis.samples import TopicSnapshot
from kafka_trial.process.waiting import wait_until

if TYPE_CHECKING:
    from kafka_trial.cluster.cluster import Lane
    from kafka_trial.consumers.consumer import Member

ROLES = ("member", "coordinator", "leader", "controller", "all")
ELECTED_WITHIN_S = 5.0


@dataclass(frozen=True)
class Target:
    """What a role meant at one instant. `name` is what an exact replay asks for: m1, b2, all.

    `routes` are the (client, broker) pairs of members that the fault is judged on; `proxies` all those it acts on.
    """

    role: str
    name: str
    members: tuple[str, ...] = ()
    broker: int | None = None
    partition: int | None = None
    routes: tuple[tuple[str, int], ...] = ()
    proxies: tuple[str, ...] = ()
    message: str | None = None


def resolve(
    context: FaultContext,
    recorded: str | None,
    *,
    role: str,
    rng: random.Random,
    stop: threading.Event | None = None,
    idle: bool = False,
) -> Target:
    """Returns what `role` means now, or, where `recorded` is given, the member or broker of that name.

    A broker's role that nobody has is waited for until `stop` is set, `ELECTED_WITHIN_S` seconds at most. With `idle`
    the role "all" may mean no member at all: a fault of the topic hits whoever comes later.

    Raises:
        InputError: the recorded name does not exist.
        UnjudgeableError: nobody has the role now: no member runs, no leader or coordinator is known.
    """
    if recorded is not None and recorded not in known_names(context):
        raise InputError("schedule", unknown_name("recorded target", recorded, known_names(context)))
    kind, _, number = role.partition(":")
    if kind == "all":
        return _members_target(context, role, "all", context.members(), idle=idle)
    if kind == "member":
        member = _member(context, recorded or (f"m{number}" if number else None), rng)
        return _members_target(context, role, member.name, [member])
    partition = int(number) if number else None
    if recorded is not None:
        return _broker_target(context, role, context.topic_snapshot(), int(recorded.removeprefix("b")), partition)
    snapshot = _look_at_holders(context, kind, partition, stop)
    return _broker_target(context, role, snapshot, *_with_role(snapshot, kind, partition, rng))


def known_names(context: FaultContext) -> list[str]:
    """Returns every name a target can have here: members, brokers, all."""
    members = [member.name for member in sorted(context.group.members, key=lambda member: member.index)]
    return [*members, *(f"b{broker}" for broker in sorted(context.cluster.brokers)), "all"]


def member_named(context: FaultContext, name: str) -> Member:
    """Returns the member of that name, in whatever incarnation it is now."""
    return next(member for member in context.group.members if member.name == name)


def _member(context: FaultContext, name: str | None, rng: random.Random) -> Member:
    running = context.members()
    if name is None:  # an extra member comes and goes by a fault of its own: it may not have joined yet
        running = [member for member in running if member.index < context.group.size]
    else:
        running = [member for member in running if member.name == name]
    if not running:
        which = f"member {name}" if name else "member"
        raise UnjudgeableError(f"no {which} runs: nothing to inject into. Did the consumer exit before?")
    return rng.choice(running)


def _members_target(
    context: FaultContext, role: str, name: str, members: list[Member], *, idle: bool = False
) -> Target:
    if not members and not idle:
        raise UnjudgeableError("no member runs: nothing to inject into. Did the consumer exit before?")
    brokers = sorted(context.cluster.brokers)
    lanes = [member.lane for member in members]
    if name == "all" and context.workload_lane is not None:
        lanes.append(context.workload_lane)
    return Target(
        role=role,
        name=name,
        members=tuple(member.name for member in members),
        routes=tuple((member.name, broker) for member in members for broker in brokers),
        proxies=_proxies(lanes, brokers),
    )


def _broker_target(
    context: FaultContext, role: str, snapshot: TopicSnapshot, broker: int, partition: int | None
) -> Target:
    if broker in context.cluster.controllers:
        raise UnjudgeableError(
            f"the {role} is {node_name(broker)}, a controller of its own: clients have no connections to it"
        )
    members = context.members()
    lanes = [member.lane for member in members] + ([context.workload_lane] if context.workload_lane else [])
    return Target(
        role=role,
        name=f"b{broker}",
        broker=broker,
        partition=partition,
        members=tuple(member.name for member in members),
        routes=tuple((member.name, broker) for member in members),
        proxies=_proxies(lanes, [broker]),
        message=_other_roles(snapshot, broker),
    )


def _look_at_holders(
    context: FaultContext, kind: str, partition: int | None, stop: threading.Event | None
) -> TopicSnapshot:
    """Looks until somebody has the role: the brokers may be electing one, or be slow to answer, on a busy machine."""
    snapshots: list[TopicSnapshot] = []

    def known() -> bool:
        snapshots.append(context.topic_snapshot())
        return bool(_role_holders(snapshots[-1], kind, partition))

    def given_up() -> str | None:
        return "the run was stopped" if stop is not None and stop.is_set() else None

    with suppress(WaitTimeout):  # nobody has it: the caller says so
        wait_until(known, within_s=ELECTED_WITHIN_S, what=f"a {kind} to be known", every_s=0.1, alive=given_up)
    return snapshots[-1]


def _role_holders(snapshot: TopicSnapshot, kind: str, partition: int | None) -> list[tuple[int, int | None]]:
    """Returns the (broker, partition) that have the role."""
    if kind == "leader":
        led = [one for one in snapshot.leaders if one.broker >= 0 and partition in {None, one.partition}]
        return [(one.broker, one.partition) for one in led]
    broker = snapshot.coordinator if kind == "coordinator" else snapshot.controller
    return [] if broker is None else [(broker, partition)]


def _with_role(snapshot: TopicSnapshot, kind: str, partition: int | None, rng: random.Random) -> tuple[int, int | None]:
    holders = _role_holders(snapshot, kind, partition)
    if kind != "leader":
        if not holders:
            raise UnjudgeableError(f"no {kind} is known now: the brokers did not answer, or are electing one")
        return holders[0]
    if not holders:
        raise UnjudgeableError(f"no partition{f' {partition}' if partition is not None else ''} has a leader now")
    apart = [holder for holder in holders if holder[0] not in (snapshot.coordinator, snapshot.controller)]
    return rng.choice(apart or holders)


def _other_roles(snapshot: TopicSnapshot, broker: int) -> str:
    leads = sum(leader.broker == broker for leader in snapshot.leaders)
    roles = [name for name in ("coordinator", "controller") if getattr(snapshot, name) == broker]
    return f"broker {broker} leads {leads} partitions" + (f" and is {' and '.join(roles)}" if roles else "")


def _proxies(lanes: list[Lane], brokers: list[int]) -> tuple[str, ...]:
    return tuple(lane.proxies[broker] for lane in lanes for broker in brokers)

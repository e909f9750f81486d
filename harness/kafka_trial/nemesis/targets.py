"""Targets: from a role to members, brokers and proxies, read again just before each injection.

Roles: `member` (one that runs, drawn from the seed; `member:1` by index), `coordinator` (of the group), `leader` (of a
partition, drawn so that it is neither coordinator nor controller where that is possible; `leader:3` by partition),
`controller`, `all` (every member). A network fault on a broker's role reaches every leased lane's proxy to it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_trial.errors import InputError, UnjudgeableError, unknown_name
from kafka_trial.nemesis.ground import Ground
from kafka_trial.nemesis.samples import TopicLook

if TYPE_CHECKING:
    from kafka_trial.cluster.cluster import Lane
    from kafka_trial.consumers.consumer import Member

ROLES = ("member", "coordinator", "leader", "controller", "all")


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


def resolve(ground: Ground, recorded: str | None, *, role: str, rng: random.Random) -> Target:
    """Returns what `role` means now, or, where `recorded` is given, the member or broker of that name.

    Raises:
        InputError: the recorded name does not exist.
        UnjudgeableError: nobody has the role now: no member runs, no leader or coordinator is known.
    """
    if recorded is not None and recorded not in known_names(ground):
        raise InputError("schedule", unknown_name("recorded target", recorded, known_names(ground)))
    kind, _, number = role.partition(":")
    if kind == "all":
        return _members_target(ground, role, "all", ground.members())
    if kind == "member":
        member = _member(ground, recorded or (f"m{number}" if number else None), rng)
        return _members_target(ground, role, member.name, [member])
    return _broker_target(ground, role, recorded, int(number) if number else None, rng)


def known_names(ground: Ground) -> list[str]:
    """Returns every name a target can have here: members, brokers, all."""
    members = [member.name for member in sorted(ground.group.members, key=lambda member: member.index)]
    return [*members, *(f"b{broker}" for broker in sorted(ground.cluster.brokers)), "all"]


def member_named(ground: Ground, name: str) -> Member:
    """Returns the member of that name, in whatever incarnation it is now."""
    return next(member for member in ground.group.members if member.name == name)


def _member(ground: Ground, name: str | None, rng: random.Random) -> Member:
    running = ground.members()
    if name is not None:
        running = [member for member in running if member.name == name]
    if not running:
        raise UnjudgeableError(f"no member {name or ''} runs: nothing to inject into. Did the consumer exit before?")
    return rng.choice(running)


def _members_target(ground: Ground, role: str, name: str, members: list[Member]) -> Target:
    if not members:
        raise UnjudgeableError("no member runs: nothing to inject into. Did the consumer exit before?")
    brokers = sorted(ground.cluster.brokers)
    lanes = [member.lane for member in members]
    if name == "all" and ground.workload_lane is not None:
        lanes.append(ground.workload_lane)
    return Target(
        role=role,
        name=name,
        members=tuple(member.name for member in members),
        routes=tuple((member.name, broker) for member in members for broker in brokers),
        proxies=_proxies(lanes, brokers),
    )


def _broker_target(
    ground: Ground, role: str, recorded: str | None, partition: int | None, rng: random.Random
) -> Target:
    look = ground.look_at_topic()
    if recorded is not None:
        broker = int(recorded.removeprefix("b"))
    else:
        broker, partition = _with_role(look, role.partition(":")[0], partition, rng)
    members = ground.members()
    lanes = [member.lane for member in members] + ([ground.workload_lane] if ground.workload_lane else [])
    return Target(
        role=role,
        name=f"b{broker}",
        broker=broker,
        partition=partition,
        members=tuple(member.name for member in members),
        routes=tuple((member.name, broker) for member in members),
        proxies=_proxies(lanes, [broker]),
        message=_other_roles(look, broker),
    )


def _with_role(look: TopicLook, role: str, partition: int | None, rng: random.Random) -> tuple[int, int | None]:
    if role == "leader":
        led = [leader for leader in look.leaders if leader.broker >= 0]
        if partition is not None:
            led = [leader for leader in led if leader.partition == partition]
        apart = [leader for leader in led if leader.broker not in (look.coordinator, look.controller)]
        if not led:
            raise UnjudgeableError(f"no partition{f' {partition}' if partition is not None else ''} has a leader now")
        chosen = rng.choice(apart or led)
        return chosen.broker, chosen.partition
    broker = look.coordinator if role == "coordinator" else look.controller
    if broker is None:
        raise UnjudgeableError(f"no {role} is known now: the brokers did not answer, or are electing one")
    return broker, partition


def _other_roles(look: TopicLook, broker: int) -> str:
    leads = sum(leader.broker == broker for leader in look.leaders)
    roles = [name for name in ("coordinator", "controller") if getattr(look, name) == broker]
    return f"broker {broker} leads {leads} partitions" + (f" and is {' and '.join(roles)}" if roles else "")


def _proxies(lanes: list[Lane], brokers: list[int]) -> tuple[str, ...]:
    return tuple(lane.proxies[broker] for lane in lanes for broker in brokers)

"""Storms by the offsets log alone: how often the group's generation or epoch rose, and who was in it before and after.

In a trial the harness knows which processes were started and stopped; here nobody does. A rise that leaves the very
same members in the group, none new and none gone, is no process's start or end: five such in a row are a storm. Clients
that come back as new members again and again may have been restarted: that is counted, and left open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka_trial.history.event import Event
from kafka_trial.invariants.causal_links import Anomaly
from kafka_trial.invariants.storms import STORM_MIN

CAME_BACK_MIN = 3
Client = tuple[str, str, str]


@dataclass(frozen=True)
class Rise:
    """The generation or epoch rose: from which to which, when, and who was in the group then."""

    before: int
    after: int
    at_ns: int
    event: str
    members: frozenset[str]
    members_before: frozenset[str]
    clients: Mapping[str, Client]


def rises_of(events: Iterable[Event], *, group: str, from_ns: int, until_ns: int) -> list[Rise]:
    """Returns the rises inside the window, in the log's order."""
    epoch, members, clients = -1, frozenset[str](), dict[str, Client]()
    found: list[Rise] = []
    before = members
    for event in events:
        if event.details.get("group") != group:
            continue
        members = _members(event, members, clients)
        value = event.details.get("epoch") if event.kind in ("group", "group_epoch") else None
        if not isinstance(value, int):
            continue
        at_ns = event.source_wall_ns or 0
        if 0 <= epoch < value and from_ns <= at_ns <= until_ns:
            found.append(Rise(epoch, value, at_ns, event.name, members, before, dict(clients)))
        epoch, before = value, members
    return found


def storm_at_rest(rises: Sequence[Rise], *, window_ns: int) -> tuple[Anomaly, ...]:
    """Returns a storm: rises in which nobody came or went, and nobody had shortly before."""
    changed_ns = -window_ns
    quiet: list[Rise] = []
    for rise in rises:
        if rise.members != rise.members_before or not rise.members:
            changed_ns = rise.at_ns
        elif rise.at_ns - changed_ns > window_ns:
            quiet.append(rise)
    if len(quiet) < STORM_MIN:
        return ()
    attributes: dict[str, Any] = {
        "bumps": len(quiet),
        "from": quiet[0].before,
        "to": quiet[-1].after,
        "lasted_ms": (quiet[-1].at_ns - quiet[0].at_ns) // 1_000_000,
    }
    proofs = tuple(dict.fromkeys(rise.event for rise in (*quiet[:3], *quiet[-2:])))
    return (Anomaly("rebalance-storm", None, None, attributes, proofs),)


def flapping(rises: Sequence[Rise]) -> int:
    """Returns how many clients came into the group as new members more often than a restart each explains."""
    came: Counter[Client] = Counter()
    most: Counter[Client] = Counter()
    for rise in rises:
        now = Counter(rise.clients[one] for one in rise.members if one in rise.clients)
        came.update(rise.clients[one] for one in rise.members - rise.members_before if one in rise.clients)
        most |= now
    return sum(count >= CAME_BACK_MIN * max(1, most[client]) for client, count in came.items())


def _members(event: Event, members: frozenset[str], clients: dict[str, Client]) -> frozenset[str]:
    """Returns who is in the group after an event, and learns their clients."""
    member_id = event.details.get("member_id")
    if event.kind == "group":
        listed = event.details.get("members") or ()
        clients.update((str(one["member_id"]), _client(one)) for one in listed)
        return frozenset(str(one["member_id"]) for one in listed)
    if event.kind == "member" and member_id:
        clients[str(member_id)] = _client(event.details)
        return members | {str(member_id)}
    if event.kind == "group_tombstone" and event.details.get("record_type") == 5 and member_id:
        return members - {str(member_id)}
    return members


def _client(told: Mapping[str, Any]) -> Client:
    return str(told.get("client_id")), str(told.get("host")), str(told.get("instance_id"))

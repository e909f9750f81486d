"""Group presence: which members of a trial were in their group, and from when to when, by the brokers' word alone.

The offsets log says which member ids a group has, from each of its records on. The request log says in whose lane an
id was seen, and when its last request was granted that only a member is granted. Both together say it of a member,
whatever it prints: an id that is still listed may be that of a process that is dead or asleep, until its session
expires.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka_trial.model.kernels import NEVER
from kafka_trial.model.trial_context import LOG_TOLERANCE_NS, Membership, TrialContext
from kafka_trial.model.wall_clock import done_ns

Span = tuple[int, int]  # from when to when; NEVER: to the end


@dataclass(frozen=True)
class Presence:
    """One member id of a member: when it was listed in the group, and when the first and the last request began that
    it was granted."""

    member: int
    listed: tuple[Span, ...]
    first_ns: int
    last_ns: int

    def listed_at(self, at_ns: int) -> bool:
        """Tells whether the group had it at that time."""
        return any(begin <= at_ns < end for begin, end in self.listed)

    def present_between(self, at_ns: int, until_ns: int) -> bool:
        """Tells whether the group had it in that time, and granted it something that it asked then."""
        asked = self.asked_since(at_ns)
        return asked and any(begin <= until_ns and end > at_ns for begin, end in self.listed)

    def asked_since(self, at_ns: int) -> bool:
        """Tells whether it was granted anything that it asked then or later; of a new id as clocks tell that."""
        return self.last_ns >= at_ns or self.first_ns >= at_ns - LOG_TOLERANCE_NS


def presences(trial_context: TrialContext) -> tuple[Presence, ...]:
    """Returns the member ids that were seen in the lane of a member, with when they were in the group."""
    spans = [one for one in trial_context.member_spans if one.lane in trial_context.lanes]
    first_ns = done_ns(trial_context, [(one.first_wall_ns, one.first_time_ns) for one in spans])
    last_ns = done_ns(trial_context, [(one.last_wall_ns, one.last_time_ns) for one in spans])
    listed = _stays(trial_context)
    return tuple(
        Presence(trial_context.lanes[one.lane], (*listed[one.member_id], *listed[ANYBODY]), first, last)
        for one, first, last in zip(spans, first_ns, last_ns, strict=True)
    )


ANYBODY = -1  # who is in a group whose records do not say who


def _stays(trial_context: TrialContext) -> Mapping[int, list[Span]]:
    """Returns from when to when each member id was in the group; of ANYBODY while nobody can tell who was."""
    records = trial_context.memberships
    times = done_ns(trial_context, [(one.wall_ns, one.time_ns) for one in records])
    since: dict[int, int] = {}
    found: dict[int, list[Span]] = defaultdict(list)
    for at_ns, present in zip(times, members_after(records), strict=True):
        for gone in since.keys() - present:
            found[gone].append((since.pop(gone), at_ns))
        for new in present - since.keys():
            since[new] = at_ns
    for member_id, begin_ns in since.items():
        found[member_id].append((begin_ns, NEVER))
    return found


def members_after(records: Sequence[Membership]) -> Iterator[frozenset[int]]:
    """Yields the member ids in the group after each record of the offsets log; ANYBODY where it does not say whom."""
    classic: frozenset[int] = frozenset()
    consumer: frozenset[int] = frozenset()
    for one in records:
        if one.what == "group":
            classic = frozenset([ANYBODY] if one.listed is None else one.listed)
        elif one.what == "group gone":  # also where a group goes over to KIP-848
            classic = frozenset()
        elif one.what == "member" and one.epoch >= 0:
            consumer |= {one.member_id}
        else:  # a tombstone; or an epoch below 0, with which a static member is away
            consumer -= {one.member_id}
        yield classic | consumer


WHAT = {"group": "group", "member_assignment": "member"}
TOMBSTONES = {2: "group gone", 8: "member gone"}  # by the type of the record


def membership_of(
    body: Mapping[str, Any], *, source: int, member_id: int, number_of: Callable[[str], int]
) -> Membership | None:
    """Returns what a group record tells; None where it tells nothing of it, or has no place.

    `number_of` numbers the member ids that it lists.
    """
    kind, record_type, place = str(body.get("kind")), _number(body, "record_type"), _number(body, "log_offset")
    what = WHAT.get(kind) or TOMBSTONES.get(-1 if record_type is None else record_type)
    of_member = what in ("member", "member gone")
    if what is None or place is None or (of_member and member_id < 0):
        return None
    epoch = _number(body, "epoch")
    return Membership(
        place=place,
        what=what,
        member_id=member_id if of_member else -1,
        epoch=-1 if epoch is None else epoch,
        members=_how_many(body) if what == "group" else None,
        wall_ns=_number(body, "source_wall_ns"),
        time_ns=body["time_ns"],
        source=source,
        seq=body["seq"],
        listed=_listed(body, number_of) if what == "group" else None,
    )


def _how_many(body: Mapping[str, Any]) -> int | None:
    """Returns how many members a classic record lists; None where it says nothing of them or of what they have."""
    members, entries = body.get("members"), body.get("entries")
    return len(members) if isinstance(members, list) and isinstance(entries, list) else None


def _listed(body: Mapping[str, Any], number_of: Callable[[str], int]) -> tuple[int, ...] | None:
    """Returns the member ids that a classic record lists; None where it does not say all of them."""
    members = body.get("members")
    names = [one.get("member_id") for one in members if isinstance(one, Mapping)] if isinstance(members, list) else []
    told = isinstance(members, list) and len(names) == len(members) and all(isinstance(name, str) for name in names)
    return tuple(sorted(number_of(str(name)) for name in names)) if told else None


def _number(body: Mapping[str, Any], name: str) -> int | None:
    value = body.get(name)
    fits = isinstance(value, int) and not isinstance(value, bool) and -(2**62) < value < 2**62
    return value if fits else None

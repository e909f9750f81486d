"""Group presence: which members of a trial were in their group, and from when to when, by the brokers' word alone.

The offsets log says which member ids a group has, from each of its records on. The request log says in whose lane an
id was seen, and when its last request was granted that only a member is granted. Both together say it of a member,
whatever it prints: an id that is still listed may be that of a process that is dead or asleep, until its session
expires.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kafka_trial.invariants.clocks import monotonic
from kafka_trial.invariants.kernels import NEVER, NONE
from kafka_trial.invariants.trial_context import Membership, TrialContext

Span = tuple[int, int]  # from when to when; NEVER: to the end


@dataclass(frozen=True)
class Presence:
    """One member id of a member: when it was listed in the group, and when its last granted request was begun."""

    member: int
    listed: tuple[Span, ...]
    granted_ns: int

    def listed_at(self, at_ns: int) -> bool:
        """Tells whether the group had it at that time."""
        return any(begin <= at_ns < end for begin, end in self.listed)

    def present_between(self, at_ns: int, until_ns: int) -> bool:
        """Tells whether the group had it in that time, and granted it something since then."""
        return self.granted_ns >= at_ns and any(begin <= until_ns and end > at_ns for begin, end in self.listed)


def presences(trial_context: TrialContext) -> tuple[Presence, ...]:
    """Returns the member ids that were seen in the lane of a member, with when they were in the group."""
    spans = [one for one in trial_context.member_spans if one.lane in trial_context.lanes]
    granted_ns = _times(trial_context, [(one.last_wall_ns, one.last_time_ns) for one in spans])
    listed = _listed(trial_context)
    return tuple(
        Presence(trial_context.lanes[one.lane], (*listed[one.member_id], *listed[ANYBODY]), at_ns)
        for one, at_ns in zip(spans, granted_ns, strict=True)
    )


ANYBODY = -1  # who is in a group whose records do not say who


def _listed(trial_context: TrialContext) -> Mapping[int, list[Span]]:
    """Returns from when to when each member id was in the group; of ANYBODY while nobody can tell who was."""
    records = trial_context.memberships
    times = _times(trial_context, [(one.wall_ns, one.time_ns) for one in records])
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


def _times(trial_context: TrialContext, moments: Sequence[tuple[int | None, int]]) -> list[int]:
    """Returns when brokers did something, by their own clocks where they say so (wall time, when it was read)."""
    walls = np.array([NONE if wall is None else wall for wall, _ in moments], np.int64)
    read_ns = np.array([time_ns for _, time_ns in moments], np.int64)
    return [int(at_ns) for at_ns in np.minimum(monotonic(trial_context, walls, read_ns), read_ns)]

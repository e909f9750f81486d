"""Who is in the group under trial, seen live from the history: what the drain waits for where a member is not back yet.

Gathers, event by event, what `model/rejoining.py` asks of a trial: processes of members, the offsets log's records
of the group, and what brokers granted in each lane. The judge asks the same functions of the whole history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kafka_trial.history.event import Event
from kafka_trial.model.group_presence import membership_of
from kafka_trial.model.trial_context import Incarnation, Membership, MemberSpan

MEMBERS_ONLY: Final = frozenset(
    {"JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "CONSUMER_GROUP_HEARTBEAT", "OFFSET_COMMIT", "TXN_OFFSET_COMMIT"}
)


@dataclass
class PresenceCollector:
    """What has been gathered so far of one group; times in nanoseconds."""

    group: str
    processes: dict[str, dict[str, Any]] = field(default_factory=dict)  # by their files
    memberships: list[Membership] = field(default_factory=list)
    spans: dict[tuple[int, str], MemberSpan] = field(default_factory=dict)
    clocks: list[tuple[int, int]] = field(default_factory=list)
    delays: list[tuple[int, int]] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Takes an event into account; most are nothing to it."""
        taker = TAKERS.get(event.kind)
        if taker is not None:
            taker(self, event)

    def trial_context(self, members: tuple[str, ...]) -> Mapping[str, Any]:
        """Returns the fields of `TrialContext` that these are; `members` as they are numbered there."""
        processes = [one for _, one in sorted(self.processes.items()) if one["member"] in members]
        return {
            "incarnations": tuple(
                Incarnation(source=number, **{**one, "member": members.index(one["member"])})
                for number, one in enumerate(processes)
            ),
            "memberships": tuple(sorted(self.memberships, key=lambda one: (one.place, one.seq))),
            "member_spans": tuple(self.spans.values()),
            "clocks": tuple(sorted(self.clocks)),
            "delays": tuple(self.delays),
        }

    def number_of(self, member_id: str) -> int:
        return self._numbers.setdefault(member_id, len(self._numbers))


def _started(seen: PresenceCollector, event: Event) -> None:
    if event.member is not None:
        about = {"member": event.member, "number": event.incarnation or 0, "started_ns": event.time_ns}
        told = {name: event.details.get(name) for name in ("consumer", "protocol")}
        seen.processes[event.source] = about | told


def _exited(seen: PresenceCollector, event: Event) -> None:
    if event.source in seen.processes:
        seen.processes[event.source].setdefault("exited_ns", event.time_ns)


def _group_record(seen: PresenceCollector, event: Event) -> None:
    if event.source != "offsets" or event.details.get("group") != seen.group:
        return
    about = {"kind": event.kind, "time_ns": event.time_ns, "seq": event.seq, "source_wall_ns": event.source_wall_ns}
    member_id = event.details.get("member_id")
    number = seen.number_of(member_id) if isinstance(member_id, str) else -1
    found = membership_of({**event.details, **about}, source=0, member_id=number, number_of=seen.number_of)
    if found is not None:
        seen.memberships.append(found)


def _request(seen: PresenceCollector, event: Event) -> None:
    """Keeps when the first and the last request of a member id began that only a member is granted."""
    about = event.details
    lane, member_id, epoch = (about.get(name) for name in ("lane", "member_id", "epoch"))
    granted = about.get("api") in MEMBERS_ONLY and not about.get("error") and (epoch is None or epoch >= 0)
    if not granted or about.get("group") != seen.group or lane is None or not member_id:
        return
    took_ns = int((about.get("duration_ms") or 0) * 1_000_000)
    wall_ns = None if event.source_wall_ns is None else event.source_wall_ns - took_ns
    moment, number = (wall_ns, event.time_ns - took_ns), seen.number_of(member_id)
    before = seen.spans.get((lane, member_id))
    first = moment if before is None else (before.first_wall_ns, before.first_time_ns)
    last = moment if before is None else max(moment, (before.last_wall_ns, before.last_time_ns), key=_moment)
    seen.spans[lane, member_id] = MemberSpan(lane, number, *first, *last)


def _moment(one: tuple[int | None, int]) -> int:
    wall_ns, time_ns = one
    return time_ns if wall_ns is None else wall_ns


def _clock(seen: PresenceCollector, event: Event) -> None:
    if event.source == "run":
        seen.clocks.append((event.details["wall_ns"], event.details.get("read_ns", event.time_ns)))


TAKERS: Final[Mapping[str, Callable[[PresenceCollector, Event], None]]] = {
    "started": _started,
    "exited": _exited,
    "group": _group_record,
    "member_assignment": _group_record,
    "group_tombstone": _group_record,
    "request": _request,
    "clock": _clock,
    "scheduling_delay": lambda seen, event: seen.delays.append((event.time_ns, event.details["delay_ns"])),
}

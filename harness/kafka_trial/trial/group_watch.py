"""How a trial's group is doing, seen live from the history: what the bounds of its convergence follow from.

The judge reads the same from the whole history (`judge/requested_timeouts.py`), and never uses this.

For the drain, which waits where a member is not back yet, `PresenceCollector` gathers what `model/rejoining.py` asks of
a trial: processes of members, the offsets log's records of the group, and what brokers granted in each lane.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from kafka_trial.cluster.wiring import CONSUMER_SESSION_TIMEOUT_S
from kafka_trial.consumers.spec import ConsumerSpec
from kafka_trial.history.consequences import consequences_in
from kafka_trial.history.event import Event
from kafka_trial.history.store import HistoryTail
from kafka_trial.model.drain_backlog import DrainBacklog
from kafka_trial.model.group_presence import membership_of
from kafka_trial.model.group_timeouts import DeclaredTimeouts, Movements
from kafka_trial.model.liveness_bounds import (
    HEARTBEATS_A_SESSION,
    NO_BACKLOG,
    Timing,
    cpu_wait_excess_s,
    expiries,
    timing_of,
    with_faults,
)
from kafka_trial.model.rejoining import awaited, overdue_s
from kafka_trial.model.trial_context import CpuWait, Incarnation, Membership, MemberSpan, Settings, TrialContext, Window

SECOND_NS = 1_000_000_000
ADDING, CREATING = "partitions-added", "topic-created"  # faults of which clients learn when they ask for metadata
OF_WITNESSES = ("offsets.jsonl", "requests-b*.jsonl")
OF_OTHERS = ("run.jsonl", "nemesis.jsonl", "consumer-*.jsonl")
HEARTBEATS = ("HEARTBEAT", "CONSUMER_GROUP_HEARTBEAT")
CLASSIC_GROUP, CONSUMER_MEMBER = 2, 5  # types of records in the offsets log
TOMBSTONES = (CLASSIC_GROUP, CONSUMER_MEMBER)
LEFT_EPOCH = -1  # in a heartbeat of KIP-848: the member leaves for good
SEEN_MIN_NS = 3 * SECOND_NS
MEMBERS_ONLY: Final = frozenset(
    {"JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "CONSUMER_GROUP_HEARTBEAT", "OFFSET_COMMIT", "TXN_OFFSET_COMMIT"}
)


@dataclass
class GroupWatch:
    """What one group's members told the brokers, who is in it, and which faults hit it; fed from a trial's history.

    `witnessed`: where the witnesses of the cluster write; None: where all others do."""

    history: Path
    group: str
    spec: ConsumerSpec
    successors: Sequence[ConsumerSpec] = ()
    witnessed: Path | None = None
    phases: dict[str, int] = field(default_factory=dict)
    calibrated_ns: int | None = None
    changes: int = 0  # group records so far
    changed_ns: int = 0
    member_ids: frozenset[str] = frozenset()
    _sizes: list[tuple[int, int]] = field(default_factory=list)
    _windows: dict[int, dict[str, Any]] = field(default_factory=dict)
    _timeouts_ms: dict[str, int] = field(default_factory=dict)
    _protocols: set[str] = field(default_factory=set)
    _type: str | None = None  # of the group, by its last record or, where there is none yet, by a join
    _leaves: list[tuple[int, int]] = field(default_factory=list)
    _takeovers: list[tuple[int, int]] = field(default_factory=list)
    _lanes: dict[int, str] = field(default_factory=dict)
    _rounds: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    _in_hand: dict[tuple[str, Any, Any, Any], int] = field(default_factory=dict)
    _cpu_waits: list[CpuWait] = field(default_factory=list)
    _longest_ns: int = 0
    _beats: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    _fetches: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    _positions: dict[tuple[str, int], int] = field(default_factory=dict)
    _delays: list[tuple[int, int]] = field(default_factory=list)
    fetched_ns: int = 0  # when a member last asked for records further on than any before

    def __post_init__(self) -> None:
        self._followers = [
            HistoryTail(self.witnessed or self.history, *OF_WITNESSES),
            HistoryTail(self.history, *OF_OTHERS),
        ]
        self._presence = PresenceCollector(self.group)

    def update(self) -> GroupWatch:
        """Reads what was appended since the last look."""
        for follower in self._followers:
            for event in follower.new_events():
                self._take(event)
        return self

    def timing(self, *, backlog: DrainBacklog = NO_BACKLOG, movements: Movements | None = None) -> Timing:
        """Returns what the bounds of convergence follow from, for a drain that begins now or has begun."""
        faults = {window["fault"] for window in self._windows.values()}
        timing = timing_of(
            self._settings(),
            declared=self._declared(),
            backlog=backlog,
            longest_handler_s=self._longest_ns / SECOND_NS,
            partitions_added=ADDING in faults,
            topics_added=CREATING in faults,
            movements=movements,
        )
        about = self._trial_context()
        if "heal" in self.phases:  # the drain begins now, unless it has begun
            about = replace(about, phases={"drain": time.monotonic_ns(), **self.phases})
        return with_faults(timing, about)

    def stood_still_ns(self) -> int:
        """Returns when the machine last stood still for so long that the judge blames nobody for it; 0: never."""
        patience_ns = (self._declared().session_timeout_s or 0.0) / 4 * SECOND_NS
        return max((at_ns for at_ns, delay_ns in self._delays if delay_ns > patience_ns), default=0)

    def busier_s(self, *, now_ns: int, since_ns: int | None = None) -> float:
        """Returns how much longer members and brokers waited for a processor in the drain, or since an instant, than
        they did before."""
        about = self._trial_context()
        phases = about.phases if since_ns is None else {**about.phases, "drain": since_ns}
        return cpu_wait_excess_s(replace(about, phases=phases), now_ns)

    def lost_until_ns(self) -> int:
        """Returns when the last session that a fault cost has expired, and its rebalance is over; 0: none did."""
        timing = timing_of(self._settings(), declared=self._declared())
        return max((one.end_ns for one in expiries(self._trial_context(), timing).values()), default=0)

    def last_loss_ns(self) -> int:
        """Returns when the last fault hit that cost a session; 0: none did."""
        about = self._trial_context()
        costly = expiries(about, timing_of(self._settings(), declared=self._declared()))
        return max((window.injected_ns for window in about.windows if window.number in costly), default=0)

    def awaited_members(self, *, now_ns: int, margin_s: float = 0.0) -> list[str]:
        """Returns the members that a fault put out of the group, that are not back, and that may still come back: their
        time, and `margin_s`, are not over."""
        about = self._trial_context()
        about = replace(about, **self._presence.trial_context(about.members))
        still = [one for one in awaited(about, until_ns=now_ns) if overdue_s(about, one, until_ns=now_ns) < margin_s]
        return [about.members[one.back.member] for one in still]

    @property
    def members_before(self) -> int | None:
        """How many members the group had when the faults began; None where nobody was seen in it."""
        until_ns = self.phases.get("faults", 0)
        return next((size for at_ns, size in reversed(self._sizes) if at_ns <= until_ns and size), None)

    @property
    def classic(self) -> bool:
        """Whether its coordinator has it as a group of the classic protocol now: it may go over, and back."""
        return self._type == "classic"

    def rests(self, *, now_ns: int) -> bool:
        """Tells whether the group has as many members as before the faults, and has noticed those that it lost."""
        if self.members_before is None:
            return True
        noticed = self.changed_ns > self.last_loss_ns() or now_ns > self.lost_until_ns()
        return noticed and len(self.member_ids) == self.members_before

    def _settings(self) -> Settings:
        """As the judge has them: of a consumer and its successors the longest times."""
        spec, kafkas = self.spec, [one.kafka for one in (self.spec, *self.successors)]
        asked_s = [one.request_timeout_s for one in kafkas if one.request_timeout_s is not None]
        return Settings(
            protocol=spec.kafka.protocol,
            session_timeout_s=max(one.session_timeout_s for one in kafkas),
            poll_interval_s=max(one.poll_interval_s for one in kafkas),
            metadata_age_s=max(one.metadata_age_s for one in kafkas),
            commit_interval_s=spec.progress.interval_s,
            converge_within_s=spec.claim.converge_within_s,
            request_timeout_s=max(asked_s, default=None),
            handler_max_s=spec.evidence.handler_max_s,
            ready_within_s=max(one.ready.within_s for one in (spec, *self.successors)),
        )

    def _declared(self) -> DeclaredTimeouts:
        """As the judge will know it, or longer where neither deliveries nor fetches were seen."""
        session_ms = self._timeouts_ms.get("session")
        if session_ms is None and "consumer" in self._protocols:
            session_ms = round(CONSUMER_SESSION_TIMEOUT_S * 1000)
        rebalance_ms = self._timeouts_ms.get("rebalance")
        session_s = self.spec.kafka.session_timeout_s if session_ms is None else session_ms / 1000
        cycles = [longest for first, last, longest in self._rounds.values() if last - first >= SEEN_MIN_NS]
        if not self._rounds:
            cycles = [longest for first, last, longest in self._fetches.values() if last - first >= SEEN_MIN_NS]
        silent_s = None if self._rounds else self.spec.kafka.poll_interval_s
        beats = [longest / SECOND_NS for first, last, longest in self._beats.values() if last > first]
        return DeclaredTimeouts(
            protocol=next((name for name in ("classic", "consumer") if name in self._protocols), None),
            session_timeout_s=session_s,
            rebalance_timeout_s=None if rebalance_ms is None else rebalance_ms / 1000,
            heartbeat_s=max(beats, default=session_s / HEARTBEATS_A_SESSION),
            poll_cycle_s=max(cycles) / SECOND_NS if cycles else silent_s,
            leaves=tuple(self._leaves),
            takeovers=tuple(self._takeovers),
        )

    def _trial_context(self) -> TrialContext:
        members = tuple(dict.fromkeys(self._lanes.values()))
        return TrialContext(
            members=members,
            lanes={lane: members.index(name) for lane, name in self._lanes.items()},
            phases=self.phases,
            calibrated_ns=self.calibrated_ns,
            cpu_waits=tuple(self._cpu_waits),
            windows=tuple(Window(**window) for _, window in sorted(self._windows.items())),
            settings=self._settings(),
            declared_timeouts=self._declared(),
        )

    def _take(self, event: Event) -> None:
        self._presence.take(event)
        if event.kind == "phase":
            phase = str(event.details["phase"])
            if phase == "heal":  # of a further stage: its drain is still to come
                self.phases.pop("drain", None)
            self.phases[phase] = event.time_ns
        elif event.kind == "calibrated":
            self.calibrated_ns = event.time_ns
        elif event.kind == "cpu_wait":
            self._cpu_waits.append(CpuWait(event.time_ns, **event.details))
        elif event.kind == "scheduling_delay":
            self._delays.append((event.time_ns, int(event.details["delay_ns"])))
        elif event.source == "nemesis":
            self._take_fault(event)
        elif event.source == "offsets":
            self._take_group(event.kind, event.details, event.time_ns)
        elif event.kind == "request":
            self._take_request(event)
        elif event.member is not None:
            self._take_word(event)

    def _take_fault(self, event: Event) -> None:
        number = event.details.get("fault_no", -1)
        if event.kind == "injected":
            names = {name: str(event.details.get(name)) for name in ("fault", "target")}
            times = {"injected_ns": event.time_ns, "healed_ns": None}
            does = {"consequences": consequences_in(event.details)}
            self._windows[number] = {"number": number, "member": event.member} | names | times | does
        elif event.kind == "healed" and number in self._windows:
            self._windows[number]["healed_ns"] = event.time_ns

    def _take_group(self, kind: str, details: Mapping[str, Any], time_ns: int) -> None:
        tombstone = kind == "group_tombstone" and details.get("record_type") in TOMBSTONES
        if details.get("group") != self.group or (kind not in ("group", "member") and not tombstone):
            return
        self.changes, self.changed_ns = self.changes + 1, time_ns
        if kind == "group":
            members = details.get("members", ())
            self.member_ids = frozenset(member["member_id"] for member in members)
            self._protocols |= {"classic"} if members else set()
            self._type = "classic" if members else self._type
            for member in members:
                self._take_timeouts(member)
        elif tombstone and details["record_type"] == CLASSIC_GROUP:  # it goes over: its members are named anew
            self.member_ids = frozenset()
        elif tombstone:
            self.member_ids -= {str(details.get("member_id"))}
        else:
            self.member_ids |= {str(details.get("member_id"))}
            self._protocols.add("consumer")
            self._type = "consumer"
            self._take_timeouts(details)
        self._sizes.append((time_ns, len(self.member_ids)))

    def _take_timeouts(self, about: Mapping[str, Any]) -> None:
        for name in ("session", "rebalance"):
            value = about.get(f"{name}_timeout_ms")
            if value:
                self._timeouts_ms[name] = max(self._timeouts_ms.get(name, 0), value)

    def _take_request(self, event: Event) -> None:
        about = event.details
        if about["api"] == "FETCH" and about.get("lane") is not None:
            self._take_fetch(event)
        if about.get("group") != self.group:
            return
        if about["api"] in HEARTBEATS and about.get("lane") is not None and self._is_steady(event):
            _lengthen(self._beats, f"{event.source} {about['lane']}", event.time_ns)
        if about["api"] == "JOIN_GROUP":
            self._protocols.add("classic")
            self._type = self._type or "classic"
            self._take_timeouts(about)
        joins = about["api"] == "JOIN_GROUP" or (about["api"] == HEARTBEATS[1] and about.get("epoch") == 0)
        if joins and about.get("instance_id") and not about.get("error") and about.get("lane") is not None:
            self._takeovers.append((about["lane"], event.time_ns))
        goodbye = about["api"] == "CONSUMER_GROUP_HEARTBEAT" and about.get("epoch") == LEFT_EPOCH
        if (goodbye or (about["api"] == "LEAVE_GROUP" and not about.get("error"))) and about.get("lane") is not None:
            self._leaves.append((about["lane"], event.time_ns))

    def _take_fetch(self, event: Event) -> None:
        if self._is_steady(event):
            _lengthen(self._fetches, f"{event.source} {event.details['lane']}", event.time_ns)
        for entry in event.details.get("entries", ()):
            place = str(entry.get("topic_id") or entry.get("topic")), entry.get("partition", -1)
            position = entry.get("offset")
            if isinstance(position, int) and position > self._positions.get(place, -1):
                self._positions[place] = position
                self.fetched_ns = max(self.fetched_ns, event.time_ns)

    def _is_steady(self, event: Event) -> bool:
        """Whether the load has begun and the faults have not."""
        begun_ns = self.phases.get("steady")
        return begun_ns is not None and begun_ns <= event.time_ns <= self.phases.get("faults", event.time_ns)

    def _take_word(self, event: Event) -> None:
        if event.kind == "started":
            self._lanes[event.details["lane"]] = str(event.member)
        if event.kind not in ("delivered", "processed") or event.time_ns > self.phases.get("faults", event.time_ns):
            return
        record = event.source, event.topic, event.partition, event.offset
        if event.kind == "delivered":
            _lengthen(self._rounds, event.source, event.time_ns)
            self._in_hand[record] = event.time_ns
        else:
            self._longest_ns = max(self._longest_ns, event.time_ns - self._in_hand.pop(record, event.time_ns))


def _lengthen(rounds: dict[str, tuple[int, int, int]], who: str, time_ns: int) -> None:
    """Counts one more event of somebody: rounds are (first, last, longest gap)."""
    first, last, longest = rounds.get(who, (time_ns, time_ns, 0))
    rounds[who] = first, time_ns, max(longest, time_ns - last)


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

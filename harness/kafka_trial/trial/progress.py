"""How far a trial has come and how its group is doing, seen live from the history: what steady and drain wait for.

The judge never uses this (it reads the same from the whole history, `judge/requested_timeouts.py`); it only decides how
long a trial goes on. Positions come from the offsets log, handled records from the consumers' own lines and from the
sink. `FreshRecords` tells whether every partition got records since the group under trial last changed, `GroupWatch`
what the bounds of its convergence follow from.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kafka_trial.cluster.wiring import CONSUMER_SESSION_TIMEOUT_S
from kafka_trial.consumers.spec import ConsumerSpec
from kafka_trial.history.event import Event
from kafka_trial.history.store import Follower, RunFolder
from kafka_trial.invariants.backlog import Backlog
from kafka_trial.invariants.group_timeouts import DeclaredTimeouts, Movements
from kafka_trial.invariants.liveness_bounds import (
    FRESH_MIN,
    HEARTBEATS_A_SESSION,
    NO_BACKLOG,
    Timing,
    cpu_wait_excess_s,
    expiries,
    timing_of,
    with_faults,
)
from kafka_trial.invariants.rejoining import awaited, overdue_s
from kafka_trial.invariants.trial_context import CpuWait, Settings, TrialContext, Window
from kafka_trial.trial.movement_watch import MovementWatch, written_ns
from kafka_trial.trial.rejoin_watch import PresenceCollector

NEVER = 2**63 - 1
IntermediatePartition = tuple[str, int]  # a partition of a topic that the group hands records on through
Place = int | IntermediatePartition  # a partition of the trial's topic, or such a one


@dataclass
class Progress:
    """Committed positions and handled records by partition of `topic`, fed from a run folder's history."""

    folder: RunFolder
    topic: str
    group: str
    by_sends: bool = False  # the log holds what no committed reader finds: what was acknowledged is all there is
    by_effects: bool = False  # what members say they did is no output yet: only effects count as handled
    no_effect: tuple[str, ...] = ()  # outcomes after which there will be none: then these count too
    committed: dict[int, int] = field(default_factory=dict)
    handled: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    effects: set[str] = field(default_factory=set)
    acknowledged: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    acknowledged_ids: set[str] = field(default_factory=set)
    ids: dict[tuple[int, int], str] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    without_effect: set[tuple[int, int]] = field(default_factory=set)
    handled_ns: dict[tuple[int, int], int] = field(default_factory=dict)
    effect_ns: dict[str, int] = field(default_factory=dict)
    commits: list[tuple[int, int, int]] = field(default_factory=list)  # when written, partition, position
    log_starts: list[tuple[int, int, int]] = field(default_factory=list)  # when seen, partition, position
    started_ns: dict[str, int] = field(default_factory=dict)  # of each member that runs: its process
    handed_on: list[tuple[int, IntermediatePartition, int]] = field(
        default_factory=list
    )  # when read, where, the position after it
    commits_through: list[tuple[int, IntermediatePartition, int]] = field(default_factory=list)
    intermediate: set[str] = field(default_factory=set)  # the topics that the group commits on

    def __post_init__(self) -> None:
        history = self.folder.history
        self.moves = MovementWatch(self.topic)
        self._followers = [
            Follower(history, pattern)
            for pattern in (
                *("observer.jsonl", "offsets.jsonl", "through.jsonl"),
                *("consumer-*.jsonl", "sink.jsonl", "workload.jsonl"),
            )
            if self.by_sends or self.by_effects or pattern != "workload.jsonl"
        ]

    def update(self) -> Progress:
        """Reads what was appended since the last look."""
        for follower in self._followers:
            for event in follower.new_events():
                if not (event.kind == "effect" and event.outcome == "fail"):  # refused: it is as if it had never been
                    self._take(event)
                    self.moves.take(event)
        self.moves.settle(self.places)
        return self

    def anew(self) -> Progress:
        """Returns the progress of the same group, to be read from the beginning: a thread of its own may ask it."""
        return Progress(
            *(self.folder, self.topic, self.group),
            by_sends=self.by_sends,
            by_effects=self.by_effects,
            no_effect=self.no_effect,
        )

    def ends(self, log_ends: Mapping[int, int]) -> Mapping[int, int]:
        """Returns the position after the last record of each partition that there is to read."""
        if not self.by_sends:
            return log_ends
        last = {partition: max(self.acknowledged[partition], default=-1) for partition in log_ends}
        return {partition: min(end, last[partition] + 1) for partition, end in log_ends.items()}

    def expired(self) -> Mapping[int, int]:
        """Returns below which position of each partition records are gone for good, and nobody can have any in hand:
        retention had taken them before any of the processes that run was started.

        What expires while a member runs may be in its hands: that is waited for.
        """
        first_ns = min(self.started_ns.values(), default=NEVER)
        gone: dict[int, int] = defaultdict(int)
        for seen_ns, partition, position in self.log_starts:
            if seen_ns < first_ns:
                gone[partition] = max(gone[partition], position)
        return gone

    def records(self, ends: Mapping[int, int]) -> int:
        """Returns how many records there are below `ends`, without those that expired before anybody handled them."""
        records, expired = len(self.acknowledged_ids) if self.by_sends else sum(ends.values()), self.expired()
        if not any(expired.values()):
            return records
        done = self.handled_offsets()
        return records - sum(len(self._offsets(part, 0, expired[part]) - done[part]) for part in ends)

    def lag(self, ends: Mapping[int, int]) -> int:
        """Returns how many positions the commits are behind `ends` (position after the last record), all partitions;
        those of the topics that the group hands records on through besides."""
        expired = self.expired()
        behind = sum(max(0, end - self._covered(partition, expired)) for partition, end in ends.items())
        return behind + self.lag_through()

    def _covered(self, partition: int, expired: Mapping[int, int]) -> int:
        """Returns up to where a partition is committed, or gone."""
        return max(self.committed.get(partition, 0), expired[partition])

    def lag_through(self) -> int:
        """Returns how many positions the commits are behind the records that were handed on, in all their topics."""
        return sum(self.behind_through().values())

    def behind_through(self, at_ns: int = NEVER) -> dict[Place, int]:
        """Returns how many positions the commits were behind the records that had been handed on by then."""
        committed = {place: position for told_ns, place, position in self.commits_through if told_ns <= at_ns}
        ends: dict[IntermediatePartition, int] = {}
        for told_ns, place, end in self.handed_on:  # of transactions in the order in which they ended
            if told_ns <= at_ns and place[0] in self.intermediate:
                ends[place] = max(end, ends.get(place, 0))
        return {place: max(0, end - committed.get(place, 0)) for place, end in ends.items()}

    def undone(self, ends: Mapping[int, int]) -> Mapping[Place, int]:
        """Returns how many offsets below `ends` are neither handled nor committed past, whichever are fewer, by
        partition; and how many records that were handed on are not committed past."""
        expired = self.expired()
        left = self.behind_through()
        for partition, end in ends.items():
            behind = max(0, end - self._covered(partition, expired))
            left[partition] = min(behind, end - len(self.handled[partition]))
        return left

    def unhandled(self, ends: Mapping[int, int]) -> int:
        """Returns how many offsets below `ends` no handler has finished, all partitions."""
        return sum(end - len(self.handled[partition]) for partition, end in ends.items())

    def backlog(
        self, ends: Mapping[int, int], *, at_ns: int = NEVER, by_commits: bool = True, by_handled: bool = True
    ) -> Mapping[Place, int]:
        """Returns how many records below `ends` were left at an instant, by partition, as the bound of the drain counts
        them.

        Of each partition those that were not committed past, or not handled, whichever are more. One of both may tell
        nothing: where progress is not in Kafka, or nobody sees what is handled. What was read later of the time before
        counts too.
        """
        done, expired = self.handled_offsets(at_ns), self.expired()
        left: dict[Place, int] = self.behind_through(at_ns) if by_commits else {}
        committed = {partition: position for written_ns, partition, position in self.commits if written_ns <= at_ns}
        for partition, end in ends.items():
            first = expired[partition]
            uncommitted = max(0, end - max(first, committed.get(partition, 0))) if by_commits else 0
            unhandled = len(self._offsets(partition, first, end) - done[partition]) if by_handled else 0
            left[partition] = max(uncommitted, unhandled)
        return left

    def is_left(self, ends: Mapping[int, int]) -> bool:
        """Whether any record below `ends` is neither handled nor committed past, there or where it was handed on."""
        done, expired = self.handled_offsets(), self.expired()
        return self.lag_through() > 0 or any(
            self._offsets(partition, self._covered(partition, expired), end) - done[partition]
            for partition, end in ends.items()
        )

    def handled_offsets(self, at_ns: int = NEVER) -> Mapping[int, set[int]]:
        """Returns the offsets that had been handled by then, by partition."""
        known = self.without_effect if self.by_effects else self.handled_ns.keys()
        places = [place for place in known if self.handled_ns[place] <= at_ns]
        if self.by_effects:
            ids = (id_ for id_, effect_ns in self.effect_ns.items() if effect_ns <= at_ns and id_ in self.places)
            places += [self.places[id_] for id_ in ids]
        found: dict[int, set[int]] = defaultdict(set)
        for partition, offset in places:
            found[partition].add(offset)
        return found

    def _offsets(self, partition: int, first: int, end: int) -> set[int]:
        """Returns the offsets of records from `first` to below `end`."""
        if self.by_sends:
            return {offset for offset in self.acknowledged[partition] if first <= offset < end}
        return set(range(first, end))

    def handled_total(self) -> int:
        """Returns how many distinct records have been handled, by lines or by effects, whichever saw more.

        What was taken back is none of them, though there are readers that handle it.
        """
        handled: Mapping[int, set[int]] = self.handled
        effects = self.effects | {self.ids[place] for place in self.without_effect & self.ids.keys()}
        if self.by_sends:
            handled = {partition: offsets & self.acknowledged[partition] for partition, offsets in handled.items()}
            effects = effects & self.acknowledged_ids
        return len(effects) if self.by_effects else max(sum(map(len, handled.values())), len(effects))

    def _take(self, event: Event) -> None:
        if event.kind == "effect" and event.id is not None:
            self.effects.add(event.id)
            self.effect_ns[event.id] = min(written_ns(event), self.effect_ns.get(event.id, NEVER))
        if event.kind == "started" and event.member is not None:
            self.started_ns[event.member] = event.time_ns
        elif event.kind == "exited" and event.member is not None:
            self.started_ns.pop(event.member, None)
        if event.topic != self.topic or event.partition is None:
            self._take_elsewhere(event)
            return
        if event.kind == "send" and event.outcome == "ok":
            self._take_acknowledged(event.id, event.partition, event.offset)
        elif event.kind == "log_start" and event.offset is not None:
            self.log_starts.append((event.time_ns, event.partition, event.offset))
        elif event.kind == "committed" and event.committed_offset is not None:
            self.committed[event.partition] = event.committed_offset
            self.commits.append((written_ns(event), event.partition, event.committed_offset))
        elif event.kind == "processed" and event.offset is not None:
            place = event.partition, event.offset
            self.handled[event.partition].add(event.offset)
            self.handled_ns[place] = min(event.time_ns, self.handled_ns.get(place, NEVER))
            if self.by_effects and event.outcome in self.no_effect:
                self.without_effect.add(place)

    def _take_elsewhere(self, event: Event) -> None:
        if event.kind == "through":
            self.intermediate.add(str(event.topic))
        if event.topic is None or event.partition is None:
            return
        place = event.topic, event.partition
        if event.kind == "handed_on" and event.offset is not None:
            self.handed_on.append((event.time_ns, place, event.offset + 1))
        elif event.kind == "committed" and event.committed_offset is not None:
            self.commits_through.append((written_ns(event), place, event.committed_offset))

    def _take_acknowledged(self, name: str | None, partition: int, offset: int | None) -> None:
        if name is not None:
            self.acknowledged_ids.add(name)
        if offset is not None:
            self.acknowledged[partition].add(offset)
        if name is not None and offset is not None:
            self.ids[partition, offset] = name
            self.places[name] = partition, offset


STILL_S = 5.0  # at rest, and without a record anywhere: the load has come to its own end
LONG_S = 10.0


@dataclass
class FreshRecords:
    """Where the partitions ended when the group had just come to rest, and whether anything is being written at all."""

    base: Mapping[int, int] | None = None
    changes: int | None = None
    began_s: float = field(default_factory=time.monotonic)
    moved_s: float = field(default_factory=time.monotonic)
    _total: int = -1

    def look(self, ends: Mapping[int, int], changes: int | None) -> bool:
        """Returns whether every partition got enough; `changes`: how often the group has changed, None while it is not
        at rest."""
        if sum(ends.values()) != self._total or changes is None:
            self._total, self.moved_s = sum(ends.values()), time.monotonic()
        if changes is None or changes != self.changes or self.base is None:
            self.base, self.changes = (None if changes is None else dict(ends)), changes
            return False
        return all(end - self.base.get(partition, 0) >= FRESH_MIN for partition, end in ends.items())

    def waits_long(self) -> bool:
        """Tells whether the group has been waited for so long that the load may be held."""
        return time.monotonic() - self.began_s > LONG_S

    def given_up(self) -> str | None:
        """Returns why nothing more will come; None while something does."""
        return "the load has ended" if time.monotonic() - self.moved_s > STILL_S else None


@dataclass
class DrainWatch:
    """Since when a draining group has been as far behind as it is.

    Records that were committed past and not handled were skipped, for all that is known, once none has come for
    `stalled_s`: no bound of the judge's counts with them (`invariants/summaries.py`). None: positions cannot be seen.
    """

    settle_s: float
    stalled_s: float | None
    _behind: tuple[int, int] | None = None
    _since_s: float = 0.0

    def over(self, lag: int, unhandled: int, *, now_s: float) -> bool:
        """Tells whether all was committed for long enough, and all was handled, or nothing more will be."""
        if (lag, unhandled) != self._behind:
            self._behind, self._since_s = (lag, unhandled), now_s
        enough_s = self.stalled_s if unhandled else self.settle_s
        return not lag and enough_s is not None and now_s - self._since_s >= enough_s


SECOND_NS = 1_000_000_000
ADDING = "partitions-added"
SOURCES = ("run.jsonl", "nemesis.jsonl", "offsets.jsonl", "requests-b*.jsonl", "consumer-*.jsonl")
HEARTBEATS = ("HEARTBEAT", "CONSUMER_GROUP_HEARTBEAT")
LEFT_EPOCH = -1  # in a heartbeat of KIP-848: the member leaves for good
SEEN_MIN_NS = 3 * SECOND_NS


@dataclass
class GroupWatch:
    """What one group's members told the brokers, who is in it, and which faults hit it; fed from a trial's history."""

    history: Path
    group: str
    spec: ConsumerSpec
    phases: dict[str, int] = field(default_factory=dict)
    calibrated_ns: int | None = None
    changes: int = 0  # group records so far
    changed_ns: int = 0
    member_ids: frozenset[str] = frozenset()
    _sizes: list[tuple[int, int]] = field(default_factory=list)
    _windows: dict[int, dict[str, Any]] = field(default_factory=dict)
    _timeouts_ms: dict[str, int] = field(default_factory=dict)
    _protocols: set[str] = field(default_factory=set)
    _leaves: list[tuple[int, int]] = field(default_factory=list)
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
        self._followers = [Follower(self.history, pattern) for pattern in SOURCES]
        self._presence = PresenceCollector(self.group)

    def update(self) -> GroupWatch:
        """Reads what was appended since the last look."""
        for follower in self._followers:
            for event in follower.new_events():
                self._take(event)
        return self

    def timing(self, *, backlog: Backlog = NO_BACKLOG, movements: Movements | None = None) -> Timing:
        """Returns what the bounds of convergence follow from, for a drain that begins now or has begun."""
        timing = timing_of(
            self._settings(),
            declared=self._declared(),
            backlog=backlog,
            longest_handler_s=self._longest_ns / SECOND_NS,
            partitions_added=any(window["fault"] == ADDING for window in self._windows.values()),
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
        """Whether its members speak the classic protocol."""
        return "classic" in self._protocols

    def rests(self, *, now_ns: int) -> bool:
        """Tells whether the group has as many members as before the faults, and has noticed those that it lost."""
        if self.members_before is None:
            return True
        noticed = self.changed_ns > self.last_loss_ns() or now_ns > self.lost_until_ns()
        return noticed and len(self.member_ids) == self.members_before

    def _settings(self) -> Settings:
        kafka, spec = self.spec.kafka, self.spec
        return Settings(
            protocol=kafka.protocol,
            session_timeout_s=kafka.session_timeout_s,
            poll_interval_s=kafka.poll_interval_s,
            metadata_age_s=kafka.metadata_age_s,
            commit_interval_s=spec.progress.interval_s,
            converge_within_s=spec.claim.converge_within_s,
            request_timeout_s=kafka.request_timeout_s,
            handler_max_s=spec.evidence.handler_max_s,
            ready_within_s=spec.ready.within_s,
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
            self.phases[str(event.details["phase"])] = event.time_ns
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
            acts_as = {"acts_as": event.details.get("acts_as")}
            self._windows[number] = {"number": number, "member": event.member} | names | times | acts_as
        elif event.kind == "healed" and number in self._windows:
            self._windows[number]["healed_ns"] = event.time_ns

    def _take_group(self, kind: str, details: Mapping[str, Any], time_ns: int) -> None:
        tombstone = kind == "group_tombstone" and details.get("record_type") == 5
        if details.get("group") != self.group or (kind not in ("group", "member") and not tombstone):
            return
        self.changes, self.changed_ns = self.changes + 1, time_ns
        if kind == "group":
            members = details.get("members", ())
            self.member_ids = frozenset(member["member_id"] for member in members)
            self._protocols |= {"classic"} if members else set()
            for member in members:
                self._take_timeouts(member)
        elif tombstone:
            self.member_ids -= {str(details.get("member_id"))}
        else:
            self.member_ids |= {str(details.get("member_id"))}
            self._protocols.add("consumer")
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
            self._take_timeouts(about)
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

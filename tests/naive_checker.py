"""The naive checker: the second judge, slow and plain, that the vectorised one must agree with.

It imports nothing but the event, walks lists of events in the order of the definitions, and compares everything with
everything where that is the obvious way to say it. `judge(events, facts)` returns what it found, per anomaly.

Facts (all optional): session_timeout_s, poll_interval_s, commit_interval_s, converge_within_s, protocol (classic or
consumer), progress (kafka, …: where the committed position lives), sink (topic: only what is committed there is
done), delivery (the claim's), reset (the policy),
memory_max_bytes (the claim's).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from kafka_trial.history.event import Event

SECOND_NS = 1_000_000_000
TOLERANCE_NS = 500_000_000  # between sources
DECIDING = {
    *("by_operator", "in_flight_at_crash", "same_key", "recovered", "own", "restart_inside", "fell", "skipped_record"),
    *("class", "found_in", "over_limit", "repeats"),
}  # attributes that a claim looks at
LOG_TOLERANCE_NS = 50_000_000  # between request log and offsets log
FETCH_LOOKBACK_NS = 2 * SECOND_NS
FOREVER = float("inf")
OPERATOR = "operator"

Slice = tuple[str, int]
# Topic and partition (None: the whole group), place (an offset, a member …), attributes that decide.
Found = tuple[str | None, int | None, int | str, tuple[tuple[str, Any], ...]]

ANOMALIES = (
    "skipped",
    "unseen",
    "redelivered",
    "illegal-redelivery",
    "nonmonotonic-poll",
    "poll-skip",
    "reordered-key",
    "overlapping-handlers",
    "commit-regression",
    "zombie-commit",
    "commit-ahead",
    "commit-past-end",
    "commit-lost",
    "split-ownership",
    "work-after-revoke",
    "zombie-work",
    "stale-generation",
    "orphan-partition",
    "false-lag",
    "stuck-partition",
    "late-convergence",
    "lost-write",
    "overtaken",
    "corrupt",
    "misplaced",
    "phantom",
    "duplicate-effect",
    "uncommitted-progress",
    "starved-partition",
    "rebalance-storm",
    "crash-loop",
    "unbounded-close",
    "memory-over-limit",
    "oom-killed",
    "rogue-reader",
    "aborted-read",
    "offset-outside-transaction",
    "torn-transaction",
    "hanging-transaction",
)
NEED_CONTROL_READ = (
    *("skipped", "unseen", "commit-ahead", "false-lag", "stuck-partition", "late-convergence", "poll-skip"),
    *("lost-write", "overtaken", "corrupt", "misplaced", "uncommitted-progress", "starved-partition"),
)
NEED_SNAPSHOT = (
    *("unseen", "false-lag", "stuck-partition", "late-convergence", "lost-write", "uncommitted-progress"),
    *("starved-partition", "rebalance-storm", "memory-over-limit", "commit-lost", "orphan-partition", "rogue-reader"),
    "hanging-transaction",
)
NOT_OF_TRANSACTIONS = ("stale-generation",)
NEED_TRANSACTIONS = ("offset-outside-transaction", "torn-transaction", "hanging-transaction")
NEED_SENDS = ("lost-write", "overtaken", "corrupt", "phantom")
NEED_COMMITS = (
    "skipped",
    "illegal-redelivery",
    "commit-regression",
    "zombie-commit",
    "commit-ahead",
    "commit-past-end",
    "commit-lost",
    "stale-generation",
    "false-lag",
    "uncommitted-progress",
    "rogue-reader",
)


@dataclass
class Findings:
    """What was found: instances, how many stayed undecided, and what could not be judged, per anomaly."""

    anomalies: dict[str, list[Found]] = field(default_factory=lambda: {name: [] for name in ANOMALIES})
    undecided: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ANOMALIES, 0))
    not_judged: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Possession:
    """One unbroken ownership of a partition by one member incarnation, by its own word."""

    member: str
    source: str
    number: int
    opened: Event
    closed: Event | None

    def holds(self, event: Event) -> bool:
        """Tells whether an event of the same file lies inside."""
        ended = self.closed is not None and event.seq > self.closed.seq
        return event.source == self.source and event.seq > self.opened.seq and not ended

    def open_at(self, time_ns: float) -> bool:
        return self.opened.time_ns <= time_ns <= (self.closed.time_ns if self.closed else FOREVER)


@dataclass(frozen=True)
class Work:
    """A delivered or processed event with the possession it happened in."""

    event: Event
    offset: int
    possession: Possession | None


@dataclass(frozen=True)
class Handler:
    """A delivery and the completion that ended it."""

    begun: Work
    ended: Work | None


@dataclass(frozen=True)
class Commit:
    """One durable commit, or a tombstone (value None), at its place in the offsets log."""

    place: int
    value: int | None
    effect_ns: float
    event: Event
    committer: str | None  # a member, the operator, or unknown


@dataclass(frozen=True)
class Owning:
    """Who owns the partition from one membership record on."""

    place: int
    time_ns: float
    owners: frozenset[str]
    assigned: frozenset[str]
    names_it: bool  # the record itself speaks of this partition


@dataclass(frozen=True)
class Loss:
    """A loss of ownership that the member was not told of at once."""

    time_ns: float
    told_ns: float
    told: Event | None
    excused_until_ns: float


class Trial:
    """A history and its facts, with the lookups that several slices share."""

    def __init__(self, events: Iterable[Event], facts: Mapping[str, Any]) -> None:
        self.events = sorted(events, key=lambda event: (event.source, event.seq))
        self.facts = facts
        self.stood_still = True  # False: as if all had been heard when it was said

    def of_kind(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event.kind in kinds]

    @cached_property
    def topic_names(self) -> dict[str, str]:
        return {e.topic_id: e.topic for e in self.of_kind("topic") if e.topic_id and e.topic}

    @cached_property
    def clocks(self) -> list[Event]:
        return [e for e in self.of_kind("clock") if e.source == "run"]

    @cached_property
    def group(self) -> str | None:
        named = [e.details["group"] for e in self.of_kind("group_named")]
        return named[-1] if named else None

    @cached_property
    def offsets_log(self) -> list[Event]:
        ours = [e for e in self.events if e.source == "offsets" and self.group in (None, e.details.get("group"))]
        return sorted(ours, key=lambda e: e.details.get("log_offset", -1))

    @cached_property
    def requests(self) -> list[Event]:
        return [e for e in self.of_kind("request") if self.group in (None, e.details.get("group", self.group))]

    @cached_property
    def member_of_id(self) -> dict[str, str]:
        """Member id → member, by the lane of any request that carried the id."""
        pairs = [(e.details.get("member_id"), self.lane_member(e)) for e in self.requests]
        return {member_id: member for member_id, member in pairs if member_id and member}

    @cached_property
    def snapshot_ns(self) -> int | None:
        return self.phase_ns("snapshot")

    @property
    def drain_begins_ns(self) -> int | None:
        drain_ns = self.phase_ns("drain")
        return self.phase_ns("heal") if drain_ns is None else drain_ns

    @cached_property
    def quiet_until_ns(self) -> float:
        """When the faults began: their phase, the first of them, or the drain."""
        begins = [self.phase_ns("faults"), self.drain_begins_ns, *(e.time_ns for e in self.of_kind("injected"))]
        return min((at for at in begins if at is not None), default=FOREVER)

    def told_ms(self, name: str) -> list[int]:
        """What members asked for when they joined, and what group records say of them."""
        joins = [e.details for e in self.requests if e.details["api"] == "JOIN_GROUP"]
        joins = [one for one in joins if isinstance(one.get("session_timeout_ms"), int)]
        listed = [m for e in self.offsets_log if e.kind == "group" for m in e.details.get("members") or []]
        listed = [one for one in listed if isinstance(one.get("session_timeout_ms"), int)]
        members = [e.details for e in self.offsets_log if e.kind == "member" if e.details.get("rebalance_timeout_ms")]
        return [one[name] for one in (*joins, *listed, *members) if one.get(name)]

    @cached_property
    def session_s(self) -> float:
        """The session that the brokers were told, else the declared one."""
        told = self.told_ms("session_timeout_ms")
        if any(e.details["api"] == "CONSUMER_GROUP_HEARTBEAT" for e in self.requests):
            named = [e.details.get("consumer_session_timeout_ms") for e in self.of_kind("group_named")]
            told = told + [one for one in named if one]
        return max(told) / 1000 if told else float(self.facts.get("session_timeout_s", 0))

    @cached_property
    def heartbeat_s(self) -> float:
        """The longest gap between two heartbeats of one member in the steady phase; a third of a session at most."""
        apis = ("HEARTBEAT", "CONSUMER_GROUP_HEARTBEAT")
        gaps = self._gaps([e for e in self.requests if e.details["api"] in apis], least_ns=1)
        return min([self.session_s / 3, *gaps])

    @cached_property
    def rebalance_s(self) -> float:
        """What a rebalance may wait for a member: no longer than it went round before the faults, and a heartbeat."""
        told = self.told_ms("rebalance_timeout_ms")
        declared_s = float(self.facts.get("poll_interval_s", 0))
        allowed_s = max(told) / 1000 if told else declared_s
        rounds = [e for e in self.of_kind("delivered") if e.time_ns < self.phases_end_ns]
        anybody = rounds or self.of_kind("delivered")
        fetches = [e for e in self.requests if e.details["api"] == "FETCH"]
        gaps = self._gaps(rounds if anybody else fetches, least_ns=3 * SECOND_NS)
        return min(allowed_s, declared_s) if not gaps else min(allowed_s, max(gaps) + self.heartbeat_s)

    @property
    def phases_end_ns(self) -> float:
        begins = [self.phase_ns("faults"), self.drain_begins_ns]
        return next((at for at in begins if at is not None), FOREVER)

    def _gaps(self, events: Iterable[Event], *, least_ns: int) -> list[float]:
        """The longest gap of each member that was seen for so long, in seconds."""
        begin_ns = self.phase_ns("steady") or 0
        by_member: dict[Any, list[int]] = {}
        for e in events:
            lane = e.details.get("lane")
            early = e.time_ns < self.phases_end_ns
            if e.kind == "delivered" or (e.kind == "request" and lane is not None and e.time_ns >= begin_ns and early):
                by_member.setdefault((e.source, lane), []).append(e.time_ns)
        seen = [times for times in by_member.values() if times[-1] - times[0] >= least_ns]
        return [max(later - before for before, later in pairwise(times)) / SECOND_NS for times in seen]

    @cached_property
    def lost_sessions(self) -> dict[int, tuple[float, int]]:
        """Fault number → when the session that it cost, and a rebalance after it, are over; how many were in series."""
        if self._protocol == "none":
            return {}
        found: dict[int, tuple[float, int]] = {}
        last: tuple[float, int] | None = None
        group: list[tuple[int, float, int]] = []
        costly = [(e.time_ns, self.healed_ns(e), int(e.details["fault_no"])) for e in self._costly_faults()]
        for fault in [*sorted(costly, key=lambda one: (one[0], one[2])), None]:
            if group and (fault is None or all(healed_ns < fault[0] for _, healed_ns, _ in group)):
                begin_ns, series = float(max(at for at, _, _ in group)), 1
                if last is not None and last[0] > begin_ns and self._protocol == "classic":
                    begin_ns, series = last[0], last[1] + 1
                last = begin_ns + int((self.session_s + self.rebalance_s) * SECOND_NS), series
                found |= {number: last for _, _, number in group}
                group = []
            if fault is not None:
                group.append(fault)
        return found

    @cached_property
    def _protocol(self) -> str:
        joined = any(isinstance(e.details.get("session_timeout_ms"), int) for e in self.requests)
        if joined or any(
            m.get("session_timeout_ms") for e in self.of_kind("group") for m in e.details.get("members", [])
        ):
            return "classic"
        if any(e.details["api"] == "CONSUMER_GROUP_HEARTBEAT" for e in self.requests):
            return "consumer"
        return str(self.facts.get("protocol", "classic"))

    def healed_ns(self, fault: Event) -> float:
        number = fault.details.get("fault_no")
        healed = [e.time_ns for e in self.of_kind("healed") if e.details.get("fault_no") == number]
        return healed[-1] if healed else FOREVER

    def _costly_faults(self) -> Iterator[Event]:
        for e in self.of_kind("injected"):
            name, lasted_ns = e.details["fault"], self.healed_ns(e) - e.time_ns
            cut = name in ("pause", "stall", "answers-held", "requests-held", "half-open", "close", "refused")
            asked = name in ("terminate", "restart", "leave")
            long = lasted_ns >= (self.session_s - self.heartbeat_s) * SECOND_NS
            if name in ("kill", "crash-point") or (asked and not self._left(e)) or (cut and long):
                yield e

    def _left(self, fault: Event) -> bool:
        for e in self.requests:
            api, leaves = e.details["api"], e.details.get("epoch") == -1
            said = (api == "LEAVE_GROUP" and not e.details.get("error")) or (
                api == "CONSUMER_GROUP_HEARTBEAT" and leaves
            )
            inside = fault.time_ns - TOLERANCE_NS <= e.time_ns <= self.healed_ns(fault) + SECOND_NS
            if said and inside and fault.member is not None and self.lane_member(e) == fault.member:
                return True
        return False

    def lived_down_ns(self, fault: Event, window_ns: float) -> float:
        """Until when a fault explains what the group does."""
        lost_ns = self.lost_sessions.get(int(fault.details.get("fault_no", -1)), (0.0, 0))[0]
        return max(self.healed_ns(fault) + window_ns, lost_ns)

    @property
    def progress_in_kafka(self) -> bool:
        """By the offsets log: committed by itself, or in transactions."""
        return self.facts.get("progress", "kafka") in ("kafka", "transaction")

    @property
    def progress_in_transactions(self) -> bool:
        return bool(self.facts.get("progress") == "transaction")

    @property
    def has_sink(self) -> bool:
        """Somebody else than the members saw what was done: the consumer declares a sink, or it was seen."""
        declared = self.facts.get("sink") not in (None, "none")
        return declared or any(e.outcome == "ok" for e in self.of_kind("effect"))

    @cached_property
    def member_of_lane(self) -> dict[int, str]:
        return {e.details["lane"]: str(e.member) for e in self.of_kind("started") if "lane" in e.details}

    # --- record ids ------------------------------------------------------------------------------------------

    @cached_property
    def topic(self) -> str:
        return next((e.topic for e in self.of_kind("topic_named") if e.topic), "")

    @cached_property
    def invoked(self) -> dict[str, Event]:
        """Id → the first send of it that was invoked."""
        sends = [e for e in self.of_kind("send") if e.outcome == "invoke" and e.id is not None]
        return {str(e.id): e for e in reversed(sends)}

    def sent_checksum(self, record_id: str | None) -> int | None:
        send = self.invoked.get(record_id or "")
        return None if send is None else send.details.get("checksum")

    @cached_property
    def _reads(self) -> dict[str | None, list[Event]]:
        reads: dict[str | None, list[Event]] = {}
        for record in self.of_kind("record"):
            reads.setdefault(record.id, []).append(record)
        return reads

    def reads_of(self, record_id: str | None) -> list[Event]:
        """The records of the control read, of any partition, that have the id."""
        return [] if record_id is None else self._reads.get(record_id, [])

    @cached_property
    def compacted(self) -> bool:
        return any("compact" in e.details.get("cleanup_policy", "") for e in self.of_kind("topic"))

    def home(self, record_id: str | None) -> tuple[Slice | None, int]:
        """The partition of an id, and its offset (-1: nobody knows): by the log, taken back or not, else by its
        acknowledgement."""
        taken_back = [e for e in self.of_kind("record_aborted") if e.id == record_id and record_id is not None]
        acks = [e for e in self.of_kind("send") if e.outcome == "ok" and e.id == record_id]
        for event in self.reads_of(record_id) + taken_back + acks:
            if event.topic is not None and event.partition is not None:
                return (event.topic, event.partition), max(-1, -1 if event.offset is None else event.offset)
        return None, -1

    @cached_property
    def effects(self) -> list[Event]:
        """The effects that the sink acknowledged."""
        return [e for e in self.of_kind("effect") if e.outcome == "ok" and e.id is not None]

    @cached_property
    def effects_by_home(self) -> dict[Slice | None, dict[str, list[Event]]]:
        homes: dict[Slice | None, dict[str, list[Event]]] = {}
        for effect in sorted(self.effects, key=lambda event: (event.time_ns, event.source, event.seq)):
            homes.setdefault(self.home(effect.id)[0], {}).setdefault(str(effect.id), []).append(effect)
        return homes

    def phase_ns(self, phase: str) -> int | None:
        times = [e.time_ns for e in self.of_kind("phase") if e.details.get("phase") == phase]
        return times[0] if times else None

    def lane_member(self, request: Event) -> str | None:
        lane = request.details.get("lane")
        return None if lane is None else self.member_of_lane.get(lane)

    def mono_ns(self, wall_ns: int | None, otherwise_ns: int) -> int:
        """Wall time → monotonic time by the nearest clock pair; `otherwise_ns` when there is nothing to go by."""
        if wall_ns is None or not self.clocks:
            return otherwise_ns
        pair = min(self.clocks, key=lambda e: (abs(e.details["wall_ns"] - wall_ns), e.time_ns))
        return int(pair.details.get("read_ns", pair.time_ns) + wall_ns - pair.details["wall_ns"])

    def earliest_ns(self, heard_ns: float) -> float:
        """When something may have been said at the earliest: whoever stood still heard it late, and what came soon
        after may have waited as well."""
        for late in self.of_kind("scheduling_delay") if self.stood_still else ():
            begin_ns = late.time_ns - late.details["delay_ns"] - late.details.get("every_ns", SECOND_NS)
            if late.details["delay_ns"] > TOLERANCE_NS // 2 and begin_ns < heard_ns <= late.time_ns + TOLERANCE_NS:
                return self.earliest_ns(begin_ns)
        return heard_ns

    def topic_of(self, entry: Mapping[str, Any]) -> str | None:
        return entry.get("topic") or self.topic_names.get(entry.get("topic_id", ""))

    def entries(self, event: Event, tp: Slice, name: str = "entries") -> list[Mapping[str, Any]]:
        listed = event.details.get(name) or []
        return [entry for entry in listed if (self.topic_of(entry), entry["partition"]) == tp]

    def slices(self) -> list[Slice]:
        own = {(e.topic, e.partition) for e in self.events if e.topic is not None and e.partition is not None}
        listed = {
            (self.topic_of(entry), entry["partition"])
            for e in self.of_kind("assigned", "revoked", "lost")
            for entry in e.details.get("entries", [])
        }
        return sorted((topic, partition) for topic, partition in own | listed if topic is not None)


class Partition:
    """Everything about one partition in the trial's group: the indexes of the definitions."""

    def __init__(self, trial: Trial, tp: Slice) -> None:
        self.trial, self.tp = trial, tp

    def own(self, *kinds: str) -> list[Event]:
        return [e for e in self.trial.of_kind(*kinds) if (e.topic, e.partition) == self.tp]

    # --- records ---------------------------------------------------------------------------------------------

    @cached_property
    def records(self) -> dict[int, Event]:
        return {e.offset: e for e in self.own("record") if e.offset is not None}

    @cached_property
    def log_start(self) -> int:
        return next((e.offset for e in self.own("log_start") if e.offset is not None), 0)

    @cached_property
    def end(self) -> int:
        return max(self.records) + 1 if self.records else self.log_start

    @cached_property
    def control_read_complete(self) -> bool:
        reads = [e for e in self.trial.of_kind("control_read") if e.topic == self.tp[0]]
        return bool(reads) and reads[-1].details.get("state") == "complete"

    def key(self, offset: int) -> str | None:
        record = self.records.get(offset)
        return record.key if record else None

    @cached_property
    def last_log_start(self) -> int:
        return max((e.offset for e in self.own("log_start") if e.offset is not None), default=0)

    @cached_property
    def not_held(self) -> list[Event]:
        """The acknowledged sends that the control read does not hold, but for what transactions took back."""
        acks = [e for e in self.own("send") if e.outcome == "ok" and e.id is not None]
        taken_back = {e.id for e in self.trial.of_kind("record_aborted")}
        return [ack for ack in acks if not self.trial.reads_of(ack.id) and ack.id not in taken_back]

    @cached_property
    def effects(self) -> dict[str, list[Event]]:
        """Record id → its effects, of the records whose home is here."""
        return self.trial.effects_by_home.get(self.tp, {})

    # --- the members' own word -------------------------------------------------------------------------------

    @cached_property
    def possessions(self) -> list[Possession]:
        files = sorted({e.source for e in self.trial.of_kind("assigned")})
        return [possession for source in files for possession in self._possessions_of(source)]

    def _possessions_of(self, source: str) -> Iterator[Possession]:
        opened: Event | None = None
        number = 0
        for event in [e for e in self.trial.events if e.source == source]:
            listed = event.kind in ("assigned", "revoked", "lost") and self.trial.entries(event, self.tp)
            if opened is not None and (listed or event.kind in ("stopped", "exited")):
                yield Possession(str(opened.member), source, number, opened, event)
                opened, number = None, number + 1
            if listed and event.kind == "assigned":
                opened = event
        if opened is not None:
            yield Possession(str(opened.member), source, number, opened, None)

    def possession_at(self, event: Event) -> Possession | None:
        return next((possession for possession in self.possessions if possession.holds(event)), None)

    def _work(self, kind: str) -> list[Work]:
        return [Work(e, e.offset, self.possession_at(e)) for e in self.own(kind) if e.offset is not None]

    @cached_property
    def deliveries(self) -> list[Work]:
        return self._work("delivered")

    @cached_property
    def completions(self) -> list[Work]:
        return self._work("processed")

    @cached_property
    def handlers(self) -> list[Handler]:
        return [Handler(delivery, self._end_of(delivery)) for delivery in self.deliveries]

    def _end_of(self, delivery: Work) -> Work | None:
        """The next completion, unless the same record was delivered again to this file in between."""
        alike = [
            work
            for work in self.deliveries + self.completions
            if work.event.source == delivery.event.source
            and work.offset == delivery.offset
            and work.event.seq > delivery.event.seq
        ]
        following = min(alike, key=lambda work: work.event.seq, default=None)
        return following if following is not None and following.event.kind == "processed" else None

    @cached_property
    def first_handled(self) -> dict[int, int]:
        """Offset → the earliest time it was handled, by a completion or a sink effect."""
        times: dict[int, list[int]] = {}
        for work in self.completions:
            if self.trial.facts.get("sink") != "topic" or work.event.outcome != "done":
                times.setdefault(work.offset, []).append(work.event.time_ns)
        offset_of_id = {e.id: offset for offset, e in self.records.items() if e.id is not None}
        for effect in self.trial.of_kind("effect"):
            if effect.outcome == "ok" and effect.id in offset_of_id:
                times.setdefault(offset_of_id[effect.id], []).append(effect.time_ns)
        return {offset: min(seen) for offset, seen in times.items()}

    # --- the brokers' word -----------------------------------------------------------------------------------

    @cached_property
    def commits(self) -> list[Commit]:
        """What took effect, in log order: commits and tombstones.

        Played through as a coordinator does: a marker gives effect to the last commit of its transaction, unless the
        partition has one of a later place by then.
        """
        ours = [e for e in self.trial.offsets_log if (e.topic, e.partition) == self.tp]
        aborted = {e.details["log_offset"] for e in ours if e.kind == "commit_aborted"}
        markers = [e for e in self.trial.events if e.source == "offsets" and e.kind == "transaction_marker"]
        pending: dict[int, Event] = {}
        result: list[Commit] = []
        for event in sorted(ours + markers, key=lambda e: (e.details["log_offset"], e.kind == "transaction_marker")):
            place, producer = event.details["log_offset"], event.details.get("producer_id")
            if event.kind == "committed" and producer is not None:
                pending[producer] = event
            elif event.kind in ("committed", "commit_tombstone"):
                result.append(self._commit(event, event))
            elif event.kind == "transaction_marker" and (ended := pending.pop(producer or 0, None)) is not None:
                place = ended.details["log_offset"]
                taken = event.details["state"] == "commit" and place not in aborted
                if taken and not (result and result[-1].place > place):
                    result.append(self._commit(ended, event))
        return result

    def _commit(self, event: Event, end: Event) -> Commit:
        """A commit, or a tombstone, that `end` gave effect to: itself, or the marker of its transaction."""
        wall_ms = event.details.get("commit_time_ms")
        wall_ns = None if wall_ms is None else wall_ms * 1_000_000
        value = event.committed_offset if event.kind == "committed" else None
        end_ns = wall_ns if end is event else end.source_wall_ns
        effect_ns = self.trial.mono_ns(end_ns, end.time_ns)
        committer = None if value is None or wall_ns is None else self._committer(event, value, wall_ns)
        return Commit(event.details["log_offset"], value, effect_ns, event, committer)

    def _committer(self, commit: Event, value: int, wall_ns: int) -> str | None:
        lines = [
            request
            for request, entry in self._answers(
                "TXNOFFSETCOMMIT" if "producer_id" in commit.details else "OFFSETCOMMIT"
            )
            if entry.get("committed_offset") == value and _covers(request, wall_ns)
        ]
        members = {member for line in lines if (member := self.trial.lane_member(line)) is not None}
        if len(members) == 1:
            return members.pop()
        return OPERATOR if lines and not members else None

    def _answers(self, *apis: str) -> list[tuple[Event, Mapping[str, Any]]]:
        """Every entry on this partition that a broker answered without an error."""
        return [
            (request, entry)
            for request in self.trial.requests
            if request.details["api"].replace("_", "").upper() in apis
            for entry in self.trial.entries(request, self.tp)
            if not entry.get("error", request.details.get("error", 0))
        ]

    @cached_property
    def offset_fetches(self) -> list[tuple[str, int, int]]:
        """(member, time, answered position) of every OffsetFetch in a member's lane."""
        return [
            (member, self.trial.mono_ns(request.source_wall_ns, request.time_ns), entry["committed_offset"])
            for request, entry in self._answers("OFFSETFETCH")
            if (member := self.trial.lane_member(request)) is not None
        ]

    @cached_property
    def final_committed(self) -> int | None:
        return self.commits[-1].value if self.commits else None

    def committed_at(self, time_ns: float) -> int | None:
        standing = [commit.value for commit in self.commits if commit.effect_ns <= time_ns]
        return standing[-1] if standing else None

    @cached_property
    def ownership(self) -> list[Owning]:
        """Who owns the partition, after each membership record, in log order."""
        owners: frozenset[str] = frozenset()
        held: dict[str, tuple[bool, bool]] = {}  # KIP-848: member id → (assigned, pending revocation)
        result = []
        for event in self.trial.offsets_log:
            if event.kind == "group":
                assigned = named = frozenset(entry["member_id"] for entry in self.trial.entries(event, self.tp))
                names_it = bool(named)
            elif _changes_one_member(event):
                names_it = self._take_up(event, held)
                assigned = frozenset(member_id for member_id, (has, _) in held.items() if has)
                named = frozenset(member_id for member_id, (has, gives) in held.items() if has or gives)
            else:
                continue
            owners = named or owners
            time_ns = self.trial.mono_ns(event.source_wall_ns, event.time_ns)
            result.append(Owning(event.details["log_offset"], time_ns, owners, assigned, names_it))
        return result

    def _take_up(self, event: Event, held: dict[str, tuple[bool, bool]]) -> bool:
        member_id = event.details["member_id"]
        assigned = bool(event.kind == "member_assignment" and self.trial.entries(event, self.tp))
        pending = bool(event.kind == "member_assignment" and self.trial.entries(event, self.tp, "pending"))
        held[member_id] = (assigned, pending)
        return assigned or pending

    def owners_at(self, place: int) -> frozenset[str] | None:
        """The owning members at a place of the log; None while unknown."""
        before = [owning.owners for owning in self.ownership if owning.place < place]
        return self._members(before[-1]) if before else None

    def _members(self, member_ids: frozenset[str]) -> frozenset[str] | None:
        members = {self.trial.member_of_id.get(member_id) for member_id in member_ids}
        return None if not members or None in members else frozenset(str(member) for member in members)

    # --- both words together ---------------------------------------------------------------------------------

    def floor(self, possession: Possession) -> int | None:
        """Where the possession had to start; None when nobody knows."""
        first = min((w.event.time_ns for w in self.deliveries if w.possession == possession), default=FOREVER)
        earliest_ns = self.trial.earliest_ns(possession.opened.time_ns)
        earliest = earliest_ns - LOG_TOLERANCE_NS - self._gap_ns(possession)
        answers = [
            (time_ns, position)
            for member, time_ns, position in self.offset_fetches
            if member == possession.member and earliest <= time_ns <= first + LOG_TOLERANCE_NS
        ]
        if answers:
            return self._start_of(max(answers, key=lambda answer: answer[0])[1])
        opened_ns = possession.opened.time_ns
        begin_ns, end_ns = earliest_ns - TOLERANCE_NS, opened_ns + TOLERANCE_NS
        sure = [commit.value for commit in self.commits if commit.effect_ns < begin_ns]
        near = [commit.value for commit in self.commits if begin_ns <= commit.effect_ns <= end_ns]
        possible = [self._start_of(value) for value in sure[-1:] or [None]] + [self._start_of(v) for v in near]
        return None if None in possible else min(p for p in possible if p is not None)

    def _gap_ns(self, possession: Possession) -> int:
        earlier = [
            other.closed.time_ns
            for other in self.possessions
            if other.source == possession.source and other.closed and other.number < possession.number
        ]
        return min(possession.opened.time_ns - max(earlier), FETCH_LOOKBACK_NS) if earlier else FETCH_LOOKBACK_NS

    def _start_of(self, position: int | None) -> int | None:
        if position is not None and position >= 0:
            return position
        return self.log_start if self.trial.facts.get("reset", "earliest") == "earliest" else None

    def loss(self, possession: Possession) -> Loss | None:
        """The first time the log gave the partition to others while the member believed it had it."""
        taken = [
            owning.time_ns
            for owning in self.ownership
            if owning.names_it
            and possession.open_at(owning.time_ns)
            and possession.member not in (self._members(owning.owners) or {possession.member})
        ]
        if not taken:
            return None
        lost_ns = taken[0]
        told = self._told(possession, lost_ns)
        told_ns = told.time_ns if told else FOREVER
        in_hand = [h.ended.event.time_ns for h in self.in_hand(told) if h.ended] if told else []
        return Loss(lost_ns, told_ns, told, max([told_ns, *in_hand]))

    def _told(self, possession: Possession, lost_ns: float) -> Event | None:
        refused = [
            event
            for event in self.trial.of_kind("commit")
            if event.outcome == "fail"
            and possession.holds(event)
            and event.time_ns > lost_ns
            and self.trial.entries(event, self.tp)
        ]
        return min(refused + ([possession.closed] if possession.closed else []), key=lambda e: e.seq, default=None)

    def in_hand(self, told: Event) -> list[Handler]:
        """The handlers of told's file that run across it."""
        return [
            handler
            for handler in self.handlers
            if handler.begun.event.source == told.source
            and handler.begun.event.seq < told.seq
            and (handler.ended is None or handler.ended.event.seq > told.seq)
        ]

    def excused(self, possession: Possession | None, begin_ns: float, end_ns: float) -> bool:
        """Tells whether a stretch of time touches the zombie window of the possession."""
        loss = self.loss(possession) if possession else None
        return loss is not None and begin_ns <= loss.excused_until_ns and end_ns >= loss.time_ns - TOLERANCE_NS

    def handling_possession(self, work: Work) -> Possession | None:
        """The possession a completion belongs to: where its handler began, else where it lies."""
        begun = [handler.begun.possession for handler in self.handlers if handler.ended == work]
        return begun[0] if begun and begun[0] else work.possession

    def found(self, place: int | None, **attributes: Any) -> Found:
        return (*self.tp, -1 if place is None else place, tuple(sorted(attributes.items())))


def _covers(request: Event, wall_ns: int) -> bool:
    line_ns = request.source_wall_ns or 0
    duration_ns = int(request.details.get("duration_ms", 0) * 1_000_000)
    return line_ns - duration_ns - LOG_TOLERANCE_NS <= wall_ns <= line_ns + LOG_TOLERANCE_NS


def _changes_one_member(event: Event) -> bool:
    return event.kind == "member_assignment" or (
        event.kind == "group_tombstone" and event.details.get("record_type") == 8
    )


def judge(events: Iterable[Event], facts: Mapping[str, Any]) -> Findings:
    """Returns every anomaly of the history, partition by partition, sorted; then what belongs to no partition."""
    trial, findings = Trial(events, facts), Findings()
    for effects in trial.effects_by_home.get(None, {}).values():
        if trial.invoked:
            _take(findings, "phantom", (f for e in effects for f in _phantom(trial, e, (trial.topic, None, -1))))
        _take(findings, "duplicate-effect", ((trial.topic, None, -1, ()) for _ in effects[1:]))
    for tp in trial.slices():
        partition = Partition(trial, tp)
        for name in CHECKS:
            if _lacks_evidence(partition, name):
                findings.not_judged.add(name)
            else:
                found = list(CHECKS[name](partition))
                _take(findings, name, found)
                _take(findings, name, _only_if_heard_in_time(trial, tp, name, found))
    for name, check in GROUP_CHECKS.items():
        blind = name in NEED_SNAPSHOT and trial.snapshot_ns is None
        if blind or (name in NEED_TRANSACTIONS and not trial.progress_in_transactions):
            findings.not_judged.add(name)
        else:
            _take(findings, name, check(trial))
    for instances in findings.anomalies.values():
        instances.sort(key=repr)
    return findings


def _only_if_heard_in_time(trial: Trial, tp: Slice, name: str, found: list[Found | None]) -> list[None]:
    """One undecided case for each finding that there would be besides, had the harness never stood still."""
    if not any(late.details["delay_ns"] > TOLERANCE_NS // 2 for late in trial.of_kind("scheduling_delay")):
        return []
    in_time = Trial(trial.events, trial.facts)
    in_time.stood_still = False
    besides = _sorts(CHECKS[name](Partition(in_time, tp))) - _sorts(found)
    return [None] * besides.total()


def _sorts(found: Iterable[Found | None]) -> Counter[tuple[tuple[str, Any], ...]]:
    return Counter(tuple(pair for pair in one[3] if pair[0] in DECIDING) for one in found if one is not None)


def _lacks_evidence(p: Partition, name: str) -> bool:
    return (
        (name in NEED_CONTROL_READ and not p.control_read_complete)
        or (name in NEED_SNAPSHOT and p.trial.snapshot_ns is None)
        or (name in NEED_SENDS and not p.trial.invoked)
        or (name in NEED_COMMITS and not p.trial.progress_in_kafka)
        or (name in NOT_OF_TRANSACTIONS and p.trial.progress_in_transactions)
        or (name in NEED_TRANSACTIONS and not p.trial.progress_in_transactions)
    )


def _take(findings: Findings, name: str, found: Iterable[Found | None]) -> None:
    """None stands for one case that stayed undecided."""
    for instance in found:
        if instance is None:
            findings.undecided[name] += 1
        else:
            findings.anomalies[name].append(instance)


# --- delivery --------------------------------------------------------------------------------------------------


def skipped(p: Partition) -> Iterator[Found | None]:
    """Committed past, never handled."""
    for offset in p.records:
        if p.final_committed is None or offset >= p.final_committed or offset in p.first_handled:
            continue
        covering = _first_covering(p, offset)
        if covering is not None and _may_be_a_last_act(p, covering):
            yield None
        else:
            yield p.found(offset, in_flight_at_crash=covering is not None and _in_flight_at_crash(p, covering))


def _first_covering(p: Partition, offset: int) -> Commit | None:
    return next((commit for commit in p.commits if commit.value is not None and commit.value > offset), None)


def _may_be_a_last_act(p: Partition, commit: Commit) -> bool:
    """A member killed with -9 never reports its last act: after its last line, nobody knows what it handled."""
    if commit.committer == OPERATOR or p.trial.has_sink:
        return False
    if commit.committer is not None:
        source = _incarnation(p, commit.committer, commit.effect_ns)
        return source is not None and _killed_after_its_last_line(p, source, commit.effect_ns)
    sources = {event.source for event in p.trial.of_kind("exited")}
    return any(_killed_after_its_last_line(p, source, commit.effect_ns) for source in sources)


def _incarnation(p: Partition, member: str, time_ns: float) -> str | None:
    """The file of the member's incarnation that lived at that time."""
    started = [e for e in p.trial.of_kind("started") if e.member == member and e.time_ns <= time_ns]
    return max(started, key=lambda e: e.time_ns).source if started else None


def _killed_after_its_last_line(p: Partition, source: str, effect_ns: float) -> bool:
    mine = [event for event in p.trial.events if event.source == source]
    exits = [e for e in mine if e.kind == "exited" and e.details.get("signal") == 9]
    lines = [e.time_ns for e in mine if e.kind in ("delivered", "processed", "started")]
    return bool(exits) and max(lines) < effect_ns <= exits[-1].time_ns + TOLERANCE_NS


def _in_flight_at_crash(p: Partition, commit: Commit) -> bool:
    """The covering commit was refused in the end, or the last that its incarnation made here before it crashed."""
    if _told_by_a_member(p, commit, "fail"):
        return True
    if commit.committer in (None, OPERATOR):
        return False
    source = _incarnation(p, str(commit.committer), commit.effect_ns)
    later = [
        other
        for other in p.commits
        if other.place > commit.place
        and other.committer == commit.committer
        and _incarnation(p, str(other.committer), other.effect_ns) == source
    ]
    return source is not None and not later and _crashed(p, source)


def _crashed(p: Partition, source: str) -> bool:
    exits = [e.details for e in p.trial.of_kind("exited") if e.source == source]
    return any(details.get("signal") == 9 or details.get("code") not in (None, 0) for details in exits)


def unseen(p: Partition) -> Iterator[Found | None]:
    """Not committed past and never handled by the snapshot, though there was time: None where there was not."""
    committed = p.final_committed if p.trial.progress_in_kafka else None
    for offset in _unhandled_at_snapshot(p):
        if committed is None or offset >= committed:
            yield None if _had_no_time(p) else p.found(offset)


def _unhandled_at_snapshot(p: Partition) -> list[int]:
    return [o for o in p.records if p.first_handled.get(o, FOREVER) > (p.trial.snapshot_ns or 0)]


def redelivered(p: Partition) -> Iterator[Found]:
    """Delivered again in another possession, at or above where that one had to start."""
    for delivery in _repeated(p):
        floor = p.floor(delivery.possession) if delivery.possession else None
        if not p.trial.progress_in_kafka or (floor is not None and delivery.offset >= floor):
            yield p.found(delivery.offset)


def illegal_redelivery(p: Partition) -> Iterator[Found | None]:
    """Delivered again in another possession, below where that one had to start."""
    for delivery in _repeated(p):
        floor = p.floor(delivery.possession) if delivery.possession else None
        if floor is None:
            yield None
        elif delivery.offset < floor:
            yield p.found(delivery.offset)


def _repeated(p: Partition) -> Iterator[Work]:
    for delivery in p.deliveries:
        alike = [other for other in p.deliveries if other.offset == delivery.offset]
        elsewhere = [o for o in alike if o.possession is not None and o.possession != delivery.possession]
        if delivery.possession is not None and elsewhere and delivery != min(alike, key=_when):
            yield delivery


def _when(work: Work) -> tuple[int, str, int]:
    return (work.event.time_ns, work.event.source, work.event.seq)


def phantom(p: Partition) -> Iterator[Found | None]:
    """Delivered, or with an effect, under an id that nobody ever set out to send."""
    for delivery in p.deliveries:
        yield from _phantom(p.trial, delivery.event, (*p.tp, delivery.offset))
    for effects in p.effects.values():
        for effect in effects:
            yield from _phantom(p.trial, effect, (*p.tp, p.trial.home(effect.id)[1]))


def _phantom(trial: Trial, event: Event, place: tuple[str, int | None, int]) -> Iterator[Found | None]:
    """Undecided where the log holds the id: then somebody else writes to the topic."""
    if event.id is not None and event.id not in trial.invoked:
        yield None if trial.reads_of(event.id) else (*place, ())


def duplicate_effect(p: Partition) -> Iterator[Found]:
    """A second effect, a third …, of one record."""
    for record_id, effects in p.effects.items():
        for _ in effects[1:]:
            yield (*p.tp, p.trial.home(record_id)[1], ())


# --- what the log holds ----------------------------------------------------------------------------------------


def lost_write(p: Partition) -> Iterator[Found | None]:
    """Acknowledged, and the control read does not hold it, though neither retention nor compaction took it."""
    for ack in p.not_held:
        known = ack.offset is not None and ack.offset >= 0
        if known and ((ack.offset or 0) < p.last_log_start or _superseded(p, ack)):
            continue
        if ack.time_ns >= (p.trial.snapshot_ns or 0):
            yield None
        elif not known:
            yield None if p.last_log_start > 0 or p.trial.compacted else p.found(None)
        elif ack.offset in p.records and p.records[ack.offset].id is None:
            yield None
        else:
            yield p.found(ack.offset)


def _superseded(p: Partition, ack: Event) -> bool:
    """Compaction keeps the last record of a key: of those in the log, and of those that were acknowledged."""
    others = [*p.records.values(), *p.not_held]
    return p.trial.compacted and any(
        other.key is not None and other.key == ack.key and (other.offset or 0) > (ack.offset or 0) for other in others
    )


def overtaken(p: Partition) -> Iterator[Found | None]:
    """Ranges of acknowledged records that expired before anybody read them."""
    expired = [ack for ack in p.not_held if 0 <= (-1 if ack.offset is None else ack.offset) < p.last_log_start]
    ranges: list[tuple[tuple[bool, bool], list[Event]]] = []
    for ack in sorted(expired, key=lambda event: (event.offset, event.seq)):
        if _was_read(p, ack):
            ranges.append(((False, False), []))
            continue
        committed = p.trial.progress_in_kafka and (p.final_committed or 0) > (ack.offset or 0)
        covering = _first_covering(p, ack.offset or 0) if committed else None
        if (covering is not None and _may_be_a_last_act(p, covering)) or (not committed and _killed_unseen(p)):
            ranges.append(((False, False), []))
            yield None
            continue
        sort = (committed, covering is not None and covering.committer == OPERATOR)
        if not ranges or ranges[-1][0] != sort or not ranges[-1][1]:
            ranges.append((sort, []))
        ranges[-1][1].append(ack)
    for (committed, _), acks in ranges:
        if acks:
            yield p.found(acks[0].offset, last_offset=acks[-1].offset, committed=committed)


def _was_read(p: Partition, ack: Event) -> bool:
    return ack.id in p.effects or any(work.offset == ack.offset for work in p.deliveries + p.completions)


def _killed_unseen(p: Partition) -> bool:
    """Some member was killed with -9, and no sink saw what it had done."""
    killed = [e for e in p.trial.of_kind("exited") if e.details.get("signal") == 9]
    return bool(killed) and not p.trial.has_sink


def corrupt(p: Partition) -> Iterator[Found]:
    """Another content than was sent: in the log, or in the effect of a consumer that passes values on."""
    altered = {
        offset for offset, record in p.records.items() if _differs(p.trial.sent_checksum(record.id), _checksum(record))
    }
    for offset in altered:
        yield p.found(offset, found_in="control read")
    effects = [effect for several in p.effects.values() for effect in several]
    sums = [(p.trial.sent_checksum(effect.id), _checksum(effect), effect) for effect in effects]
    if any(sent is not None and sent == body for sent, body, _ in sums):
        for sent, body, effect in sums:
            offset = p.trial.home(effect.id)[1]
            if _differs(sent, body) and offset not in altered:
                yield (*p.tp, offset, (("found_in", "effect"),))


def _checksum(event: Event) -> int | None:
    return event.details.get("checksum")


def _differs(sent: int | None, seen: int | None) -> bool:
    return sent is not None and seen is not None and sent != seen


def misplaced(p: Partition) -> Iterator[Found | None]:
    """Said to be at a place where the log holds another id."""
    placed = [effect for effect in p.trial.effects if effect.topic is None]  # an output's place is its own
    claims = [effect for effect in placed if (p.trial.topic, effect.partition) == p.tp]
    for event in [delivery.event for delivery in p.deliveries] + claims:
        record = None if event.offset is None else p.records.get(event.offset)
        if event.id is None or record is None or record.id in (None, event.id):
            continue
        never_sent = bool(p.trial.invoked) and event.id not in p.trial.invoked
        yield p.found(event.offset) if never_sent or p.trial.reads_of(event.id) else None


# --- ordering --------------------------------------------------------------------------------------------------


def nonmonotonic_poll(p: Partition) -> Iterator[Found]:
    """A step back, or a standstill, within one possession."""
    for delivery in p.deliveries:
        if delivery.possession is not None and any(
            earlier.offset >= delivery.offset for earlier in _in_this_attempt(p, delivery, p.deliveries)
        ):
            yield p.found(delivery.offset)


def _before(work: Work, others: list[Work]) -> list[Work]:
    """Those of the same possession that come before in the file."""
    return [o for o in others if o.possession == work.possession and o.event.seq < work.event.seq]


def _in_this_attempt(p: Partition, work: Work, others: list[Work]) -> list[Work]:
    """Those before it, but for what a transaction that failed has undone since."""
    failed = [
        event.seq
        for event in p.trial.of_kind("commit")
        if event.outcome == "fail"
        and event.source == work.event.source
        and event.seq < work.event.seq
        and p.trial.entries(event, p.tp)
    ]
    since = max(failed, default=-1) if p.trial.progress_in_transactions else -1
    return [other for other in _before(work, others) if other.event.seq > since]


def poll_skip(p: Partition) -> Iterator[Found | None]:
    """A record of the control read that lies between the highest one delivered before and the next delivery, and that
    the same possession never was delivered, nor says it processed; what the log start passed cannot be skipped, nor
    what was done by then where the consumer keeps its progress itself, and so can know."""
    log_start = max((e.offset for e in p.own("log_start") if e.offset is not None), default=0)
    for delivery in [d for d in p.deliveries if d.possession is not None]:
        earlier = [other.offset for other in _before(delivery, p.deliveries)]
        taken = [work.offset for work in p.deliveries + p.completions if work.possession == delivery.possession]
        if not earlier:
            continue
        for offset in [o for o in p.records if max(earlier) < o < delivery.offset and o not in taken]:
            handled_ns = p.first_handled.get(offset)
            done = handled_ns is not None and p.trial.earliest_ns(handled_ns) <= delivery.event.time_ns + TOLERANCE_NS
            if offset < log_start or (done and not p.trial.progress_in_kafka):
                continue
            overtaken = log_start > max(earlier) + 1
            yield None if overtaken or _among_last_words(delivery) else p.found(offset)


def _among_last_words(delivery: Work) -> bool:
    """Its possession ended by kill -9, within the tolerance."""
    closed = delivery.possession.closed if delivery.possession else None
    killed = closed is not None and closed.kind == "exited" and closed.details.get("signal") == 9
    return killed and closed is not None and delivery.event.time_ns >= closed.time_ns - TOLERANCE_NS


def reordered_key(p: Partition) -> Iterator[Found]:
    """A completion that comes after that of a later record: of the same key, else of another key."""
    completions = [replace(done, possession=p.handling_possession(done)) for done in p.completions]
    firsts = {
        offset: min((c for c in completions if c.offset == offset), key=_when)
        for offset in {c.offset for c in completions}
    }
    for late in completions:
        attempt = _in_this_attempt(p, late, completions)
        overtakers = [c.offset for c in attempt if late.possession and c.offset > late.offset]
        if firsts[late.offset] == late:
            overtakers += [first.offset for first in firsts.values() if _came_too_early(p, first, late)]
        if overtakers:
            key = p.key(late.offset)
            yield p.found(late.offset, same_key=key is not None and any(p.key(o) == key for o in overtakers))


def _came_too_early(p: Partition, first: Work, late: Work) -> bool:
    """Tells whether `first`, of a later record, was completed before `late`, and neither by a zombie."""
    if first.offset <= late.offset:
        return False
    if first.event.source == late.event.source:
        before = first.event.seq < late.event.seq
    else:
        before = p.trial.earliest_ns(late.event.time_ns) - first.event.time_ns > TOLERANCE_NS
    return before and not any(
        p.excused(work.possession, work.event.time_ns, work.event.time_ns) for work in (first, late)
    )


def overlapping_handlers(p: Partition) -> Iterator[Found]:
    """A handler that begins while another one runs on the partition: one finding each such handler."""
    ended = [handler for handler in p.handlers if handler.ended is not None]
    for handler in ended:
        others = [o for o in ended if _when(o.begun) < _when(handler.begun) and _overlap(p, o, handler)]
        if others:
            key = p.key(handler.begun.offset)
            same_key = key is not None and any(p.key(other.begun.offset) == key for other in others)
            yield p.found(handler.begun.offset, same_key=same_key)


def _overlap(p: Partition, one: Handler, other: Handler) -> bool:
    assert one.ended
    assert other.ended
    if one.begun.event.source == other.begun.event.source:
        return other.begun.event.seq < one.ended.event.seq and one.begun.event.seq < other.ended.event.seq
    begins_ns = max(one.begun.event.time_ns, other.begun.event.time_ns)
    ends_ns = min(p.trial.earliest_ns(one.ended.event.time_ns), p.trial.earliest_ns(other.ended.event.time_ns))
    return ends_ns - begins_ns > TOLERANCE_NS and not any(
        p.excused(h.begun.possession, h.begun.event.time_ns, h.ended.event.time_ns) for h in (one, other) if h.ended
    )


# --- commits ---------------------------------------------------------------------------------------------------


def commit_regression(p: Partition) -> Iterator[Found]:
    """A committed position below an earlier one; one finding for each episode until it is made good."""
    highest: int | None = None
    episode: Commit | None = None
    for commit in p.commits:
        if episode is not None and highest is not None and (commit.value is None or commit.value >= highest):
            yield _regression(p, highest, episode, commit)
            episode = None
        if commit.value is None:
            highest = None
        elif highest is None or commit.value >= highest:
            highest = commit.value
        elif episode is None:
            episode = commit
    if episode is not None and highest is not None:
        yield _regression(p, highest, episode, None)


def _regression(p: Partition, highest: int, lower: Commit, end: Commit | None) -> Found:
    return p.found(
        lower.place,
        start=highest,
        to=lower.value,
        recovered=end is not None and end.value is not None,
        own=_own(p, lower),
        restart_inside=_restart_inside(p, highest, lower.effect_ns, end.effect_ns if end else FOREVER),
    )


def _own(p: Partition, commit: Commit) -> bool | None:
    owners = p.owners_at(commit.place)
    if commit.committer is None:
        return None
    if commit.committer == OPERATOR:
        return False
    return None if owners is None else commit.committer in owners


def _restart_inside(p: Partition, highest: int, begin_ns: float, end_ns: float) -> bool:
    fetched = [time_ns for _, time_ns, position in p.offset_fetches if position < highest]
    opened = [p.trial.earliest_ns(o.time_ns) for o in (q.opened for q in p.possessions) if o.time_ns < end_ns]
    return any(begin_ns < time_ns < end_ns for time_ns in fetched + opened)


def _rises(p: Partition) -> Iterator[tuple[Commit, int | None]]:
    """Each commit with the highest value before it."""
    highest: int | None = None
    for commit in p.commits:
        if commit.value is not None:
            yield commit, highest
        highest = None if commit.value is None else max(commit.value, -1 if highest is None else highest)


def zombie_commit(p: Partition) -> Iterator[Found]:
    """A durable commit of a member that did not own the partition at that place of the log."""
    for commit, highest in _rises(p):
        owners = p.owners_at(commit.place)
        if commit.committer in (None, OPERATOR) or owners is None or commit.committer in owners:
            continue
        fell = highest is not None and commit.value is not None and commit.value < highest
        unhandled = [o for o in _raised_over(p, commit, highest) if o not in p.first_handled]
        if unhandled and p.trial.facts.get("events") == "none" and p.trial.facts.get("sink", "none") in (None, "none"):
            continue  # nobody says what was handled
        yield p.found(commit.place, fell=fell, skipped_record=bool(unhandled))


def _raised_over(p: Partition, commit: Commit, highest: int | None) -> list[int]:
    """The records between the highest value before and this one."""
    return [o for o in p.records if (highest is None or o >= highest) and o < (commit.value or 0)]


def commit_ahead(p: Partition) -> Iterator[Found | None]:
    """A commit that covers a record not yet handled; one finding a value."""
    values = set(_ahead_by_own_word(p))
    unclear: set[int] = set()
    for commit, highest in _rises(p):
        over = _raised_over(p, commit, highest)
        late = [o for o in over if p.trial.earliest_ns(p.first_handled.get(o, 0)) > commit.effect_ns + TOLERANCE_NS]
        if _told_by_a_member(p, commit) or commit.event.details.get("producer_id") is not None:
            late = []
        never = [o for o in over if o not in p.first_handled]
        if late or (never and not _may_be_a_last_act(p, commit)):
            values.add(commit.value or 0)
        elif never:
            unclear.add(commit.value or 0)
    yield from (p.found(value) for value in values)
    yield from (None for _ in unclear - values)


def _told_by_a_member(p: Partition, commit: Commit, *outcomes: str) -> bool:
    """A member told of this commit itself, in an event of one of the outcomes (any, where none is named)."""
    return any(
        entry["committed_offset"] == commit.value
        for event in p.trial.of_kind("commit")
        if not outcomes or event.outcome in outcomes
        for entry in p.trial.entries(event, p.tp)
    )


def _ahead_by_own_word(p: Partition) -> Iterator[int]:
    for possession in p.possessions:
        mine = [e for e in p.trial.of_kind("commit") if e.source == possession.source]
        word = "invoke" if any(e.outcome == "invoke" for e in mine) else "ok"
        previous = -1
        for commit in [e for e in mine if e.outcome == word and possession.holds(e)]:
            for entry in p.trial.entries(commit, p.tp):
                value = entry["committed_offset"]
                if any(
                    previous <= d.offset < value and not _done_before(p, d, commit)
                    for d in p.deliveries
                    if d.possession == possession
                ):
                    yield value
                previous = value


def _done_before(p: Partition, delivery: Work, commit: Event) -> bool:
    """Tells whether the delivered record had been completed in this possession when the commit was asked for."""
    return any(
        completion.offset == delivery.offset
        and completion.possession == delivery.possession
        and completion.event.seq < commit.seq
        for completion in p.completions
    )


def commit_past_end(p: Partition) -> Iterator[Found | None]:
    """Beyond the first log end read after the commit was seen; log ends never fall, so an earlier one can acquit."""
    ends = sorted((int(e.details.get("asked_ns", e.time_ns)), e.offset or 0) for e in p.own("log_end"))
    for commit in p.commits:
        if commit.value is None:
            continue
        after = [end for time_ns, end in ends if time_ns >= commit.event.time_ns]
        if not after:
            if not any(commit.value <= end for _, end in ends):
                yield None
        elif commit.value > after[0]:
            yield p.found(commit.place, value=commit.value)


def commit_lost(p: Partition) -> Iterator[Found | None]:
    """A position that a member was told is stored, or a broker answered so, and that the offsets log does not hold."""
    for value in sorted({value for value, _, _ in _acknowledgements(p)}):
        acks = [(early, late) for v, early, late in _acknowledgements(p) if v == value]
        stored = [
            p.trial.mono_ns(None if (ms := e.details.get("commit_time_ms")) is None else ms * 1_000_000, e.time_ns)
            for e in p.trial.offsets_log
            if e.kind == "committed" and (e.topic, e.partition) == p.tp and e.committed_offset == value
        ]
        missing = [(early, late) for early, late in acks if not any(early <= at <= late for at in stored)]
        only_told = all(early == -FOREVER for early, _ in missing)
        if missing and (stored or (only_told and _refused_by_a_broker(p, value))):
            yield None
        elif missing:
            yield p.found(value)


def _acknowledgements(p: Partition) -> Iterator[tuple[int, float, float]]:
    """(position, the earliest and the latest moment it can have taken effect) of what was answered by the snapshot."""
    snapshot_ns = p.trial.snapshot_ns or 0
    for event in [e for e in p.trial.of_kind("commit") if e.outcome == "ok" and e.time_ns <= snapshot_ns]:
        for entry in [entry for entry in p.trial.entries(event, p.tp) if entry["committed_offset"] >= 0]:
            yield entry["committed_offset"], -FOREVER, event.time_ns + TOLERANCE_NS
    for request, entry in p._answers("OFFSETCOMMIT", "TXNOFFSETCOMMIT"):
        if p.trial.lane_member(request) is None or request.time_ns > snapshot_ns or entry["committed_offset"] < 0:
            continue
        answered_ns = p.trial.mono_ns(request.source_wall_ns, request.time_ns)
        begun_ns = answered_ns - int(request.details.get("duration_ms", 0) * 1_000_000)
        yield entry["committed_offset"], begun_ns - TOLERANCE_NS, answered_ns + TOLERANCE_NS


def _refused_by_a_broker(p: Partition, value: int) -> bool:
    return any(
        entry["committed_offset"] == value and entry.get("error")
        for request in p.trial.requests
        if request.details["api"].replace("_", "").upper() in ("OFFSETCOMMIT", "TXNOFFSETCOMMIT")
        for entry in p.trial.entries(request, p.tp)
    )


# --- ownership -------------------------------------------------------------------------------------------------


def split_ownership(p: Partition) -> Iterator[Found]:
    """Two owners by the brokers' own records, or work of a member that was told it had lost the partition."""
    for owning in p.ownership:
        if owning.names_it and len(owning.assigned) > 1:
            yield p.found(owning.place, by="log")
    for possession in p.possessions:
        loss = p.loss(possession)
        if loss is not None and loss.told is not None and loss.told.kind == "commit":
            yield from _work_after_being_told(p, possession, loss.told)


def _work_after_being_told(p: Partition, possession: Possession, told: Event) -> Iterator[Found]:
    in_hand = p.in_hand(told)
    for delivery in [d for d in p.deliveries if d.possession == possession]:
        seq, time_ns = delivery.event.seq, delivery.event.time_ns
        still = [h for h in in_hand if h.ended is None or h.ended.event.seq > seq]
        others = [o for o in p.possessions if o.member != possession.member and o.open_at(time_ns)]
        if p.trial.earliest_ns(time_ns) > told.time_ns + TOLERANCE_NS and not still and others:
            yield p.found(delivery.offset, by="told")


def work_after_revoke(p: Partition) -> Iterator[Found]:
    """Work on a partition that the member's own callback had given up."""
    for work in p.deliveries + p.completions:
        callbacks = [
            e
            for e in p.trial.of_kind("assigned", "revoked", "lost")
            if e.source == work.event.source and e.seq < work.event.seq and p.trial.entries(e, p.tp)
        ]
        if callbacks and callbacks[-1].kind in ("revoked", "lost"):
            yield p.found(work.offset, kind=work.event.kind)


def zombie_work(p: Partition) -> Iterator[Found]:
    """Work in good faith after a loss that nobody told the member of."""
    for work in p.deliveries + p.completions:
        loss = p.loss(work.possession) if work.possession else None
        if loss is None or work.event.time_ns >= loss.told_ns:
            continue
        if loss.time_ns + TOLERANCE_NS < p.trial.earliest_ns(work.event.time_ns):
            yield p.found(work.offset, kind=work.event.kind)


def stale_generation(p: Partition) -> Iterator[Found | None]:
    """An accepted commit whose epoch is below the one its member had where it lies in the log, but for KIP-1251."""
    for request, entry in p._answers("OFFSETCOMMIT"):
        epoch, member_id = request.details.get("epoch", -1), request.details.get("member_id")
        place = _first_place_of(p, request, entry["committed_offset"])
        if epoch < 0 or not member_id or place is None:
            continue
        said = [e for e in p.trial.offsets_log if e.details["log_offset"] <= place and _tells_epoch(e, member_id)]
        if not said:
            yield None
        elif said[-1].kind != "group_tombstone" and epoch < said[-1].details["epoch"]:
            yield from [] if _allowed_by_kip_1251(p, said[-1], epoch) else [p.found(place)]


def _first_place_of(p: Partition, request: Event, value: int) -> int | None:
    """Where in the log the commit of this request lies; the first place, where there are several."""
    if request.source_wall_ns is None:
        return None
    places = [
        commit.place
        for commit in p.commits
        if commit.value == value and _covers(request, commit.event.details.get("commit_time_ms", 0) * 1_000_000)
    ]
    return min(places, default=None)


def _tells_epoch(event: Event, member_id: str) -> bool:
    if event.kind == "group":
        return True
    if event.kind == "group_tombstone" and event.details.get("record_type") == 2:
        return True
    return _changes_one_member(event) and event.details["member_id"] == member_id


def _allowed_by_kip_1251(p: Partition, current: Event, epoch: int) -> bool:
    """The member has the partition, or is giving it up, and has had it since that epoch or an older one."""
    if current.kind != "member_assignment":
        return False
    listed = p.trial.entries(current, p.tp) + p.trial.entries(current, p.tp, "pending")
    return any(entry.get("assignment_epoch", FOREVER) <= epoch for entry in listed)


def orphan_partition(p: Partition) -> Iterator[Found | None]:
    """A group with members, at rest for longer than the bound, in which nobody has the partition."""
    if not p.own("record", "log_start", "log_end") or p.trial.snapshot_ns is None:
        return
    members: set[str] = set()
    owners: set[str] = set()
    records = [e for e in p.trial.offsets_log if e.kind == "group" or _changes_one_member(e)]
    times = [p.trial.mono_ns(e.source_wall_ns, e.time_ns) for e in records]
    for number, event in enumerate(records):
        if event.kind == "group":
            members = {member["member_id"] for member in event.details.get("members", [])}
            owners = {entry["member_id"] for entry in p.trial.entries(event, p.tp)}
        else:
            member_id = event.details["member_id"]
            has = p.trial.entries(event, p.tp) + p.trial.entries(event, p.tp, "pending")
            owners = owners | {member_id} if has else owners - {member_id}
            members = members | {member_id} if event.kind == "member_assignment" else members - {member_id}
        end_ns = min([p.trial.snapshot_ns, *times[number + 1 : number + 2]])
        if members and not owners and end_ns - times[number] > _window_ns(p):
            still = _stood_still(p.trial, times[number], end_ns)
            yield None if still else p.found(event.details["log_offset"])


# --- liveness --------------------------------------------------------------------------------------------------


def false_lag(p: Partition) -> Iterator[Found | None]:
    """Everything handled, and yet the committed position says there is work left, though there was time to commit."""
    if _is_false_lag(p) and _had_no_time(p):
        yield None
    elif _is_false_lag(p):
        committed = _position_at_snapshot(p)
        yield p.found(committed, records=len([o for o in p.records if o >= committed]))


def _position_at_snapshot(p: Partition) -> int:
    committed = p.committed_at(p.trial.snapshot_ns or 0)
    return p.log_start if committed is None else committed


def _undone(p: Partition) -> list[int]:
    """Records not handled at the snapshot, and not committed past either."""
    if not p.trial.progress_in_kafka:
        return _unhandled_at_snapshot(p)
    return [o for o in _unhandled_at_snapshot(p) if o >= _position_at_snapshot(p)]


def _is_false_lag(p: Partition) -> bool:
    lagging = any(o >= _position_at_snapshot(p) for o in p.records)
    return p.trial.progress_in_kafka and lagging and not _undone(p)


def stuck_partition(p: Partition) -> Iterator[Found | None]:
    """Work left, and nothing moved for a whole window before the snapshot."""
    if _stands_still(p):
        yield (
            None
            if _cannot_tell_stuck(p)
            else p.found(min(_undone(p)), **{"class": _class_of_stuck(p, min(_undone(p)))})
        )


def _class_of_stuck(p: Partition, offset: int) -> str:
    """How far the first undone record came, as far as the evidence goes."""
    snapshot_ns = p.trial.snapshot_ns or 0
    held = [possession for possession in p.possessions if possession.open_at(snapshot_ns)]
    if any(possession.opened.time_ns <= snapshot_ns for possession in p.possessions) and not held:
        return "unassigned"
    given = [one for one in p.deliveries if one.possession in held and one.event.time_ns <= snapshot_ns]
    if any(delivery.offset in _undone(p) for delivery in given):
        return "delivered-not-committed"
    committed = [c.value for c in p.commits if c.value is not None and c.effect_ns <= snapshot_ns]
    if held and p.trial.progress_in_kafka and max(committed, default=-1) > offset:
        return "committed-not-delivered"
    return _class_by_fetches(p, max(held, key=lambda one: one.opened.time_ns), offset) if held else "unclassified"


def _class_by_fetches(p: Partition, owner: Possession, offset: int) -> str:
    """What the owner's own fetches tell, since it was assigned.

    The log leaves out a fetch that asks as before in vain, so only two things are sure: that a partition was never
    asked for, or is missing from a list that is complete; and that positions were answered and passed.
    """
    fetches = [r for r in p.trial.requests if r.details["api"] == "FETCH" and p.trial.lane_member(r) == owner.member]
    since_ns, asked, listed = owner.opened.time_ns - TOLERANCE_NS, [], {}
    dropped_ns = -1
    for fetch in fetches:  # broker by broker, in the order of its lines
        at_ns = p.trial.mono_ns(fetch.source_wall_ns, fetch.time_ns)
        here, connection = p.trial.entries(fetch, p.tp), (fetch.source, fetch.details.get("connection"))
        inside = since_ns <= at_ns <= (p.trial.snapshot_ns or 0)
        asked += [(at_ns, entry["offset"], entry.get("size_bytes", 0)) for entry in here if inside]
        if fetch.details.get("complete"):
            if listed.get(connection) and not here and inside:
                dropped_ns = max(dropped_ns, at_ns)
            listed[connection] = bool(here)
    last_ns = max((at_ns for at_ns, _, _ in asked), default=-1)
    states = [e.details.get("state") for e in p.trial.of_kind("witness") if e.source.startswith("requests-")]
    if fetches and (dropped_ns > last_ns or not asked) and states and set(states) == {"complete"}:
        return "assigned-not-fetched"
    answered = [position for _, position, size_bytes in asked if size_bytes > 0]
    passed = any(position > offset for _, position, _ in asked)
    fetched = offset in answered or (passed and any(position < offset for position in answered))
    return "fetched-not-delivered" if fetched else "unclassified"


def _window_ns(p: Partition) -> float:
    return _window_of(p.trial)


def _stands_still(p: Partition) -> bool:
    snapshot_ns = p.trial.snapshot_ns or 0
    moves: list[float] = [work.event.time_ns for work in p.deliveries + p.completions]
    moves += [c.effect_ns for c, highest in _rises(p) if highest is None or (c.value or 0) > highest]
    return bool(_undone(p)) and not any(snapshot_ns - _window_ns(p) <= move <= snapshot_ns for move in moves)


def _cannot_tell_stuck(p: Partition) -> bool:
    begin_ns = (p.trial.snapshot_ns or 0) - _window_ns(p)
    gap_ns = p.trial.session_s * SECOND_NS / 4
    gaps = [
        e
        for e in p.trial.of_kind("scheduling_delay")
        if begin_ns <= e.time_ns <= (p.trial.snapshot_ns or 0) and e.details["delay_ns"] > gap_ns
    ]
    measured = bool(p.trial.of_kind("calibrated"))
    return bool(gaps) or _drain_ns(p) < max(_window_ns(p), _bound_ns(p, with_backlog=measured))


def _drain_ns(p: Partition) -> float:
    drain_ns = p.trial.phase_ns("drain")
    return 0 if drain_ns is None else (p.trial.snapshot_ns or 0) - drain_ns


def late_convergence(p: Partition) -> Iterator[Found | None]:
    """Not done within the bound after everything was healed and the load had stopped: since the drain began."""
    healed_ns = p.trial.phase_ns("drain")
    if healed_ns is None or not p.records:
        return
    bound_ns = _bound_ns(p)
    converged_ns = _converged_ns(p)
    still = _stood_still(p.trial, healed_ns, p.trial.snapshot_ns or 0)
    if converged_ns is not None:
        if converged_ns > healed_ns + bound_ns + TOLERANCE_NS:
            yield None if still else p.found(None, converged=True)
    elif not _stands_still(p) and not _is_false_lag(p):
        yield None if still or _drain_ns(p) < bound_ns else p.found(None, converged=False)


def _had_no_time(p: Partition) -> bool:
    """The drain was shorter than the bound, or the machine stood still in it."""
    drain_ns, snapshot_ns = p.trial.phase_ns("drain"), p.trial.snapshot_ns or 0
    begins = snapshot_ns if drain_ns is None else drain_ns
    return _stood_still(p.trial, begins, snapshot_ns) or _drain_ns(p) < _bound_ns(p)


def _bound_ns(p: Partition, *, with_backlog: bool = True) -> float:
    """B of the design: the claim's own, else detection, rebalance, handler, commit interval and backlog."""
    trial, facts = p.trial, p.trial.facts
    if facts.get("converge_within_s") is not None:
        return float(facts["converge_within_s"]) * SECOND_NS
    begins_ns = trial.phase_ns("drain")
    healed_ns = begins_ns or 0
    partitions = [Partition(trial, tp) for tp in trial.slices()]
    ended = [(h.begun, h.ended) for q in partitions for h in q.handlers if h.ended]
    calm = [(begun, end) for begun, end in ended if end.event.time_ns <= trial.quiet_until_ns]
    longest = max((end.event.time_ns - begun.event.time_ns for begun, end in calm), default=0) / SECOND_NS
    backlog = sum(1 for q in partitions for o in q.records if q.first_handled.get(o, FOREVER) > healed_ns)
    rates = [e.details["rate"] for e in trial.of_kind("calibrated")]
    detection = trial.session_s + (0.0 if trial.facts.get("protocol") == "none" else trial.rebalance_s)
    last_ns = max((end_ns for end_ns, _ in trial.lost_sessions.values()), default=0.0)
    detection = detection if begins_ns is None else max(detection, (last_ns - healed_ns) / SECOND_NS)
    terms = detection + longest + float(facts.get("commit_interval_s", 0))
    return max(10.0, terms + (2 * backlog / rates[-1] if rates and with_backlog else 0.0)) * SECOND_NS


def _converged_ns(p: Partition) -> float | None:
    """Since when the partition was done for good; None when it was not at the snapshot."""
    handled = max((time_ns for o, time_ns in p.first_handled.items() if o in p.records), default=0)
    if not p.trial.progress_in_kafka:
        if p.trial.facts.get("delivery") == "at-most-once":  # only its progress counts, and that nobody here can see
            return 0
        return None if _undone(p) else handled
    caught_up = _caught_up_ns(p)
    if p.trial.facts.get("delivery") == "at-most-once" or caught_up is None:
        return caught_up
    return None if _undone(p) else max(caught_up, handled)


def _caught_up_ns(p: Partition) -> float | None:
    """Since when the committed position has been at the end of the log, without a break until the snapshot."""
    since: float | None = None
    for commit in [c for c in p.commits if c.effect_ns <= (p.trial.snapshot_ns or 0)]:
        if commit.value is None or commit.value < p.end:
            since = None
        elif since is None:
            since = commit.effect_ns
    return since


# --- progress and starvation -----------------------------------------------------------------------------------


def _window_of(trial: Trial) -> int:
    commit_s = float(trial.facts.get("commit_interval_s", 0))
    return int(max(10.0, trial.session_s + trial.rebalance_s + commit_s) * SECOND_NS)


def _hindered(trial: Trial, begin_ns: float, end_ns: float, member: str | None = None) -> bool:
    """A fault was in force in this stretch of time, or had been healed less than a window before it; given a member,
    one on another member does not count."""
    for fault in trial.of_kind("injected"):
        if member is not None and fault.member not in (None, member):
            continue
        over_ns = trial.lived_down_ns(fault, _window_of(trial))
        if fault.time_ns <= end_ns and begin_ns <= over_ns:
            return True
    return False


def rogue_reader(p: Partition) -> Iterator[Found | None]:
    """A member that was sent records for longer than a window, and made no commit from its first fetch on."""
    snapshot_ns = p.trial.snapshot_ns or 0
    sent: dict[str, list[tuple[float, int]]] = {}
    for request in p.trial.requests:
        member = p.trial.lane_member(request)
        at_ns = p.trial.mono_ns(request.source_wall_ns, request.time_ns)
        if request.details["api"] == "FETCH" and member is not None and at_ns <= snapshot_ns:
            got = [entry["offset"] for entry in p.trial.entries(request, p.tp) if entry.get("size_bytes", 0) > 0]
            sent.setdefault(member, []).extend((at_ns, offset) for offset in got)
    for member, fetches in sent.items():
        begin_ns, end_ns = min((at for at, _ in fetches), default=0), max((at for at, _ in fetches), default=0)
        commits = [c for c in p.commits if begin_ns - TOLERANCE_NS <= c.effect_ns <= snapshot_ns]
        if end_ns - begin_ns <= _window_of(p.trial) or any(c.committer == member for c in commits):
            continue
        if _hindered(p.trial, begin_ns, end_ns, member):
            continue
        unclear = _stood_still(p.trial, begin_ns, end_ns) or any(c.committer is None for c in commits)
        yield None if unclear else (*p.tp, member, ())


def _stood_still(trial: Trial, begin_ns: float, end_ns: float) -> bool:
    patience_ns = trial.session_s * SECOND_NS / 4
    return any(
        e.details["delay_ns"] > patience_ns and begin_ns <= e.time_ns and e.time_ns - e.details["delay_ns"] <= end_ns
        for e in trial.of_kind("scheduling_delay")
    )


def uncommitted_progress(p: Partition) -> Iterator[Found | None]:
    """Done, and everything before it, and for a whole window not committed though the same member held on; one finding
    a commit that came too late."""
    late: dict[int, tuple[int, float]] = {}
    for offset in sorted(p.records):
        ready_ns = max(p.first_handled.get(o, FOREVER) for o in p.records if o <= offset)
        covering = _first_covering(p, offset)
        if ready_ns == FOREVER or covering is None or covering.effect_ns > (p.trial.snapshot_ns or 0):
            continue
        due_ns = ready_ns + _window_of(p.trial)
        too_late = covering.effect_ns > due_ns + TOLERANCE_NS and _held_alone(p, ready_ns, due_ns)
        if too_late and not _hindered(p.trial, ready_ns, due_ns):
            late.setdefault(covering.place, (offset, ready_ns))
    for offset, ready_ns in late.values():
        still = _stood_still(p.trial, ready_ns, ready_ns + _window_of(p.trial))
        yield None if still else p.found(offset)


def _held_alone(p: Partition, begin_ns: float, end_ns: float) -> bool:
    """The possession opened last before the stretch lasts through it, and no other one opens inside."""
    before = [one for one in p.possessions if one.opened.time_ns <= begin_ns]
    inside = [one for one in p.possessions if begin_ns < one.opened.time_ns < end_ns]
    if not before or inside:
        return False
    last = max(before, key=lambda one: one.opened.time_ns)
    return last.closed is None or last.closed.time_ns >= end_ns


def starved_partition(p: Partition) -> Iterator[Found | None]:
    """Passed over: records wait, nothing happens, and its member does those of two others in three rounds."""
    for possession in p.possessions:
        for begin_ns, end_ns in _standstills(p, possession):
            if _in_its_handler(p, possession, begin_ns, end_ns):
                continue
            waiting = [o for o, time_ns in p.first_handled.items() if time_ns >= end_ns and o in p.records]
            if not waiting:
                continue
            oldest = min(waiting, key=lambda o: (_appended_ns(p, o), o))
            since_ns = max(begin_ns, _appended_ns(p, oldest))
            if _rounds_elsewhere(p, possession, since_ns, end_ns) >= 3 and not _hindered(p.trial, since_ns, end_ns):
                yield None if _stood_still(p.trial, since_ns, end_ns) else p.found(oldest)


def _standstills(p: Partition, possession: Possession) -> list[tuple[int, int]]:
    """The stretches of a possession in which nobody delivered, finished or put out a record; over by the snapshot."""
    snapshot_ns = p.trial.snapshot_ns or 0
    ids = {e.id: o for o, e in p.records.items() if e.id is not None}
    effects = [e.time_ns for e in p.trial.of_kind("effect") if e.outcome == "ok" and e.id in ids]
    moves = sorted([work.event.time_ns for work in p.deliveries + p.completions] + effects)
    closed_ns = possession.closed.time_ns if possession.closed else FOREVER
    last_ns = min(closed_ns, snapshot_ns)
    points = [m for m in moves if possession.opened.time_ns <= m <= last_ns]
    if possession.closed and closed_ns <= snapshot_ns:
        points.append(possession.closed.time_ns)
    return list(zip([possession.opened.time_ns, *points], points, strict=False))


def _in_its_handler(p: Partition, possession: Possession, begin_ns: int, end_ns: int) -> bool:
    """The member had a record of this partition in hand from before the stretch to its end."""
    mine = [w for w in p.deliveries + p.completions if w.event.source == possession.source]
    for delivery in [w for w in mine if w.event.kind == "delivered" and w.event.time_ns <= begin_ns < end_ns]:
        later = [w for w in mine if w.offset == delivery.offset and w.event.seq > delivery.event.seq]
        over_ns = min(later, key=lambda w: w.event.seq).event.time_ns if later else FOREVER
        if over_ns >= end_ns:
            return True
    return False


def _appended_ns(p: Partition, offset: int) -> int:
    record = p.records[offset]
    return p.trial.mono_ns(record.source_wall_ns, record.time_ns)


def _rounds_elsewhere(p: Partition, possession: Possession, begin_ns: int, end_ns: int) -> int:
    """The whole rounds (thirds of a window) in which the member finished records of two other partitions or more."""
    length_ns = _window_of(p.trial) // 3
    rounds: dict[int, set[Slice]] = {}
    for event in p.trial.of_kind("processed"):
        number, tp = event.time_ns // length_ns, (str(event.topic), event.partition or 0)
        whole = begin_ns <= number * length_ns and (number + 1) * length_ns <= end_ns
        if event.source == possession.source and tp != p.tp and whole:
            rounds.setdefault(number, set()).add(tp)
    return sum(len(others) >= 2 for others in rounds.values())


# --- the group, its processes and their memory -----------------------------------------------------------------


def _of_group(place: int | str | None, **attributes: Any) -> Found:
    return None, None, -1 if place is None else place, tuple(sorted(attributes.items()))


def rebalance_storm(trial: Trial) -> Iterator[Found]:
    """Five rises of generation or epoch before the snapshot that nothing explains."""
    records = [e for e in trial.offsets_log if e.kind in ("group", "group_epoch") and "epoch" in e.details]
    rises = 0
    for before, after in pairwise(records):
        at_ns = trial.mono_ns(after.source_wall_ns, after.time_ns)
        if after.details["epoch"] > before.details["epoch"] and at_ns <= (trial.snapshot_ns or 0):
            rises += not _explained(trial, at_ns)
    if rises >= 5:
        yield _of_group(rises)


def _explained(trial: Trial, at_ns: int) -> bool:
    window_ns = _window_of(trial)
    spans: list[tuple[float, float]] = [(e.time_ns, e.time_ns) for e in trial.of_kind("started", "exited")]
    stops = trial.of_kind("stopped", "exited")
    spans += [(e.time_ns, e.time_ns) for e in stops if e == min((o for o in stops if o.source == e.source), key=_seq)]
    topics = trial.of_kind("topic")
    changed = [new for old, new in pairwise(topics) if old.details["partitions"] != new.details["partitions"]]
    spans += [(e.time_ns, e.time_ns) for e in changed]
    patience_ns = trial.session_s * SECOND_NS / 4
    delays = [(e.time_ns, e.details["delay_ns"]) for e in trial.of_kind("scheduling_delay")]
    spans += [(at - delay, at) for at, delay in delays if delay > patience_ns]
    if any(e.time_ns - TOLERANCE_NS <= at_ns <= trial.lived_down_ns(e, window_ns) for e in trial.of_kind("injected")):
        return True
    return any(begin_ns - TOLERANCE_NS <= at_ns <= end_ns + window_ns for begin_ns, end_ns in spans)


def _seq(event: Event) -> int:
    return event.seq


def crash_loop(trial: Trial) -> Iterator[Found]:
    """Members whose process went by itself twice or more."""
    own = [str(e.member) for e in trial.of_kind("exited") if e.details.get("asked") == "no"]
    for member in sorted(set(own)):
        if own.count(member) >= 2:
            yield _of_group(member)


def unbounded_close(trial: Trial) -> Iterator[Found | None]:
    """Members that were asked to stop and had to be killed; None where something may have hindered them."""
    for end in trial.of_kind("exited"):
        if end.details.get("asked") != "overdue":
            continue
        asked_ns = end.details.get("asked_ns", end.time_ns)
        patience_ns = end.details.get("within_s", 0) / 4 * SECOND_NS
        still = any(
            e.details["delay_ns"] > patience_ns
            and asked_ns <= e.time_ns
            and e.time_ns - e.details["delay_ns"] <= end.time_ns
            for e in trial.of_kind("scheduling_delay")
        )
        yield None if still or _fault_meanwhile(trial, end, asked_ns) else _of_group(str(end.member))


def _fault_meanwhile(trial: Trial, end: Event, asked_ns: int) -> bool:
    """A fault that does not itself end members, on this member or on none in particular, between asking and killing."""
    for fault in trial.of_kind("injected"):
        if fault.details.get("fault") in ("terminate", "restart", "leave", "join", "kill"):
            continue
        healed = [h for h in trial.of_kind("healed") if h.details.get("fault_no") == fault.details.get("fault_no")]
        meanwhile = fault.time_ns <= end.time_ns and not (healed and healed[-1].time_ns < asked_ns)
        if fault.member in (None, end.member) and meanwhile:
            return True
    return False


def _samples(trial: Trial, end: Event) -> list[int]:
    who = (end.member, end.incarnation)
    return [e.details["rss_bytes"] for e in trial.of_kind("resources") if (e.member, e.incarnation) == who]


def memory_over_limit(trial: Trial) -> Iterator[Found | None]:
    """Incarnations seen above the claimed limit; None for one that lived for five seconds and was never seen."""
    limit = trial.facts.get("memory_max_bytes")
    if limit is None:
        return
    for life in trial.of_kind("started"):
        samples = _samples(trial, life)
        if any(sample > limit for sample in samples):
            yield _of_group(f"{life.member}-{life.incarnation}")
        ends = [e.time_ns for e in trial.of_kind("exited") if e.source == life.source]
        lived_ns = (ends[0] if ends else trial.snapshot_ns or 0) - life.time_ns
        if not samples and lived_ns >= 5 * SECOND_NS:
            yield None


def oom_killed(trial: Trial) -> Iterator[Found | None]:
    """Members that went by a signal 9 of nobody's while the kernel's counter rose; None where too many did."""
    readings = trial.of_kind("oom_kills")
    rises = [(b, a) for b, a in pairwise(readings) if a.details["count"] > b.details["count"]]
    struck: list[tuple[Event, tuple[Event, Event]]] = []
    for end in trial.of_kind("exited"):
        if end.details.get("signal") != 9 or end.details.get("asked") != "no":
            continue
        near = [
            (before, after)
            for before, after in rises
            if before.time_ns <= end.time_ns + TOLERANCE_NS and after.time_ns >= end.time_ns - 2 * SECOND_NS
        ]
        struck += [(end, near[0])] if near else []
    limit = trial.facts.get("memory_max_bytes")
    for end, (before, after) in struck:
        alike = sum(other == (before, after) for _, other in struck)
        over = limit is not None and any(sample > limit for sample in _samples(trial, end))
        several = alike > after.details["count"] - before.details["count"]
        yield None if several else _of_group(f"{end.member}-{end.incarnation}", over_limit=over)


# --- transactions ----------------------------------------------------------------------------------------------


def aborted_read(p: Partition) -> Iterator[Found]:
    """Delivered, or put out under an id that the log has nowhere committed, although its transaction was aborted."""
    for gone in p.own("record_aborted"):
        said = [e for e in p.own("delivered") if e.offset == gone.offset]
        if gone.id is not None and not p.trial.reads_of(gone.id):
            said += [e for e in p.trial.effects if e.id == gone.id]
        if said:
            first = min(said, key=lambda e: (e.time_ns, e.source, e.seq))
            yield p.found(gone.offset, what="effected" if first.kind == "effect" else "delivered")


def offset_outside_transaction(p: Partition) -> Iterator[Found | None]:
    """Committed without a producer; harmless where the position stood, undecided where no request explains it."""
    stood: int | None = None
    for commit in p.commits:
        if commit.value is not None and commit.event.details.get("producer_id") is None:
            repeats = commit.value == (p.log_start if stood is None else stood)
            wall_ns = commit.event.details["commit_time_ms"] * 1_000_000
            askers = [
                p.trial.lane_member(request)
                for request, entry in p._answers("OFFSETCOMMIT")
                if entry.get("committed_offset") == commit.value and _covers(request, wall_ns)
            ]
            by_operator = bool(askers) and not any(askers)
            yield p.found(commit.place, by_operator=by_operator, repeats=repeats) if askers or repeats else None
        stood = commit.value


def torn_transaction(trial: Trial) -> Iterator[Found | None]:
    """Producer id and epoch ended in both ways; a tear where the pair is one transaction's own, else only where every
    end was asked for around its time."""
    pairs: dict[tuple[int, int], list[Event]] = {}
    for marker in trial.of_kind("transaction_marker"):
        pairs.setdefault((marker.details["producer_id"], marker.details["producer_epoch"]), []).append(marker)
    for pair, markers in pairs.items():
        if len({marker.details["state"] for marker in markers}) < 2:
            continue
        asked = [e for e in trial.requests if e.details["api"] == "END_TXN" and e.details["error"] == 0]
        asked = [e for e in asked if (e.details["producer_id"], e.details["producer_epoch"]) == pair]
        if any(request.details.get("own_epoch") for request in asked):
            yield trial.topic, None, pair[0], (("producer_epoch", pair[1]),)
        elif not all(_was_asked_for(m, asked) or _was_asked_for_again(m, asked, markers) for m in markers):
            yield None


def _was_asked_for(marker: Event, asked: list[Event]) -> bool:
    """A request that began 50 ms before the marker, after it, or between, wanted this end; or the last one before."""
    apart_ns = [(_begun_ns(request) - (marker.source_wall_ns or 0), request.details["state"]) for request in asked]
    around = [state for apart, state in apart_ns if abs(apart) <= LOG_TOLERANCE_NS]
    before = [state for apart, state in sorted(apart_ns) if apart <= -LOG_TOLERANCE_NS]
    return marker.details["state"] in [*around, *before[-1:]]


def _was_asked_for_again(marker: Event, asked: list[Event], markers: list[Event]) -> bool:
    """The first request to begin after the marker wanted this end, and no marker follows it before the next request."""
    later = sorted((e for e in asked if _begun_ns(e) > (marker.source_wall_ns or 0) + LOG_TOLERANCE_NS), key=_begun_ns)
    if not later or later[0].details["state"] != marker.details["state"]:
        return False
    until_ns = _begun_ns(later[1]) - LOG_TOLERANCE_NS if later[1:] else FOREVER
    since_ns = _begun_ns(later[0]) - LOG_TOLERANCE_NS
    return not any(since_ns <= (other.source_wall_ns or 0) < until_ns for other in markers)


def _begun_ns(request: Event) -> int:
    return (request.source_wall_ns or 0) - int(request.details["duration_ms"] * 1_000_000)


def hanging_transaction(trial: Trial) -> Iterator[Found | None]:
    """Open for longer than its timeout and the ten seconds in which its coordinator looks again."""
    healings = [e.time_ns for e in trial.of_kind("healed")]
    injected = {e.details["fault_no"] for e in trial.of_kind("injected")}
    unhealed = injected - {e.details["fault_no"] for e in trial.of_kind("healed")}
    for opened in trial.of_kind("transaction_open"):
        if any(_ends(marker, opened) for marker in trial.of_kind("transaction_marker")):
            continue
        producer = opened.details["producer_id"]
        starts = [e for e in trial.requests if e.details["api"] == "INIT_PRODUCER_ID" and e.details["error"] == 0]
        timeouts_ms = [e.details["timeout_ms"] for e in starts if e.details["producer_id"] == producer]
        if not timeouts_ms:
            yield None
            continue
        began_ns = trial.mono_ns(opened.source_wall_ns, opened.time_ns)
        timed_out_ns = began_ns + max(timeouts_ms) * 1_000_000
        patience_ns = 10 * SECOND_NS + TOLERANCE_NS
        if opened.time_ns <= timed_out_ns + patience_ns:
            continue
        hindered = unhealed or any(opened.time_ns <= healed_ns + patience_ns for healed_ns in healings)
        still = _stood_still(trial, began_ns, opened.time_ns)
        yield None if hindered or still else _of_group(producer, log=_log_of(opened))


def _log_of(event: Event) -> str:
    return f"{event.topic or '__consumer_offsets'}-{event.partition or event.details.get('log_partition', 0)}"


def _ends(marker: Event, opened: Event) -> bool:
    """The same producer's, in the same log, later."""
    same = marker.details["producer_id"] == opened.details["producer_id"] and _log_of(marker) == _log_of(opened)
    return same and _log_place(marker) > _log_place(opened)


def _log_place(event: Event) -> int:
    return int(event.details["log_offset"] if event.offset is None else event.offset)


GROUP_CHECKS = {
    "torn-transaction": torn_transaction,
    "hanging-transaction": hanging_transaction,
    "rebalance-storm": rebalance_storm,
    "crash-loop": crash_loop,
    "unbounded-close": unbounded_close,
    "memory-over-limit": memory_over_limit,
    "oom-killed": oom_killed,
}
CHECKS = {
    "aborted-read": aborted_read,
    "offset-outside-transaction": offset_outside_transaction,
    "uncommitted-progress": uncommitted_progress,
    "starved-partition": starved_partition,
    "rogue-reader": rogue_reader,
    "skipped": skipped,
    "unseen": unseen,
    "redelivered": redelivered,
    "illegal-redelivery": illegal_redelivery,
    "nonmonotonic-poll": nonmonotonic_poll,
    "poll-skip": poll_skip,
    "reordered-key": reordered_key,
    "overlapping-handlers": overlapping_handlers,
    "commit-regression": commit_regression,
    "zombie-commit": zombie_commit,
    "commit-ahead": commit_ahead,
    "commit-past-end": commit_past_end,
    "commit-lost": commit_lost,
    "split-ownership": split_ownership,
    "work-after-revoke": work_after_revoke,
    "zombie-work": zombie_work,
    "stale-generation": stale_generation,
    "orphan-partition": orphan_partition,
    "false-lag": false_lag,
    "stuck-partition": stuck_partition,
    "late-convergence": late_convergence,
    "lost-write": lost_write,
    "overtaken": overtaken,
    "corrupt": corrupt,
    "misplaced": misplaced,
    "phantom": phantom,
    "duplicate-effect": duplicate_effect,
}

"""The naive checker: the second judge, slow and plain, that the vectorised one must agree with.

It imports nothing but the event and the modules beside it, walks lists of events in the order of the definitions, and
compares everything with everything where that is the obvious way to say it. `judge(events, settings)` returns what it
found, per anomaly.

Facts (all optional): session_timeout_s, poll_interval_s, commit_interval_s, converge_within_s, ready_within_s
([ready] within_s), protocol (classic or consumer), progress (kafka, …: where the committed position lives), sink
(where one is declared, only what it heard of is done), no_effect (the outcomes that it need not hear of), effects
(state: a later one of the key is enough), body (value: of an effect it is the record's), stdout (buffered: lines come
when a buffer is full), delivery (the claim's), reset (the policy), memory_max_bytes (the claim's).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, takewhile
from typing import Any

from kafka_trial.history.event import Event
from lab.naive import aborts as naive_aborts
from lab.naive import absences as naive_absences
from lab.naive import assignments as naive_assignments
from lab.naive import batches as naive_batches
from lab.naive import clients as naive_clients
from lab.naive import cold_reads as naive_cold_reads
from lab.naive import effects as naive_effects
from lab.naive import handed_on as naive_handed_on
from lab.naive import head_of_line as naive_head_of_line
from lab.naive import late_records as naive_late_records
from lab.naive import losses as naive_losses
from lab.naive import moved_keys as naive_moved_keys
from lab.naive import no_progress as naive_no_progress
from lab.naive import rejoins as naive_rejoins
from lab.naive import responses as naive_responses
from lab.naive import seeks as naive_seeks
from lab.naive import slowdown as naive_slowdown
from lab.naive import states as naive_states

SECOND_NS = 1_000_000_000
TOLERANCE_NS = 500_000_000  # between sources, where nobody measured how late a line was read
CALLBACKS = ("assigned", "revoked", "lost")
LINE_KINDS = (*CALLBACKS, "delivered", "processed", "commit")
BUFFERED = "lines come when a buffer is full and bear no times, there is no sink, and no line asks for the commit"
CLOCKS_NS = 10_000_000  # what the clocks of brokers and harness may differ by, as they are read
PROBED_EVERY_NS = 25_000_000  # between two stamps of the probe that measures a reader
MEASURED_WITHIN_NS = 3 * SECOND_NS
DECIDING = {
    *("by_operator", "in_flight_at_crash", "same_key", "recovered", "own", "restart_inside", "fell", "skipped_record"),
    *("class", "found_in", "over_limit", "repeats", "while_away"),
}  # attributes that a claim looks at
LOG_TOLERANCE_NS = 50_000_000  # between request log and offsets log
STAMPED_LATE_NS_MAX = 5 * SECOND_NS  # a broker's stamp that is later than this is believed
FETCH_LOOKBACK_NS = 2 * SECOND_NS
FOREVER = float("inf")
OPERATOR = "operator"
STRANGER = "stranger"  # off the lanes, and nobody can tell whether it is a member

Slice = tuple[str, int]
# Topic and partition (None: the whole group), place (an offset, a member …), attributes that decide.
Found = tuple[str | None, int | None, int | str, tuple[tuple[str, Any], ...]]

ANOMALIES = (
    "false-report",
    "skipped",
    "unseen",
    "redelivered",
    "retried",
    "illegal-redelivery",
    "nonmonotonic-poll",
    "poll-skip",
    "reordered-key",
    "reordered-across-partitions",
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
    "stale-state",
    "late-record",
    "uncommitted-progress",
    "starved-partition",
    "head-of-line-blocking",
    "rebalance-storm",
    "crash-loop",
    "unbounded-close",
    "never-rejoined",
    "memory-over-limit",
    "oom-killed",
    "rogue-reader",
    "cold-read",
    "aborted-read",
    "offset-outside-transaction",
    "torn-transaction",
    "hanging-transaction",
)
NEED_CONTROL_READ = (
    *("skipped", "unseen", "commit-ahead", "false-lag", "stuck-partition", "late-convergence", "poll-skip"),
    *("lost-write", "overtaken", "corrupt", "misplaced", "uncommitted-progress", "starved-partition", "stale-state"),
    *("head-of-line-blocking", "late-record"),
)
NEED_SNAPSHOT = (
    *("unseen", "false-lag", "stuck-partition", "late-convergence", "lost-write", "uncommitted-progress"),
    *("stale-state", "late-record"),
    *(
        "head-of-line-blocking",
        "starved-partition",
        "rebalance-storm",
        "memory-over-limit",
        "commit-lost",
        "orphan-partition",
        "rogue-reader",
        "cold-read",
        "never-rejoined",
    ),
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
    """What was found: instances, how many stayed undecided, and what could not be judged, per anomaly; and of which
    only a part could be seen, because."""

    anomalies: dict[str, list[Found]] = field(default_factory=lambda: {name: [] for name in ANOMALIES})
    undecided: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ANOMALIES, 0))
    not_judged: set[str] = field(default_factory=set)
    in_part: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class OwnershipEpoch:
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
    """A delivered or processed event with the ownership epoch it happened in."""

    event: Event
    offset: int
    ownership_epoch: OwnershipEpoch | None


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
class Answer:
    """What a broker answered to a member's OffsetFetch."""

    member: str
    time_ns: int
    position: int


@dataclass(frozen=True)
class Fetched:
    """A fetch of a member, from a position; None: the partition is no longer among what it fetches."""

    member: str
    time_ns: int
    position: int | None


@dataclass(frozen=True)
class Owning:
    """Who owns the partition from one membership record on."""

    place: int
    time_ns: float
    owners: frozenset[str]
    assigned: frozenset[str]
    names_it: bool  # the record itself speaks of this partition


@dataclass(frozen=True)
class RefusalLine:
    """A member's own word of a commit that was refused, as the brokers show."""

    event: Event
    position: float  # of the refused commit: it covered the records below
    fetched: float  # the position up to which the member had fetched by then


@dataclass(frozen=True)
class Loss:
    """A loss of ownership that the member was not told of at once."""

    time_ns: float
    told_ns: float  # by the answer of a broker that it heard
    fetched: float  # the position up to which it had fetched by then
    again_ns: float  # when it went on fetching
    untimed: bool  # its lines do not say when it handled what
    said: tuple[RefusalLine, ...]  # after the loss
    excused_until_ns: float

    def fetched_later(self, offset: int, time_ns: float) -> bool:
        """A record that it fetched after it was told: what it handled by then, or some time."""
        return offset >= self.fetched and (time_ns > self.told_ns or self.untimed)

    def knows(self, offset: int, time_ns: float) -> bool:
        """A record that it fetched after it was told, or after its own word of it."""
        if self.fetched_later(offset, time_ns):
            return True
        return any(offset >= word.fetched and time_ns > word.event.time_ns for word in self.said)


class Trial:
    """A history and its facts, with the lookups that several slices share."""

    def __init__(self, events: Iterable[Event], settings: Mapping[str, Any]) -> None:
        listed = list(events)
        self.as_read = sorted(naive_clients.split(listed), key=lambda event: (event.source, event.seq))
        self.as_given = sorted(listed, key=lambda event: (event.source, event.seq))
        self.nameless = naive_clients.nameless(listed)  # files of several members of which nobody knows who speaks
        self.settings = settings
        self.events = self.as_read
        self.untimed: set[str] = set()  # files with work of which nobody knows when it was printed
        self.written_by_brokers: set[str] = set()  # effects of which a broker says when they were
        self.events = self._placed()
        self.written_by_brokers = {e.name for e in self.events if naive_effects.written_by_a_broker(self, e)}
        self.events = [
            naive_effects.at_its_time(self, e) if naive_effects.says_its_time(self, e) else e for e in self.events
        ]
        self.with_harness_stalls = True  # False: as if all had been heard when it was said
        self.only_certain_aborts = False  # True: as if nothing had been given up that may not have been

    def once_more(self) -> Trial:
        """The same history, to be read in another way."""
        return Trial(self.as_given, self.settings)

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
        told = [e for e in self.events if e.source == "offsets"]
        ours = [e for e in told if self.group in (None, e.details.get("group")) or e.topic in self.through]
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
    def slow_answers(self) -> list[tuple[str, float, float]]:
        """From when to when brokers, by their request log, took long for what they answer at once."""
        prompt = [one for one in self.of_kind("request") if naive_responses.api(one) in naive_responses.PROMPT]
        begun_ns, sent_ns = naive_responses.begun_ns, naive_responses.sent_ns
        spans = [(one.source, begun_ns(self, one), sent_ns(self, one)) for one in prompt]
        return [span for span in spans if span[2] - span[1] >= naive_responses.SLOW_NS]

    @cached_property
    def fail_overs(self) -> list[Event]:
        return sorted(self.of_kind("failed_over"), key=lambda event: event.time_ns)

    def last_fail_over(self, at_ns: float) -> Event | None:
        """The last one until then."""
        return next((event for event in reversed(self.fail_overs) if event.time_ns <= at_ns), None)

    def last_fail_over_before(self, place: int) -> Event | None:
        """The last one before a place of the offsets log."""
        return next((event for event in reversed(self.fail_overs) if event.details["log_offset"] < place), None)

    @cached_property
    def faults_begin_ns(self) -> float:
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
        return max(told) / 1000 if told else float(self.settings.get("session_timeout_s", 0))

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
        declared_s = float(self.settings.get("poll_interval_s", 0))
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
        return str(self.settings.get("protocol", "classic"))

    def healed_ns(self, fault: Event) -> float:
        number = fault.details.get("fault_no")
        healed = [e.time_ns for e in self.of_kind("healed") if e.details.get("fault_no") == number]
        return healed[-1] if healed else FOREVER

    def _costly_faults(self) -> Iterator[Event]:
        for e in self.of_kind("injected"):
            cut, lasted_ns = naive_responses.does(e, "cuts-off", "freezes"), self.healed_ns(e) - e.time_ns
            long = lasted_ns >= (self.session_s - self.heartbeat_s) * SECOND_NS
            asked = naive_responses.does(e, "stops")
            gone = naive_responses.does(e, "kills") or (asked and not self._left(e))
            if (gone and not self._taken_over(e)) or (cut and long):
                yield e

    def _taken_over(self, fault: Event) -> bool:
        for e in self.requests:
            joins = e.details["api"] == "JOIN_GROUP" or (
                e.details["api"] == "CONSUMER_GROUP_HEARTBEAT" and e.details.get("epoch") == 0
            )
            in_time = fault.time_ns <= e.time_ns <= fault.time_ns + int(self.session_s * SECOND_NS)
            admitted = joins and e.details.get("instance_id") and not e.details.get("error")
            if admitted and in_time and fault.member is not None and self.lane_member(e) == fault.member:
                return True
        return False

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
        return self.settings.get("progress", "kafka") in ("kafka", "transaction")

    @property
    def progress_in_transactions(self) -> bool:
        return bool(self.settings.get("progress") == "transaction")

    @property
    def has_sink(self) -> bool:
        """Somebody else than the members saw what was done: the consumer declares a sink, or it was seen."""
        declared = self.settings.get("sink") not in (None, "none")
        return declared or any(e.outcome == "ok" for e in self.of_kind("effect"))

    @cached_property
    def member_of_lane(self) -> dict[Any, str]:
        return {e.details["lane"]: str(e.member) for e in self.of_kind("started") if "lane" in e.details}

    @cached_property
    def request_logs_complete(self) -> bool:
        """Every broker's was read to its end."""
        return naive_clients.request_logs_complete(self.events)

    @cached_property
    def fetching_members(self) -> set[str]:
        """The members on whose lanes anything was fetched."""
        fetches = [e for e in self.requests if e.details["api"] == "FETCH"]
        return {member for e in fetches if (member := self.lane_member(e)) is not None}

    def fetches_by_turns(self, member: str) -> bool:
        """One partition was fetched on its lane over a connection, then over another, then over the first again."""
        used: dict[tuple[Any, ...], list[str]] = {}
        for e in self.requests:
            if e.details["api"] != "FETCH" or self.lane_member(e) != member:
                continue
            for entry in e.details.get("entries", []):
                names = used.setdefault((e.source, self.topic_of(entry), entry["partition"]), [])
                name = e.details.get("connection")
                if name is not None and names[-1:] != [name]:
                    names.append(name)
        return any(len(names) > len(set(names)) for names in used.values())

    def exit_ns(self, source: str) -> float:
        """When the process of a file was gone."""
        return min((e.time_ns for e in self.of_kind("exited") if e.source == source), default=FOREVER)

    # --- record ids ------------------------------------------------------------------------------------------

    @cached_property
    def topic(self) -> str:
        return next((e.topic for e in self.of_kind("topic_named") if e.topic), "")

    @cached_property
    def topics(self) -> set[str]:
        return {e.topic for e in self.of_kind("topic_named") if e.topic}

    @cached_property
    def seen_topics(self) -> dict[str | None, list[Event]]:
        """Topic → every event that tells how many partitions it has."""
        seen: dict[str | None, list[Event]] = {}
        for event in self.of_kind("topic"):
            if "partitions" in event.details:
                seen.setdefault(event.topic, []).append(event)
        return seen

    def burst_of(self, told: Mapping[str, Any]) -> dict[Slice, int]:
        """How many records of the opening burst each partition had, as `calibrated` says."""
        first = self.topic or next((topic for topic, _ in self.all_slices()), "")
        entries = [entry for entry in told.get("entries", ()) if entry["count"]]
        return {(entry.get("topic", first), entry["partition"]): entry["count"] for entry in entries}

    @cached_property
    def partitions_added(self) -> bool:
        return any(len({e.details["partitions"] for e in seen}) > 1 for seen in self.seen_topics.values())

    @cached_property
    def partitions_come(self) -> bool:
        """Partitions came while the group was at work: of a topic that was there, or of one that came."""
        return self.partitions_added or any(e.details.get("later") for e in self.of_kind("topic_named"))

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

    def compacted(self, topic: str) -> bool:
        named = {e.topic for e in self.of_kind("topic_named")}
        told = [e for e in self.of_kind("topic") if topic not in named or e.topic == topic]
        return any("compact" in e.details.get("cleanup_policy", "") for e in told)

    def home(self, record_id: str | None) -> tuple[Slice | None, int]:
        """The partition of an id, and its offset (-1: nobody knows): by the log, taken back or not, else by its
        acknowledgement."""
        aborted = [e for e in self.of_kind("record_aborted") if e.id == record_id and record_id is not None]
        acks = [e for e in self.of_kind("send") if e.outcome == "ok" and e.id == record_id]
        for event in self.reads_of(record_id) + aborted + acks:
            if event.topic is not None and event.partition is not None:
                return (event.topic, event.partition), max(-1, -1 if event.offset is None else event.offset)
        return None, -1

    def topic_claimed(self, effect: Event) -> str | None:
        """The topic that an effect is about which names a place without one; of several that in which its id lies."""
        home, _ = self.home(effect.id)
        return self.topic if len(self.topics) < 2 else None if home is None else home[0]

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

    @cached_property
    def states_compared(self) -> bool:
        """Whether a state was written with two records of one key or entity."""
        return naive_states.anything_compared(self)

    def lane_member(self, request: Event) -> str | None:
        lane = request.details.get("lane")
        return None if lane is None else self.member_of_lane.get(lane)

    def mono_ns(self, wall_ns: int | None, otherwise_ns: int) -> int:
        """Wall time → monotonic time by the nearest clock pair; `otherwise_ns` when there is nothing to go by."""
        if wall_ns is None or not self.clocks:
            return otherwise_ns
        pair = min(self.clocks, key=lambda e: (abs(e.details["wall_ns"] - wall_ns), e.time_ns))
        return int(pair.details.get("read_ns", pair.time_ns) + wall_ns - pair.details["wall_ns"])

    @cached_property
    def harness_stalls(self) -> list[tuple[int, int]]:
        """When the harness stood still, or one of its readers did for longer than sources may differ."""
        late = [e for e in self.of_kind("scheduling_delay") if e.details["delay_ns"] > TOLERANCE_NS // 2]
        late += [e for e in self.of_kind("reading_delay") if e.details["delay_ns"] > TOLERANCE_NS]
        return [
            (e.time_ns - e.details["delay_ns"] - e.details.get("every_ns", SECOND_NS), e.time_ns)
            for e in sorted(late, key=lambda e: e.time_ns)
        ]

    def earliest_ns(self, read_ns: float) -> float:
        """When something may have been said at the earliest: whoever stood still heard it late, and what came soon
        after may have waited as well."""
        for begin_ns, end_ns in self.harness_stalls if self.with_harness_stalls else ():
            if begin_ns < read_ns <= end_ns + TOLERANCE_NS:
                return self.earliest_ns(begin_ns)
        return read_ns

    def written_ns(self, event: Event) -> float:
        """When a line may have been written at the earliest; what a broker wrote, nobody heard late."""
        if event.kind == "handed_on":
            return naive_handed_on.absent_ns(event)
        by_broker = event.name in self.written_by_brokers
        read_ns = event.time_ns if by_broker else self.earliest_ns(event.time_ns)
        return read_ns - self.uncertain_ns(event)

    def uncertain_ns(self, event: Event) -> float:
        """How long a line may have waited before it was read."""
        if event.source in self.untimed:
            return FOREVER
        if not self.measures:
            return TOLERANCE_NS
        return min(TOLERANCE_NS, self._waited_ns(event) + CLOCKS_NS + self._set_apart_ns(event.time_ns))

    @cached_property
    def measures(self) -> list[Event]:
        return self.of_kind("reading_delay")

    def _waited_ns(self, event: Event) -> float:
        if event.source == "sink" and self.settings.get("sink") in (None, "http"):
            return 0  # written down before it was answered
        if event.source in self.timed or event.name in self.written_by_brokers:
            return 0  # it says when it was
        mine = sorted((e.time_ns, e.details["delay_ns"]) for e in self.measures if e.details["reader"] == event.source)
        before = [delay_ns for time_ns, delay_ns in mine if time_ns < event.time_ns]
        after = [(time_ns, delay_ns) for time_ns, delay_ns in mine if time_ns >= event.time_ns]
        if not after or after[0][0] - event.time_ns > MEASURED_WITHIN_NS:
            return TOLERANCE_NS
        latest: list[int] = [*before[-1:], *(delay_ns for _, delay_ns in after[:2])]
        return max(latest) + PROBED_EVERY_NS

    def _set_apart_ns(self, time_ns: float) -> float:
        """How far the wall clock was set between the two readings before and the two after."""
        pairs = sorted((int(e.details.get("read_ns", e.time_ns)), int(e.details["wall_ns"])) for e in self.clocks)
        around = [pair for pair in pairs if pair[0] < time_ns][-2:] + [pair for pair in pairs if pair[0] >= time_ns][:2]
        offsets = [wall_ns - read_ns for read_ns, wall_ns in around]
        return max(offsets) - min(offsets) if offsets else TOLERANCE_NS

    def _placed(self) -> list[Event]:
        """The events, those of members at their own times, where these can be believed.

        Work out of a buffer that bears none stands where the lines were read that were read before it.
        """
        buffered = self.settings.get("stdout") == "buffered"
        self.timed: set[str] = set()
        placed: list[Event] = []
        for source in sorted({e.source for e in self.as_read}):
            mine = [e for e in self.as_read if e.source == source]
            if not any(e.kind == "started" for e in mine):
                placed += mine
                continue
            own = self._own_times(mine)
            said = {own[e.seq] is not None for e in mine if e.kind in LINE_KINDS}
            if said == {True}:
                self.timed.add(source)
            else:
                own = dict.fromkeys(own)
                self.untimed |= {source} if buffered else set()
            for e in mine:
                placed.append(replace(e, time_ns=self._place_ns(e, mine, own[e.seq], buffered=buffered)))
        return placed

    def _place_ns(self, event: Event, mine: list[Event], own_ns: int | None, *, buffered: bool) -> int:
        if own_ns is not None and not buffered:  # a line that was flushed is no older than its reading allows
            timed, self.timed = self.timed, set()
            own_ns = max(own_ns, event.time_ns - int(self.uncertain_ns(event)))
            self.timed = timed
        if own_ns is not None:
            return min(own_ns, event.time_ns)
        if event.source in self.untimed and event.kind in ("delivered", "processed"):
            return _read_before(event, mine)
        return event.time_ns

    def _own_times(self, mine: list[Event]) -> dict[int, int | None]:
        """Seq → when each line was by its own word, where that can be: not after it was read, not long before what was
        read before it, and not far behind a line that stands before it."""
        own: dict[int, int | None] = {}
        latest: int | None = None
        for event in mine:
            told = None if event.source_wall_ns is None else self.mono_ns(event.source_wall_ns, -1)
            can_be = told is not None and _read_before(event, mine) - TOLERANCE_NS <= told <= event.time_ns + CLOCKS_NS
            if can_be and told is not None:
                latest = told if latest is None else max(latest, told)
                can_be = told >= latest - TOLERANCE_NS
            own[event.seq] = latest if can_be else None
        return own

    def topic_of(self, entry: Mapping[str, Any]) -> str | None:
        return entry.get("topic") or self.topic_names.get(entry.get("topic_id", ""))

    def entries(self, event: Event, tp: Slice, name: str = "entries") -> list[Mapping[str, Any]]:
        listed = event.details.get(name) or []
        return [entry for entry in listed if (self.topic_of(entry), entry["partition"]) == tp]

    def slices(self) -> list[Slice]:
        """The partitions of the trial's topics: those of an output topic are none."""
        own = {(e.topic, e.partition) for e in self.events if e.topic is not None and e.partition is not None}
        listed = {
            (self.topic_of(entry), entry["partition"])
            for e in self.of_kind("assigned", "revoked", "lost")
            for entry in e.details.get("entries", [])
        }
        ours = [(topic, partition) for topic, partition in own | listed if topic is not None]
        return sorted(tp for tp in ours if tp[0] in (self.topics or [tp[0]]) and tp[0] not in self.through)

    def all_slices(self) -> list[Slice]:
        """Those of the topics too that the group hands records on through."""
        there = {(str(e.topic), e.partition or 0) for e in naive_handed_on.copies(self)}
        return sorted({*self.slices(), *there})

    @cached_property
    def through(self) -> set[str | None]:
        return {e.topic for e in self.of_kind("through")}


class Partition:
    """Everything about one partition in the trial's group: the indexes of the definitions."""

    def __init__(self, trial: Trial, tp: Slice) -> None:
        self.trial, self.tp = trial, tp
        self.taken_as_done: set[int] = set()  # their line may be one that nobody could read
        self._losses: dict[tuple[str, str, int], Loss | None] = {}
        self._attempts_ended: dict[str, list[Event]] = {}
        self._landings: list[tuple[OwnershipEpoch, Work | None]] = []
        self.told_before: dict[tuple[str, int, int], list[int]] = {}  # see `aborts.py`

    def own(self, *kinds: str) -> list[Event]:
        return [e for e in self.trial.of_kind(*kinds) if (e.topic, e.partition) == self.tp]

    @cached_property
    def log_ends(self) -> list[tuple[int, int]]:
        """(when it was asked for, the log end), in order; not where a record beyond it had been acknowledged before,
        and lies there still: then its leader did not know how far the log reaches."""
        acks = [e for e in self.own("send") if e.outcome == "ok" and e.offset is not None and e.id is not None]
        acks = [e for e in acks if (record := self.records.get(e.offset or 0)) is not None and record.id == e.id]
        ends = sorted((int(e.details.get("asked_ns", e.time_ns)), e.offset or 0) for e in self.own("log_end"))
        return [
            (at_ns, end) for at_ns, end in ends if not any(e.time_ns < at_ns and (e.offset or 0) >= end for e in acks)
        ]

    # --- records ---------------------------------------------------------------------------------------------

    @cached_property
    def records(self) -> dict[int, Event]:
        if self.tp[0] in self.trial.through:
            here = [e for e in naive_handed_on.copies(self.trial) if (e.topic, e.partition) == self.tp]
            return {e.offset: e for e in here if e.offset is not None}
        return {e.offset: e for e in self.own("record") if e.offset is not None}

    @cached_property
    def log_start(self) -> int:
        return next((e.offset for e in self.own("log_start") if e.offset is not None), 0)

    @cached_property
    def end(self) -> int:
        return max(self.records) + 1 if self.records else self.log_start

    @cached_property
    def control_read_complete(self) -> bool:
        topic = self.trial.topic if self.tp[0] in self.trial.through else self.tp[0]
        reads = [e for e in self.trial.of_kind("control_read") if e.topic == topic]
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
        aborted = {e.id for e in self.trial.of_kind("record_aborted")}
        return [ack for ack in acks if not self.trial.reads_of(ack.id) and ack.id not in aborted]

    @cached_property
    def effects(self) -> dict[str, list[Event]]:
        """Record id → its effects, of the records whose home is here."""
        return self.trial.effects_by_home.get(self.tp, {})

    # --- the members' own word -------------------------------------------------------------------------------

    @cached_property
    def ownership_epochs(self) -> list[OwnershipEpoch]:
        files = sorted({e.source for e in self.trial.of_kind("assigned")})
        return [ownership_epoch for source in files for ownership_epoch in self._ownership_epochs_of(source)]

    @cached_property
    def unfounded(self) -> list[tuple[Event, bool]]:
        """The lines by which members took the partition that nobody stands behind; whether they had it already."""
        files = sorted({e.source for e in self.trial.of_kind("assigned")})
        return [line for source in files for line in naive_assignments.unfounded(self, source)]

    @cached_property
    def never_given(self) -> list[Event]:
        """Those by which members took what nobody had given them."""
        return [line for line, held in self.unfounded if not held]

    def anybodys(self, source: str) -> bool:
        """Nobody can tell which of the clients of its process a line of a file speaks for."""
        return source in self.trial.nameless and not naive_assignments.only_client(self, source)

    def callbacks_of(self, source: str) -> list[Event]:
        """What a file says of who has the partition."""
        own = [e for e in self.trial.of_kind(*CALLBACKS) if e.source == source]
        return [e for e in own if self.trial.entries(e, self.tp)]

    @staticmethod
    def ownership_epoch_of(member: str, opened: Event, closed: Event | None) -> OwnershipEpoch:
        """One that no line tells of."""
        return OwnershipEpoch(member, opened.source, 0, opened, closed)

    def _ownership_epochs_of(self, source: str) -> Iterator[OwnershipEpoch]:
        opened: Event | None = None
        number = 0
        for event in [e for e in self.trial.events if e.source == source]:
            listed = event.kind in CALLBACKS and self.trial.entries(event, self.tp)
            again = listed and event.kind == "assigned"
            if again and any(event == line for line, _ in self.unfounded):
                continue
            if opened is not None and (listed or event.kind == "exited"):
                yield OwnershipEpoch(str(opened.member), source, number, opened, event)
                opened, number = None, number + 1
            if listed and event.kind == "assigned":
                opened = event
        if opened is not None:
            yield OwnershipEpoch(str(opened.member), source, number, opened, None)

    def ownership_epoch_at(self, event: Event) -> OwnershipEpoch | None:
        return next(
            (ownership_epoch for ownership_epoch in self.ownership_epochs if ownership_epoch.holds(event)), None
        )

    def _work(self, kind: str) -> list[Work]:
        return [Work(e, e.offset, self.ownership_epoch_at(e)) for e in self.own(kind) if e.offset is not None]

    @cached_property
    def deliveries(self) -> list[Work]:
        return self._work("delivered")

    @cached_property
    def completions(self) -> list[Work]:
        return [work for work in self._work("processed") if work.event.outcome != "failed"]

    def attempts_ended(self, source: str) -> list[Event]:
        """The lines of a file that ended an attempt in the partition."""
        if source not in self._attempts_ended:
            self._attempts_ended[source] = naive_aborts.ended(self, source)
        return self._attempts_ended[source]

    def landing(self, epoch: OwnershipEpoch | None) -> Work | None:
        """Where its member, which keeps its progress outside of Kafka, sought before it began to work."""
        if epoch is None or self.trial.progress_in_kafka:
            return None
        if not self._landings:
            self._landings = [(one, naive_seeks.landing(self, one)) for one in self.ownership_epochs]
        return next((landed for one, landed in self._landings if one == epoch), None)

    @cached_property
    def failures(self) -> list[Work]:
        return [work for work in self._work("processed") if work.event.outcome == "failed"]

    @cached_property
    def begun(self) -> list[Work]:
        """Every time a record was taken in hand: delivered, or completed though no delivery is open."""
        lines = sorted(self.deliveries + self.completions + self.failures, key=lambda work: work.event.seq)
        begun, open_ = [], set()
        for work in lines:
            name = (work.event.source, work.offset)
            if work.event.kind == "delivered":
                begun.append(work)
                open_.add(name)
                continue
            if name not in open_ and work.event.outcome != "failed":
                begun.append(work)
            open_.discard(name)
        return begun

    def is_retry(self, work: Work, *, of_owners: bool = False) -> bool:
        """Begun again in its ownership epoch, where neither it nor anything behind it had been completed; or with the
        whole of a batch that did not end well. `of_owners`: effects are of whom somebody gave the partition."""
        if work.ownership_epoch is None:
            return False
        heard_before_ns = self.trial.earliest_ns(work.event.time_ns) - TOLERANCE_NS
        heard = [
            offset
            for time_ns, offset in self.effect_times
            if time_ns <= heard_before_ns and self.opened_last(time_ns, of_owners=of_owners) == work.ownership_epoch
        ]
        done, begun = (
            [one.offset for one in naive_aborts.in_this_attempt(self, work, lines)]
            for lines in (self.completions, self.begun)
        )
        if work.offset not in begun:
            return False
        undone = max([*done, -1]) < work.offset and max(heard, default=-1) <= work.offset
        return undone or naive_batches.is_of_a_replay(self, work)

    def is_surely_retry(self, work: Work) -> bool:
        """Whoever had the effects."""
        return self.is_retry(work) and self.is_retry(work, of_owners=True)

    @cached_property
    def mere_claims(self) -> list[OwnershipEpoch]:
        """Those of which their members only say so."""
        return [one for one in self.ownership_epochs if naive_assignments.merely_claims(self, one)]

    @cached_property
    def claims(self) -> list[OwnershipEpoch]:
        """Those that nobody gave their members."""
        return [one for one in self.ownership_epochs if naive_assignments.is_without_right(self, one)]

    def opened_last(self, time_ns: float, *, of_owners: bool = False) -> OwnershipEpoch | None:
        """The ownership epoch that was opened last by then, whoever's it is; but for one that is nothing but words.
        `of_owners`: of those that somebody was given."""
        opened = [one for one in self.ownership_epochs if one.opened.time_ns <= time_ns]
        opened = [one for one in opened if one not in (self.claims if of_owners else self.mere_claims)]
        return max(opened, key=lambda one: (one.opened.time_ns, one.source, one.number), default=None)

    @cached_property
    def effect_times(self) -> list[tuple[int, int]]:
        """Time and offset of every effect that the sink wrote down, whether or not its answer came through."""
        return [(effect.time_ns, offset) for effect, offset in self.effects_seen]

    @cached_property
    def effects_seen(self) -> list[tuple[Event, int]]:
        """Every effect that the sink wrote down, with the offset of its record."""
        offsets = [(e.id, offset) for offset, e in self.records.items() if e.id is not None]
        heard = [e for e in self.trial.of_kind("effect") if e.outcome in ("ok", "info")]
        return [(e, offset) for e in heard for name, offset in offsets if name == e.id]

    @cached_property
    def given(self) -> list[Work]:
        """What members were given: by their deliveries or, in files that tell of none, by what they did."""
        telling = {e.source for e in self.trial.of_kind("delivered")}
        return self.deliveries + [done for done in self.completions if done.event.source not in telling]

    @cached_property
    def handlers(self) -> list[Handler]:
        return [Handler(delivery, self.end_of(delivery)) for delivery in self.deliveries]

    @staticmethod
    def handler_of(done: Work) -> Handler:
        """Of a completion that no delivery began."""
        return Handler(done, done)

    def end_of(self, delivery: Work) -> Work | None:
        """The next completion, unless the same record was delivered again to this file in between."""
        alike = [
            work
            for work in self.deliveries + self.completions + self.failures
            if work.event.source == delivery.event.source
            and work.offset == delivery.offset
            and work.event.seq > delivery.event.seq
        ]
        following = min(alike, key=lambda work: work.event.seq, default=None)
        return following if following is not None and following.event.kind == "processed" else None

    @cached_property
    def first_handled(self) -> dict[int, int]:
        """Offset → the earliest time it was handled, by a completion or a sink effect."""
        return {offset: min(event.time_ns for event in told) for offset, told in self.handlings.items()}

    @cached_property
    def first_written(self) -> dict[int, float]:
        """Offset → the earliest time at which it can have been written down that it was handled."""
        return {offset: min(map(self.trial.written_ns, told)) for offset, told in self.handlings.items()}

    @cached_property
    def handlings(self) -> dict[int, list[Event]]:
        """Offset → who says that it was handled: its sink heard of it, or need not; without a sink, it was said.

        Of a table a later state of its key is enough."""
        settings, told = self.trial.settings, dict[int, list[Event]]()
        without_effect = settings.get("no_effect", ("discarded", "dead-lettered"))
        for work in self.completions:
            if self.contradicted_by(work.event) is not None:
                continue
            if settings.get("sink") in (None, "none") or work.event.outcome in without_effect:
                told.setdefault(work.offset, []).append(work.event)
        for offset, lines in naive_handed_on.completed(self).items():
            needless = [e for e in lines if settings.get("sink") in (None, "none") or e.outcome in without_effect]
            if needless:
                told.setdefault(offset, []).extend(needless)
        if settings.get("sink") in (None, "none"):
            for line in self.own("bad_line"):  # it may have said so, of this record
                if line.offset is not None:
                    told.setdefault(line.offset, []).append(line)
        for effect, offset in self.effects_seen:
            told.setdefault(offset, []).append(effect)
            for earlier in self.records if settings.get("effects") == "state" else ():
                if earlier < offset and self.key(earlier) is not None and self.key(earlier) == self.key(offset):
                    told.setdefault(earlier, []).append(effect)
        for offset, copies in naive_handed_on.ends(self).items():
            told.setdefault(offset, []).extend(copies)
        return told

    # --- what witnesses know better --------------------------------------------------------------------------

    def contradicted_by(self, line: Event) -> str | None:
        """Which witness knows that what a member says of a record cannot be so; None: none does."""
        offset = -1 if line.offset is None else line.offset
        record = self.records.get(offset)
        sent = None if record is None else self.trial.invoked.get(str(record.id))
        timed = line.source not in self.trial.untimed
        if timed and sent is not None and sent.time_ns > line.time_ns + TOLERANCE_NS:
            return "workload"
        first = next((end for at_ns, end in self.log_ends if at_ns >= line.time_ns), None)
        if offset < 0 or (timed and first is not None and first <= offset):
            return "observer"
        looked_up = line.kind == "processed" and not self.trial.progress_in_kafka
        if looked_up or not self._fetches_are_known(line):
            return None
        told = [e for e in self.own("delivered", "processed") if e.source == line.source and e.offset == offset]
        held = any(self._may_have_fetched(e) for e in told if e.seq <= line.seq)
        return None if held else "request log"

    def _fetches_are_known(self, line: Event) -> bool:
        """All that its process fetched of this partition stands in the request log, and its alone."""
        killed = [e.time_ns for e in self.trial.of_kind("injected") if naive_responses.does(e, "stops-broker")]
        if any(line.time_ns >= at_ns - SECOND_NS for at_ns in killed) or not self.trial.request_logs_complete:
            return False
        if any(self.trial.lane_member(request) is None for request, *_ in self._asks):
            return False
        incarnations = sorted(
            (e for e in self.trial.of_kind("started") if e.member == line.member), key=lambda e: e.time_ns
        )
        mine = next((number for number, e in enumerate(incarnations) if e.source == line.source), None)
        if mine is None or self.trial.fetches_by_turns(str(line.member)):
            return False
        pairs = pairwise(incarnations[max(0, mine - 1) : mine + 2])
        overlap = any(self.trial.exit_ns(one.source) > other.time_ns for one, other in pairs)
        fetching = self.trial.fetching_members
        if str(line.member) in fetching or overlap:
            return not overlap
        silent = not killed and fetching and not any(map(self.trial.fetches_by_turns, fetching))
        asked = {self.trial.lane_member(e) for e in self.trial.requests if e.details.get("member_id")}
        return bool(silent) and str(line.member) in asked and not self._fetched_by_anybody(line)

    def _fetched_by_anybody(self, line: Event) -> bool:
        """A fetch begun by then can have brought the record to somebody, who may have handed it over."""
        until_ns = FOREVER if line.source in self.trial.untimed else line.time_ns + TOLERANCE_NS
        brought = [one for one in self._asks if one[1].get("size_bytes", 0) > 0 and not one[1].get("error")]
        return any(entry["offset"] <= (line.offset or 0) and begun_ns <= until_ns for _, entry, begun_ns, _ in brought)

    @cached_property
    def _asks(self) -> list[tuple[Event, Mapping[str, Any], float, float]]:
        timed = naive_responses.timed_fetches(self.trial, self.tp)
        return [one for one in timed if one[0].details.get("lane") is not None]

    def _may_have_fetched(self, line: Event) -> bool:
        """Some fetch of its process, begun by then, brought bytes from the record or before it; and what it asked for
        next lies beyond the record, or was asked for only after the line, or was not asked for at all."""
        asks = []
        for request, entry, begun_ns, _ in self._asks:
            if _incarnation(self, str(self.trial.lane_member(request)), begun_ns) == line.source:
                asks.append((begun_ns, request.source, request.seq, entry))
        asks.sort(key=lambda ask: ask[:3])
        if line.source in self.trial.untimed:  # it may have been said at any time
            brought = [entry for *_, entry in asks if entry.get("size_bytes", 0) > 0 and not entry.get("error")]
            return any(entry["offset"] <= (line.offset or 0) for entry in brought)
        for number, (begun_ns, _, _, entry) in enumerate(asks):
            some = entry.get("size_bytes", 0) > 0 and not entry.get("error")
            if not some or entry["offset"] > (line.offset or 0) or begun_ns > line.time_ns + TOLERANCE_NS:
                continue
            following = asks[number + 1 : number + 2]
            since_ns = self.trial.earliest_ns(line.time_ns) - TOLERANCE_NS
            if not following or following[0][3]["offset"] > (line.offset or 0) or following[0][0] >= since_ns:
                return True
        return False

    def given_up(self, until_ns: float) -> set[int]:
        """Records below where the process that last had the partition by then, and fetched, began to work, which some
        fetch before had brought. Not one that took it without a right."""
        for owner in sorted(self.ownership_epochs, key=lambda one: one.opened.time_ns, reverse=True):
            rightful = owner.opened.time_ns <= until_ns and not naive_assignments.is_without_right(self, owner)
            if rightful and (asks := sorted(self._asks_of(owner))):
                began = self._work_began_at(owner, asks)
                return {offset for offset in self.records if offset < began and self._was_brought(owner, offset)}
        return set()

    def _work_began_at(self, owner: OwnershipEpoch, asks: list[tuple[float, int, int]]) -> int:
        """The last fetch that can have brought its first record; without one the lowest, if there is such a one that
        begins neither at the log start nor where the group had committed."""
        done = [work for work in self.completions if self.ownership_epoch_of_work(work) == owner]
        done = [work for work in done if work.event.outcome != "discarded"]
        begun = [work for work in self.deliveries if work.ownership_epoch == owner]
        for first in [min(works, key=lambda work: work.event.seq) for works in (done, begun) if works][:1]:
            brings = [at for begun_ns, _, at in asks if begun_ns <= first.event.time_ns and at <= first.offset]
            if brings:
                return brings[-1]
        by_kafka = {self.log_start, *(answer.position for answer in self.offset_fetches)}
        places = {at for _, _, at in asks}
        return min(places - by_kafka or places)

    def _was_brought(self, owner: OwnershipEpoch, offset: int) -> bool:
        """Some fetch with bytes, not of the owner since it had the partition, from the record or before it; what its
        process asked for next lies beyond the record, or says nothing."""
        own = {number for _, number, _ in self._asks_of(owner)}
        of_process: dict[str, list[tuple[float, int, Mapping[str, Any]]]] = {}
        for number, (request, entry, begun_ns, ended_ns) in enumerate(self._asks):
            source = _incarnation(self, str(self.trial.lane_member(request)), ended_ns)
            if source is not None and not entry.get("error"):
                of_process.setdefault(source, []).append((begun_ns, number, entry))
        for asks in of_process.values():
            ordered = sorted(asks, key=lambda ask: ask[:2])
            for (_, number, entry), following in zip(ordered, [*ordered[1:], None], strict=True):
                at, then = entry["offset"], following[2]["offset"] if following else -1
                if number not in own and entry.get("size_bytes", 0) > 0 and at <= offset and not at < then <= offset:
                    return True
        return False

    def _asks_of(self, owner: OwnershipEpoch) -> list[tuple[float, int, int]]:
        """When its process asked for the partition, in which order, and from where."""
        others = [one.closed for one in self.ownership_epochs if one.source == owner.source and one is not owner]
        since_ns = max((line.time_ns for line in others if line and line.time_ns <= owner.opened.time_ns), default=0.0)
        until_ns = owner.closed.time_ns if owner.closed else FOREVER
        asks = []
        for number, (request, entry, begun_ns, ended_ns) in enumerate(self._asks):
            source = _incarnation(self, str(self.trial.lane_member(request)), ended_ns)
            if source == owner.source and since_ns <= begun_ns < until_ns and not entry.get("error"):
                asks.append((begun_ns, number, int(entry["offset"])))
        return asks

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
            if event.kind == "committed" and (came := self._fail_over_since(place, result)) is not None:
                none = self._commit(event, event)
                result.append(replace(none, value=None, effect_ns=came.time_ns))
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

    def _fail_over_since(self, place: int, before: list[Commit]) -> Event | None:
        """The fail-over since the last commit: the group has other positions there, as after a tombstone."""
        came = self.trial.last_fail_over_before(place)
        return came if before and came is not self.trial.last_fail_over_before(before[-1].place) else None

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
        if members or not lines:
            return None
        asker = self.asker_off_the_lanes(lines, commit)
        refused = asker == OPERATOR and self._group_has_members(commit.details["log_offset"])
        return STRANGER if refused else asker

    def asker_off_the_lanes(self, lines: list[Event], commit: Event) -> str:
        """Whose id the requests bear; a stranger's or, without an id and outside of transactions, the operator's."""
        ids = {str(line.details["member_id"]) for line in lines if line.details.get("member_id")}
        owners = {self.trial.member_of_id.get(one) for one in ids}
        if len(owners) == 1 and (owner := owners.pop()) is not None:
            return owner
        return STRANGER if ids or "producer_id" in commit.details else OPERATOR

    def _group_has_members(self, place: int) -> bool:
        """By the last record before that place: of the group, or of its members."""
        classic: set[str] = set()
        consumer: set[str] = set()
        records = [e for e in self.trial.of_kind("group", "member_assignment", "group_tombstone") if self._is_ours(e)]
        for event in sorted(records, key=lambda e: e.details["log_offset"]):
            if event.details["log_offset"] > place:
                break
            if event.kind == "group":
                classic = {str(one["member_id"]) for one in event.details.get("members") or () if "member_id" in one}
            elif event.kind == "member_assignment" and (event.details.get("epoch") or 0) >= 0:
                consumer.add(str(event.details["member_id"]))
            elif event.details.get("record_type") == 2:
                classic = set()
            else:
                consumer.discard(str(event.details.get("member_id")))
        return bool(classic | consumer)

    def _is_ours(self, event: Event) -> bool:
        return event.details.get("log_offset") is not None

    def _answers(self, *apis: str) -> list[tuple[Event, Mapping[str, Any]]]:
        """Every entry on this partition that a broker answered without an error."""
        return [
            (self._late_ones.get((request.source, request.seq), request), entry)
            for request, entry in self._granted(*apis)
        ]

    @cached_property
    def _late_ones(self) -> dict[tuple[str, int], Event]:
        """The commit requests whose line came late, as if it had come with the commit that must be theirs: the last one
        before that nobody else asked for, in the order of what their connection asked for in time."""
        asked = [
            pair for pair in self._granted("OFFSETCOMMIT", "TXNOFFSETCOMMIT") if pair[0].source_wall_ns is not None
        ]
        stored = [e for e in self.trial.offsets_log if e.kind == "committed" and (e.topic, e.partition) == self.tp]
        theirs = {
            (request.source, request.seq): [
                c for c in stored if _alike(request, entry, c) and _covers(request, _wall(c))
            ]
            for request, entry in asked
        }
        claimed = {c.name for commits in theirs.values() for c in commits}
        in_time = [
            (r, max(commits, key=lambda c: (_wall(c), _place(c))))
            for r, _ in asked
            if (commits := theirs[r.source, r.seq])
        ]
        late: dict[tuple[str, int], Event] = {}
        for request, entry in asked:
            begun_ns = (request.source_wall_ns or 0) - _duration_ns(request) - LOG_TOLERANCE_NS
            free = [c for c in stored if _alike(request, entry, c) and _wall(c) < begun_ns and c.name not in claimed]
            if theirs[request.source, request.seq] or not free:
                continue
            last = max(free, key=lambda c: (_wall(c), _place(c)))
            mine = [(r.seq, _place(c)) for r, c in in_time if _connection(r) == _connection(request)]
            fits = all((seq < request.seq) == (place < _place(last)) for seq, place in mine)
            known = [one for one in late.values() if one.details["commit"] == last.name]
            if fits and not known and _wall(last) >= begun_ns - STAMPED_LATE_NS_MAX:
                about = {**request.details, "duration_ms": 0, "commit": last.name}
                late[request.source, request.seq] = replace(request, source_wall_ns=_wall(last), details=about)
        return late

    def _granted(self, *apis: str) -> list[tuple[Event, Mapping[str, Any]]]:
        return [
            (request, entry)
            for request in self.trial.requests
            if request.details["api"].replace("_", "").upper() in apis
            for entry in self.trial.entries(request, self.tp)
            if not entry.get("error", request.details.get("error", 0))
        ]

    @cached_property
    def offset_fetches(self) -> list[Answer]:
        """Every answer to an OffsetFetch in a member's lane."""
        return [
            Answer(member, self.trial.mono_ns(request.source_wall_ns, request.time_ns), entry["committed_offset"])
            for request, entry in self._answers("OFFSETFETCH")
            if (member := self.trial.lane_member(request)) is not None
        ]

    @cached_property
    def fetches(self) -> list[Fetched]:
        """What members fetched of this partition, and when they no longer did (position None), by time."""
        found: list[Fetched] = []
        listed: dict[str, bool] = {}
        for request in [e for e in self.trial.of_kind("request") if e.details["api"].upper() == "FETCH"]:
            member = self.trial.lane_member(request)
            at_ns = self.trial.mono_ns(request.source_wall_ns, request.time_ns)
            mine = self.trial.entries(request, self.tp)
            connection = f"{request.source} {request.details.get('connection')}"
            if request.details.get("complete"):
                if listed.get(connection) and not mine and member is not None:
                    found.append(Fetched(member, at_ns, None))
                listed[connection] = bool(mine)
        for request, entry, _, answered_ns in naive_responses.timed_fetches(self.trial, self.tp):
            if (member := self.trial.lane_member(request)) is not None:
                found.append(Fetched(member, int(answered_ns), entry["offset"]))
        return sorted(found, key=lambda fetch: fetch.time_ns)

    def starts_from(self, answer: Answer) -> bool:
        """Whether the asker began at what it was answered: a gauge that only asks does not."""
        if self._only_looks(answer):
            return False
        if not any(fetch.position is not None for fetch in self.fetches):
            return not self._in_hand_by_lines(answer)
        mine = [f for f in self.fetches if f.member == answer.member and f.position is not None]
        following = [f.position for f in mine if f.time_ns >= answer.time_ns][:2]
        fits = [answer.position < 0 or position == answer.position for position in following]
        stood = self._fetching_from(answer)
        if len(following) == 2 and fits[1] and (following[1] or 0) < (following[0] or 0):
            return True
        return bool(following) and fits[0] and (stood is None or (following[0] or 0) < stood)

    def _only_looks(self, answer: Answer) -> bool:
        """The group had given the partition to another member, by all that the offsets log says around the answer."""
        records = self.trial.of_kind("group", "member_assignment", "group_tombstone")
        for at_ns in (answer.time_ns, answer.time_ns + LOG_TOLERANCE_NS):
            written = [
                e.details["log_offset"]
                for e in records
                if self._is_ours(e) and min(self.trial.mono_ns(e.source_wall_ns, e.time_ns), e.time_ns) <= at_ns
            ]
            place = max(written, default=None)
            owners = None if place is None else self.owners_at(place + 1)
            if place is None or not owners or answer.member in owners or not self._group_has_members(place):
                return False
        return True

    def _fetching_from(self, answer: Answer) -> int | None:
        """From where the asker was fetching when the answer came; None where it was not."""
        before = [f for f in self.fetches if f.time_ns < answer.time_ns]
        asked = [f for f in before if f.position is not None]
        mine = [f for f in asked if f.member == answer.member]
        begun = [e.time_ns for e in self.trial.of_kind("started") if e.member == answer.member]
        dropped = [f.time_ns for f in before if f.member == answer.member and f.position is None]
        since = max([*(at for at in begun if at <= answer.time_ns), *dropped], default=0)
        if not mine or mine[-1].time_ns < since or mine[-1].time_ns < asked[-1].time_ns:
            return None
        return mine[-1].position

    def _in_hand_by_lines(self, answer: Answer) -> bool:
        opened = [q for q in self.ownership_epochs if q.member == answer.member and q.opened.time_ns <= answer.time_ns]
        held = max(opened, key=lambda q: (q.opened.time_ns, q.source, q.number), default=None)
        if held is None or not held.open_at(answer.time_ns):
            return False
        return any(w.ownership_epoch == held and w.event.time_ns < answer.time_ns for w in self.deliveries)

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

    @cached_property
    def owners_in_turn(self) -> list[tuple[float, str | None]]:
        """Whenever a record of the offsets log lists the partition: when that was, and the member; None: unknown."""
        found: list[tuple[float, int, str | None]] = []
        for event in self.trial.offsets_log:
            listed = [*self.trial.entries(event, self.tp), *self.trial.entries(event, self.tp, "pending")]
            at = self.trial.mono_ns(event.source_wall_ns, event.time_ns), event.details.get("log_offset", -1)
            for entry in listed if event.kind in ("group", "member_assignment") else ():
                member_id = str(entry["member_id"] if event.kind == "group" else event.details["member_id"])
                found.append((*at, self.trial.member_of_id.get(member_id)))
        return [(time_ns, member) for time_ns, _, member in sorted(found, key=lambda one: one[:2])]

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

    def floor(self, ownership_epoch: OwnershipEpoch) -> int | None:
        """Where the ownership epoch had to start; None when nobody knows."""
        came = self.trial.last_fail_over(ownership_epoch.opened.time_ns)
        floor = self._floor_by(ownership_epoch, self._commits_since(came))
        if came is None:
            return floor
        least = self._least_since(came)
        if self.is_begun_anywhere(ownership_epoch):
            return None
        return floor if least is None or floor is None else max(floor, least)

    def is_begun_anywhere(self, ownership_epoch: OwnershipEpoch | None) -> bool:
        """It began after a fail-over before the group had committed there, and nobody knows from where it had to."""
        came = None if ownership_epoch is None else self.trial.last_fail_over(ownership_epoch.opened.time_ns)
        if ownership_epoch is None or came is None:
            return False
        sure_ns = self.trial.earliest_ns(ownership_epoch.opened.time_ns) - TOLERANCE_NS
        there = [one for one in self._commits_since(came) if one.value is not None]
        return self._least_since(came) is None and all(one.effect_ns >= sure_ns for one in there)

    def _commits_since(self, came: Event | None) -> list[Commit]:
        """Those on the cluster to which the group had come then; None: on the first one."""
        return [commit for commit in self.commits if self.trial.last_fail_over_before(commit.place) is came]

    def _least_since(self, came: Event) -> int | None:
        """From where the group had to begin there at least; None: nobody knows."""
        told = came.details.get("entries", ())
        return next((one["least_offset"] for one in told if (one["topic"], one["partition"]) == self.tp), None)

    def _floor_by(self, ownership_epoch: OwnershipEpoch, commits: list[Commit]) -> int | None:
        if ownership_epoch.source in self.trial.untimed:
            return self._start_of(None)  # nobody knows when it began
        first = min((w.event.time_ns for w in self.given if w.ownership_epoch == ownership_epoch), default=FOREVER)
        earliest_ns = self.trial.earliest_ns(ownership_epoch.opened.time_ns)
        earliest = earliest_ns - LOG_TOLERANCE_NS - self._gap_ns(ownership_epoch)
        answers = [
            answer
            for answer in self.offset_fetches
            if answer.member == ownership_epoch.member and earliest <= answer.time_ns <= first + LOG_TOLERANCE_NS
        ]
        if answers:
            return self._start_of(self._began_with(answers).position)
        opened_ns = ownership_epoch.opened.time_ns
        begin_ns, end_ns = earliest_ns - TOLERANCE_NS, opened_ns + TOLERANCE_NS
        sure = [commit.value for commit in commits if commit.effect_ns < begin_ns]
        near = [commit.value for commit in commits if begin_ns <= commit.effect_ns <= end_ns]
        possible = [self._start_of(value) for value in sure[-1:] or [None]] + [self._start_of(v) for v in near]
        return None if None in possible else min(p for p in possible if p is not None)

    def _began_with(self, answers: list[Answer]) -> Answer:
        """The last answer that its asker started from; else the last before it was seen to fetch."""
        answers = sorted(answers, key=lambda answer: answer.time_ns)
        started = [answer for answer in answers if self.starts_from(answer)]
        fetched = [f.time_ns for f in self.fetches if f.member == answers[0].member and f.position is not None]
        begun = min((at for at in fetched if at >= answers[0].time_ns), default=FOREVER)
        return (started or [answer for answer in answers if answer.time_ns <= begun])[-1]

    def _gap_ns(self, ownership_epoch: OwnershipEpoch) -> int:
        earlier = [
            other.closed.time_ns
            for other in self.ownership_epochs
            if other.source == ownership_epoch.source and other.closed and other.number < ownership_epoch.number
        ]
        return min(ownership_epoch.opened.time_ns - max(earlier), FETCH_LOOKBACK_NS) if earlier else FETCH_LOOKBACK_NS

    def _start_of(self, position: int | None) -> int | None:
        if position is not None and position >= 0:
            return position
        return self.log_start if self.trial.settings.get("reset", "earliest") == "earliest" else None

    def loss(self, ownership_epoch: OwnershipEpoch) -> Loss | None:
        """The first time the log gave the partition to others while the member believed it had it."""
        name = (ownership_epoch.source, ownership_epoch.opened.name, ownership_epoch.opened.time_ns)
        if name not in self._losses:
            self._losses[name] = self._loss(ownership_epoch)
        return self._losses[name]

    def _loss(self, ownership_epoch: OwnershipEpoch) -> Loss | None:
        taken = [
            owning.time_ns
            for owning in self.ownership
            if owning.names_it
            and (ownership_epoch.open_at(owning.time_ns) or self._lost_by(ownership_epoch, owning.time_ns))
            and ownership_epoch.member not in (self._members(owning.owners) or {ownership_epoch.member})
        ]
        if not taken:
            return None
        lost_ns = taken[0]
        _, answered_ns = naive_responses.answer_that_tells(self, ownership_epoch, lost_ns)
        told_ns = min(answered_ns, naive_responses.by_its_own_clock(self, ownership_epoch, lost_ns))
        return Loss(
            lost_ns,
            told_ns,
            naive_responses.fetched_by(self, ownership_epoch, told_ns),
            naive_responses.fetched_again_ns(self, ownership_epoch, told_ns),
            ownership_epoch.source in self.trial.untimed,
            tuple(self._refusal_lines(ownership_epoch, lost_ns)),
            self._finished_ns(ownership_epoch.closed),
        )

    def _lost_by(self, ownership_epoch: OwnershipEpoch, time_ns: float) -> bool:
        """The member had been told then that it lost the partition, and has not got it again."""
        closed = ownership_epoch.closed
        if closed is None or closed.kind != "lost" or not naive_losses.is_a_loss(self, closed):
            return False
        mine = [one for one in self.ownership_epochs if one.source == ownership_epoch.source]
        later = [one.opened.time_ns for one in mine if one.number > ownership_epoch.number]
        return closed.time_ns < time_ns < min(later, default=FOREVER)

    def _refusal_lines(self, ownership_epoch: OwnershipEpoch, since_ns: float) -> Iterator[RefusalLine]:
        """What the member says of commits that were refused, as brokers had told it since then."""
        refused, refused_ns = naive_responses.commit_refused(self, ownership_epoch, since_ns)
        for said in self.all_said_to_fail(ownership_epoch, max(since_ns, refused_ns - TOLERANCE_NS)):
            listed = self.trial.entries(said, self.tp)
            if not listed and refused is not None:
                listed = self.trial.entries(refused, self.tp)
            position = max((entry["committed_offset"] for entry in listed), default=-FOREVER)
            yield RefusalLine(said, position, naive_responses.fetched_by(self, ownership_epoch, said.time_ns))

    def _finished_ns(self, event: Event | None) -> float:
        """When the handlers in hand at an event had ended."""
        if event is None:
            return FOREVER
        return max([event.time_ns, *(h.ended.event.time_ns for h in self.in_hand(event) if h.ended)])

    def said_to_fail(self, ownership_epoch: OwnershipEpoch, after_ns: float) -> Event | None:
        """The member's first word of a failed commit."""
        return next(iter(self.all_said_to_fail(ownership_epoch, after_ns)), None)

    def all_said_to_fail(self, ownership_epoch: OwnershipEpoch, after_ns: float) -> list[Event]:
        """What the member says of failed commits, of the partition or of nothing in particular."""
        failed = [
            event
            for event in self.trial.of_kind("commit")
            if event.outcome == "fail"
            and ownership_epoch.holds(event)
            and event.time_ns > after_ns
            and (self.trial.entries(event, self.tp) or not event.details.get("entries"))
        ]
        return sorted(failed, key=lambda e: e.seq)

    def in_hand(self, told: Event) -> list[Handler]:
        """The handlers of told's file that run across it."""
        return [
            handler
            for handler in self.handlers
            if handler.begun.event.source == told.source
            and handler.begun.event.seq < told.seq
            and (handler.ended is None or handler.ended.event.seq > told.seq)
        ]

    def excused(self, ownership_epoch: OwnershipEpoch | None, offset: int, begin_ns: float, end_ns: float) -> bool:
        """Tells whether the handling of a record touches the zombie window of the ownership epoch."""
        loss = self.loss(ownership_epoch) if ownership_epoch else None
        if loss is None or begin_ns > loss.excused_until_ns or end_ns < loss.time_ns - TOLERANCE_NS:
            return False
        mine = [one for one in self.begun if (one.ownership_epoch, one.offset) == (ownership_epoch, offset)]
        began = [one for one in mine if one.event.time_ns <= end_ns]
        return not any(map(self.began_though_refused, began)) and not loss.knows(offset, end_ns)

    def began_though_refused(self, begun: Work) -> bool:
        """Others had the partition, no commit of its own was leave to begin, and it knew of one that was refused."""
        held, offset, event = begun.ownership_epoch, begun.offset, begun.event
        if held is None or self.trial.settings.get("progress", "kafka") not in ("kafka", "transaction"):
            return False
        end = self.end_of(begun) if event.kind == "delivered" else begun
        given_up = end is not None and end.event.outcome in ("failed", "discarded")
        granted = [
            commit.value
            for commit in self.commits
            if commit.committer in (held.member, None, STRANGER)
            and commit.value is not None
            and commit.effect_ns <= event.time_ns + TOLERANCE_NS
        ]
        others = self.loss(held) is not None and self.of_others(held.member, event.time_ns - TOLERANCE_NS)
        if given_up or not others or max(granted, default=-1) > offset:
            return False
        own = [word for word in self._refusal_lines(held, held.opened.time_ns) if word.event.seq < event.seq]
        tells = any(e.source == event.source for e in self.trial.of_kind("delivered"))
        written_ns = self.trial.written_ns(event)
        heard = [position for ns, position in naive_responses.refused_commits(self, held) if tells and ns < written_ns]
        return max([*(word.position for word in own), *heard], default=-1) > offset

    def of_others(self, member: str, time_ns: float) -> bool:
        """The last record that gave the partition to anybody gave it to others than this member."""
        given = [one.owners for one in self.ownership if one.names_it and one.assigned and one.time_ns <= time_ns]
        return bool(given) and member not in (self._members(given[-1]) or {member})

    def ownership_epoch_of_work(self, work: Work) -> OwnershipEpoch | None:
        """The ownership epoch a completion belongs to: where its handler began, else where it lies."""
        begun = [handler.begun.ownership_epoch for handler in self.handlers if handler.ended == work]
        return begun[0] if begun and begun[0] else work.ownership_epoch

    def found(self, place: int | None, **attributes: Any) -> Found:
        return (*self.tp, -1 if place is None else place, tuple(sorted(attributes.items())))


def _read_before(event: Event, mine: list[Event]) -> int:
    """When the lines of its file were read that were read last before an event was."""
    return max((e.time_ns for e in mine if e.time_ns < event.time_ns), default=event.time_ns)


def _alike(request: Event, entry: Mapping[str, Any], commit: Event) -> bool:
    """The commit is of the position that was asked for, and both are of a transaction, or neither."""
    inside = request.details["api"].replace("_", "").upper() == "TXNOFFSETCOMMIT"
    return entry.get("committed_offset") == commit.committed_offset and inside == ("producer_id" in commit.details)


def _wall(commit: Event) -> int:
    return int(commit.details.get("commit_time_ms", 0) * 1_000_000)


def _place(commit: Event) -> int:
    return int(commit.details["log_offset"])


def _connection(request: Event) -> tuple[str, int | None]:
    return request.source, request.details.get("lane")


def _duration_ns(request: Event) -> int:
    return int(request.details.get("duration_ms", 0) * 1_000_000)


def _covers(request: Event, wall_ns: int) -> bool:
    line_ns = request.source_wall_ns or 0
    duration_ns = _duration_ns(request)
    return line_ns - duration_ns - LOG_TOLERANCE_NS <= wall_ns <= line_ns + LOG_TOLERANCE_NS


def _changes_one_member(event: Event) -> bool:
    return event.kind == "member_assignment" or (
        event.kind == "group_tombstone" and event.details.get("record_type") == 8
    )


def judge(events: Iterable[Event], settings: Mapping[str, Any]) -> Findings:
    """Returns every anomaly of the history, partition by partition, sorted; then what belongs to no partition."""
    trial, findings = Trial(events, settings), Findings()
    for effects in trial.effects_by_home.get(None, {}).values():
        if trial.invoked:
            _take(findings, "phantom", (f for e in effects for f in _phantom(trial, e, (trial.topic, None, -1))))
        _take(findings, "duplicate-effect", ((trial.topic, None, -1, ()) for _ in effects[1:]))
        if settings.get("body") == "value":
            other = [effect for effect in effects if _says_other(trial, effect)]
            _take(findings, "corrupt", ((trial.topic, None, -1, (("found_in", "effect"),)) for _ in other))
    for tp in trial.all_slices():
        partition = Partition(trial, tp)
        if naive_assignments.given_after_a_false_line(partition):
            findings.not_judged.update(CHECKS)
        for name in naive_handed_on.ON_THE_WAY if tp[0] in trial.through else CHECKS:
            if _lacks_evidence(partition, name):
                findings.not_judged.add(name)
            else:
                found = list(CHECKS[name](partition))
                _take(findings, name, found)
                _take(findings, name, _only_if_read_in_time(trial, tp, name, found))
                _take(findings, name, _only_if_not_aborted(trial, tp, name, found))
    for name, check in GROUP_CHECKS.items():
        blind = name in NEED_SNAPSHOT and trial.snapshot_ns is None
        if blind or (name in NEED_TRANSACTIONS and not trial.progress_in_transactions):
            findings.not_judged.add(name)
        else:
            _take(findings, name, check(trial))
    _leave_undecided_what_lines_may_have_said(trial, findings)
    _leave_undecided_what_may_be_handed_on(trial, findings)
    if _commits_behind_a_buffer(trial):
        findings.in_part["commit-ahead"] = BUFFERED
    for instances in findings.anomalies.values():
        instances.sort(key=repr)
    return findings


def _leave_undecided_what_lines_may_have_said(trial: Trial, findings: Findings) -> None:
    """An event that nobody could read, and that does not name its record, may have been the line of any one."""
    nameless = 0
    for line in trial.of_kind("bad_line"):
        killed = [e for e in trial.of_kind("exited") if e.source == line.source and e.details.get("signal") == 9]
        torn = any(e.seq == line.seq + 1 for e in killed)
        nameless += line.details.get("events", 0) if line.offset is None and not torn else 0
    of_records = ("skipped", "unseen", "poll-skip")
    missing = {found[:3] for name in of_records for found in findings.anomalies[name]}
    if not nameless or len(missing) > nameless:
        return
    for name in (*of_records, "stuck-partition", "false-lag", "late-convergence"):
        findings.undecided[name] += len(findings.anomalies[name])
        findings.anomalies[name] = []
    for tp in trial.all_slices():
        partition = Partition(trial, tp)
        for topic, number, offset in missing:
            if (topic, number) == tp:
                partition.first_handled[int(offset)] = 0
                partition.taken_as_done.add(int(offset))
        here = [found for found in findings.anomalies["commit-ahead"] if found[:2] == tp]
        passed = _values_over(partition, [int(offset) for topic, number, offset in missing if (topic, number) == tp])
        still = [found for found in commit_ahead(partition) if found in here and found[2] not in passed]
        findings.undecided["commit-ahead"] += len(here) - len(still)
        elsewhere = [found for found in findings.anomalies["commit-ahead"] if found[:2] != tp]
        findings.anomalies["commit-ahead"] = elsewhere + still
    ahead = findings.anomalies["commit-ahead"]
    if len(missing) + len(ahead) <= nameless and trial.settings.get("sink") != "http":  # each done before, perhaps
        findings.undecided["commit-ahead"] += len(ahead)
        findings.anomalies["commit-ahead"] = []


def _leave_undecided_what_may_be_handed_on(trial: Trial, findings: Findings) -> None:
    """A record that nobody can name may be any one that was committed past before it was handled, and one only."""
    partitions = [Partition(trial, tp) for tp in trial.all_slices()]
    ahead = sum(_is_ahead(p, offset) for p in partitions for offset in p.records)
    if not 0 < ahead <= naive_handed_on.nameless(trial):
        return
    for name in ("commit-ahead", "skipped"):
        findings.undecided[name] += len(findings.anomalies[name])
        findings.anomalies[name] = []


def _is_ahead(p: Partition, offset: int) -> bool:
    """The first commit that passed it was asked for before it was handled."""
    covering = _first_covering(p, offset)
    if covering is None or offset not in p.first_handled:
        return covering is not None
    in_transaction = covering.event.details.get("producer_id") is not None
    return not in_transaction and p.first_written[offset] > _asked_ns(p, covering)


def _values_over(p: Partition, offsets: list[int]) -> set[int]:
    """Positions whose commits passed one of these records."""
    rises = [(before or 0, commit.value or 0) for before, commit in _raising_commits(p)]
    return {value for before, value in rises for offset in offsets if before <= offset < value}


def _commits_behind_a_buffer(trial: Trial) -> bool:
    """A member that works and commits, and of which nobody can tell what it had done when it asked for a commit."""
    if trial.has_sink:
        return False
    commits = [(p, commit) for tp in trial.slices() for p in [Partition(trial, tp)] for commit in p.commits]
    for source in trial.untimed:
        said = {e.kind: e for e in trial.events if e.source == source and e.kind in ("delivered", "processed")}
        asks = any(e.source == source and e.outcome == "invoke" for e in trial.of_kind("commit"))
        tells = any(e.source == source for e in trial.of_kind("commit"))
        makes = any(commit.committer is None or _file_of(p, commit) == source for p, commit in commits)
        if said and not asks and (tells or makes):
            return True
    return False


def _only_if_read_in_time(trial: Trial, tp: Slice, name: str, found: list[Found | None]) -> list[None]:
    """One undecided case for each finding that there would be besides, had the harness never stood still; of what waits
    for the end of the drain also where that was no time to blame anybody."""
    if not trial.harness_stalls:
        return []
    in_time = trial.once_more()
    in_time.with_harness_stalls = False
    would_be = list(CHECKS[name](Partition(in_time, tp)))
    if name == "unseen":
        return [None] * max(0, len(would_be) - len(found))
    besides = _sorts(would_be) - _sorts(found)
    return [None] * besides.total()


def _only_if_not_aborted(trial: Trial, tp: Slice, name: str, found: list[Found | None]) -> list[None]:
    """One undecided case for each finding that there would be besides, had its member given up only what it surely
    did."""
    if not (trial.progress_in_transactions and naive_aborts.may_be_aborted(trial)):
        return []
    surely = trial.once_more()
    surely.only_certain_aborts = True
    besides = _sorts(CHECKS[name](Partition(surely, tp))) - _sorts(found)
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
        or (name == "stale-state" and p.trial.settings.get("effects") != "state")
        or (name == "stale-state" and not p.trial.states_compared)
    )


def _take(findings: Findings, name: str, found: Iterable[Found | None]) -> None:
    """None stands for one case that stayed undecided."""
    for instance in found:
        if instance is None:
            findings.undecided[name] += 1
        else:
            findings.anomalies[name].append(instance)


# --- delivery --------------------------------------------------------------------------------------------------


def false_report(p: Partition) -> Iterator[Found]:
    """Every line about a record that a witness knows cannot be so."""
    for line in p.own("delivered", "processed"):
        by = p.contradicted_by(line)
        if by is not None and line.offset is not None:
            yield p.found(line.offset, what=line.kind, by=by)
    for _ in p.never_given:
        yield p.found(None, what="assigned", by="request log")


def skipped(p: Partition) -> Iterator[Found | None]:
    """Committed past, never handled."""
    for offset in p.records:
        if p.final_committed is None or offset >= p.final_committed or offset in p.first_handled:
            continue
        covering = _first_covering(p, offset)
        if covering is not None and _may_be_a_last_act(p, covering):
            yield None
        else:
            yield p.found(offset, in_flight_at_crash=covering is not None and _in_flight(p, covering, offset))


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
    read = [e for e in p.trial.as_read if e.source == source]
    buffer_ns = TOLERANCE_NS if p.trial.settings.get("stdout") == "buffered" else 0
    work = [e.time_ns - buffer_ns for e in read if e.kind in ("delivered", "processed")]
    lines = work + [e.time_ns for e in read if e.kind == "started"]
    return bool(exits) and max(lines) < effect_ns <= exits[-1].time_ns + TOLERANCE_NS


def _in_flight(p: Partition, commit: Commit, offset: int) -> bool:
    """Nobody could tell its member that the commit stood; or it crashed soon after it, and had not passed over the
    record."""
    if _unknown_to_member(p, commit) and not _received_a_retry(p, commit):
        return True
    crashed = _crashed_soon(p, commit) or _in_hand_of_a_pool(p, commit, offset)
    return crashed and not _left_out(p, commit, offset) and _may_have_had(p, commit, offset)


def _may_have_had(p: Partition, commit: Commit, offset: int) -> bool:
    """Some fetch of the incarnation that crashed can have brought the record, or the request log cannot tell; a broker
    may have stamped late what it had answered before the crash."""
    source = _file_of(p, commit)
    ends = [replace(e, offset=offset) for e in p.trial.of_kind("exited") if e.source == source][:1]
    ends += [replace(end, time_ns=end.time_ns + STAMPED_LATE_NS_MAX) for end in ends]
    return not ends or any(not p._fetches_are_known(end) or p._may_have_fetched(end) for end in ends)


def _crashed_soon(p: Partition, commit: Commit) -> bool:
    """Its position was its incarnation's last here, or the one before, if the member never knew of that and had to try
    again; and then came the end."""
    source = _file_of(p, commit)
    exits = [e for e in p.trial.of_kind("exited") if e.source == source]
    if source is None or not _crashed(p, source):
        return False
    runs = _positions_of(p, source)
    own = next(number for number, run in enumerate(runs) if commit in run)
    if own == len(runs) - 2 and all(_unknown_to_member(p, c) and not _says_accepted(p, c) for c in runs[own]):
        own += 1
    known = [c for c in runs[own] if not _unknown_to_member(p, c) or _says_accepted(p, c)]
    since_ns = (known[0] if known else runs[own][-1]).effect_ns
    soon_ns = float(p.trial.settings.get("poll_interval_s", 10)) * SECOND_NS + TOLERANCE_NS
    return own == len(runs) - 1 and exits[0].time_ns <= since_ns + soon_ns


def _positions_of(p: Partition, source: str) -> list[list[Commit]]:
    """The commits of an incarnation, those of one position after the other together, unless it got the partition
    anew between them."""
    opened = [one.opened.time_ns for one in p.ownership_epochs if one.source == source]
    runs: list[list[Commit]] = []
    before: Any = None
    for one in sorted(
        (c for c in p.commits if c.value is not None and _file_of(p, c) == source), key=lambda c: c.place
    ):
        same = one.value, sum(at <= one.effect_ns + TOLERANCE_NS for at in opened)
        if same != before:
            runs.append([])
        before = same
        runs[-1].append(one)
    return runs


def _says_accepted(p: Partition, commit: Commit) -> bool:
    """A line of its file says so of this position, and no later commit of it stands before that line."""
    source = _file_of(p, commit)
    same = [c for c in p.commits if c.value == commit.value and _file_of(p, c) == source]
    for line in [e for e in p.trial.of_kind("commit") if e.outcome == "ok" and e.source == source]:
        if any(entry["committed_offset"] == commit.value for entry in p.trial.entries(line, p.tp)):
            before = [c for c in same if c.effect_ns <= line.time_ns + TOLERANCE_NS]
            if before and max(before, key=lambda c: (c.effect_ns, c.place)) == commit:
                return True
    return False


def _in_hand_of_a_pool(p: Partition, commit: Commit, offset: int) -> bool:
    """Its file had begun with the record and not ended it, or failed with it soon before the crash, had the partition
    still, and has handlers that overlap."""
    source = _file_of(p, commit)
    words = [w for w in (*p.deliveries, *p.completions, *p.failures) if w.event.source == source and w.offset == offset]
    if source is None or not words or not _crashed(p, source):
        return False
    last = max(words, key=lambda w: w.event.seq)
    exited_ns = next(e.time_ns for e in p.trial.of_kind("exited") if e.source == source)
    soon_ns = float(p.trial.settings.get("poll_interval_s", 10)) * SECOND_NS + TOLERANCE_NS
    waits = last in p.failures and exited_ns <= last.event.time_ns + soon_ns
    epoch = last.ownership_epoch
    kept = epoch is None or epoch.closed is None or epoch.closed.kind == "exited"
    ended = [h for h in p.handlers if h.ended and h.begun.event.source == source]
    spans = [(h.begun.event.seq, h.ended.event.seq) for h in ended if h.ended]
    at_once = any(begun < other < end for begun, end in spans for other, _ in spans)
    batches = p.trial.settings.get("handler") == "batch"
    return (last.event.kind == "delivered" or waits) and kept and at_once and not batches


def _file_of(p: Partition, commit: Commit) -> str | None:
    if commit.committer in (None, OPERATOR, STRANGER):
        return None
    return _incarnation(p, str(commit.committer), commit.effect_ns)


def _left_out(p: Partition, commit: Commit, offset: int) -> bool:
    """Its member had begun with a later record and never with this one, or was told to start behind it."""
    begun = {work.offset for work in p.begun if work.event.source == _file_of(p, commit)}
    answers = [
        answer
        for answer in p.offset_fetches
        if answer.member == commit.committer and answer.time_ns <= commit.effect_ns - LOG_TOLERANCE_NS
    ]
    told = max(answers, key=lambda answer: answer.time_ns).position if answers else -1
    return (offset not in begun and max(begun, default=-1) > offset) or told > offset


def _failure(p: Partition, commit: Commit) -> Event | None:
    """The word that the commit failed, of the last attempt at it that had begun when it took effect: of its own
    incarnation, or of anybody where nobody knows whose commit it is."""
    if commit.committer == OPERATOR:
        return None
    own, attempts = _file_of(p, commit), []
    for failed in [e for e in p.trial.of_kind("commit") if e.outcome == "fail"]:
        if failed.source != own if commit.committer is not None else False:
            continue
        if commit.value not in [entry["committed_offset"] for entry in p.trial.entries(failed, p.tp)]:
            continue
        invokes = [
            e.time_ns
            for e in p.trial.of_kind("commit")
            if e.outcome == "invoke" and e.source == failed.source and e.seq < failed.seq
            if commit.value in [entry["committed_offset"] for entry in p.trial.entries(e, p.tp)]
        ]
        begun_ns = max(invokes, default=-1)
        if begun_ns <= commit.effect_ns + TOLERANCE_NS:
            attempts.append((begun_ns, failed.source, failed.seq, failed))
    return max(attempts, key=lambda one: one[:3])[-1] if attempts else None


def _own_request(p: Partition, commit: Commit) -> Event | None:
    """The line of the request log that asked for the commit: the first of its committer that fits."""
    api = "TXNOFFSETCOMMIT" if "producer_id" in commit.event.details else "OFFSETCOMMIT"
    wall_ns = commit.event.details["commit_time_ms"] * 1_000_000
    lines = [
        request
        for request, entry in p._answers(api)
        if entry["committed_offset"] == commit.value
        and _covers(request, wall_ns)
        and commit.committer not in (None, OPERATOR, STRANGER)
        and p.trial.lane_member(request) == commit.committer
    ]
    return min(lines, key=lambda e: e.source_wall_ns or 0, default=None)


def _unknown_to_member(p: Partition, commit: Commit) -> bool:
    """Its member says that it failed, and had not surely heard of it by then; or cannot have heard of it at all."""
    failure, request = _failure(p, commit), _own_request(p, commit)
    if request is not None and not naive_responses.maybe_received(p.trial, request):
        return True
    if failure is None:
        return False
    if (
        request is None
        or not naive_responses.surely_received(p.trial, request)
        or _refused_elsewhere(p, request, commit.value)
    ):
        return True
    sent_ns = p.trial.mono_ns(request.source_wall_ns, request.time_ns)
    return sent_ns > p.trial.earliest_ns(failure.time_ns) - TOLERANCE_NS


def _refused_elsewhere(p: Partition, request: Event, value: int | None) -> bool:
    """The last refusal of the same place on its lane, to the same process and while a client may wait for an answer,
    came after the answer, on another connection: it asked again."""
    waits_s = p.trial.settings.get("request_timeout_s")
    until_ns = (request.source_wall_ns or 0) + int((60.0 if waits_s is None else waits_s) * SECOND_NS)
    refused = [
        line
        for line in p.trial.of_kind("request")
        if line.details.get("api") in ("OFFSET_COMMIT", "TXN_OFFSET_COMMIT")
        and line.details.get("lane") == request.details.get("lane")
        for entry in p.trial.entries(line, p.tp)
        if entry["committed_offset"] == value and entry["error"] and line.source_wall_ns is not None
        if line.source_wall_ns <= until_ns and _process_of(p, line) == _process_of(p, request)
    ]
    last = max(refused, key=lambda line: line.source_wall_ns or 0, default=None)
    if last is None or (last.source_wall_ns or 0) <= (request.source_wall_ns or 0):
        return False
    if request.details.get("connection") is None or last.details.get("connection") is None:
        return False
    return any(one(request) != one(last) for one in (_connection, lambda line: line.details["connection"]))


def _process_of(p: Partition, request: Event) -> str | None:
    """The file of the incarnation that asked."""
    member = p.trial.lane_member(request)
    return None if member is None else _incarnation(p, member, p.trial.mono_ns(request.source_wall_ns, request.time_ns))


def _received_a_retry(p: Partition, commit: Commit) -> bool:
    """Its member was told, in the same ownership epoch, of a commit at the place or behind it that was accepted."""
    failure, request = _failure(p, commit), _own_request(p, commit)
    source = _file_of(p, commit) or (failure.source if failure else None)
    mine = [one for one in p.ownership_epochs if one.source == source]
    here = [one for one in mine if one.opened.time_ns <= commit.effect_ns]
    ownership_epoch = max(here, key=lambda one: one.number, default=None)
    later = [one.opened.time_ns for one in mine if ownership_epoch is None or one.number > ownership_epoch.number]
    until_ns = min(later, default=FOREVER)
    heard = []
    for word in [e for e in p.trial.of_kind("commit") if e.outcome == "ok" and e.source == source]:
        if word.time_ns >= commit.effect_ns - TOLERANCE_NS:
            heard += [(word.time_ns, entry["committed_offset"]) for entry in p.trial.entries(word, p.tp)]
    for line, entry in p._answers("OFFSETCOMMIT", "TXNOFFSETCOMMIT"):
        at_ns = p.trial.mono_ns(line.source_wall_ns, line.time_ns)
        member, since_ns = p.trial.lane_member(line), commit.effect_ns - TOLERANCE_NS
        after = at_ns >= since_ns
        if request is not None:
            after = at_ns > p.trial.mono_ns(request.source_wall_ns, request.time_ns)
        if _refused_elsewhere(p, line, entry["committed_offset"]):
            continue
        if (
            member
            and after
            and _incarnation(p, member, at_ns) == source
            and naive_responses.surely_received(p.trial, line)
        ):
            heard.append((at_ns, entry["committed_offset"]))
    begins_ns = ownership_epoch.opened.time_ns if ownership_epoch else -FOREVER
    heard = [(at_ns, value) for at_ns, value in heard if begins_ns <= at_ns < until_ns]
    if ownership_epoch is None:
        return any(value == commit.value for _, value in heard)
    return any(value >= (commit.value or 0) for _, value in heard)


def _crashed(p: Partition, source: str) -> bool:
    """Killed; or it went unasked, by a signal or with another status than 0. Whoever was asked to stop did not."""
    exits = [e.details for e in p.trial.of_kind("exited") if e.source == source]
    return any(
        details.get("signal") == 9
        or (details.get("asked") != "stop" and details.get("code") not in (None, 0))
        or (details.get("asked") == "no" and details.get("signal") is not None)
        for details in exits
    )


def unseen(p: Partition) -> Iterator[Found | None]:
    """Not committed past and never handled by the snapshot, though there was time: None where there was not."""
    committed = p.final_committed if p.trial.progress_in_kafka else None
    for offset in _unhandled_at_snapshot(p):
        if committed is None or offset >= committed:
            yield None if _had_no_time(p) else p.found(offset)


def _unhandled_at_snapshot(p: Partition) -> list[int]:
    return [o for o in p.records if p.first_handled.get(o, FOREVER) > (p.trial.snapshot_ns or 0)]


def redelivered(p: Partition) -> Iterator[Found | None]:
    """Begun again: in another ownership epoch, at or above where that one had to start, or in the same. Undecided where
    one of the two was left before a seek, and no sink can tell whether it had been begun; and where it was tried again
    unless effects were the owner's."""
    kept = [begun for begun in p.begun if not _is_set_aside(p, begun)]
    stayed = [begun for begun in kept if not naive_seeks.is_before(p, begun, begun.ownership_epoch)]
    surely = [one for one in _repeated(p, stayed) if not p.is_retry(one)]
    for delivery in _repeated(p, stayed if p.trial.has_sink else kept):
        floor = p.floor(delivery.ownership_epoch) if delivery.ownership_epoch else None
        if (
            not _had_elsewhere(delivery, kept)
            or not p.trial.progress_in_kafka
            or (floor is not None and delivery.offset >= floor)
        ):
            yield p.found(delivery.offset) if delivery in surely else None
    for offset, effect in naive_effects.further(p):
        if p.is_begun_anywhere(p.opened_last(effect.time_ns)):
            continue
        if not p.trial.progress_in_kafka or not naive_effects.is_below_floor(p, offset, effect):
            yield p.found(offset)


def illegal_redelivery(p: Partition) -> Iterator[Found | None]:
    """Delivered again in another ownership epoch, below where that one had to start."""
    for delivery in _repeated(p, p.begun):
        floor, retry = p.floor(delivery.ownership_epoch) if delivery.ownership_epoch else None, p.is_retry(delivery)
        if floor is None and not retry:
            if _had_elsewhere(delivery, p.begun) or not p.is_begun_anywhere(delivery.ownership_epoch):
                yield None
        elif floor is not None and delivery.offset < floor and _had_elsewhere(delivery, p.begun):
            yield None if retry else p.found(delivery.offset)
    for offset, effect in naive_effects.further(p):
        if p.is_begun_anywhere(p.opened_last(effect.time_ns)):
            yield None
        elif naive_effects.is_below_floor(p, offset, effect):
            yield p.found(offset)
        elif effect.member is None and naive_effects.is_below_floor(p, offset, effect, of_owners=True):
            yield None


def retried(p: Partition) -> Iterator[Found]:
    """Begun again where nothing from there on had been completed."""
    for work in p.begun:
        if p.is_retry(work):
            yield p.found(work.offset)


def _repeated(p: Partition, starts: list[Work]) -> Iterator[Work]:
    for begun in starts:
        alike = [other for other in starts if other.offset == begun.offset]
        before = [o for o in naive_aborts.in_this_attempt(p, begun, p.begun) if o.offset == begun.offset]
        again = begun.ownership_epoch is not None and begun != min(alike, key=_when)
        if again and (before or _had_elsewhere(begun, starts)) and not p.is_surely_retry(begun):
            yield begun


def _is_set_aside(p: Partition, begun: Work) -> bool:
    """Who keeps its progress itself found that it was not its own to do, and says that it discarded it."""
    if p.trial.progress_in_kafka:
        return False
    ends = [handler.ended for handler in p.handlers if handler.begun == begun]
    end = ends[0] if ends else begun
    return end is not None and end.event.outcome == "discarded"


def _had_elsewhere(begun: Work, starts: list[Work]) -> bool:
    """Another ownership epoch had begun with the record, at whatever time."""
    alike = [other.ownership_epoch for other in starts if other.offset == begun.offset]
    return any(ownership_epoch not in (None, begun.ownership_epoch) for ownership_epoch in alike)


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
    """A second effect, a third …, of one record; where the log holds its id several times, each may have one."""
    for record_id, effects in p.effects.items():
        places = sum((read.topic, read.partition) == p.tp for read in p.trial.reads_of(record_id))
        for _ in effects[max(places, 1) :]:
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
            yield None if p.last_log_start > 0 or p.trial.compacted(p.tp[0]) else p.found(None)
        elif ack.offset in p.records and p.records[ack.offset].id is None:
            yield None
        else:
            yield p.found(ack.offset)


def _superseded(p: Partition, ack: Event) -> bool:
    """Compaction keeps the last record of a key: of those in the log, and of those that were acknowledged."""
    others = [*p.records.values(), *p.not_held]
    return p.trial.compacted(p.tp[0]) and any(
        other.key is not None and other.key == ack.key and (other.offset or 0) > (ack.offset or 0) for other in others
    )


def overtaken(p: Partition) -> Iterator[Found | None]:
    """Ranges of acknowledged records that expired before anybody read them."""
    expired = [ack for ack in p.not_held if 0 <= (-1 if ack.offset is None else ack.offset) < p.last_log_start]
    ranges: list[tuple[tuple[bool, bool, bool], list[Event]]] = []
    for ack in sorted(expired, key=lambda event: (event.offset, event.seq)):
        committed = p.trial.progress_in_kafka and (p.final_committed or 0) > (ack.offset or 0)
        if _was_read(p, ack, past=committed):
            ranges.append(((False, False, False), []))
            continue
        covering = _first_covering(p, ack.offset or 0) if committed else None
        operator, away = covering is not None and covering.committer == OPERATOR, _while_away(p, ack, covering)
        may_be_done = (covering is not None and _may_be_a_last_act(p, covering)) or (
            not committed and _killed_unseen(p)
        )
        if away != "yes" and (may_be_done or (away == "maybe" and not operator)):
            ranges.append(((False, False, False), []))
            yield None
            continue
        sort = (committed, operator, away == "yes")
        if not ranges or ranges[-1][0] != sort or not ranges[-1][1]:
            ranges.append((sort, []))
        ranges[-1][1].append(ack)
    for (committed, _, nobody_ran), acks in ranges:
        if acks:
            yield p.found(acks[0].offset, last_offset=acks[-1].offset, committed=committed, while_away=nobody_ran)


def _while_away(p: Partition, ack: Event, covering: Commit | None) -> str:
    """Whether it expired while the trial let nobody run, and nobody had committed past it by then."""
    starts, ends = p.own("log_start"), p.own("log_end")
    until_ns = naive_absences.expired_by_ns(p.trial.events, ack, starts, ends)
    if covering is not None and covering.effect_ns <= until_ns:
        return "no"
    return naive_absences.expired_while_away(p.trial.events, ack, starts, ends)


def _was_read(p: Partition, ack: Event, *, past: bool) -> bool:
    """Its effect or end was seen; its delivery counts only while nobody has committed past it, and its member has not
    given the partition back; no line that a witness knows cannot be so."""
    held = [] if past else [one for one in p.deliveries if not _given_back(p, one)]
    work = [one for one in held + p.completions if one.offset == ack.offset]
    return ack.id in p.effects or any(p.contradicted_by(one.event) is None for one in work)


def _given_back(p: Partition, delivery: Work) -> bool:
    """Its ownership epoch was over by the snapshot."""
    closed = delivery.ownership_epoch.closed if delivery.ownership_epoch else None
    return closed is not None and closed.time_ns < (p.trial.snapshot_ns or 0)


def _killed_unseen(p: Partition) -> bool:
    """Some member was killed with -9, and no sink saw what it had done."""
    killed = [e for e in p.trial.of_kind("exited") if e.details.get("signal") == 9]
    return bool(killed) and not p.trial.has_sink


def corrupt(p: Partition) -> Iterator[Found]:
    """Another content than was sent: in the log, or in an effect whose body must be the record's value."""
    altered = {
        offset for offset, record in p.records.items() if _differs(p.trial.sent_checksum(record.id), _checksum(record))
    }
    for offset in altered:
        yield p.found(offset, found_in="control read")
    for effect in [effect for several in p.effects.values() for effect in several]:
        offset = p.trial.home(effect.id)[1]
        if p.trial.settings.get("body") == "value" and offset not in altered and _says_other(p.trial, effect):
            yield (*p.tp, offset, (("found_in", "effect"),))


def _says_other(trial: Trial, effect: Event) -> bool:
    """Its body is neither what was sent, nor JSON that says what the control read holds; where that can be told."""
    said = effect.details.get("json_checksum")
    read = [record.details.get("json_checksum") for record in trial.reads_of(effect.id)][:1]
    if not _differs(trial.sent_checksum(effect.id), _checksum(effect)):
        return False
    return said is None or (read not in ([], [None]) and read != [said])


def _checksum(event: Event) -> int | None:
    return event.details.get("checksum")


def _differs(sent: int | None, seen: int | None) -> bool:
    return sent is not None and seen is not None and sent != seen


def misplaced(p: Partition) -> Iterator[Found | None]:
    """Said to be at a place where the log holds another id."""
    placed = [effect for effect in p.trial.effects if effect.topic is None]  # an output's place is its own
    claims = [effect for effect in placed if (p.trial.topic_claimed(effect), effect.partition) == p.tp]
    for event in [delivery.event for delivery in p.deliveries] + claims:
        record = None if event.offset is None else p.records.get(event.offset)
        if event.id is None or record is None or record.id in (None, event.id):
            continue
        never_sent = bool(p.trial.invoked) and event.id not in p.trial.invoked
        yield p.found(event.offset) if never_sent or p.trial.reads_of(event.id) else None


# --- ordering --------------------------------------------------------------------------------------------------


def nonmonotonic_poll(p: Partition) -> Iterator[Found | None]:
    """A step back, or the same position again, within one ownership epoch; what is tried again is none, nor what was
    handed out before a seek to the start."""
    given = [one for one in p.given if not naive_seeks.is_before(p, one, one.ownership_epoch)]
    for delivery in given:
        if (
            delivery.ownership_epoch is not None
            and not p.is_surely_retry(delivery)
            and any(earlier.offset >= delivery.offset for earlier in naive_aborts.in_this_attempt(p, delivery, given))
        ):
            unclear = p.anybodys(delivery.event.source) or p.is_retry(delivery)
            yield None if unclear else p.found(delivery.offset)


def _before(work: Work, others: list[Work]) -> list[Work]:
    """Those of the same ownership epoch that come before in the file."""
    return [o for o in others if o.ownership_epoch == work.ownership_epoch and o.event.seq < work.event.seq]


def poll_skip(p: Partition) -> Iterator[Found | None]:
    """A record of the control read that lies between the highest one delivered before and the next delivery, and that
    the same ownership epoch never was delivered, nor says it processed; what the log start passed cannot be skipped,
    nor what was done by then where the consumer keeps its progress itself, and so can know."""
    log_start = max((e.offset for e in p.own("log_start") if e.offset is not None), default=0)
    given, completed = ([one for one in work if not naive_seeks.is_above(p, one)] for work in (p.given, p.completions))
    for delivery in [d for d in given if d.ownership_epoch is not None]:
        earlier = [other.offset for other in _before(delivery, given)]
        taken = [work.offset for work in given + completed if work.ownership_epoch == delivery.ownership_epoch]
        if not earlier:
            continue
        for offset in [o for o in p.records if max(earlier) < o < delivery.offset and o not in taken]:
            handled_ns = p.first_handled.get(offset)
            times = [] if handled_ns is None else [handled_ns]
            if p.trial.settings.get("delivery") == "at-most-once":  # its position was stored before the work
                times += [other.event.time_ns for other in p.deliveries if other.offset == offset]
            done = any(p.trial.earliest_ns(at) <= delivery.event.time_ns + TOLERANCE_NS for at in times)
            if offset < log_start or (done and not p.trial.progress_in_kafka) or _effect_meanwhile(p, delivery, offset):
                continue
            overtaken = log_start > max(earlier) + 1
            unclear = overtaken or _among_last_words(delivery) or p.anybodys(delivery.event.source)
            yield None if unclear else p.found(offset)


def _effect_meanwhile(p: Partition, delivery: Work, offset: int) -> bool:
    """The sink wrote it down while the ownership epoch lasted: only the line of it is missing. Not where another member
    took the record."""
    assert delivery.ownership_epoch
    opened, closed = delivery.ownership_epoch.opened, delivery.ownership_epoch.closed
    begin_ns = p.trial.earliest_ns(opened.time_ns) - TOLERANCE_NS
    end_ns = closed.time_ns + TOLERANCE_NS if closed else FOREVER
    heard = [effect for effect, of in p.effects_seen if of == offset and begin_ns <= effect.time_ns <= end_ns]
    return any(not naive_assignments.was_taken(p, offset, effect) for effect in heard)


def _among_last_words(delivery: Work) -> bool:
    """Its ownership epoch ended by kill -9, within the tolerance."""
    closed = delivery.ownership_epoch.closed if delivery.ownership_epoch else None
    killed = closed is not None and closed.kind == "exited" and closed.details.get("signal") == 9
    return killed and closed is not None and delivery.event.time_ns >= closed.time_ns - TOLERANCE_NS


def reordered_key(p: Partition) -> Iterator[Found | None]:
    """A completion, or a first effect, that comes after that of a later record: of the same key, else of another key;
    one finding a record where both tell of it."""
    by_effects = naive_effects.late_firsts(p)
    by_lines = list(_late_completions(p))
    for offset, same_key in by_lines:
        if same_key is not None:
            yield p.found(offset, same_key=same_key or by_effects.get(offset, False))
        elif offset not in by_effects:
            yield None
    told = {offset for offset, same_key in by_lines if same_key is not None}
    yield from (p.found(offset, same_key=by_effects[offset]) for offset in by_effects if offset not in told)


def _late_completions(p: Partition) -> Iterator[tuple[int, bool | None]]:
    """Offset and whether it was overtaken by its own key; None where only who of several spoke would tell."""
    completions = [replace(done, ownership_epoch=p.ownership_epoch_of_work(done)) for done in p.completions]
    completions = [done for done in completions if not naive_seeks.is_before(p, done, done.ownership_epoch)]
    firsts = {
        offset: min((c for c in completions if c.offset == offset), key=_when)
        for offset in {c.offset for c in completions}
    }
    for late in completions:
        since = naive_batches.since_replay(p, late)
        attempt = naive_aborts.in_this_attempt(p, late, completions, only_committed=True)
        attempt = [done for done in attempt if done.event.seq > since]
        overtakers = [c for c in attempt if late.ownership_epoch and c.offset > late.offset]
        known = [] if p.anybodys(late.event.source) else list(overtakers)
        if firsts[late.offset] == late:  # whoever did it
            known += [first for first in firsts.values() if _came_too_early(p, first, late)]
        if known:
            key = p.key(late.offset)
            yield late.offset, key is not None and any(p.key(c.offset) == key for c in known)
        elif overtakers:
            yield late.offset, None


def _came_too_early(p: Partition, first: Work, late: Work) -> bool:
    """Tells whether `first`, of a later record, was completed before `late`, and neither by a zombie."""
    if first.offset <= late.offset:
        return False
    if first.event.source == late.event.source:
        before = first.event.seq < late.event.seq
    else:
        known = first.event.source not in p.trial.untimed
        before = known and first.event.time_ns < p.trial.written_ns(late.event)
    return before and not any(
        p.excused(work.ownership_epoch, work.offset, work.event.time_ns, work.event.time_ns) for work in (first, late)
    )


def overlapping_handlers(p: Partition) -> Iterator[Found | None]:
    """A handler that begins while another one runs on the partition: one finding each such handler."""
    ended = [handler for handler in p.handlers if handler.ended is not None]
    for handler in ended:
        others = [o for o in ended if _when(o.begun) < _when(handler.begun) and _overlap(p, o, handler)]
        source = handler.begun.event.source
        known = [o for o in others if not p.anybodys(source) or o.begun.event.source != source]
        if known:
            key = p.key(handler.begun.offset)
            same_key = key is not None and any(p.key(other.begun.offset) == key for other in known)
            yield p.found(handler.begun.offset, same_key=same_key)
        elif others:
            yield None


def _of_one_batch(p: Partition, one: Work, other: Work) -> bool:
    """Delivered in one ownership epoch, and nothing was completed between the two."""
    first, last = sorted((one.event.seq, other.event.seq))
    between = [w for w in p.completions if w.event.source == one.event.source and first < w.event.seq < last]
    return one.ownership_epoch == other.ownership_epoch and not between


def _overlap(p: Partition, one: Handler, other: Handler) -> bool:
    assert one.ended
    assert other.ended
    if one.begun.event.source == other.begun.event.source:
        if p.trial.settings.get("handler") == "batch" and _of_one_batch(p, one.begun, other.begun):
            return False
        return other.begun.event.seq < one.ended.event.seq and one.begun.event.seq < other.ended.event.seq
    beside = all(
        first.begun.event.time_ns < p.trial.written_ns(second.ended.event)
        for first, second in ((one, other), (other, one))
        if second.ended
    )
    return beside and not any(
        p.excused(h.begun.ownership_epoch, h.begun.offset, h.begun.event.time_ns, h.ended.event.time_ns)
        for h in (one, other)
        if h.ended
    )


# --- commits ---------------------------------------------------------------------------------------------------


def commit_regression(p: Partition) -> Iterator[Found]:
    """A committed position below an earlier one; one finding for each episode until it is made good."""
    highest: Commit | None = None
    episode: list[Commit] = []
    for commit in p.commits:
        if highest is not None and (commit.value is None or commit.value >= (highest.value or 0)):
            if episode:
                yield _regression(p, highest, episode, commit)
            episode = []
        if commit.value is None:
            highest = None
        elif highest is None or commit.value >= (highest.value or 0):
            highest = commit
        else:
            episode.append(commit)
    if episode and highest is not None:
        yield _regression(p, highest, episode, None)


def _regression(p: Partition, peak: Commit, episode: list[Commit], end: Commit | None) -> Found:
    lower, highest = episode[0], int(peak.value or 0)
    falls = [(before, now) for before, now in pairwise([peak, *episode]) if (now.value or 0) < (before.value or 0)]
    told = {"asked_earlier": True} if all(_asked_earlier(p, now, before) for before, now in falls) else {}
    return p.found(
        lower.place,
        start=highest,
        to=lower.value,
        recovered=end is not None and end.value is not None,
        own=_own(p, lower),
        restart_inside=_restart_inside(p, highest, lower.effect_ns, end.effect_ns if end else FOREVER),
        **told,
    )


def _asked_earlier(p: Partition, commit: Commit, before: Commit) -> bool:
    """The same member id asked for this one over a connection to the same broker that it had used before that of the
    commit before it, and no line of its process asks for this position after the last one that asks for that one's."""
    late, early = _own_request(p, commit), _own_request(p, before)
    if late is None or early is None or _file_of(p, commit) != _file_of(p, before):
        return False
    if not late.details.get("member_id") or late.details["member_id"] != early.details.get("member_id"):
        return False
    late_way, early_way = ((*_connection(one), one.details.get("connection")) for one in (late, early))
    if late_way[2] is None or early_way[2] is None or late_way[0] != early_way[0]:
        return False
    used = [_first_used_ns(p.trial, way) for way in (late_way, early_way)]
    said = [_last_asked(p, one) for one in (commit, before)]
    return used[0] < used[1] and said[0] <= said[1]


def _first_used_ns(trial: Trial, way: tuple[Any, ...]) -> float:
    over = [
        request
        for request in trial.of_kind("request")
        if (*_connection(request), request.details.get("connection")) == way
    ]
    walls = [request.source_wall_ns - _duration_ns(request) for request in over if request.source_wall_ns is not None]
    earliest = min(request.time_ns - _duration_ns(request) for request in over)
    return trial.mono_ns(min(walls, default=None), earliest)


def _last_asked(p: Partition, commit: Commit) -> int:
    """The place in its file of the last line that asks for a commit's position, -1 for none."""
    lines = [e for e in p.trial.of_kind("commit") if e.outcome == "invoke" and e.source == _file_of(p, commit)]
    mine = [e.seq for e in lines for entry in p.trial.entries(e, p.tp) if entry["committed_offset"] == commit.value]
    return max(mine, default=-1)


def _own(p: Partition, commit: Commit) -> bool | None:
    owners = p.owners_at(commit.place)
    if commit.committer is None:
        return None
    if commit.committer == OPERATOR:
        return False
    if commit.committer == STRANGER:
        return None
    return None if owners is None else commit.committer in owners


def _restart_inside(p: Partition, highest: int, begin_ns: float, end_ns: float) -> bool:
    fetched = [asked.time_ns for asked in p.offset_fetches if asked.position < highest and p.starts_from(asked)]
    known = [q.opened for q in p.ownership_epochs if q.source not in p.trial.untimed]
    opened = [p.trial.earliest_ns(o.time_ns) for o in known if o.time_ns < end_ns]
    return any(begin_ns < time_ns < end_ns for time_ns in fetched + opened)


def _rises(p: Partition) -> Iterator[tuple[Commit, int | None]]:
    """Each commit with the highest value before it."""
    highest: int | None = None
    for commit in p.commits:
        if commit.value is not None:
            yield commit, highest
        highest = None if commit.value is None else max(commit.value, -1 if highest is None else highest)


def zombie_commit(p: Partition) -> Iterator[Found | None]:
    """A durable commit of a member that did not own the partition at that place of the log."""
    for commit, highest in _rises(p):
        owners = p.owners_at(commit.place)
        if commit.committer in (None, OPERATOR, STRANGER):
            continue
        if owners is None:
            if any(owning.names_it for owning in p.ownership):
                yield None
            continue
        if commit.committer in owners:
            continue
        fell = highest is not None and commit.value is not None and commit.value < highest
        unhandled = [o for o in _raised_over(p, commit, highest) if o not in p.first_handled]
        if (
            unhandled
            and p.trial.settings.get("events") == "none"
            and p.trial.settings.get("sink", "none") in (None, "none")
        ):
            continue  # nobody says what was handled
        yield p.found(commit.place, fell=fell, skipped_record=bool(unhandled))


def _raised_over(p: Partition, commit: Commit, highest: int | None) -> list[int]:
    """The records between the highest value before and this one."""
    return [o for o in p.records if (highest is None or o >= highest) and o < (commit.value or 0)]


def commit_ahead(p: Partition) -> Iterator[Found | None]:
    """A commit that raised the position over a record not handled when it was asked for; one finding a value."""
    values = set(_ahead_by_lines(p))
    unclear: list[int] = []
    for before, commit in _raising_commits(p):
        over = [o for o in p.records if (before is None or o >= before) and o < (commit.value or 0)]
        over = [o for o in over if not _perhaps_handled_before(p, o, commit)]
        asked_ns, in_transaction = _asked_ns(p, commit), commit.event.details.get("producer_id") is not None
        never = [o for o in over if o not in p.first_handled]
        late = [o for o in over if o in p.first_handled and not in_transaction and _handled_ns(p, o, commit) > asked_ns]
        asked_after_ns = _asked_soon_after_ns(p, commit)
        done_before_it = all(_handled_ns(p, o, commit) <= asked_after_ns for o in late)
        open_case = _may_be_a_last_act(p, commit) if never else done_before_it
        if not (never or late or in_transaction):
            unclear += [commit.value or 0] * any(naive_handed_on.may_be_later(p, o, asked_ns) for o in over)
        elif (never or late) and open_case:
            unclear.append(commit.value or 0)
        elif never or late:
            values.add(commit.value or 0)
    yield from (p.found(value) for value in values)
    yield from (None for value in unclear if value not in values)


def _raising_commits(p: Partition) -> Iterator[tuple[int | None, Commit]]:
    """Each commit that lies above the one before it, with that one's value; after a tombstone there is none before."""
    before: int | None = None
    for commit in p.commits:
        if commit.value is not None and (before is None or commit.value > before):
            yield before, commit
        before = commit.value


def _perhaps_handled_before(p: Partition, offset: int, commit: Commit) -> bool:
    """A record that lay below the position once already, and that a member killed since may have handled then."""
    covering = _first_covering(p, offset)
    if offset in p.first_handled or covering is None or covering.place == commit.place:
        return False
    restarted = [c.place for c in p.commits if c.value is None and c.place < commit.place]
    stretch = [c.value or 0 for c in p.commits if max(restarted, default=-1) < c.place < commit.place]
    return offset < max(stretch, default=-1) and _may_be_a_last_act(p, covering)


def _asked_ns(p: Partition, commit: Commit) -> float:
    """When its request arrived, where the request log tells; else when it took effect."""
    wall_ns = (commit.event.details.get("commit_time_ms") or 0) * 1_000_000
    api = "TXNOFFSETCOMMIT" if "producer_id" in commit.event.details else "OFFSETCOMMIT"
    requests = [
        request
        for request, entry in p._answers(api)
        if entry.get("committed_offset") == commit.value
        and (request.source_wall_ns or 0) >= wall_ns - LOG_TOLERANCE_NS
        and commit.committer == (p.trial.lane_member(request) or p.asker_off_the_lanes([request], commit.event))
    ]
    first = min(requests, key=lambda request: request.source_wall_ns or 0, default=None)
    if first is None or not _covers(first, wall_ns):
        return commit.effect_ns
    answered_ns = p.trial.mono_ns(first.source_wall_ns, first.time_ns)
    return min(commit.effect_ns, answered_ns - int(first.details.get("duration_ms", 0) * 1_000_000))


def _handled_ns(p: Partition, offset: int, commit: Commit) -> float:
    """When a record was handled, as far as this commit goes: where its member asked for it before, what was said to be
    done counts, though its effect was heard of later."""
    said = [p.trial.written_ns(work.event) for work in p.completions if work.offset == offset]
    may_stand = _asked_for_before(p, commit) and naive_effects.line_may_stand_for(p, offset)
    return min([p.first_written.get(offset, 0), *(said if may_stand else [])])


def _asked_for_before(p: Partition, commit: Commit) -> bool:
    """The last request of the position by its member (by anybody, where nobody knows whose it is), said before it was
    durable, in an ownership epoch that had not ended by then."""
    requests = [e for e in _asking(p, commit) if p.trial.written_ns(e) <= commit.effect_ns]
    if not requests:
        return False
    held = p.ownership_epoch_at(max(requests, key=lambda event: (p.trial.written_ns(event), event.source, event.seq)))
    return held is None or held.closed is None or held.closed.time_ns + TOLERANCE_NS >= commit.effect_ns


def _asking(p: Partition, commit: Commit) -> list[Event]:
    return [
        event
        for event in p.trial.of_kind("commit")
        if event.outcome == "invoke"
        and commit.committer in (None, STRANGER, event.member)
        and any(entry["committed_offset"] == commit.value for entry in p.trial.entries(event, p.tp))
    ]


def _asked_soon_after_ns(p: Partition, commit: Commit) -> float:
    """When the member said that it asks, though only after it was durable: so soon that the line may have been read
    late, and it did not commit the same once more by then; else never (the least time there is)."""
    if _asked_for_before(p, commit) or p.trial.measures:
        return -FOREVER
    times = [p.trial.written_ns(event) for event in _asking(p, commit)]
    said_ns = min((at for at in times if at > commit.effect_ns), default=FOREVER)
    again = [
        other
        for other in p.commits
        if other.value == commit.value
        and other.committer == commit.committer
        and commit.effect_ns < other.effect_ns <= said_ns + 2 * TOLERANCE_NS
    ]
    return -FOREVER if again or said_ns > commit.effect_ns + TOLERANCE_NS else said_ns


def _told_by_a_member(p: Partition, commit: Commit, *outcomes: str) -> bool:
    """A member told of this commit itself, in an event of one of the outcomes."""
    return any(
        entry["committed_offset"] == commit.value
        for event in p.trial.of_kind("commit")
        if event.outcome in outcomes
        for entry in p.trial.entries(event, p.tp)
    )


def _ahead_by_lines(p: Partition) -> Iterator[int]:
    """What an ownership epoch asked for before it had done what it was delivered below it, since its request before; an
    answer to a request that the file does not tell of is as good as one."""
    if p.trial.progress_in_transactions:
        return
    for ownership_epoch in p.ownership_epochs:
        mine = [
            e for e in p.trial.of_kind("commit") if e.source == ownership_epoch.source and e.outcome in ("invoke", "ok")
        ]
        previous = -1
        for commit in [e for e in mine if ownership_epoch.holds(e)]:
            for entry in p.trial.entries(commit, p.tp):
                value = entry["committed_offset"]
                asked_before = any(
                    earlier.outcome == "invoke" and earlier.seq < commit.seq and other["committed_offset"] == value
                    for earlier in mine
                    for other in p.trial.entries(earlier, p.tp)
                )
                if commit.outcome == "ok" and asked_before:
                    continue
                if any(
                    previous <= d.offset < value and not _done_before(p, d, commit)
                    for d in p.deliveries
                    if d.ownership_epoch == ownership_epoch
                ):
                    yield value
                previous = value


def _done_before(p: Partition, delivery: Work, commit: Event) -> bool:
    """Tells whether its file had said that the delivered record was completed, in this ownership epoch or before, when
    the commit was asked for; or a line that nobody could read named it."""
    unread = [e for e in p.own("bad_line") if e.source == delivery.event.source and e.offset == delivery.offset]
    if delivery.offset in p.taken_as_done:
        return True
    effects = [effect for effect, offset in p.effects_seen if offset == delivery.offset]
    effects += naive_handed_on.ends(p).get(delivery.offset, [])
    if any(p.trial.written_ns(effect) <= commit.time_ns for effect in effects):
        return True  # the sink had heard of it by then, or it was on its way
    return any(e.seq < commit.seq for e in unread) or any(
        completion.offset == delivery.offset
        and completion.event.source == delivery.event.source
        and completion.event.seq < commit.seq
        for completion in p.completions
    )


def commit_past_end(p: Partition) -> Iterator[Found | None]:
    """Beyond the first log end read after the commit was seen; log ends never fall, so an earlier one can acquit."""
    for commit in p.commits:
        if commit.value is None:
            continue
        after = [end for time_ns, end in p.log_ends if time_ns >= commit.event.time_ns]
        if not after:
            if not any(commit.value <= end for _, end in p.log_ends):
                yield None
        elif commit.value > after[0]:
            yield p.found(commit.place, value=commit.value)


def commit_lost(p: Partition) -> Iterator[Found | None]:
    """A position that a member was told is stored, or a broker answered so, and that the offsets log does not hold."""
    acks = list(_acknowledgements(p))
    for value in sorted({ack.value for ack in acks}):
        stored = [
            p.trial.mono_ns(None if (ms := e.details.get("commit_time_ms")) is None else ms * 1_000_000, e.time_ns)
            for e in p.trial.offsets_log
            if e.kind == "committed" and (e.topic, e.partition) == p.tp and e.committed_offset == value
        ]
        missing = [ack for ack in acks if ack.value == value]
        missing = [ack for ack in missing if not any(ack.earliest_ns <= at <= ack.latest_ns for at in stored)]
        fates = {_fate(p, ack, in_the_log=bool(stored)) for ack in missing}
        if "lost" in fates:
            yield p.found(value)
        elif "unclear" in fates:
            yield None


def _fate(p: Partition, ack: Ack, *, in_the_log: bool) -> str:
    """What became of an acknowledged position that was not stored in its time: lost, unclear or stored."""
    refused = [at for at in _refusals(p, ack) if at <= ack.told_ns] if ack.member is not None else []
    if not refused:
        return "unclear" if in_the_log else "lost"
    since = [
        commit.committer
        for commit in p.commits
        if commit.value is not None
        and commit.value >= ack.value
        and max(refused) - LOG_TOLERANCE_NS <= commit.effect_ns <= ack.latest_ns
    ]
    return "stored" if ack.member in since else "unclear" if {None, STRANGER} & {*since} else "lost"


@dataclass(frozen=True)
class Ack:
    """A position that was answered with "stored": when it can have taken effect; by whose word (None: the broker's)."""

    value: int
    earliest_ns: float
    latest_ns: float
    member: str | None
    told_ns: float


def _acknowledgements(p: Partition) -> Iterator[Ack]:
    """What was answered by the snapshot."""
    snapshot_ns = p.trial.snapshot_ns or 0
    for event in [e for e in p.trial.of_kind("commit") if e.outcome == "ok" and e.time_ns <= snapshot_ns]:
        for entry in [entry for entry in p.trial.entries(event, p.tp) if entry["committed_offset"] >= 0]:
            latest_ns = event.time_ns + TOLERANCE_NS
            yield Ack(entry["committed_offset"], -FOREVER, latest_ns, str(event.member), event.time_ns)
    for request, entry in p._answers("OFFSETCOMMIT", "TXNOFFSETCOMMIT"):
        if p.trial.lane_member(request) is None or request.time_ns > snapshot_ns or entry["committed_offset"] < 0:
            continue
        answered_ns = p.trial.mono_ns(request.source_wall_ns, request.time_ns)
        begun_ns = answered_ns - int(request.details.get("duration_ms", 0) * 1_000_000)
        latest_ns = answered_ns + TOLERANCE_NS
        yield Ack(entry["committed_offset"], begun_ns - TOLERANCE_NS, latest_ns, None, answered_ns)


def _refusals(p: Partition, ack: Ack) -> list[int]:
    """When brokers refused the member of this acknowledgement the same position."""
    return [
        p.trial.mono_ns(request.source_wall_ns, request.time_ns)
        for request in p.trial.requests
        if request.details["api"].replace("_", "").upper() in ("OFFSETCOMMIT", "TXNOFFSETCOMMIT")
        and p.trial.lane_member(request) == ack.member
        for entry in p.trial.entries(request, p.tp)
        if entry["committed_offset"] == ack.value and entry.get("error")
    ]


# --- ownership -------------------------------------------------------------------------------------------------


def split_ownership(p: Partition) -> Iterator[Found | None]:
    """Two owners by the brokers' own records, or work of a member that was told it had lost the partition."""
    for owning in p.ownership:
        if owning.names_it and len(owning.assigned) > 1:
            yield p.found(owning.place, by="log")
    for ownership_epoch in p.ownership_epochs:
        loss = p.loss(ownership_epoch)
        if loss is not None:
            yield from _work_after_being_told(p, ownership_epoch, loss)
    for work in naive_assignments.work_that_nobody_gave(p):
        yield p.found(work.offset, by="told")


def _work_after_being_told(p: Partition, ownership_epoch: OwnershipEpoch, loss: Loss) -> Iterator[Found | None]:
    failed = p.said_to_fail(ownership_epoch, loss.time_ns)
    known = naive_responses.fetches_are_known(p.trial, ownership_epoch.member)
    undecided_from_ns = min(loss.told_ns, failed.time_ns if failed else FOREVER)
    for delivery in [d for d in p.begun if d.ownership_epoch == ownership_epoch]:
        time_ns: float = delivery.event.time_ns
        if loss.untimed and delivery.offset >= loss.fetched:  # it was handled after it had been fetched
            time_ns = max(time_ns, loss.again_ns + TOLERANCE_NS)
        if not p.of_others(ownership_epoch.member, time_ns - TOLERANCE_NS):
            continue
        before_ns = p.trial.written_ns(delivery.event)
        if loss.fetched_later(delivery.offset, before_ns) or _against_its_word(p, loss, delivery):
            yield p.found(delivery.offset, by="told")
        elif not known and before_ns > undecided_from_ns:
            yield None


def _against_its_word(p: Partition, loss: Loss, begun: Work) -> bool:
    """It fetched the record after its own word of a refused commit; or began it though that of it was refused."""
    written_ns = p.trial.written_ns(begun.event)
    fetched_later = any(begun.offset >= word.fetched and written_ns > word.event.time_ns for word in loss.said)
    return fetched_later or p.began_though_refused(begun)


def work_after_revoke(p: Partition) -> Iterator[Found | None]:
    """Work on a partition that the member's own callback had given up."""
    for work in p.deliveries + p.completions:
        said = [e for e in p.callbacks_of(work.event.source) if e.seq < work.event.seq]
        callbacks = [e for e in said if e not in p.never_given]
        if _ended_after_others_had_it(p, work):
            yield None if p.anybodys(work.event.source) else p.found(work.offset, kind=work.event.kind)
            continue
        if not callbacks or callbacks[-1].kind not in ("revoked", "lost"):
            continue
        begun = [handler.begun.event.seq for handler in p.handlers if handler.ended == work]
        in_hand = callbacks[-1].kind == "lost" and begun and begun[0] < callbacks[-1].seq
        if in_hand and naive_losses.is_a_loss(p, callbacks[-1]):
            continue
        yield None if p.anybodys(work.event.source) else p.found(work.offset, kind=work.event.kind)
    told = {(work.event.source, work.offset) for work in p.deliveries + p.completions if _was_revoked(p, work)}
    for offset, source, held_back in naive_effects.after_revoked(p):
        if (source, offset) not in told:
            yield None if held_back else p.found(offset, kind="effected")


def _was_revoked(p: Partition, work: Work) -> bool:
    """The last that its member had said of the partition was that it was revoked; or it ended after others had it."""
    said = [e for e in p.callbacks_of(work.event.source) if e.seq < work.event.seq and e not in p.never_given]
    return _ended_after_others_had_it(p, work) or (bool(said) and said[-1].kind == "revoked")


def _ended_after_others_had_it(p: Partition, done: Work) -> bool:
    """It ends a handler that began before the partition was revoked, in a later ownership epoch, and the offsets log
    gave the partition to somebody else in between."""
    begun = [handler.begun.ownership_epoch for handler in p.handlers if handler.ended == done]
    before, now = begun[0] if begun else None, done.ownership_epoch
    if before is None or now is None or before == now or before.closed is None or done.event.outcome == "discarded":
        return False
    revoked = before.closed.kind == "revoked"
    if not revoked and not (before.closed.kind == "lost" and not naive_losses.is_a_loss(p, before.closed)):
        return False
    if any(e.source == done.event.source for e in p.trial.of_kind("bad_line")):
        return False
    until_ns = p.trial.written_ns(now.opened)
    between = [name for at_ns, name in p.owners_in_turn if before.opened.time_ns < at_ns < until_ns]
    return any(name not in (None, before.member) for name in between)


def zombie_work(p: Partition) -> Iterator[Found]:
    """Work in good faith after a loss that nobody told the member of."""
    for work in p.deliveries + p.completions:
        loss = p.loss(work.ownership_epoch) if work.ownership_epoch else None
        begun = [handler.begun for handler in p.handlers if handler.ended == work]
        if loss is None or _against_its_word(p, loss, begun[0] if begun else work):
            continue
        if loss.fetched_later(work.offset, work.event.time_ns):
            continue
        if loss.time_ns < p.trial.written_ns(work.event):
            yield p.found(work.offset, kind=work.event.kind)


def stale_generation(p: Partition) -> Iterator[Found | None]:
    """An accepted commit whose epoch is below the one its member had where it lies in the log, but for KIP-1251.

    A line that came late is left out: the last commit before it, which is taken for its own, would be the guilty one.
    """
    for request, entry in p._granted("OFFSETCOMMIT"):
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
            still = _machine_stalled(p.trial, times[number], end_ns)
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
        gives_up = p.trial.settings.get("delivery") == "at-most-once"
        given_up = p.given_up(p.trial.snapshot_ns or 0) if gives_up else set()
        return [o for o in _unhandled_at_snapshot(p) if o not in given_up]
    return [o for o in _unhandled_at_snapshot(p) if o >= _position_at_snapshot(p)]


def _is_false_lag(p: Partition) -> bool:
    lagging = any(o >= _position_at_snapshot(p) for o in p.records)
    return p.trial.progress_in_kafka and lagging and not _undone(p)


def stuck_partition(p: Partition) -> Iterator[Found | None]:
    """Work left, and nothing moved for a whole window before the snapshot."""
    if _is_stuck(p):
        yield (
            None
            if _cannot_tell_stuck(p)
            else p.found(min(_undone(p)), **{"class": _class_of_stuck(p, min(_undone(p)))})
        )


def _class_of_stuck(p: Partition, offset: int) -> str:
    """How far the first undone record came, as far as the evidence goes."""
    snapshot_ns = p.trial.snapshot_ns or 0
    held = [ownership_epoch for ownership_epoch in p.ownership_epochs if ownership_epoch.open_at(snapshot_ns)]
    if any(ownership_epoch.opened.time_ns <= snapshot_ns for ownership_epoch in p.ownership_epochs) and not held:
        return "unassigned"
    given = [one for one in p.deliveries if one.ownership_epoch in held and one.event.time_ns <= snapshot_ns]
    if any(delivery.offset in _undone(p) for delivery in given):
        return "delivered-not-committed"
    committed = [c.value for c in p.commits if c.value is not None and c.effect_ns <= snapshot_ns]
    if held and p.trial.progress_in_kafka and max(committed, default=-1) > offset:
        return "committed-not-delivered"
    return _class_by_fetches(p, max(held, key=lambda one: one.opened.time_ns), offset) if held else "unclassified"


def _class_by_fetches(p: Partition, owner: OwnershipEpoch, offset: int) -> str:
    """What the owner's own fetches tell, since it was assigned.

    The log leaves out a fetch that asks as before in vain, so only this is sure: that a partition was never asked for,
    or is missing from a list that is complete; that the last fetch was refused; and that positions were answered, and
    passed, or answered again and again.
    """
    mine = [r for r in p.trial.of_kind("request") if p.trial.lane_member(r) == owner.member]
    since_ns = owner.opened.time_ns - TOLERANCE_NS
    asked: list[tuple[float, int | None, int, int]] = []  # when, from where (None: no longer), bytes, error
    listed: dict[Any, Any] = {}
    for fetch in [r for r in mine if r.details["api"] == "FETCH"]:  # broker by broker, in the order of its lines
        at_ns = p.trial.mono_ns(fetch.source_wall_ns, fetch.time_ns)
        here, connection = p.trial.entries(fetch, p.tp), (fetch.source, fetch.details.get("connection"))
        inside = since_ns <= at_ns <= (p.trial.snapshot_ns or 0)
        for entry in here if inside else ():
            asked.append((at_ns, entry["offset"], entry.get("size_bytes") or 0, entry.get("error") or 0))
        if fetch.details.get("complete"):
            if listed.get(connection) and not here and inside:
                asked.append((at_ns, None, 0, 0))
            listed[connection] = bool(here)
    asked.sort(key=lambda one: one[0])
    states = [e.details.get("state") for e in p.trial.of_kind("witness") if e.source.startswith("requests-")]
    seen = any(r.details.get("connection") for r in mine) and states and set(states) == {"complete"}
    if seen and (not asked or asked[-1][1] is None):
        return "assigned-not-fetched"
    if asked and asked[-1][3] > 0:
        return "fetch-refused"
    answered = [position for _, position, size_bytes, _ in asked if position is not None and size_bytes > 0]
    rest = list(takewhile(lambda one: one[1] == asked[-1][1], reversed(asked)))
    if len([one for one in rest if one[1] is not None and one[1] <= offset and one[2] > 0]) > 2:
        return "fetched-undecodable"
    passed = any(position > offset for _, position, _, _ in asked if position is not None)
    fetched = offset in answered or (passed and any(position < offset for position in answered))
    return "fetched-not-delivered" if fetched else "unclassified"


def _window_ns(p: Partition) -> float:
    return _window_of(p.trial)


def _everywhere(trial: Trial) -> list[Partition]:
    return [Partition(trial, tp) for tp in trial.all_slices()]


def _stuck_window_ns(p: Partition) -> int:
    return naive_no_progress.window_ns(p.trial, _everywhere(p.trial))


def _is_stuck(p: Partition) -> bool:
    return bool(_undone(p)) and not _moved_lately(p)


def _moved_lately(p: Partition) -> bool:
    """A movement within a window before the snapshot."""
    since_ns = (p.trial.snapshot_ns or 0) - _stuck_window_ns(p)
    return any(at >= since_ns for at in naive_no_progress.moves(p))


def _cannot_tell_stuck(p: Partition) -> bool:
    snapshot_ns = p.trial.snapshot_ns or 0
    return _machine_stalled(p.trial, snapshot_ns - _stuck_window_ns(p), snapshot_ns) or not _had_time_to_move(p)


def _had_time_to_move(p: Partition) -> bool:
    """The drain was as long as the window, and B as far as the rate was measured; or as long as no progress takes."""
    measured = bool(p.trial.of_kind("calibrated"))
    bound_ns = _bound_ns(p, with_backlog=measured) + naive_slowdown.allowance_ns(p, _moved_lately)
    return _drain_ns(p) >= max(_stuck_window_ns(p), bound_ns) or _without_progress_long_enough(p)


def _without_progress_long_enough(p: Partition) -> bool:
    """Records are left, nothing gets further, and has not for as long as it may take."""
    partitions = _everywhere(p.trial)
    left = any(_undone(q) for q in partitions) and naive_no_progress.makes_no_progress(p.trial, partitions)
    return left and _drain_ns(p) >= naive_no_progress.bound_ns(p.trial, partitions)


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
    still = _machine_stalled(p.trial, healed_ns, p.trial.snapshot_ns or 0)
    if converged_ns is not None:
        if converged_ns > healed_ns + bound_ns + TOLERANCE_NS:
            slow = converged_ns <= healed_ns + bound_ns + naive_slowdown.allowance_ns(p, _moved_lately) + TOLERANCE_NS
            yield None if still or slow else p.found(None, converged=True)
    elif not (_is_stuck(p) and _had_time_to_move(p)) and not _is_false_lag(p):
        short = _drain_ns(p) < bound_ns + naive_slowdown.allowance_ns(p, _moved_lately)
        yield None if still or (short and not _without_progress_long_enough(p)) else p.found(None, converged=False)


def _had_no_time(p: Partition) -> bool:
    """The drain was shorter than the bound, or the machine stood still in it."""
    drain_ns, snapshot_ns = p.trial.phase_ns("drain"), p.trial.snapshot_ns or 0
    begins = snapshot_ns if drain_ns is None else drain_ns
    if _machine_stalled(p.trial, begins, snapshot_ns):
        return True
    short = _drain_ns(p) < _bound_ns(p) + naive_slowdown.allowance_ns(p, _moved_lately)
    return short and not _without_progress_long_enough(p)


def _bound_ns(p: Partition, *, with_backlog: bool = True) -> float:
    """B of the design: the claim's own, else detection, rebalance, handler, commit interval and backlog."""
    trial, settings = p.trial, p.trial.settings
    if settings.get("converge_within_s") is not None:
        return float(settings["converge_within_s"]) * SECOND_NS
    begins_ns = trial.phase_ns("drain")
    healed_ns = begins_ns or 0
    partitions = _everywhere(trial)
    ended = [(h.begun, h.ended) for q in partitions for h in q.handlers if h.ended]
    calm = [(begun, end) for begun, end in ended if end.event.time_ns <= trial.faults_begin_ns]
    longest = max((end.event.time_ns - begun.event.time_ns for begun, end in calm), default=0) / SECOND_NS
    rated = with_backlog and trial.of_kind("calibrated")
    detection = trial.session_s + (0.0 if trial.settings.get("protocol") == "none" else trial.rebalance_s)
    last_ns = max((end_ns for end_ns, _ in trial.lost_sessions.values()), default=0.0)
    detection = detection if begins_ns is None else max(detection, (last_ns - healed_ns) / SECOND_NS)
    terms = detection + longest + float(settings.get("commit_interval_s", 0))
    return max(10.0, terms + (naive_slowdown.backlog_s(partitions, healed_ns) if rated else 0.0)) * SECOND_NS


def _converged_ns(p: Partition) -> float | None:
    """Since when the partition was done for good; None when it was not at the snapshot."""
    handled = max((time_ns for o, time_ns in p.first_handled.items() if o in p.records), default=0)
    if not p.trial.progress_in_kafka:
        if p.trial.settings.get("delivery") == "at-most-once":  # only its progress counts, and that nobody here can see
            return 0
        return None if _undone(p) else handled
    caught_up = _caught_up_ns(p)
    if p.trial.settings.get("delivery") == "at-most-once" or caught_up is None:
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
    commit_s = float(trial.settings.get("commit_interval_s", 0))
    return int(max(10.0, trial.session_s + trial.rebalance_s + commit_s) * SECOND_NS)


def _hindered(trial: Trial, begin_ns: float, end_ns: float, member: str | None = None) -> bool:
    """A fault was in force in this stretch of time, or had been healed less than a window before it; given a member,
    one on another member does not count."""
    for fault in trial.of_kind("injected"):
        if member is not None and fault.member not in (None, member):
            continue
        if fault.time_ns <= end_ns and begin_ns <= trial.lived_down_ns(fault, _window_of(trial)):
            return True
    return False


def rogue_reader(p: Partition) -> Iterator[Found | None]:
    """A member that was sent records for longer than a window, and made no commit from its first fetch on; not what an
    owner was sent, and never came to handle. Whatever it commits, if a client of its that is not in the group was sent
    records for longer than a window beside one that is."""
    snapshot_ns = p.trial.snapshot_ns or 0
    sent: dict[tuple[str, str | None], list[tuple[float, int]]] = {}
    for request in p.trial.requests:
        member = p.trial.lane_member(request)
        at_ns = p.trial.mono_ns(request.source_wall_ns, request.time_ns)
        if request.details["api"] == "FETCH" and member is not None and at_ns <= snapshot_ns:
            got = [entry["offset"] for entry in p.trial.entries(request, p.tp) if entry.get("size_bytes", 0) > 0]
            if got and not _sent_ahead(p, member, at_ns):
                reader = member, request.details.get("client_id")
                sent.setdefault(reader, []).extend((at_ns, offset) for offset in got)
    in_group = {reader for reader in sent if _is_of_a_group(p.trial, *reader)}
    readers: dict[tuple[str, str | None], list[float]] = {}
    for (member, client), fetches in sent.items():
        apart = (member, client) not in in_group and any(other == member for other, _ in in_group)
        readers.setdefault((member, client if apart else None), []).extend(at for at, _ in fetches)
    window_ns = _window_of(p.trial)
    for (member, client), times in readers.items():
        begin_ns, end_ns = min(times), max(times)
        twice = client is not None and _goes_on_beside(times, readers.get((member, None), []), window_ns)
        commits = [c for c in p.commits if begin_ns - TOLERANCE_NS <= c.effect_ns <= snapshot_ns]
        explained = any(c.committer == member for c in commits) and not twice
        if end_ns - begin_ns <= window_ns or explained:
            continue
        if _hindered(p.trial, begin_ns, end_ns, member):
            continue
        unknown = any(c.committer is None for c in commits) and not twice
        unclear = _machine_stalled(p.trial, begin_ns, end_ns) or unknown
        yield None if unclear else (*p.tp, member, () if not twice else (("client", client),))


def _is_of_a_group(trial: Trial, member: str, client: str | None) -> bool:
    """Whether a client of a member was seen in a group, whichever, or to commit; one without a name may be."""
    own = [r for r in trial.of_kind("request") if trial.lane_member(r) == member]
    asked = {r.details["api"].upper().replace("_", "") for r in own if r.details.get("client_id") == client}
    heartbeats = {"HEARTBEAT", "CONSUMERGROUPHEARTBEAT"}
    return client is None or bool(
        asked & {"JOINGROUP", "SYNCGROUP", "LEAVEGROUP", "OFFSETCOMMIT", "TXNOFFSETCOMMIT", *heartbeats}
    )


def _goes_on_beside(times: list[float], others: list[float], window_ns: int) -> bool:
    """Both went on for more than a window at the same time, each without a longer pause."""
    return any(
        min(last, other_last) - max(first, other_first) > window_ns
        for first, last in _without_pause(times, window_ns)
        for other_first, other_last in _without_pause(others, window_ns)
    )


def _without_pause(times: list[float], window_ns: int) -> list[tuple[float, float]]:
    stretches: list[tuple[float, float]] = []
    for at_ns in sorted(times):
        goes_on = bool(stretches) and at_ns - stretches[-1][1] <= window_ns
        first = stretches.pop()[0] if goes_on else at_ns
        stretches.append((first, at_ns))
    return stretches


def _sent_ahead(p: Partition, member: str, at_ns: float) -> bool:
    """Its member owned the partition by the offsets log, and lost it or was stopped before a commit was due there."""
    source = _incarnation(p, member, at_ns)
    exit_ns = p.trial.exit_ns(source) if source else FOREVER
    since_ns, lost_ns, owner = FOREVER, FOREVER, None
    for listed_ns, listed in p.owners_in_turn:
        if listed_ns <= at_ns + LOG_TOLERANCE_NS:
            since_ns, owner = (listed_ns, listed) if listed != owner or since_ns == FOREVER else (since_ns, owner)
        elif listed != owner:
            lost_ns = listed_ns
            break
    lost_ns = min(lost_ns, exit_ns)
    if owner != member or lost_ns > (p.trial.snapshot_ns or 0) or at_ns > lost_ns + TOLERANCE_NS:
        return False
    lines = [work.event for work in p.completions if work.event.member == member]
    handled = [event.time_ns for event in lines] + [time_ns for time_ns, _ in p.effect_times]
    return not any(since_ns <= time_ns <= lost_ns - _window_of(p.trial) for time_ns in handled)


def _machine_stalled(trial: Trial, begin_ns: float, end_ns: float) -> bool:
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
        ready_ns = max(_known_ns(p, o) for o in p.records if o <= offset)
        covering = _first_covering(p, offset)
        if ready_ns == FOREVER or covering is None or covering.effect_ns > (p.trial.snapshot_ns or 0):
            continue
        due_ns = ready_ns + _window_of(p.trial)
        too_late = covering.effect_ns > due_ns + TOLERANCE_NS and _held_alone(p, ready_ns, due_ns)
        if too_late and not _hindered(p.trial, ready_ns, due_ns):
            late.setdefault(covering.place, (offset, ready_ns))
    for offset, ready_ns in late.values():
        still = _machine_stalled(p.trial, ready_ns, ready_ns + _window_of(p.trial))
        yield None if still else p.found(offset)


def _known_ns(p: Partition, offset: int) -> float:
    """When a record was first handled; never, where that came out of a buffer that does not tell when."""
    first = min(p.handlings.get(offset, ()), key=lambda event: (event.time_ns, event.source), default=None)
    return FOREVER if first is None or first.source in p.trial.untimed else first.time_ns


def _held_alone(p: Partition, begin_ns: float, end_ns: float) -> bool:
    """The ownership epoch opened last before the stretch lasts through it, and no other one opens inside."""
    before = [one for one in p.ownership_epochs if one.opened.time_ns <= begin_ns]
    inside = [one for one in p.ownership_epochs if begin_ns < one.opened.time_ns < end_ns]
    if not before or inside:
        return False
    last = max(before, key=lambda one: one.opened.time_ns)
    return last.closed is None or last.closed.time_ns >= end_ns


def late_record(p: Partition) -> Iterator[Found | None]:
    """See the module of that name."""
    return naive_late_records.late_record(p, _window_of(p.trial))


def starved_partition(p: Partition) -> Iterator[Found | None]:
    """Passed over: records wait, nothing happens, and its member does those of two others in three rounds."""
    for ownership_epoch in p.ownership_epochs:
        for begin_ns, end_ns in _stretches_without_work(p, ownership_epoch):
            if _in_its_handler(p, ownership_epoch, begin_ns, end_ns):
                continue
            waiting = [o for o, time_ns in p.first_handled.items() if time_ns >= end_ns and o in p.records]
            if not waiting:
                continue
            oldest = min(waiting, key=lambda o: (_appended_ns(p, o), o))
            since_ns = max(begin_ns, _appended_ns(p, oldest))
            if _rounds_elsewhere(p, ownership_epoch, since_ns, end_ns) >= 3 and not _hindered(
                p.trial, since_ns, end_ns
            ):
                yield None if _machine_stalled(p.trial, since_ns, end_ns) else p.found(oldest)


def head_of_line_blocking(p: Partition) -> Iterator[Found | None]:
    """Lags for a window, and its member has nothing in hand most of the time, nor anything else to do."""
    for offset, begin_ns, end_ns, spare_ns in naive_head_of_line.blocked(p, _window_of(p.trial)):
        if _hindered(p.trial, begin_ns, end_ns):
            continue
        waited_ns = naive_head_of_line.waited_ns(p, begin_ns, end_ns)
        yield None if _machine_stalled(p.trial, begin_ns, end_ns) or waited_ns >= spare_ns else p.found(offset)


def _stretches_without_work(p: Partition, ownership_epoch: OwnershipEpoch) -> list[tuple[int, int]]:
    """The stretches of an ownership epoch in which nobody delivered, finished or put out a record; over by the
    snapshot."""
    snapshot_ns = p.trial.snapshot_ns or 0
    ids = {e.id: o for o, e in p.records.items() if e.id is not None}
    effects = [e.time_ns for e in p.trial.of_kind("effect") if e.outcome == "ok" and e.id in ids]
    moves = sorted([work.event.time_ns for work in p.deliveries + p.completions] + effects)
    closed_ns = ownership_epoch.closed.time_ns if ownership_epoch.closed else FOREVER
    last_ns = min(closed_ns, snapshot_ns)
    points = [m for m in moves if ownership_epoch.opened.time_ns <= m <= last_ns]
    if ownership_epoch.closed and closed_ns <= snapshot_ns:
        points.append(ownership_epoch.closed.time_ns)
    return list(zip([ownership_epoch.opened.time_ns, *points], points, strict=False))


def _in_its_handler(p: Partition, ownership_epoch: OwnershipEpoch, begin_ns: int, end_ns: int) -> bool:
    """The member had a record of this partition in hand from before the stretch to its end."""
    mine = [w for w in p.deliveries + p.completions if w.event.source == ownership_epoch.source]
    for delivery in [w for w in mine if w.event.kind == "delivered" and w.event.time_ns <= begin_ns < end_ns]:
        if naive_head_of_line.ended_ns(p, mine, delivery) >= end_ns:
            return True
    return False


def _appended_ns(p: Partition, offset: int) -> int:
    record = p.records[offset]
    return p.trial.mono_ns(record.source_wall_ns, record.time_ns)


def _rounds_elsewhere(p: Partition, ownership_epoch: OwnershipEpoch, begin_ns: int, end_ns: int) -> int:
    """The whole rounds (thirds of a window) in which the member finished records of two other partitions or more."""
    length_ns = _window_of(p.trial) // 3
    rounds: dict[int, set[Slice]] = {}
    for event in p.trial.of_kind("processed"):
        number, tp = event.time_ns // length_ns, (str(event.topic), event.partition or 0)
        whole = begin_ns <= number * length_ns and (number + 1) * length_ns <= end_ns
        if event.source == ownership_epoch.source and tp != p.tp and whole:
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
    pairs = [pair for seen in trial.seen_topics.values() for pair in pairwise(seen)]
    changed = [new for old, new in pairs if old.details["partitions"] != new.details["partitions"]]
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
        if naive_responses.does(fault, "kills", "stops", "harmless"):
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
    limit = trial.settings.get("memory_max_bytes")
    if limit is None:
        return
    for incarnation in trial.of_kind("started"):
        samples = _samples(trial, incarnation)
        if any(sample > limit for sample in samples):
            yield _of_group(f"{incarnation.member}-{incarnation.incarnation}")
        ends = [e.time_ns for e in trial.of_kind("exited") if e.source == incarnation.source]
        lived_ns = (ends[0] if ends else trial.snapshot_ns or 0) - incarnation.time_ns
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
    limit = trial.settings.get("memory_max_bytes")
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
            by_operator = commit.committer == OPERATOR
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
        still = _machine_stalled(trial, began_ns, opened.time_ns)
        yield None if hindered or still else _of_group(producer, log=_log_of(opened))


def _log_of(event: Event) -> str:
    return f"{event.topic or '__consumer_offsets'}-{event.partition or event.details.get('log_partition', 0)}"


def _ends(marker: Event, opened: Event) -> bool:
    """The same producer's, in the same log, later."""
    same = marker.details["producer_id"] == opened.details["producer_id"] and _log_of(marker) == _log_of(opened)
    return same and _log_place(marker) > _log_place(opened)


def _log_place(event: Event) -> int:
    return int(event.details["log_offset"] if event.offset is None else event.offset)


def reordered_across_partitions(trial: Trial) -> Iterator[Found | None]:
    """Not done when a record of its key was begun in another partition that was sent after it."""
    partitions = [Partition(trial, tp) for tp in trial.slices()]
    for p, offset in naive_moved_keys.late(trial, partitions):
        yield p.found(offset)


def cold_read(trial: Trial) -> Iterator[Found | None]:
    """Read more than is claimed of what had lain in the log for long."""
    yield from naive_cold_reads.cold_read(trial, [Partition(trial, tp) for tp in trial.all_slices()], _window_of(trial))


GROUP_CHECKS = {
    "cold-read": cold_read,
    "reordered-across-partitions": reordered_across_partitions,
    "torn-transaction": torn_transaction,
    "hanging-transaction": hanging_transaction,
    "rebalance-storm": rebalance_storm,
    "crash-loop": crash_loop,
    "unbounded-close": unbounded_close,
    "never-rejoined": naive_rejoins.never_rejoined,
    "memory-over-limit": memory_over_limit,
    "oom-killed": oom_killed,
}
CHECKS = {
    "false-report": false_report,
    "aborted-read": aborted_read,
    "offset-outside-transaction": offset_outside_transaction,
    "uncommitted-progress": uncommitted_progress,
    "starved-partition": starved_partition,
    "head-of-line-blocking": head_of_line_blocking,
    "rogue-reader": rogue_reader,
    "skipped": skipped,
    "unseen": unseen,
    "redelivered": redelivered,
    "retried": retried,
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
    "stale-state": naive_states.stale_state,
    "late-record": late_record,
}

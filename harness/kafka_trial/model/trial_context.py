"""The trial context: the small facts of a trial that every slice is judged in the light of.

Collected once from the history and from consumer.toml (`judge/trial_context_builder.py`), and shipped to the kernels as
they are: plain values only. Sources, members, member ids and slices are numbered; a number is the place in their tuple.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_trial.history.consequences import Consequence
from kafka_trial.model.group_timeouts import DeclaredTimeouts

TOLERANCE_NS = 500_000_000  # between sources, where nothing was measured; and at most, where it was
HARNESS_STALL_NS = TOLERANCE_NS // 2  # a scheduling delay of more may have kept events for longer than the tolerance
LOG_TOLERANCE_NS = 50_000_000  # between the request log and the offsets log


@dataclass(frozen=True)
class Settings:
    """What consumer.toml says that judging needs. `events`, `sink`: which evidence it declares; None: not known.

    `no_effect`: the outcomes of a record that the sink need not hear of. `effects`: each is of its record, or the state
    of its key. `body`: that of an effect is the record's value, or its own.
    `handler`: "record", or "batch" where what a handler takes is a whole batch.
    `declared` names the keys of [kafka] that stand there, and those of [stop] as `stop.key`: the others hold their
    defaults.
    """

    protocol: str = "classic"
    session_timeout_s: float = 6.0
    poll_interval_s: float = 10.0
    metadata_age_s: float = 300.0  # the default of most clients
    commit_interval_s: float = 1.0
    progress: str = "kafka"
    delivery: str = "unclaimed"
    converge_within_s: float | None = None
    memory_max_bytes: int | None = None
    lag_age_max_s: float | None = None
    reads_cold_bytes_max: int | None = None
    cold_after_s: float = 30.0  # "to be able to buffer for 30 seconds": Kafka, Hardware and OS
    events: str | None = None
    sink: str | None = None
    no_effect: tuple[str, ...] = ("discarded", "dead-lettered")
    effects: str = "record"
    body: str = "own"
    handler: str = "record"
    stdout: str = "lines"
    request_timeout_s: float | None = None
    handler_max_s: float | None = None
    ready_within_s: float = 60.0
    declared: tuple[str, ...] = field(default=(), compare=False)

    @property
    def silent(self) -> bool:
        """Whether nothing is to tell what it handled: by its declaration it prints no events, and has no sink."""
        return self.events == "none" and self.sink in (None, "none")

    @property
    def sink_is_read(self) -> bool:
        """Whether what it handled is read out of its sink: then who reads must have read all of it."""
        return self.sink in ("topic", "table", "postgres")

    @property
    def has_sink(self) -> bool:
        """Whether it declares a sink: what the sink never heard of was not done."""
        return self.sink not in (None, "none")

    @property
    def in_offsets_log(self) -> bool:
        """Whether its progress is what the offsets log says: committed by itself, or in its transactions."""
        return self.progress in ("kafka", "transaction")


@dataclass(frozen=True)
class Incarnation:
    """One incarnation of a member: the bounds of its file. Absent ends are None.

    `closed`: its first `stopped` or `exited`; `worked`: its last `delivered` or `processed`. `asked`: whether the
    harness had asked it to go (no, stop, overdue, kill; None where its last line does not say). `assigns`, `delivers`,
    `completes`: whether its file holds a line of a rebalance callback, a `delivered`, a `processed`; `given_back`: the
    slices that its `revoked` and `lost` lines list, `held`: those that its `assigned` lines list, or that a line of a
    record is of, each sorted; `in_hand`: with how many more records it says that it began than that it ended.
    `consumer`, `protocol`: the name and the protocol of the consumer.toml that it was started by; None: an earlier
    version's line.
    """

    source: int
    member: int
    number: int
    started_ns: int
    closed_seq: int | None = None
    closed_ns: int | None = None
    exited_seq: int | None = None
    exited_ns: int | None = None
    code: int | None = None
    signal: int | None = None
    worked_ns: int | None = None
    invokes: bool = False
    asked: str | None = None
    asked_ns: int | None = None
    within_s: float | None = None
    assigns: bool = False
    delivers: bool = False
    completes: bool = False
    given_back: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    in_hand: int = 0
    consumer: str | None = None
    protocol: str | None = None

    @property
    def works(self) -> bool:
        """Whether it said of any record that it had it."""
        return self.delivers or self.completes

    @property
    def killed(self) -> bool:
        """Ended by signal 9: it could not say what it did last."""
        return self.signal == 9

    @property
    def crashed(self) -> bool:
        """Ended by signal 9; or, unasked, by another signal or with a status that is not 0.

        Whoever was asked to stop did not crash, whatever its status says (143 is Java's usual after SIGTERM).
        """
        if self.killed or self.asked == "stop":
            return self.killed
        by_signal = self.asked == "no" and self.signal is not None
        return by_signal or self.code not in (None, 0)


@dataclass(frozen=True)
class LostEvents:
    """The lines of one incarnation that were events and could not be read: how many, and the first of them."""

    source: int
    member: str
    count: int
    nameless: int  # of them, those that do not name their record
    first: str
    reason: str


@dataclass(frozen=True)
class PrintedLines:
    """The lines of one member that were no events, or `error` events: which sort, how many, and the first of them."""

    member: str
    sort: str  # text | lost event | error
    count: int
    first: str


@dataclass(frozen=True)
class Window:
    """One fault as it was journaled: from its injection to its healing."""

    number: int
    fault: str
    target: str
    member: str | None
    injected_ns: int
    healed_ns: int | None
    injecting_ns: int | None = None  # when it began to be put in force; None: by an earlier version
    consequences: tuple[Consequence, ...] = ()

    @property
    def begun_ns(self) -> int:
        """When the fault began to be put in force; by an earlier version, when it was."""
        return self.injected_ns if self.injecting_ns is None else self.injecting_ns

    @property
    def in_words(self) -> str:
        """The fault, with its number and what it hit."""
        return f"fault {self.number} ({self.fault} on {self.member or self.target})"

    def does(self, *any_of: Consequence) -> bool:
        """Tells whether the fault has one of these consequences."""
        return not set(self.consequences).isdisjoint(any_of)


@dataclass(frozen=True)
class IntermediateTopic:
    """A topic that the group hands records on through: how many records there bear the id of one of the trial's, and
    how many bear none, or were deleted before they could be read."""

    topic: str
    records: int = 0
    nameless: int = 0


@dataclass(frozen=True)
class Connection:
    """One connection of a client to a broker, by the request log `source`.

    `first_…`, `last_…`: when its first and its last request began, by the broker's clock and as it was read.
    `of_group`: it asked about a group, whichever, or for a commit. `consumer_protocol`: it sent heartbeats of KIP-848.
    """

    source: int
    lane: int
    name: str
    client_id: str | None
    first_wall_ns: int | None
    first_time_ns: int
    last_wall_ns: int | None
    last_time_ns: int
    fetches: bool = False
    of_group: bool = False
    consumer_protocol: bool = False


@dataclass(frozen=True)
class SlowAnswer:
    """A broker, by its request log `source`, took long for what it answers at once (heartbeats, commits and positions).

    `wall_ns`: when it answered, by its own clock, `time_ns` when that was read; `duration_ns`: how long it took.
    """

    source: int
    wall_ns: int | None
    time_ns: int
    duration_ns: int


@dataclass(frozen=True)
class OwnClient:
    """One of the clients in a member's process, as its lines name it: by `name` (client_id or member_id) and `text`.

    `first_seq`, `last_seq`: the first and the last line of the file that speaks for it.
    """

    source: int
    name: str
    text: str
    first_seq: int
    last_seq: int


@dataclass(frozen=True)
class Membership:
    """One group record of the offsets log, as far as it tells of epochs and of who is in the group.

    `what`: "group" (classic: `epoch` is the generation of all), "member" (KIP-848: the epoch of `member_id`), or
    "group gone", "member gone" (tombstones). `members`: how many a classic record lists; None: it does not say, or
    nobody can read what they have. `listed`: which member ids it lists, whatever they have.
    """

    place: int
    what: str
    member_id: int
    epoch: int
    members: int | None
    wall_ns: int | None
    time_ns: int
    source: int
    seq: int
    listed: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Peak:
    """A sample of an incarnation's memory that is above all those before it."""

    member: str
    incarnation: int
    rss_bytes: int
    source: int
    seq: int


@dataclass(frozen=True)
class CpuWait:
    """How long, in the `over_ns` until `time_ns`, a thread of a member and one of a broker were ready to run and had no
    processor: of each the one that waited longest."""

    time_ns: int
    member_ns: int
    broker_ns: int
    over_ns: int

    @property
    def waited_ns(self) -> int:
        """Both, for one waits for the other."""
        return min(self.member_ns + self.broker_ns, self.over_ns)


@dataclass(frozen=True)
class OomRise:
    """The kernel's out-of-memory killer was counted higher than at the reading before."""

    before_ns: int
    at_ns: int
    by: int
    source: int
    seq: int


@dataclass(frozen=True)
class Epoch:
    """A record of the offsets log with the group's generation, or its epoch."""

    value: int
    wall_ns: int | None
    time_ns: int
    source: int
    seq: int


@dataclass(frozen=True)
class OpenTransaction:
    """What a producer had written into one log and not ended when the witness was asked to read to the end.

    `log`: the number of the log. `began`: when its first record there was written, by the wall clock (`began_wall_ns`)
    or, without that, when it was seen. `timeout_ms`: what its producer had asked for; None where nobody saw it.
    """

    producer_id: int
    producer_epoch: int
    log: int
    place: int
    began_wall_ns: int | None
    read_ns: int
    timeout_ms: int | None
    source: int
    seq: int


@dataclass(frozen=True)
class GroupAnswer:
    """What a broker answered to a member of the group: every join, assignment, leave, and every refusal.

    `time_ns`: when the harness read of it; `wall_ns`: when the answer had been sent. `lane`, `member`, `member_id`: -1
    unknown. `epoch` as asked, `answered_epoch` as answered (of a join its generation). `assigned`: the slices it
    was told to own; None where the answer lists none. `owned`: the slices a KIP-848 member said it owns.
    """

    source: int
    seq: int
    time_ns: int
    wall_ns: int | None
    duration_ns: int
    api: str  # JOIN_GROUP, SYNC_GROUP, HEARTBEAT, CONSUMER_GROUP_HEARTBEAT, LEAVE_GROUP, OFFSET_COMMIT, TXN_…
    error: int
    lane: int = -1
    member: int = -1
    member_id: int = -1
    connection: str | None = None
    client_id: str | None = None
    instance_id: str | None = None
    epoch: int | None = None
    answered_epoch: int | None = None
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    assigned: tuple[int, ...] | None = None
    owned: tuple[int, ...] | None = None

    @property
    def leaves(self) -> bool:
        """Whether it was asked to go: "-1 if the member leaves, -2 if a static member leaves for a while" (KIP-848)."""
        goodbye = self.api == "CONSUMER_GROUP_HEARTBEAT" and self.epoch is not None and self.epoch < 0
        return self.api == "LEAVE_GROUP" or goodbye


@dataclass(frozen=True)
class HeartbeatRun:
    """One stretch in which a member's heartbeats and joins were answered without an error, one soon after the other.

    By the request log `source`: when the first and the last of them were answered, by the broker's clock (None: its
    lines bear no time) and as they were read. Longer gaps than half a session end a stretch.
    """

    source: int
    lane: int
    first_wall_ns: int | None
    first_time_ns: int
    last_wall_ns: int | None
    last_time_ns: int


@dataclass(frozen=True)
class MemberSpan:
    """From when to when a member id was seen in the group on a lane: by whatever brokers granted it, but for goodbyes.

    When the first and the last such request were begun, by the broker's clock (None: its line bears no time) and as it
    was read.
    """

    lane: int
    member_id: int
    first_wall_ns: int | None
    first_time_ns: int
    last_wall_ns: int | None
    last_time_ns: int


@dataclass(frozen=True)
class AbortLine:
    """A line of a member that gave an attempt up: its commit, or its transaction, failed.

    `slices`: the partitions that it names, sorted; those of other topics are below 0. `own_client`: for which client it
    speaks, a place in `own_clients`; -1: it names none. `time_ns`, `own_ns`: when it was read, and when it says that it
    was (NONE: it does not).
    """

    source: int
    seq: int
    time_ns: int
    own_ns: int
    own_client: int
    slices: tuple[int, ...]


@dataclass(frozen=True)
class PositionProducer:
    """A producer in whose transactions positions were handed in on a lane (TxnOffsetCommit).

    `together`: the slices, in groups of those that were in one request, or in several with some in common. When the
    first and the last such request were read.
    """

    lane: int
    producer_id: int
    together: tuple[tuple[int, ...], ...]
    first_ns: int
    last_ns: int

    @property
    def hands_in(self) -> set[int]:
        """The slices whose positions it handed in."""
        return {place for group in self.together for place in group}


@dataclass(frozen=True)
class MirrorStart:
    """How a slice was taken up on another cluster, in offsets of the source; None: nobody knows.

    `committed`: what was committed where the group left. `started`: the position that the group had there when it came.
    `earliest`: the least that its way explains: to which the mirror may have translated its position or, on the source,
    the position that it had left there. `least`: from where the group had to go on at least.
    """

    slice: int
    committed: int | None = None
    started: int | None = None
    earliest: int | None = None
    least: int | None = None


@dataclass(frozen=True)
class FailOver:
    """How the group came to a mirror, or back to the source (`back`), where it is from `at_ns` on; what it does on a
    mirror is told in offsets of the source.

    `log_offset`: the last place in the offsets log that is of the cluster that it left (-1: none).
    """

    at_ns: int
    log_offset: int
    way: str = ""
    starts: tuple[MirrorStart, ...] = ()
    back: bool = False

    @property
    def least(self) -> Mapping[int, int | None]:
        """From where each slice had to be taken up at least; None: nobody knows."""
        return {one.slice: one.least for one in self.starts}


@dataclass(frozen=True)
class TrialContext:
    """Everything about a trial that is not in a slice."""

    slices: tuple[tuple[str, int], ...] = ()
    sources: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    incarnations: tuple[Incarnation, ...] = ()
    lanes: Mapping[int, int] = field(default_factory=dict)
    member_ids: tuple[str, ...] = ()
    owners: tuple[int, ...] = ()  # the member behind each member id, -1 unknown
    clocks: tuple[tuple[int, int], ...] = ()  # pairs (wall, monotonic), sorted
    timed: tuple[int, ...] = ()  # the files whose lines all bear a time of their own that can be so
    false_times: tuple[tuple[int, int, int], ...] = ()  # (file, times that cannot be so, seq of the first)
    phases: Mapping[str, int] = field(default_factory=dict)
    delays: tuple[tuple[int, int], ...] = ()  # (time, scheduling delay)
    cpu_waits: tuple[CpuWait, ...] = ()
    harness_stalls: tuple[tuple[int, int], ...] = ()  # from when to when it heard nothing, in order, apart
    readings: tuple[tuple[str, int, int], ...] = ()  # (reader, time, the longest that a line waited for it), sorted
    refusals: tuple[tuple[int, int, int], ...] = ()  # failed commits without entries: (source, seq, time)
    aborts: tuple[AbortLine, ...] = ()  # by (source, seq)
    only_certain_aborts: bool = False  # what may have been given up, and may not, counts as not given up
    position_producers: tuple[PositionProducer, ...] = ()  # by (lane, producer_id)
    windows: tuple[Window, ...] = ()
    connections: tuple[Connection, ...] = ()
    slow_answers: tuple[SlowAnswer, ...] = ()  # of brokers, to whomever
    own_clients: tuple[OwnClient, ...] = ()
    memberships: tuple[Membership, ...] = ()  # by place
    group_answers: tuple[GroupAnswer, ...] = ()  # by (source, seq)
    heartbeat_runs: tuple[HeartbeatRun, ...] = ()
    member_spans: tuple[MemberSpan, ...] = ()
    settings: Settings = Settings()
    declared_timeouts: DeclaredTimeouts = field(default_factory=DeclaredTimeouts)
    calibrated_rate: float | None = None
    opening_burst: Mapping[int, int] = field(default_factory=dict)  # its records, by slice, where that is told
    drain_bound_s: tuple[float, float] | None = None  # B and W by which the run bounded its drain; None: not told
    calibrated_ns: int | None = None  # when the opening burst was done, by which the rate was measured
    partitions_added: bool = False
    topics_added: bool = False  # while the group was at work
    topics: tuple[str, ...] = ()  # those that the group is to read, the first one first; none: nobody named them
    partitions: int = 0  # how many the first of them was seen to have, at most
    fetching: tuple[int, ...] = ()  # the lanes on which anything was fetched
    shared_lanes: tuple[int, ...] = ()  # of those, the lanes on which two clients fetched one partition by turns
    topic_changes: tuple[int, ...] = ()  # when a topic was seen with other partitions than before
    peaks: tuple[Peak, ...] = ()
    oom_read: bool = False
    oom_rises: tuple[OomRise, ...] = ()
    epochs: tuple[Epoch, ...] = ()  # in the order of the offsets log
    logs: tuple[str, ...] = ()  # those in which transactions ended or were left open: "topic-partition"
    open_transactions: tuple[OpenTransaction, ...] = ()
    outputs_ended: int = 0  # ends of transactions in logs other than the offsets log
    aborted_records: int = 0  # of the trial's topic
    through: tuple[IntermediateTopic, ...] = ()
    sink_seen: bool = False
    rows_told: bool = False  # changes of its table say of which row they are
    states_compared: bool = False  # a row, or a key at the sink, was written with two records of one key or entity
    bodies_compared: bool = False  # those of effects, with what was sent
    ids_told: bool = False  # a member named the ids of what it was delivered
    sends: int = 0  # that the workload invoked
    moved_sends: int = 0  # of those, acknowledged ones of keys that came to several partitions
    forwarded_effects: int = 0  # of records whose ids lie in several of the trial's topics
    compacted: tuple[str, ...] = ()  # the topics that were, at any time
    dated_by_brokers: bool = False  # its records have the time at which a broker wrote them (LogAppendTime)
    fail_overs: tuple[FailOver, ...] = ()  # in their order; a leg is the group's time on one cluster, before or after
    ended: str | None = None  # outcome of the run's `end`; None: the history is cut off
    lost_events: tuple[LostEvents, ...] = ()
    printed: tuple[PrintedLines, ...] = ()
    environment: tuple[str, ...] = ()
    witnesses: Mapping[str, str] = field(default_factory=dict)
    control_read: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def partitions_come(self) -> bool:
        """Whether partitions came while the group was at work, of which clients learn when they ask for metadata."""
        return self.partitions_added or self.topics_added

    @property
    def prints_no_work(self) -> bool:
        """Whether no member said of any record that it had it: then a sink alone can tell what was done."""
        return not any(incarnation.works for incarnation in self.incarnations)

    @property
    def has_sink(self) -> bool:
        """Whether a sink saw what was done."""
        return self.sink_seen or self.settings.has_sink

    def topic_of(self, slice_: int) -> str | None:
        """The topic of a slice; None for a number that is none."""
        return self.slices[slice_][0] if 0 <= slice_ < len(self.slices) else None

    def is_compacted(self, slice_: int) -> bool:
        """Whether the topic of a slice was compacted at any time; of one that the trial does not name: whether any
        was."""
        topic = self.topic_of(slice_)
        return topic in self.compacted if topic in self.topics else bool(self.compacted)

    def is_intermediate(self, slice_: int) -> bool:
        """Whether a slice is of a topic that the group hands records on through."""
        return any(one.topic == self.slices[slice_][0] for one in self.through)

    @property
    def session_timeout_s(self) -> float:
        """The session that the brokers were told; what is declared where nobody saw it."""
        told_s = self.declared_timeouts.session_timeout_s
        return self.settings.session_timeout_s if told_s is None else told_s

    @property
    def protocol(self) -> str:
        """The protocol that the members speak with their group; what is declared where nobody saw it."""
        return self.declared_timeouts.protocol or self.settings.protocol

    def speaks(self, protocol: str) -> bool:
        """Tells whether any member ever spoke a protocol with the group: as the brokers heard, or as it is declared."""
        declared = {self.settings.protocol, *(one.protocol for one in self.incarnations)}
        return protocol in {*declared, *self.declared_timeouts.protocols, self.declared_timeouts.protocol}

    @property
    def undisturbed_until_ns(self) -> int | None:
        """Until when nothing had been done to the group: the faults, else the drain; None: for ever."""
        begins = [self.phases.get("faults"), self.drain_ns, *(window.injected_ns for window in self.windows)]
        return min((at_ns for at_ns in begins if at_ns is not None), default=None)

    @property
    def drain_ns(self) -> int | None:
        """When faults were healed and the load had stopped: from here on the group must converge."""
        return self.phases.get("drain", self.phases.get("heal"))

    @property
    def snapshot_ns(self) -> int | None:
        """When the trial was looked at."""
        return self.phases.get("snapshot")

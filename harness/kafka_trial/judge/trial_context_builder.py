"""The trial context's builder: gathers the small events of a history into what every slice is judged in.

Fed file by file while the slice rows are made (`history_reader.py`); `consumer.toml` adds what its team declares.
Nothing here grows with the load, but for the clock (one pair a second) and one entry an incarnation.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from kafka_trial.history.consequences import consequences_in
from kafka_trial.history.event import lacking
from kafka_trial.judge.aborts import PositionProducers
from kafka_trial.judge.bad_lines import BadLines
from kafka_trial.judge.connections import Connections
from kafka_trial.judge.group_answers import Answer, answered
from kafka_trial.judge.history_names import HistoryNames
from kafka_trial.judge.membership import HeartbeatRunCollector, MemberSpanCollector
from kafka_trial.judge.own_clients import OwnClients
from kafka_trial.judge.refuted_ends import AnsweredEnds
from kafka_trial.judge.requested_timeouts import TimeoutCollector, take_timeouts
from kafka_trial.judge.run_samples import ClockCollector, ResourceCollector, exit_words
from kafka_trial.judge.transactions import Transactions
from kafka_trial.model.group_presence import membership_of
from kafka_trial.model.trial_context import (
    AbortLine,
    FailOver,
    Incarnation,
    IntermediateTopic,
    Membership,
    MirrorStart,
    Settings,
    SlowAnswer,
    TrialContext,
    Window,
)

Body = Mapping[str, Any]
KEPT = (
    "worked_ns",
    "in_hand",
    "invokes",
    "assigns",
    "delivers",
    "completes",
    "given_back",
    "held",
)  # of a file, whenever its start is read


@dataclass
class TrialContextBuilder(HistoryNames):
    """What has been gathered so far, and the names of what it was gathered of."""

    fetching: set[int] = field(default_factory=set)
    shared_lanes: set[int] = field(default_factory=set)
    lanes_of_ids: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    refusals: list[tuple[int, int, int]] = field(default_factory=list)
    aborts: list[AbortLine] = field(default_factory=list)
    position_producers: PositionProducers = field(default_factory=PositionProducers)
    windows: dict[int, dict[str, Any]] = field(default_factory=dict)
    injecting: dict[int, int] = field(default_factory=dict)  # when each fault began to be put in force
    connections: Connections = field(default_factory=Connections)
    slow_answers: list[SlowAnswer] = field(default_factory=list)
    own_clients: OwnClients = field(default_factory=OwnClients)
    memberships: list[Membership] = field(default_factory=list)
    group_answers: list[Answer] = field(default_factory=list)
    witnesses: dict[str, str] = field(default_factory=dict)
    environment: list[str] = field(default_factory=list)
    partition_counts_seen: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))  # of each own topic
    brokers: set[int] = field(default_factory=set)  # that held partitions
    clock_samples: ClockCollector = field(default_factory=ClockCollector)
    resource_samples: ResourceCollector = field(default_factory=ResourceCollector)
    transactions: Transactions = field(default_factory=Transactions)
    bad_lines: BadLines = field(default_factory=BadLines)
    timeouts: TimeoutCollector = field(default_factory=TimeoutCollector)
    heartbeat_runs: HeartbeatRunCollector = field(default_factory=HeartbeatRunCollector)
    member_spans: MemberSpanCollector = field(default_factory=MemberSpanCollector)
    calibrated_rate: float | None = None
    opening_burst: dict[tuple[str | None, int], int] = field(default_factory=dict)
    calibrated_ns: int | None = None
    drain_bound_s: tuple[float, float] | None = None
    fail_overs: list[FailOver] = field(default_factory=list)
    topics_added: bool = False
    control_read_states: dict[str, str] = field(default_factory=dict)  # the last of each topic
    ended: str | None = None
    timed: list[int] = field(default_factory=list)
    false_times: list[tuple[int, int, int]] = field(default_factory=list)
    sink_seen: bool = False
    rows_told: bool = False
    states_compared: bool = False
    bodies_compared: set[str] = field(default_factory=set)  # of effects of records of these topics
    ids_told: set[str | None] = field(default_factory=set)  # of records of these topics
    sends: int = 0
    moved_sends: int = 0
    answered_ends: AnsweredEnds = field(default_factory=AnsweredEnds)
    forwarded_effects: int = 0
    compacted: set[str] = field(default_factory=set)  # topics
    dated_by_brokers: bool = False
    audited: bool = False
    defects: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def take(self, source: int, body: Body) -> None:
        """Takes one event into account; other kinds are nothing to it."""
        taker = TAKERS.get(str(body.get("kind")))
        if taker is not None:
            taker(self, source, body)

    def trial_context(self, settings: Settings) -> TrialContext:
        """Returns all of it as one frozen value."""
        return TrialContext(
            slices=tuple(self.slices),
            sources=tuple(self.sources),
            members=tuple(self.members),
            incarnations=tuple(
                Incarnation(source=source, **incarnation) for source, incarnation in sorted(self.incarnations.items())
            ),
            lanes=dict(sorted(self._lanes().items())),
            member_ids=tuple(self.member_ids),
            owners=tuple(self._owner(name) for name in self.member_ids),
            phases=dict(self.phases),
            refusals=tuple(sorted(self.refusals)),
            aborts=tuple(sorted(self.aborts, key=lambda one: (one.source, one.seq))),
            position_producers=self.position_producers.all(),
            windows=tuple(Window(**window) for _, window in sorted(self.windows.items())),
            connections=self.connections.all(),
            slow_answers=tuple(sorted(self.slow_answers, key=lambda one: (one.source, one.time_ns, one.duration_ns))),
            own_clients=self.own_clients.all(),
            memberships=tuple(sorted(self.memberships, key=lambda one: (one.place, one.source, one.seq))),
            group_answers=answered(self.group_answers, self._lanes()),
            heartbeat_runs=self.heartbeat_runs.all(),
            member_spans=self.member_spans.all(),
            settings=settings,
            declared_timeouts=self.timeouts.declared(),
            calibrated_rate=self.calibrated_rate,
            opening_burst=self._opening_burst(),
            calibrated_ns=self.calibrated_ns,
            drain_bound_s=self.drain_bound_s,
            fail_overs=tuple(sorted(self.fail_overs, key=lambda one: one.at_ns)),
            partitions_added=self.partitions_added,
            topics_added=self.topics_added,
            partitions=self._partitions(),
            topics=tuple(self.topics),
            fetching=tuple(sorted(self.fetching)),
            shared_lanes=tuple(sorted(self.shared_lanes)),
            timed=tuple(self.timed),
            false_times=tuple(self.false_times),
            **self.clock_samples.trial_context(),
            **self.resource_samples.trial_context(),
            **self.transactions.trial_context(),
            lost_events=self.bad_lines.lost_events(),
            printed=self.bad_lines.printed(),
            through=tuple(IntermediateTopic(topic, **found) for topic, found in self.through.items()),
            sink_seen=self.sink_seen,
            rows_told=self.rows_told,
            states_compared=self.states_compared,
            bodies_compared=self._of_all_topics(self.bodies_compared),
            ids_told=self._of_all_topics(self.ids_told),
            sends=self.sends,
            moved_sends=self.moved_sends,
            forwarded_effects=self.forwarded_effects,
            compacted=tuple(sorted(self.compacted)),
            dated_by_brokers=self.dated_by_brokers,
            ended=self.ended,
            environment=tuple(dict.fromkeys(self.environment)),
            witnesses=dict(sorted(self.witnesses.items())),
            control_read=self._control_read(),
            counts=dict(sorted(self.counts.items())),
        )

    @property
    def partitions_added(self) -> bool:
        """Whether a topic of the group was seen with different numbers of partitions."""
        return any(len(counts) > 1 for counts in self.partition_counts_seen.values())

    def _of_all_topics(self, seen: Set[Any]) -> bool:
        """Whether something was seen of records of every topic of the group: each may have a listener of its own."""
        return bool(seen) and (len(self.topics) < 2 or seen >= {*self.topics})

    def _partitions(self) -> int:
        """Returns how many partitions the first topic was seen to have at most."""
        own = [counts for topic, counts in self.partition_counts_seen.items() if topic == (self.topic or topic)]
        return max((count for counts in own for count in counts), default=0)

    def _control_read(self) -> str | None:
        """Returns the state of the control read: of several topics the first that is missing or not complete."""
        if len(self.topics) < 2:
            return next(reversed(self.control_read_states.values()), None)
        states = (self.control_read_states.get(topic) for topic in self.topics)
        return next((state for state in states if state != "complete"), "complete")

    def _opening_burst(self) -> dict[int, int]:
        """Returns the opening burst's records by slice; of a partition without a slice by a negative number, so that
        the sum stays right."""
        numbers: dict[tuple[str | None, int], int] = {}
        for (topic, partition), number in self.slices.items():
            numbers[topic, partition] = number
            if topic == (self.topic or topic):
                numbers.setdefault((None, partition), number)
        return {numbers.get(place, ~at): count for at, (place, count) in enumerate(self.opening_burst.items())}

    def _owner(self, member_id: str) -> int:
        """Returns the member whose lane this id was seen on; -1 where it was seen on none, or on several."""
        lanes = self._lanes()
        found = {lanes[lane] for lane in self.lanes_of_ids.get(member_id, ()) if lane in lanes}
        return found.pop() if len(found) == 1 else -1

    def _lanes(self) -> dict[int, int]:
        """Returns the member in each lane: as `started` says, else member m<i> in lane i."""
        return self.lanes or {int(name[1:]): number for name, number in self.members.items() if name[1:].isdigit()}


def _started(builder: TrialContextBuilder, source: int, body: Body) -> None:
    name = body.get("member")
    if not isinstance(name, str):
        return
    member = builder.member(name)
    lane = body.get("lane")
    if isinstance(lane, int):
        builder.lanes[lane] = member
    builder.incarnations[source] = {
        "member": member,
        "number": body["incarnation"] if isinstance(body.get("incarnation"), int) else 0,
        "started_ns": body["time_ns"],
        **{key: body[key] for key in ("consumer", "protocol") if isinstance(body.get(key), str)},
        **{key: value for key, value in builder.incarnations.get(source, {}).items() if key in KEPT},
    }


def _stopped(builder: TrialContextBuilder, source: int, body: Body) -> None:
    incarnation = builder.incarnations.get(source)
    if incarnation is not None and "closed_seq" not in incarnation:
        incarnation |= {"closed_seq": body["seq"], "closed_ns": body["time_ns"]}


def _exited(builder: TrialContextBuilder, source: int, body: Body) -> None:
    _stopped(builder, source, body)
    builder.bad_lines.take_exit(source, body)
    incarnation = builder.incarnations.get(source)
    if incarnation is not None and "exited_seq" not in incarnation:
        incarnation |= {"exited_seq": body["seq"], "exited_ns": body["time_ns"]}
        incarnation |= {name: body[name] for name in ("code", "signal") if isinstance(body.get(name), int)}
        incarnation |= exit_words(body)


def _client_named(builder: TrialContextBuilder, source: int, body: Body) -> None:
    """A client of a cluster that is not ours: told from its requests, for no lane was given to it."""
    if isinstance(body.get("member"), str) and isinstance(body.get("lane"), int):
        builder.lanes[body["lane"]] = builder.member(body["member"])


def _phase(builder: TrialContextBuilder, source: int, body: Body) -> None:
    builder.phases.setdefault(str(body.get("phase")), body["time_ns"])


def _calibrated(builder: TrialContextBuilder, source: int, body: Body) -> None:
    if isinstance(body.get("rate"), int | float):
        builder.calibrated_rate, builder.calibrated_ns = float(body["rate"]), body["time_ns"]
        builder.opening_burst = _counts(body.get("entries"))


def _counts(entries: object) -> dict[tuple[str | None, int], int]:
    """Returns how many records each partition has, of the entries that say so; some name no topic."""
    told = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return {
        (entry.get("topic"), entry["partition"]): entry["count"]
        for entry in told
        if isinstance(entry.get("partition"), int) and isinstance(entry.get("count"), int)
    }


def _drain_bound(builder: TrialContextBuilder, source: int, body: Body) -> None:
    if not lacking("drain_bound", body):
        builder.drain_bound_s = float(body["converge_s"]), float(body["stuck_s"])


def _failed_over(builder: TrialContextBuilder, source: int, body: Body) -> None:
    if lacking("failed_over", body):
        return
    positions = ("committed_offset", "started_offset", "earliest_offset", "least_offset")
    starts = [
        MirrorStart(builder.slice_of(entry["topic"], entry["partition"]), *(entry.get(name) for name in positions))
        for entry in body["entries"]
        if isinstance(entry, dict) and isinstance(entry.get("topic"), str) and isinstance(entry.get("partition"), int)
    ]
    way, back = str(body.get("way", "")), body.get("back") is True
    builder.fail_overs.append(FailOver(body["time_ns"], body["log_offset"], way, tuple(starts), back))


def _named(builder: TrialContextBuilder, source: int, body: Body) -> None:
    if body["kind"] == "topic_named":
        if isinstance(body.get("topic"), str) and body["topic"] not in builder.topics:
            builder.topics.append(body["topic"])
            builder.topics_added |= body.get("later") is True
        return
    if isinstance(body.get("group"), str):
        builder.group = body["group"]
    take_timeouts(builder.timeouts, builder, body)


def _environment(builder: TrialContextBuilder, source: int, body: Body) -> None:
    builder.environment.append(str(body.get("message", "the environment failed")))


def _audit(builder: TrialContextBuilder, source: int, body: Body) -> None:
    builder.audited = True


def _end(builder: TrialContextBuilder, source: int, body: Body) -> None:
    if builder.ended is not None:
        builder.defects.append(f"{builder.sources[source]}: a second end (#{body['seq']})")
    builder.ended = str(body.get("outcome", "info"))
    if builder.ended != "ok" and body.get("message"):
        builder.environment.append(str(body["message"]))


def _topic(builder: TrialContextBuilder, source: int, body: Body) -> None:
    name, topic_id = body.get("topic"), body.get("topic_id")
    if isinstance(name, str) and isinstance(topic_id, str):
        others = [known for known, of in builder.topics_by_id.items() if of == name and known != topic_id]
        if others and topic_id not in builder.topics_by_id:
            builder.defects.append(
                f"topic {name} was created anew during the trial: this judge cannot tell its lives apart"
            )
        builder.topics_by_id[topic_id] = name
    if not builder.is_trial_topic(name):
        return
    if isinstance(body.get("partitions"), int):
        builder.partition_counts_seen[str(name)].add(body["partitions"])
        builder.resource_samples.take_topic(str(name), body)
    if "compact" in str(body.get("cleanup_policy", "")):
        builder.compacted.add(str(name))


def _through(builder: TrialContextBuilder, source: int, body: Body) -> None:
    builder.through.setdefault(body["topic"], Counter())
    if isinstance(body.get("topic_id"), str):
        builder.topics_by_id[body["topic_id"]] = body["topic"]


def _leader(builder: TrialContextBuilder, source: int, body: Body) -> None:
    replicas = body.get("replicas")
    if isinstance(replicas, list):
        builder.brokers |= {broker for broker in replicas if isinstance(broker, int)}


def _control_read(builder: TrialContextBuilder, source: int, body: Body) -> None:
    builder.control_read_states.pop(str(body.get("topic")), None)
    builder.control_read_states[str(body.get("topic"))] = str(body.get("state"))
    if body.get("timestamp_type") == "LogAppendTime":
        builder.dated_by_brokers = True


def _witness(builder: TrialContextBuilder, source: int, body: Body) -> None:
    name, state = builder.sources[source], str(body.get("state"))
    if builder.witnesses.get(name) not in ("dead", "undecodable"):  # worse never gets better
        builder.witnesses[name] = state


def _undecodable(builder: TrialContextBuilder, source: int, body: Body) -> None:
    builder.witnesses[builder.sources[source]] = "undecodable"


def _injecting(builder: TrialContextBuilder, source: int, body: Body) -> None:
    if isinstance(body.get("fault_no"), int):
        builder.injecting[body["fault_no"]] = body["time_ns"]


def _injected(builder: TrialContextBuilder, source: int, body: Body) -> None:
    number = body.get("fault_no")
    if isinstance(number, int):
        builder.windows[number] = {
            "number": number,
            "fault": str(body.get("fault")),
            "target": str(body.get("target")),
            "member": body.get("member") if isinstance(body.get("member"), str) else None,
            "injected_ns": body["time_ns"],
            "healed_ns": None,
            "injecting_ns": builder.injecting.get(number),
            "consequences": consequences_in(body),
        }


def _healed(builder: TrialContextBuilder, source: int, body: Body) -> None:
    number = body.get("fault_no")
    if isinstance(number, int) and number in builder.windows:
        builder.windows[number]["healed_ns"] = body["time_ns"]


def _membership(builder: TrialContextBuilder, source: int, body: Body) -> None:
    if not builder.is_of_group(body):
        return
    name = body.get("member_id")
    number = builder.member_id(name) if isinstance(name, str) else -1
    found = membership_of(body, source=source, member_id=number, number_of=builder.member_id)
    if found is not None:
        builder.memberships.append(found)


def _group(builder: TrialContextBuilder, source: int, body: Body) -> None:
    _membership(builder, source, body)
    builder.resource_samples.take_epoch(builder, source, body)
    take_timeouts(builder.timeouts, builder, body)


TAKERS: Mapping[str, Callable[[TrialContextBuilder, int, Body], None]] = {
    "started": _started,
    "client_named": _client_named,
    "stopped": _stopped,
    "exited": _exited,
    "bad_line": lambda builder, source, body: builder.bad_lines.take(source, body),
    "error": lambda builder, source, body: builder.bad_lines.count(body, "error"),
    "phase": _phase,
    "calibrated": _calibrated,
    "drain_bound": _drain_bound,
    "failed_over": _failed_over,
    "group_named": _named,
    "topic_named": _named,
    "environment": _environment,
    "audit": _audit,
    "end": _end,
    "topic": _topic,
    "through": _through,
    "leader": _leader,
    "control_read": _control_read,
    "witness": _witness,
    "undecodable": _undecodable,
    "group": _group,
    "group_epoch": lambda builder, source, body: builder.resource_samples.take_epoch(builder, source, body),
    "member": lambda builder, _, body: take_timeouts(builder.timeouts, builder, body),
    "member_assignment": _membership,
    "group_tombstone": _membership,
    "injecting": _injecting,
    "injected": _injected,
    "healed": _healed,
    "clock": lambda builder, _, body: builder.clock_samples.take_clock(body),
    "scheduling_delay": lambda builder, _, body: builder.clock_samples.take_scheduling_delay(body),
    "reading_delay": lambda builder, _, body: builder.clock_samples.take_reading_delay(body),
    "cpu_wait": lambda builder, _, body: builder.clock_samples.take_cpu_wait(body),
    "resources": lambda builder, source, body: builder.resource_samples.take_resources(source, body),
    "oom_kills": lambda builder, source, body: builder.resource_samples.take_oom_kills(source, body),
    "transaction_open": lambda builder, source, body: builder.transactions.take_open(source, body),
}

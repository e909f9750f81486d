"""The export, told as a story: from a cluster that is not ours to a run folder that `check` and `report` understand.

Look whether all is there, read the group's offsets log, then the topic's ends and what the group had left to read, then
the sink and the request logs where they are given. Readers are bounded and run side by side (`readers.py`); each source
has a file of its own in `history/`, and at the end the judge makes its Parquet of them (`cache/`). Strictly read-only:
Metadata, DescribeGroups, DescribeConfigs, ListOffsets and Fetch are all that brokers are ever sent, and a database one
statement in a transaction that cannot write.

An audit's time is wall time: `time_ns` is nanoseconds since 1970, by the clock of whoever wrote the record (for what is
asked now, this machine's). What could not be read is an `unread` event with its reason.

First of all it is asked whether all is there that the audit asks for, and may be read: by Metadata, ListOffsets and one
Fetch each. What is missing is told in full.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from kafka_trial import __version__
from kafka_trial.audit.bounded_reading import Budget, Log, connect
from kafka_trial.audit.offsets import OffsetsRead, read_offsets
from kafka_trial.audit.readers import Taken, expired, ranges_of, ranges_passed_over, read_records, tell_topic
from kafka_trial.audit.request import NS_PER_S, AuditRequest, stamp
from kafka_trial.audit.request_log_files import read_request_logs
from kafka_trial.audit.resets import resets_forward
from kafka_trial.audit.settings import consumer_toml, settings_of, settle_ns
from kafka_trial.audit.sink import CLEANUP, Span, check_table, read_sink_table, read_sink_topic
from kafka_trial.errors import InputError, StartError, WaitTimeout
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RUN_SCHEMA, RunFolder, create_run_folder
from kafka_trial.kafka_protocol import cluster_queries, group_requests
from kafka_trial.kafka_protocol.batches import fetch
from kafka_trial.kafka_protocol.cluster_queries import Topic
from kafka_trial.kafka_protocol.connection import Brokers, Connection, NoAnswerError
from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC, group_partition
from kafka_trial.kafka_protocol.primitives import error_name
from kafka_trial.process.waiting import wait_until
from kafka_trial.trial.console import Console

KIND = "audit"
CONFIGS = (CLEANUP, "retention.ms", "message.timestamp.type")
BUFFER_EVENTS = 500
SETTLES = 2  # what was there two windows W before the end should have been handled by the end
TOLD_WITHIN_S = 5.0  # a leader that is new, or has just gone, answers without offsets
TOPIC_REFUSED, GROUP_REFUSED, CLUSTER_REFUSED = 29, 30, 31
ACLS = {
    TOPIC_REFUSED: "{operation} on topic {topic}",
    GROUP_REFUSED: "DESCRIBE on group {group}",
    CLUSTER_REFUSED: "DESCRIBE on the cluster",
}
NO_SUCH_GROUP = "there is no such group now: it never was, its offsets have expired, or it was deleted. Check the name"
REFUSED = "the cluster does not let us read {topic} ({told}): give our principal DESCRIBE and READ on topic {topic}"


@dataclass
class Export:
    """What the steps of an export share, and what they could not read, by the evidence that is missing."""

    request: AuditRequest
    folder: RunFolder
    brokers: Brokers
    preconditions: Preconditions
    console: Console
    until_s: float
    unread: list[tuple[str, str]] = field(default_factory=list)

    def budget(self) -> Budget:
        return Budget(self.request.limits, until_s=self.until_s)

    def missing(self, evidence: str, messages: Sequence[str]) -> None:
        self.unread += [(evidence, message) for message in messages]


@dataclass(frozen=True)
class AuditExport:
    """The run folder of an export; `committed`: where the group stood at the end of the window, by partition, as far as
    the log was read; `unread`: the evidence of which some could not be read."""

    folder: RunFolder
    committed: Mapping[int, int]
    unread: Set[str] = frozenset()


def export(request: AuditRequest, *, out: Path | None, console: Console) -> AuditExport:
    """Exports what an audit needs into a new run folder and returns it.

    Raises:
        InputError: there is no such topic, group or table, or we may not read it.
        StartError: nobody answers at the bootstrap addresses, or at the database's.
        UnjudgeableError: brokers went away while they were read.
    """
    if request.sink and request.sink.query:
        check_table(request.sink, _span(request, settle=settle_ns(settings_of(request)), earliest_ns=request.from_ns))
    with ExitStack() as stack:
        brokers = stack.enter_context(connect(request))
        console.phase("look", f"for topic {request.topic} and group {request.group} at {request.bootstrap}")
        preconditions = _read_preconditions(brokers, request)
        refuse_unknown_group(brokers, request, preconditions, console)
        folder = create_run_folder(out, KIND, _file_name(request.group))
        until_s = time.monotonic() + request.limits.minutes_max * 60
        this = Export(request, folder, brokers, preconditions, console, until_s)
        _write_run_json(this)
        read = _offsets(this)
        settings = settings_of(request, read.told)
        (folder.path / "consumer.toml").write_text(consumer_toml(request, settings), encoding="utf-8")
        drain_ns = request.until_ns - SETTLES * settle_ns(settings)
        earliest_ns = _topic(this, read, drain_ns=max(drain_ns, request.from_ns))
        _sink(this, _span(request, settle=settle_ns(settings), earliest_ns=earliest_ns))
        _requests(this)
        _run(this, read, drain_ns=drain_ns, settle=settle_ns(settings))
    return AuditExport(folder, read.committed, {evidence for evidence, _ in this.unread})


def refuse_unknown_group(
    brokers: Brokers, request: AuditRequest, preconditions: Preconditions, console: Console
) -> None:
    """Asks the group's coordinator, which is who leads its partition of the offsets log, whether there is such a group.

    Raises:
        InputError: there is none. Who may not describe groups is told so, not refused: the offsets log will tell.
    """
    log = Log.of(brokers, OFFSETS_TOPIC)
    try:
        state = brokers.broker(
            log.leaders[preconditions.log_partition],
            lambda connection: group_requests.group_state(connection, request.group),
        )
    except NoAnswerError as error:
        if acl := missing_acl(error, request, operation="DESCRIBE"):
            console.say(f"{acl}. Whether there is such a group now cannot be asked; its offsets log will tell")
        return
    if state.state == group_requests.DEAD:
        raise InputError(f"--group {request.group}", NO_SUCH_GROUP)


def _offsets(this: Export) -> OffsetsRead:
    request, settle = this.request, settle_ns(settings_of(this.request))
    this.console.phase("offsets", f"reading partition {this.preconditions.log_partition} of {OFFSETS_TOPIC}")
    with Recorder(this.folder.history, "offsets", buffer_events=BUFFER_EVENTS) as recorder:
        log, budget = Log.of(this.brokers, OFFSETS_TOPIC), this.budget()
        read = read_offsets(
            log,
            this.preconditions.log_partition,
            request,
            recorder,
            budget,
            topic_id=this.preconditions.topic.topic_id,
            settle_ns=settle,
            now_ns=time.time_ns(),
        )
        recorder.record("witness", time_ns=request.until_ns, state="complete")
    this.missing("offsets log", read.unread)
    return read


def _topic(this: Export, read: OffsetsRead, *, drain_ns: int) -> int:
    """Reads the records that somebody still had to read, and returns the time of the earliest of them."""
    request, topic = this.request, this.preconditions.topic
    this.console.phase("topic", f"reading what {request.group} had left to read of {request.topic}")
    with Recorder(this.folder.history, "observer", buffer_events=BUFFER_EVENTS) as recorder:
        log = Log.of(this.brokers, request.topic)
        configs = _configs(this, topic)
        tell_topic(log, topic, configs, recorder)
        taken = Taken(request, recorder)
        ranges, identity = ranges_of(log, read.committed, request, drain_ns=drain_ns), request.identity
        budget = this.budget()
        readings = [
            read_records(request, request.topic, each, budget, taken.take, identity=identity if request.sink else None)
            for each in (*ranges_passed_over(_moves(this), ranges, log.starts()), ranges)
        ]
        unread, count = [one for each in readings for one in each.unread], sum(each.count for each in readings)
        state = "incomplete" if unread else "complete"
        whose = taken.common_timestamp_type(configs.get("message.timestamp.type"))
        read_up = {"topic": request.topic, "state": state, "count": count, "timestamp_type": whose}
        recorder.record("control_read", time_ns=request.until_ns, **read_up)
        recorder.record("witness", time_ns=request.until_ns, state="complete")
    this.missing("records", unread)
    if request.sink:
        this.missing("records", expired(log, request))
        if taken.nameless:
            told = f"whether {taken.nameless} records of {request.topic} were handled: they have {identity}"
            this.missing("handled", [told])
    return taken.earliest_ns


def _moves(this: Export) -> Iterator[tuple[int, int, int]]:
    """Yields the resets forward as partition, from and to."""
    topic = this.preconditions.topic
    for one in resets_forward(this.folder.history, topic=topic.name, topic_id=topic.topic_id):
        yield one.partition, one.before or 0, one.after


def _configs(this: Export, topic: Topic) -> dict[str, str | None]:
    """Returns some configs of a topic; none where we may not describe them, which is told."""
    leader = next(part.leader for part in topic.partitions if part.leader >= 0)
    try:
        return this.brokers.broker(
            leader, lambda connection: cluster_queries.topic_configs(connection, topic.name, CONFIGS)
        )
    except NoAnswerError as error:
        if acl := missing_acl(error, this.request, operation="DESCRIBE_CONFIGS", topic=topic.name):
            this.console.say(f"{acl}. Its {', '.join(CONFIGS)} are not known then")
        return {}


def _span(request: AuditRequest, *, settle: int, earliest_ns: int) -> Span:
    """Returns when the audited records may have been handled."""
    return Span(max(0, min(request.from_ns, earliest_ns) - settle), request.until_ns + settle)


def _sink(this: Export, span: Span) -> None:
    request, sink = this.request, this.request.sink
    if sink is None:
        return
    this.console.phase("sink", f"reading the ids in {sink.name}")
    with Recorder(this.folder.history, "sink", buffer_events=BUFFER_EVENTS) as recorder:
        for topic in this.preconditions.sinks:
            log, configs = Log.of(this.brokers, topic.name), _configs(this, topic)
            this.missing("handled", read_sink_topic(log, request, span, this.budget(), recorder, configs=configs))
        if sink.query:
            rows = read_sink_table(sink, span, this.budget(), recorder)
            this.missing("handled", rows.gaps_in_words(sink.name))
            this.missing("times", [] if rows.timed else [f"not known: when the rows of {sink.name} were written"])
        recorder.record("witness", time_ns=request.until_ns, state="complete")


def _requests(this: Export) -> None:
    if this.request.request_logs:
        this.console.phase("requests", f"reading {len(this.request.request_logs)} request logs")
        this.missing("requests", read_request_logs(this.request, this.folder.history))


def _run(this: Export, read: OffsetsRead, *, drain_ns: int, settle: int) -> None:
    """Records what was asked, the phases that stand for it, and what was not read; then the history is whole."""
    request = this.request
    until_ns = min(request.until_ns, read.read_to_ns)
    with Recorder(this.folder.history, "run") as recorder:
        recorder.record("clock", time_ns=request.from_ns, wall_ns=request.from_ns)  # this history's clock is the wall's
        recorder.record("topic_named", time_ns=request.from_ns, topic=request.topic)
        recorder.record("group_named", time_ns=request.from_ns, group=request.group)
        recorder.record(
            "audit",
            time_ns=request.from_ns,
            from_ns=request.from_ns,
            until_ns=until_ns,
            drain_ns=drain_ns,
            settle_ns=settle,
            read_to_ns=read.read_to_ns,
            commits=read.inside,
            resets=len(list(_moves(this))),
            earlier_commits=read.earlier,
            earlier_until_ns=read.earlier_until_ns,
        )
        seconds = (until_ns - request.from_ns) / NS_PER_S
        if read.advanced:  # at least so fast the group is
            rate = read.advanced / seconds
            recorder.record("calibrated", time_ns=request.from_ns, count=read.advanced, seconds=seconds, rate=rate)
        for evidence, message in this.unread:
            recorder.record("unread", time_ns=request.from_ns, name=evidence, message=message)
        for name, at_ns in (("steady", request.from_ns), ("drain", drain_ns), ("snapshot", until_ns)):
            if name != "drain" or drain_ns > request.from_ns:
                recorder.record("phase", time_ns=at_ns, phase=name)
        recorder.record("end", time_ns=until_ns, outcome="ok")


def _write_run_json(this: Export) -> None:
    request = this.request
    this.folder.write_json(
        "run.json",
        {
            "schema": RUN_SCHEMA,
            "kind": KIND,
            "kafka_trial": __version__,
            "python": platform.python_version(),
            "audit": request.metadata,
            "exported_at": stamp(time.time_ns()),
        },
    )
    summary = f"group {request.group} on topic {request.topic}, {request.window}"
    this.folder.write_json(
        "scenario.json",
        {
            "schema": RUN_SCHEMA,
            "name": KIND,
            "summary": summary,
            "topic": {"partitions": 0},
        },  # none of them must have had work
    )


def _file_name(group: str) -> str:
    """Returns a group's name as a part of a folder's: what is unusual there becomes a dash."""
    return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in group)[:80]


@dataclass(frozen=True)
class Preconditions:
    """What was found: the topic, the partition of the offsets log that holds the group, and its leader."""

    topic: Topic
    log_partition: int
    sinks: tuple[Topic, ...] = ()


def _read_preconditions(brokers: Brokers, request: AuditRequest) -> Preconditions:
    """Returns where everything is that the audit asks for.

    Raises:
        StartError: nobody answers at the bootstrap addresses.
        InputError: there is no such topic, or it may not be read; all of these are told at once.
    """
    wanted = [request.topic, OFFSETS_TOPIC, *_sink_topics(request)]
    found = {name: readable_topic(brokers, request, name) for name in wanted}
    problems = [problem for problem in found.values() if isinstance(problem, str)]
    if problems:
        raise InputError("audit", problems)
    topics = {name: topic for name, topic in found.items() if isinstance(topic, Topic)}
    partitions = len(topics[OFFSETS_TOPIC].partitions)
    return Preconditions(
        topics[request.topic],
        group_partition(request.group, partitions=partitions),
        tuple(topics[name] for name in _sink_topics(request)),
    )


def missing_acl(error: NoAnswerError, request: AuditRequest, *, operation: str, topic: str | None = None) -> str | None:
    """Returns what our principal must be given where a question was refused for want of it; else None.

    `operation` is what the question needs on the topic (default: the audited one).
    """
    acl = ACLS.get(error.code or 0)
    if acl is None:
        return None
    wanted = acl.format(operation=operation, topic=topic or request.topic, group=request.group)
    return f"{error}: our principal has no {wanted}"


def _sink_topics(request: AuditRequest) -> tuple[str, ...]:
    return request.sink.topics if request.sink else ()


def readable_topic(brokers: Brokers, request: AuditRequest, name: str) -> Topic | str:
    """Returns a topic that can be read, else the sentence that says why it cannot.

    Raises:
        StartError: nobody answers at the bootstrap addresses.
    """
    try:
        found = brokers.anyone(lambda connection: cluster_queries.metadata(connection, [name]))
    except NoAnswerError as error:
        raise StartError(f"no broker answers at {request.bootstrap}: {error}. {_advice(request)}") from error
    brokers.by_id = dict(found.brokers)
    topic = found.topics.get(name)
    if topic is not None:
        return _refused(brokers, topic) or topic
    if (code := found.refused.get(name)) == TOPIC_REFUSED:
        return REFUSED.format(topic=name, told=f"metadata: {error_name(code)}")
    return _absent(name, request)


def _advice(request: AuditRequest) -> str:
    address = "Is the address right and reachable from here"
    if not request.security.config:
        return f"{address}? A listener with TLS or SASL needs --command-config FILE, as Kafka's own tools take it"
    return f"{address}, and is it a listener for {request.security.protocol}, as {request.security.config} says?"


def _absent(name: str, request: AuditRequest) -> str:
    if name == OFFSETS_TOPIC:
        return (
            f"there is no topic {name} for us: no group has ever committed on this cluster, or we may not see it. "
            f"This needs DESCRIBE and READ on topic {name}"
        )
    option = "--sink-topic" if name in _sink_topics(request) else "--topic"
    return f"{option} {name}: there is no such topic at {request.bootstrap}, or we may not DESCRIBE it. Check the name"


def _refused(brokers: Brokers, topic: Topic) -> str | None:
    """Returns what keeps us from reading a topic; asked of one partition that has a leader."""
    led = next((part for part in topic.partitions if part.leader >= 0), None)
    if led is None:
        return f"topic {topic.name}: no partition of it has a leader now; audit again when its brokers are back"

    def ask(connection: Connection) -> bool:
        offsets = cluster_queries.list_offsets(connection, topic.name, [led.partition], which=cluster_queries.EARLIEST)
        if led.partition in offsets:
            fetch(connection, topic.name, led.partition, offsets[led.partition], wait_ms=1)
        return led.partition in offsets

    what = f"broker {led.leader} to tell where {topic.name}-{led.partition} begins"
    try:
        wait_until(lambda: brokers.broker(led.leader, ask), within_s=TOLD_WITHIN_S, what=what, every_s=0.2)
    except WaitTimeout as error:
        return f"topic {topic.name}: {error}; it may not lead it any more: audit again"
    except NoAnswerError as error:
        if error.code == TOPIC_REFUSED:
            return REFUSED.format(topic=topic.name, told=error)
        return (
            f"topic {topic.name}: broker {led.leader}, leader of partition {led.partition}, cannot be asked: {error}. "
            "Its advertised address must be reachable from here"
        )
    return None

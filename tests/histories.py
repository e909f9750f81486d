"""Literal histories in a few words, and what the judge says of them.

A history is a list of lines, one event each, ten milliseconds apart (`after` lets more time pass). `judged` frames
them: the run's phases and clock, the observer's control read of partition 0, witnesses that read to the end.

    judged("skipped", [assigned("m0"), delivered("m0", 1), processed("m0", 1), committed(2)], records=2)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kafka_trial.history.event import CORE_FIELDS, Event, to_line
from kafka_trial.judge import findings
from kafka_trial.judge.in_memory_history import rows_of_lines
from kafka_trial.judge.judge import Finding, Judgement, judge_events
from kafka_trial.model.kernels import NEVER, NONE
from kafka_trial.model.partition import Partitions
from kafka_trial.model.table import Table
from kafka_trial.model.trial_context import Settings

MS = 1_000_000
SECOND_NS = 1_000 * MS
STEP_NS = 10 * MS
WALL_NS = 1_790_000_000 * SECOND_NS  # the wall clock when the monotonic one is 0
BEGUN_NS = 102_080 * MS  # where the first line of a history of two members stands, but for its own ten milliseconds
TOPIC, GROUP, WAY = "t", "g", "g-way"
EXAMPLE = Settings(
    session_timeout_s=3, poll_interval_s=5, commit_interval_s=1, delivery="at-least-once", events="jsonl", sink="none"
)


@dataclass(frozen=True)
class Line:
    """One event to be: its source (None: time passes), its kind and its fields; `after_ms` since the line before."""

    source: str | None
    kind: str
    fields: dict[str, Any] = field(default_factory=dict)
    after_ms: float = 10.0


def after(seconds: float) -> Line:
    """Time passes."""
    return Line(None, "", after_ms=seconds * 1000)


def at_once(line: Line) -> Line:
    """In the same instant as the line before."""
    return later(line, 0)


def later(line: Line, nanoseconds: int) -> Line:
    """So little after the line before."""
    return replace(line, after_ms=nanoseconds / MS)


def lasting(line: Line, seconds: float) -> Line:
    """A request whose answer took so long."""
    return replace(line, fields=line.fields | {"duration_ms": seconds * 1000})


def read_late(line: Line, seconds: float) -> Line:
    """What a broker wrote so long before it was read."""
    return replace(line, fields=line.fields | {"late_s": seconds})


def own_time(line: Line, seconds: float) -> Line:
    """What a member says was so long before it was read, by its own clock (`time_ms`)."""
    return replace(line, fields=line.fields | {"own_s": seconds})


def on(partition: int, line: Line) -> Line:
    """The same of another partition."""
    there = {"partition": partition}
    entries = {"entries": [entry | there for entry in line.fields["entries"]]} if "entries" in line.fields else {}
    return replace(line, fields=line.fields | (there if "partition" in line.fields else {}) | entries)


def fault(
    name: str, member: str | None, *, number: int = 0, acts_as: str | None = None, does: Sequence[str] = ()
) -> Line:
    """A fault is in force from here on; it `does` what it says, else what it acts as (as histories said it before)."""
    about = {"fault_no": number, "fault": name, "target": f"role: {member}", "member": member}
    said = {"acts_as": acts_as} if acts_as else {}
    return Line("nemesis", "injected", about | said | ({"consequences": [*does]} if does else {}))


def healed(number: int = 0) -> Line:
    """A fault is over."""
    return Line("nemesis", "healed", {"fault_no": number})


# --- a member's own word; its name may carry its incarnation: "m0" is "m0-0" ---------------------------------------


def said(member: str, kind: str, **fields: Any) -> Line:
    """A line of a member's file."""
    name, _, incarnation = member.partition("-")
    who = {"member": name, "incarnation": int(incarnation or 0)}
    return Line(f"consumer-{name}-{who['incarnation']}", kind, who | fields)


def assigned(member: str, *partitions: int) -> Line:
    return said(member, "assigned", entries=_places(partitions))


def revoked(member: str, *partitions: int) -> Line:
    return said(member, "revoked", entries=_places(partitions))


def lost(member: str, *partitions: int) -> Line:
    return said(member, "lost", entries=_places(partitions))


def delivered(member: str, offset: int, *, partition: int = 0, **fields: Any) -> Line:
    return said(member, "delivered", topic=TOPIC, partition=partition, offset=offset, **fields)


def processed(member: str, offset: int, *, partition: int = 0, outcome: str = "done", **fields: Any) -> Line:
    return said(member, "processed", topic=TOPIC, partition=partition, offset=offset, outcome=outcome, **fields)


def handled(member: str, *offsets: int) -> list[Line]:
    """Delivered and processed, one after the other."""
    return [line for offset in offsets for line in (delivered(member, offset), processed(member, offset))]


def commit(member: str, value: int, outcome: str = "invoke") -> Line:
    return said(member, "commit", outcome=outcome, entries=[_position(value)])


def gave_up(member: str, *partitions: int, **fields: Any) -> Line:
    """The member says that its transaction was aborted, and names these partitions (none: it names none)."""
    entries = [{"topic": TOPIC, "partition": partition, "committed_offset": 1} for partition in partitions]
    return said(member, "commit", outcome="fail", entries=entries, **fields)


def exited(member: str, **how: Any) -> Line:
    return said(member, "exited", **(how or {"code": 0}))


def started(member: str) -> Line:
    """A further incarnation's first line."""
    return said(member, "started", pid=1, lane=int(member[1]))


def effect(record: int, *, outcome: str = "ok", **fields: Any) -> Line:
    return Line("sink", "effect", {"id": f"r{record}", "outcome": outcome} | fields)


def rewritten(record: int) -> Line:
    """A row of a sink table that was written again as it was."""
    return Line("sink", "row_rewritten", {"id": f"r{record}", "change": "update"})


def sent(offset: int, *, outcome: str = "ok", key: str | None = None, at: int | None = None) -> list[Line]:
    """The workload sends r<offset>, its checksum the same number; Kafka acknowledges it there (or `at` elsewhere)."""
    about = {"topic": TOPIC, "id": f"r{offset}"} | ({} if key is None else {"key": key})
    place = {"partition": 0, "offset": offset if at is None else at} if outcome == "ok" else {}
    invoke = Line("workload", "send", about | {"outcome": "invoke", "checksum": offset})
    return [invoke, Line("workload", "send", about | place | {"outcome": outcome})]


# --- the brokers' word -------------------------------------------------------------------------------------------


def rated(rate: float, *burst: int) -> Line:
    """Returns what the run tells of the opening burst: records a second, and how many each partition had."""
    entries = [{"partition": partition, "count": count} for partition, count in enumerate(burst)]
    return Line("run", "calibrated", {"rate": rate, "entries": entries})


def committed(
    value: int,
    *,
    by: str | None = None,
    epoch: int | None = None,
    producer: int | None = None,
    pending: bool = False,
) -> list[Line]:
    """A commit that took effect; `by` a member: the request log saw it on its lane, with this epoch (or generation) if
    one is given; "operator": outside the lanes; `producer`: in a transaction of that producer, which a marker takes,
    unless it is `pending`."""
    fields = {"group": GROUP, "topic": TOPIC, "partition": 0, "committed_offset": value}
    line = Line("offsets", "committed", fields | ({} if producer is None else {"producer_id": producer}))
    api = "OFFSET_COMMIT" if producer is None else "TXN_OFFSET_COMMIT"
    said = [line] if by is None else [line, asked(api, by, value, epoch=epoch, producer=producer)]
    return said if producer is None or pending else [*said, ended("commit", None, producer=producer)]


def tombstone() -> Line:
    return Line("offsets", "commit_tombstone", {"group": GROUP, "topic": TOPIC, "partition": 0})


def failed_over(log_offset: int, least: int | None, *, back: bool = False) -> Line:
    """The group is on a mirror from now on, or back, where its offsets log is that behind a place; from where it had to
    go on at least."""
    entry = {"topic": TOPIC, "partition": 0, "least_offset": least}
    told = {"way": "translated", "log_offset": log_offset, "entries": [entry]}
    return Line("run", "failed_over", told | ({"back": True} if back else {}))


def aborted(value: int) -> list[Line]:
    """A commit whose transaction is aborted."""
    fields = {"group": GROUP, "topic": TOPIC, "partition": 0, "committed_offset": value}
    return [Line("offsets", "committed", fields), Line("offsets", "commit_aborted", fields | {"same_place": True})]


def owner(*members: str, idle: Sequence[str] = (), epoch: int = 1) -> Line:
    """A classic group record that gives partition 0 to the members (none: to nobody); `idle` are members as well."""
    entries = [{"topic": TOPIC, "partition": 0, "member_id": f"id-{member}"} for member in members]
    listed = [{"member_id": f"id-{member}"} for member in (*members, *idle)]
    fields = {"group": GROUP, "protocol": "classic", "epoch": epoch, "members": listed, "entries": entries}
    return Line("offsets", "group", fields)


def generation(epoch: int) -> Line:
    """A classic group record of that generation, which says nothing of partitions."""
    return Line("offsets", "group", {"group": GROUP, "protocol": "classic", "epoch": epoch, "state": "stable"})


def group_epoch(epoch: int) -> Line:
    """A KIP-848 group epoch."""
    return Line("offsets", "group_epoch", {"group": GROUP, "epoch": epoch})


def holds(member: str, *partitions: int, pending: Sequence[int] = (), epoch: int = 1, since: int | None = None) -> Line:
    """A KIP-848 assignment of one member; `since`: the epoch of the assignment (told by brokers from 4.3 on)."""
    listed = {"entries": _by_id(partitions, since), "pending": _by_id(pending, since)}
    fields = {"group": GROUP, "member_id": f"id-{member}", "epoch": epoch}
    return Line("offsets", "member_assignment", fields | listed)


def gone(member: str) -> Line:
    """A KIP-848 member has left, or its session has expired."""
    return Line("offsets", "group_tombstone", {"group": GROUP, "record_type": 8, "member_id": f"id-{member}"})


def answered(member: str, value: int) -> Line:
    """The broker answers a member's OffsetFetch; -1: no commit."""
    return asked("OFFSET_FETCH", member, value)


def asked(
    api: str,
    member: str,
    value: int,
    *,
    error: int = 0,
    epoch: int | None = None,
    took_ms: float = 25.0,
    producer: int | None = None,
) -> Line:
    lane = {} if member == "operator" else {"lane": int(member[1:]), "member_id": f"id-{member}"}
    lane |= {} if epoch is None else {"epoch": epoch}
    lane |= {} if producer is None else {"producer_id": producer}
    entries = [_position(value) | {"error": error}]
    about = {"api": api, "group": GROUP, "duration_ms": took_ms, "error": error, "entries": entries}
    return Line("requests-b0", "request", about | lane)


def fetched(
    member: str, position: int | None, *, size_bytes: int = 0, complete: bool | None = None, error: int = 0
) -> Line:
    """A member fetches partition 0 from there (None: some other partition only)."""
    where = {"partition": 9, "offset": 0} if position is None else {"partition": 0, "offset": position}
    entry = {"topic": TOPIC, "size_bytes": size_bytes, "error": error} | where
    fields: dict[str, Any] = {"api": "FETCH", "lane": int(member[1:]), "connection": member, "entries": [entry]}
    return Line("requests-b0", "request", fields | ({} if complete is None else {"complete": complete}))


def log_end(position: int) -> Line:
    return Line("observer", "log_end", {"topic": TOPIC, "partition": 0, "offset": position})


def log_start(position: int) -> Line:
    return Line("observer", "log_start", {"topic": TOPIC, "partition": 0, "offset": position})


# --- topics that the group hands records on through --------------------------------------------------------------


def through(topic: str = WAY) -> Line:
    """The group commits on that topic too: it is read."""
    return Line("through", "through", {"topic": topic, "topic_id": topic, "partitions": 1, "made": True}, 0)


def handed_on(
    record: int | None, offset: int, *, topic: str = WAY, asked_s: float | None = 0.005, count: int | None = None
) -> Line:
    """r<record> (None: no id) was appended there; so long before, it was not there yet (None: nobody had asked)."""
    told = {"id": None if record is None else f"r{record}", "asked_s": asked_s, "count": count}
    place = {"topic": topic, "partition": 0, "offset": offset}
    return Line("through", "handed_on", place | {name: value for name, value in told.items() if value is not None})


def there(lines: list[Line], *, topic: str = WAY) -> list[Line]:
    """The same of partition 0 of that topic: a commit, and its request."""
    moved = []
    for line in lines:
        entries = [entry | {"topic": topic} for entry in line.fields.get("entries", ())]
        about = {"entries": entries} if entries else {"topic": topic}
        moved.append(replace(line, fields=line.fields | about))
    return moved


# --- transactions --------------------------------------------------------------------------------------------------


def taken_back(offset: int, *, partition: int = 0) -> Line:
    """r<offset> lies in the trial's topic, and its transaction was aborted."""
    fields = {"topic": TOPIC, "partition": partition, "offset": offset, "id": f"r{offset}", "producer_id": 7}
    return Line("transactions", "record_aborted", fields)


def ended(state: str, log: int | None, *, producer: int = 7, epoch: int = 1) -> Line:
    """A marker: what the producer had written into out-<log> (None: into the offsets log) is committed, or aborted."""
    fields = {"producer_id": producer, "producer_epoch": epoch, "state": state}
    if log is None:
        return Line("offsets", "transaction_marker", fields)
    return Line("transactions", "transaction_marker", fields | {"topic": "out", "partition": log, "offset": 9})


def end_asked(
    state: str, *, by: str = "m0", producer: int = 7, epoch: int = 1, own: bool = True, error: int = 0
) -> Line:
    """EndTxn; `own`: the answer carries a new epoch, so that the pair names one transaction."""
    fields = {"api": "END_TXN", "lane": int(by[1:]), "producer_id": producer, "producer_epoch": epoch, "state": state}
    says = {"own_epoch": True} if own else {}
    return Line("requests-b0", "request", fields | says | {"error": error, "duration_ms": 5.0})


def producer_began(*, timeout_s: float, producer: int = 7) -> Line:
    """InitProducerId: a producer of transactions begins."""
    fields = {"api": "INIT_PRODUCER_ID", "lane": 0, "producer_id": producer, "producer_epoch": 0, "error": 0}
    return Line("requests-b0", "request", fields | {"timeout_ms": int(timeout_s * 1000)})


def left_open(log: int | None, *, since_s: float, producer: int = 7) -> Line:
    """The witness finds a transaction open that began so long ago."""
    fields: dict[str, Any] = {"producer_id": producer, "producer_epoch": 0, "began_s": since_s}
    if log is None:
        return Line("offsets", "transaction_open", fields)
    return Line("transactions", "transaction_open", fields | {"topic": "out", "partition": log, "offset": 5})


# --- the harness's word ------------------------------------------------------------------------------------------


def phase(name: str) -> Line:
    return Line("run", "phase", {"phase": name})


def stood_still(seconds: float) -> Line:
    """The machine stood still for so long, just now."""
    return Line("run", "scheduling_delay", {"delay_ns": int(seconds * SECOND_NS)})


def waited(seconds: float, of_s: float, *, brokers_s: float = 0.0) -> Line:
    """In the last `of_s` seconds a thread of a member waited for a processor for so long, and one of a broker."""
    names = {"member_ns": seconds, "broker_ns": brokers_s, "over_ns": of_s}
    return Line("run", "cpu_wait", {name: int(value * SECOND_NS) for name, value in names.items()})


def measured(member: str, seconds: float) -> Line:
    """A line of the member had waited for at most so long before it was read, in the last second."""
    name, _, incarnation = member.partition("-")
    reader = f"consumer-{name}-{incarnation or 0}"
    return Line("run", "reading_delay", {"reader": reader, "delay_ns": int(seconds * SECOND_NS)}, 0)


def sampled(member: str, rss_bytes: int) -> Line:
    """A sample of a member's memory."""
    who = said(member, "").fields
    return Line("run", "resources", who | {"cpu_s": 0.1, "rss_bytes": rss_bytes, "processes": 1})


def oom_kills(count: int) -> Line:
    """A reading of the kernel's counter."""
    return Line("run", "oom_kills", {"count": count})


# --- the frame, and the judgement ----------------------------------------------------------------------------------


def history(
    lines: Iterable[Line | list[Line]],
    *,
    records: int | Sequence[str | None] = 2,
    members: int = 2,
    partitions: int = 1,
    old: bool = False,
    snapshot: bool = True,
    whole: bool = True,
    read_output: bool = True,
    control: Mapping[int, Mapping[str, Any] | None] | None = None,
    policy: str = "delete",
) -> list[Event]:
    """Returns the events of a history in its frame.

    `records`: how many lie in each partition, or their keys; `control`: what the control read says of some of those of
    partition 0 (None: it does not hold them); `old`: they lay there before the first line. `policy`: the topic's
    cleanup policy. Not `whole`: no control read, no witness that read to the end; not `read_output`: the witness of
    the sink topic did not. Every member's process is started before the first line.
    """
    keys = [None] * records if isinstance(records, int) else list(records)
    writer = _Writer()
    writer.add(Line("run", "topic_named", {"topic": TOPIC}), Line("run", "group_named", {"group": GROUP}))
    writer.add(Line("run", "clock", {"wall_ns": WALL_NS}, 0), phase("prepare"))
    about = {"topic": TOPIC, "topic_id": "T", "partitions": partitions, "cleanup_policy": policy}
    writer.add(Line("observer", "topic", about))
    writer.add(*(said(f"m{number}", "started", pid=1, lane=number) for number in range(members)))
    for number in range(members):  # every member is seen on its lane
        lane = {"lane": number, "member_id": f"id-m{number}", "group": GROUP}
        writer.add(Line("requests-b0", "request", {"api": "JOIN_GROUP"} | lane))
    writer.add(after(2))
    for line in lines:
        writer.add(*([line] if isinstance(line, Line) else line))
    if snapshot:
        writer.add(phase("snapshot"))
    writer.add(after(1))
    for partition in range(partitions):
        said_of = (control or {}) if partition == 0 else {}
        found = {offset: said_of.get(offset, {}) for offset in range(len(keys))}
        held = ((offset, says) for offset, says in found.items() if says is not None)
        writer.add(*(_record(offset, keys[offset], partition=partition, old=old, **says) for offset, says in held))
    if whole:
        writer.add(Line("observer", "control_read", {"topic": TOPIC, "state": "complete", "count": len(keys)}))
        followed = {event.source for event in writer.events} & {
            "transactions",
            "through",
            *(["sink"] if read_output else []),
        }
        states = ("offsets", "requests-b0", "observer", *followed)
        writer.add(*(Line(name, "witness", {"state": "complete"}) for name in states))
    writer.add(Line("run", "end", {"outcome": "ok"}))
    return writer.events


def judgement(
    lines: Iterable[Line | list[Line]], *, settings: Settings = EXAMPLE, only: str | None = None, **frame: Any
) -> Judgement:
    """Returns what the judge says of a history, or of one anomaly in it."""
    return judge_events(history(lines, **frame), settings, only=only)


def finding(name: str, lines: Iterable[Line | list[Line]], **frame: Any) -> Finding:
    """Returns what the judge says of one anomaly in a history."""
    judged = judgement(lines, only=name, **frame)
    assert judged.crashed == {}
    assert judged.defects == ()
    return judged.findings[name]


def judged(name: str, lines: Iterable[Line | list[Line]], **frame: Any) -> list[dict[str, Any]]:
    """Returns the attributes of every instance of one anomaly; it must have been judged, nothing left undecided."""
    found = finding(name, lines, **frame)
    assert (found.not_judged, dict(found.undecided)) == (None, {})
    assert found.count == len(found.instances)
    return [dict(instance.attributes) for instance in found.instances]


def undecided(name: str, lines: Iterable[Line | list[Line]], **frame: Any) -> int:
    """Returns how many cases were left undecided, where no instance was found."""
    found = finding(name, lines, **frame)
    assert found.instances == ()
    return sum(found.undecided.values())


def not_judged(name: str, lines: Iterable[Line | list[Line]], **frame: Any) -> str:
    """Returns why an anomaly was not judged."""
    missing = finding(name, lines, **frame).not_judged
    return missing.because if missing else "judged"


def batch_of(lines: Iterable[Line | list[Line]], *, settings: Settings = EXAMPLE, **frame: Any) -> Partitions:
    """Returns the slices of a history, as invariants see them."""
    rows, builder = rows_of_lines(map(to_line, history(lines, **frame)))
    return findings.batch_of(rows, builder.trial_context(settings))


def told(rows: Table, *names: str) -> list[tuple[Any, ...]]:
    """Returns columns of a table, row by row: times in milliseconds from the beginning of a history of two members,
    None for what is not there, "never" for what never happened."""
    columns = [[_told(value, name) for value in rows[name].tolist()] for name in names]
    return list(zip(*columns, strict=True))


def with_settings(**changes: Any) -> Settings:
    """Returns the example's settings with some changed."""
    return replace(EXAMPLE, **changes)


class _Writer:
    """Numbers and stamps lines."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._seqs: dict[str, int] = {}
        self._now_ns = 100 * SECOND_NS
        self._log_offset = 0

    def add(self, *lines: Line) -> None:
        for line in lines:
            self._now_ns += round(line.after_ms * MS)
            if line.source is not None:
                self._write(line.source, line)

    def _write(self, source: str, line: Line) -> None:
        fields = dict(line.fields)
        wall_ns = self._wall_ns() - int(fields.pop("late_s", 0) * SECOND_NS)
        if source == "offsets":
            self._log_offset += not fields.pop("same_place", False)
            fields |= {"log_partition": 0, "log_offset": self._log_offset}
            fields["commit_time_ms" if line.kind == "committed" else "source_wall_ns"] = (
                wall_ns // MS if line.kind == "committed" else wall_ns
            )
        if "own_s" in fields:
            fields["source_wall_ns"] = wall_ns - int(fields.pop("own_s") * SECOND_NS)
        if "asked_s" in fields:
            fields["asked_ns"] = self._now_ns - int(fields.pop("asked_s") * SECOND_NS)
        if "began_s" in fields:
            fields["source_wall_ns"] = wall_ns - int(fields.pop("began_s") * SECOND_NS)
        if source.startswith("requests") or line.kind in ("record", "transaction_marker"):
            fields.setdefault("source_wall_ns", wall_ns)
        if line.kind == "clock":
            fields["wall_ns"] = wall_ns
        seq = self._seqs[source] = self._seqs.get(source, -1) + 1
        core = {name: fields.pop(name) for name in CORE_FIELDS if name in fields}
        self.events.append(Event(source, seq, self._now_ns, line.kind, **core, details=fields))

    def _wall_ns(self) -> int:
        return WALL_NS + self._now_ns


def _told(value: Any, name: str) -> Any:
    known = {NONE: None, NEVER: "never"}
    in_ms = (value - BEGUN_NS) / MS if name.endswith("_ns") else value
    return known.get(value, in_ms)


def _record(offset: int, key: str | None, *, partition: int, old: bool, **says: Any) -> Line:
    keyed: dict[str, Any] = {} if key is None else {"key": key}
    keyed |= {"source_wall_ns": WALL_NS + 100 * SECOND_NS} if old else {}
    name = f"r{partition}-{offset}" if partition else f"r{offset}"
    named = {"topic": TOPIC, "partition": partition, "offset": offset, "id": name} | keyed | says
    return Line("observer", "record", {name: value for name, value in named.items() if value is not None}, 0)


def _position(value: int) -> dict[str, Any]:
    return {"topic": TOPIC, "partition": 0, "committed_offset": value}


def _places(partitions: Sequence[int]) -> list[dict[str, Any]]:
    return [{"topic": TOPIC, "partition": partition} for partition in partitions or (0,)]


def _by_id(partitions: Sequence[int], since: int | None) -> list[dict[str, Any]]:
    epoch = {} if since is None else {"assignment_epoch": since}
    return [{"topic_id": "T", "partition": partition} | epoch for partition in partitions]

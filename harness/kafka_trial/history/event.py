"""The event: one line of a history, and the only thing actors, witnesses, judge and reports share.

One event is one JSON line; one file per source and incarnation; lines are never rewritten. Positions (the *next*
place) are called `committed_offset`; `offset` is a record's own place. `time_ns` is the harness's CLOCK_MONOTONIC at
receipt; wall times of others go into `source_wall_ns`. In the history of an audit, of a
cluster that is not ours, `time_ns` too is wall time. `outcome` of a request is invoke, ok, fail (definitely not) or
info (nobody knows); of a handler it is done, discarded, dead-lettered or failed (it will be tried again: no completion).
`op` on a completion is the `seq` of its invoke, in the same file.

Sources and kinds (fields beyond schema, source, seq, time_ns, kind; `?` may be absent; entries are lists of objects):

```
workload            send              outcome op? id topic key? entity? partition? offset? size_bytes checksum message?
                                      (invoke, then ok with partition and offset, or fail / info with message;
                                       completions repeat id, topic and key)
                    load              name(opening-burst|steady|burst) state(begins|ends) count
consumer-M-I        started           pid lane consumer? protocol? started_with? cluster?
                                      (harness: process began; first line of every incarnation; consumer, protocol: of the
                                       consumer.toml that it was started by; started_with: the ids of the brokers whose
                                       addresses it was given; cluster: "mirror", where it is there)
                    ready             (startup_complete)
                    assigned revoked lost   entries[{topic partition}]     (revoked, lost: when the callback returned)
                    delivered         topic partition offset id? key?        (handler starts; or the poll returned it)
                    processed         topic partition offset id? key? outcome  (handler ends)
                    commit            outcome(invoke|ok|fail) op? entries[{topic partition committed_offset}] message?
                    stopped           (shutdown_complete, its own word)
                    error             message
                    bad_line          message (at most 4 KB of it)  size_bytes  events? reason? topic? partition? offset?
                                      count? (of so many lines that were not quoted)
                                      (events: so many lines were events that went wrong, for that reason; the place of
                                       the record that one names; absent: text, of a library perhaps)
                    exited            code? signal? message? asked?(no|stop|overdue|kill) asked_ns? within_s? oom_killed?
                                      (harness: the process is gone; last line. asked: no = it went by itself; stop = it
                                       had been asked to, asked_ns; overdue = asked, and killed after within_s; kill =
                                       killed by the harness unasked. Absent where an earlier version wrote the line, or
                                       nobody knows how it ended. oom_killed: its container wanted more than its limit, by the engine's word;
                                       or signal 9 ended it and the kernel killed for want of memory meanwhile, somewhere on this machine)
                    every line carries member and incarnation; client_id? member_id? (as the consumer printed them: which
                                      of several clients in its process speaks); source_wall_ns? (its time_ms: when it was, by
                                      the consumer's clock)
sink                effect            id topic? partition? offset? key? outcome(ok|fail|info) member?
                                      checksum? (CRC-32 of its body) json_checksum? (of what that says, where it is JSON: of
                                       its compact form, keys sorted)
                                      (of a sink topic: topic, partition, offset and key are the output's own, no member is
                                       told, and source_wall_ns is when its broker wrote it, where it says so; without a
                                       topic they are what the effect says of its record)
                                      (of a sink table: change(insert|update), row (its number in the table, whatever stands in
                                       it), commit_lsn (where in PostgreSQL's log the transaction was committed), and
                                       source_wall_ns is when that was)
                    row_rewritten     id change row commit_lsn source_wall_ns  (a row that was written anew as it was: no effect)
                    row_removed       id change(delete) row commit_lsn source_wall_ns
                    undecodable       topic? partition? offset? message   (a committed record of a sink topic without an id, a
                                      row of a sink table without one)
                    crash_point       name member? state(armed|passed|killed)
offsets             committed         group topic topic_id? partition committed_offset log_partition log_offset commit_time_ms
                                      producer_id? leader_epoch?
                    commit_tombstone  group topic partition log_partition log_offset
                    commit_aborted    group topic partition committed_offset log_partition log_offset (the same log_offset again,
                                      once known aborted)
                    group             group protocol(classic|consumer) epoch state log_partition log_offset
                                      members[{member_id instance_id? client_id host session_timeout_ms rebalance_timeout_ms}]
                                      entries[{topic topic_id? partition member_id}]    classic: assignment of all
                    member            group member_id instance_id? client_id host log_partition log_offset      KIP-848 type 5
                                      rebalance_timeout_ms session_timeout_ms? (of one that speaks the classic protocol)
                    group_epoch target_epoch  group epoch log_partition log_offset                                types 3, 6
                    target            group member_id entries[{topic_id partition}] log_partition log_offset     type 7
                    member_assignment  group member_id epoch previous_epoch state(stable|unrevoked|unreleased) log_partition
                                      log_offset entries[{topic_id partition assignment_epoch?}] (assigned)
                                      pending[{topic_id partition assignment_epoch?}]                            type 8
                    group_tombstone   group record_type member_id? log_partition log_offset
                    transaction_marker  producer_id producer_epoch? state(commit|abort) log_partition log_offset
                                      (the end of what this producer had committed of this group; others leave no line)
                    transaction_open  producer_id producer_epoch log_partition log_offset (at the snapshot: what it committed
                                      of this group is neither taken nor left; source_wall_ns and place of its first record)
                    undecodable       log_partition log_offset message
                    compacted         log_partition log_offset count  (an audit's: so many offsets are missing, the last of them
                                      before this one, whose record is of source_wall_ns)
                    unreadable        (type known and not ours: share, streams; or not known) group? record_type name
                                      log_partition log_offset
                    every line but witness: source_wall_ns = when the coordinator wrote the record
through             through           topic topic_id? partitions(count) made(true|false)  (a topic that the group commits on
                                      besides, or that is declared: it hands records on through it; made: it was not there
                                      before the trial. What is told of other topics counts for nothing: the group was
                                      assigned them. No such file where there is none)
                    handed_on         topic partition offset id? asked_ns? count?  (a committed record there; id: what may
                                      be one; asked_ns: when its log was last asked and did not hold it yet, of a
                                      transaction not its end; count: so many, from offset on, were deleted unread)
                    undecodable       topic partition offset message
transactions        transaction_marker  topic partition offset producer_id producer_epoch state(commit|abort)
                                      (the end of what this producer had written here; a marker that ends nothing leaves
                                      no line; the epoch is the marker's)
                    transaction_open  topic partition offset producer_id producer_epoch (as in the offsets log)
                    record_aborted    topic partition offset id? producer_id   (a record whose transaction was aborted)
                    undecodable       topic partition offset message
                                      (all of topics that a consumer with progress in transactions reads and writes;
                                      source_wall_ns as above)
requests-bN         request           api lane? listener connection client_id member_id? instance_id? group? epoch? error duration_ms
                                      line library? reason? correlation_id
                                      entries[{topic? topic_id? partition committed_offset|offset error size_bytes?}]
                                      source_wall_ns = when the answer had been sent; error 0 = none, else Kafka's code
                                      (JOIN_GROUP: epoch as answered, protocol? leader session_timeout_ms rebalance_timeout_ms?;
                                       SYNC_GROUP: entries = the assignment told; CONSUMER_GROUP_HEARTBEAT: epoch as asked,
                                       answered_epoch, entries = what the member owns, assigned[...] = what it is told, message?;
                                       FETCH: entries = what changed or was answered, offset = the position asked for,
                                       complete? = entries are all that is fetched from now on, session_id?;
                                       METADATA: new topic ids only; FIND_COORDINATOR: coordinator; LIST_OFFSETS: time_ms in
                                       entries; of transactions: transactional_id? producer_id? producer_epoch? (as answered, else as
                                       asked) timeout_ms? state(commit|abort)? own_epoch? (END_TXN, true: the answer carries
                                       the next epoch, so that id and epoch are of one transaction: KIP-890))
                    api_version       api key version lane? listener connection client_id library? asks? offered_lowest?
                                      offered_highest? deprecated? line source_wall_ns
                                      (once for each client, API, version and offer. asks, true: an ApiVersions request of its
                                       connection was seen before; offered: what this broker last answered for this API;
                                       deprecated, true: the broker marks the request so)
                    request_refused   lane address api_key? api? version? reason(unsupported|unparsable|oversized)
                                      count first_ns last_ns message
                                      (by the broker's server.log, which closed the connection without an answer; there is no
                                       `request` of it. Once a second for requests alike; first and last: when their lines
                                       were read, on the monotonic clock; message: the broker's words. Evidence for readers:
                                       no verdict rests on it)
                    client_named      lane member  (an audit's: the client told from connections and ids that this number stands for)
                    undecodable       line message
                    unreadable        line message   (cut short by a broker's death, of an API that no verdict rests on)
observer            topic             topic topic_id partitions(count) cleanup_policy retention_ms?
                    log_start log_end last_stable    topic partition offset asked_ns? (log_end: the position after the last record, asked at)
                    leader            topic partition leader epoch replicas isr
                    coordinator       group leader
                    controller        leader epoch
                    group_state       group state protocol epoch? members[...]
                    record            topic partition offset id key checksum json_checksum? size_bytes source_wall_ns
                                      (the control read)
                    control_read      topic state(complete|incomplete) count message? timestamp_type?
                                      (an audit's, CreateTime or LogAppendTime: whose times all these records have)
                    unanswered        name(of the question) broker? message   (once, until the answer or the reason changes)
nemesis             injecting injected healing healed   fault_no fault target(role: resolved name) lane? broker? member? message?
                                      consequences?[...] (injected: what it does, as history/consequences.py names it)
                    armed             fault_no fault target   (one that waits for what it is to hit: not in force yet)
                    sample            fault_no phase(before|inside|after) witness(S|P|O|R|process|metadata|toxics) details
                    crash_point       name member? state(armed|passed|killed)   (where the effects go to a table)
                    evidence          fault_no fault target bit(true|false) heals healed_traffic? healed_after_s? message details
run                 phase             phase(prepare|steady|faults|heal|drain|snapshot|stop) stage? message?
                                      (stage: of an upgrade, which has faults, heal, drain and snapshot once in each)
                    clock             wall_ns read_ns?  (once a second: both clocks at one moment; without read_ns the
                                       monotonic one is time_ns, which is when it was written)
                    wall_jump         size_ns
                    scheduling_delay  delay_ns every_ns?  (of a pause that was to last so long, a second where it is not said)
                    reading_delay     reader(a source: consumer-M-I) delay_ns  (once a second: no line that it read since the last
                                       one had been written longer before, by a probe that it reads beside its member)
                    resources         member incarnation cpu_s rss_bytes processes   (once a second, of its whole process
                                      tree; of several processes rss_bytes is what they share counted once)
                    cpu_wait          member_ns broker_ns over_ns  (once a second: how long a thread was ready to run and had no
                                       processor, in the time since the last one; of all the members' threads and of all
                                       the brokers' threads the one that waited longest)
                    oom_kills         count  (of the kernel's out-of-memory killer on this machine since boot, once a second)
                    group_named topic_named   group / topic; later?(of a topic that came while the group was at work)
                                      consumer_session_timeout_ms? (of the group: the session that
                                      the cluster gives to members of KIP-848)
                    calibrated        rate records in the opening burst per second: count, seconds, rate (an audit's: of the window)
                                      entries? (partition, count: how many records of the burst each had)
                    failed_over       way back? fault_no log_offset missing? duplicates? unexpected? entries[{topic partition
                                      committed_offset? started_offset? earliest_offset? least_offset?}]
                                      (the group is on a mirror from now on, and all that it does there is told in offsets
                                       of the source; back: on the source again. log_offset: the last place in the offsets
                                       log that is of the cluster that it left; committed: when it left; started: its
                                       position where it came, then; earliest: the least that its way explains (to which the
                                       mirror may have translated its position; back: the position that it had left there);
                                       least: from where it had to go on at least (where positions were copied raw the
                                       earliest, else started). How many records the mirror lacks, has twice, or has
                                       although the source has not)
                    drain_bound       converge_s stuck_s message   (B and W by which the drain is bounded, and what they
                                      follow from; again where more was known later: the last one counts)
                    few_handled       count message   (fewer records than a verdict takes, when the drain was over; message: what
                                      a member had written last)
                    window            name(fault|load) ...
                    consumer_failure  member name(never-assigned|exited|never-stopped) message connections?
                                      (of never-assigned: how many connections it had opened to its lane)
                    control_member    state(joined|failed)   a member of ours, when the subject's never got to work
                    environment       message   (the harness's own or the cluster's failure: unknown, never the consumer's)
                    audit             from_ns until_ns drain_ns settle_ns read_to_ns commits(inside the window)
                                      resets? (forward, whose records were read) earlier_commits? earlier_until_ns? (left out:
                                      of another topic of that name, which was deleted)
                    unread            name(offsets log|records|handled|times|requests: the evidence that is missing) message   (an audit's)
                    end               outcome(ok|info) message?   last line; a history without it is truncated
every witness       witness           state(ready|complete|behind|dead|undecodable) message? position? end?   (in its own file)
```

`KINDS`, `REQUIRED` and `OPTIONAL` say the same for whoever reads histories that others may have damaged: what does not
stand there is named by the judge, and keeps a verdict from being given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

SCHEMA = 1
Slice = tuple[str, int]  # topic, partition

BASE_FIELDS = {"source": str, "seq": int, "time_ns": int, "kind": str}
# Fields that are attributes of an Event; everything else on a line is in `details`.
CORE_FIELDS = (
    "member",
    "incarnation",
    "topic",
    "topic_id",
    "partition",
    "offset",
    "committed_offset",
    "id",
    "key",
    "outcome",
    "op",
    "source_wall_ns",
)
_OWN_FIELDS = frozenset((*BASE_FIELDS, *CORE_FIELDS))


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a history."""

    source: str
    seq: int
    time_ns: int
    kind: str
    member: str | None = None
    incarnation: int | None = None
    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    offset: int | None = None
    committed_offset: int | None = None
    id: str | None = None
    key: str | None = None
    outcome: str | None = None
    op: int | None = None
    source_wall_ns: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """How a verdict points at this event: `source#seq`."""
        return f"{self.source}#{self.seq}"


def to_line(event: Event) -> bytes:
    """Returns the event as one JSON line, absent fields left out."""
    body: dict[str, Any] = {
        "schema": SCHEMA,
        "source": event.source,
        "seq": event.seq,
        "time_ns": event.time_ns,
        "kind": event.kind,
    }
    body.update({name: value for name in CORE_FIELDS if (value := getattr(event, name)) is not None})
    body.update(event.details)
    return orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE)


def from_line(line: bytes | str) -> Event:
    """Returns the event of one JSON line.

    Raises:
        ValueError: as `fields_of`.
    """
    return event_of(fields_of(line))


def event_of(fields: dict[str, Any]) -> Event:
    """Returns the event of what `fields_of` returned, which is used up."""
    del fields["schema"]
    known = {name: fields.pop(name) for name in _OWN_FIELDS & fields.keys()}
    return Event(**known, details=fields)


def fields_of(line: bytes | str) -> dict[str, Any]:
    """Returns the fields of one JSON line that is an event, without making one of it.

    Raises:
        ValueError: not JSON, not an object, a newer schema, or one of source, seq, time_ns, kind is missing or of
            another type.
    """
    body = orjson.loads(line)
    if not isinstance(body, dict):
        raise ValueError(f"an event is a JSON object, this is a {type(body).__name__}")
    if body.get("schema") != SCHEMA:
        raise ValueError(f"schema {body.get('schema')!r}, this reader knows {SCHEMA}")
    try:
        wrong = [name for name, wanted in BASE_FIELDS.items() if type(body[name]) is not wanted]
    except KeyError as missing:
        raise ValueError(f"field {missing} is missing") from missing
    if wrong:
        raise ValueError(f"of the wrong type: {', '.join(wrong)}")
    return body


_WORDS = {
    "workload": "send load",
    "consumer": "started ready assigned revoked lost delivered processed commit stopped error bad_line exited",
    "sink": "effect row_rewritten row_removed crash_point undecodable",
    "offsets": "committed commit_tombstone commit_aborted group member group_epoch target_epoch target "
    "member_assignment group_tombstone transaction_marker transaction_open compacted undecodable unreadable",
    "through": "through handed_on undecodable",
    "transactions": "transaction_marker transaction_open record_aborted undecodable",
    "requests": "request api_version request_refused client_named undecodable unreadable",
    "observer": "topic log_start log_end last_stable leader coordinator controller group_state record control_read "
    "unanswered",
    "nemesis": "armed injecting injected healing healed sample evidence crash_point",
    "run": "phase clock wall_jump scheduling_delay reading_delay resources cpu_wait oom_kills group_named topic_named "
    "calibrated drain_bound failed_over few_handled window consumer_failure control_member environment audit unread end",
}
KINDS: Mapping[str, frozenset[str]] = {source: frozenset(words.split()) for source, words in _WORDS.items()}
OF_EVERY_WITNESS = frozenset({"witness"})
_SOURCE = re.compile(
    r"(workload|sink|offsets|through|transactions|observer|nemesis|run)|(requests)-b\d+|(consumer)-.+-\d+"
)

# What a judgement rests on and no event of the kind lacks. Positions are looked for where they are used.
REQUIRED: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    "send": {"id": str, "outcome": str},
    "started": {"member": str, "incarnation": int},
    "assigned": {"entries": list},
    "revoked": {"entries": list},
    "lost": {"entries": list},
    "processed": {"outcome": str},
    "commit": {"outcome": str},  # a refusal may name no partition
    "effect": {"id": str, "outcome": str},
    "group": {"group": str},
    "group_epoch": {"group": str, "epoch": int},
    "member_assignment": {"group": str, "member_id": str},
    "request": {"api": str},
    "api_version": {"api": str, "version": int},
    "request_refused": {"lane": int, "count": int, "reason": str},
    "topic": {"topic": str, "partitions": int},
    "through": {"topic": str, "partitions": int},
    "control_read": {"state": str},
    "witness": {"state": str},
    "injected": {"fault_no": int},
    "healed": {"fault_no": int},
    "phase": {"phase": str},
    "clock": {"wall_ns": int},
    "scheduling_delay": {"delay_ns": int},
    "reading_delay": {"reader": str, "delay_ns": int},
    "resources": {"member": str, "rss_bytes": int},
    "cpu_wait": {"member_ns": int, "broker_ns": int, "over_ns": int},
    "oom_kills": {"count": int},
    "group_named": {"group": str},
    "topic_named": {"topic": str},
    "calibrated": {"rate": (int, float)},
    "drain_bound": {"converge_s": (int, float), "stuck_s": (int, float)},
    "failed_over": {"log_offset": int, "entries": list},
    "audit": dict.fromkeys(("from_ns", "until_ns", "drain_ns", "settle_ns", "read_to_ns", "commits"), int),
    "unread": {"name": str, "message": str},
    "end": {"outcome": str},
}

# What else one rests on, where it is told.
OPTIONAL: Mapping[str, Mapping[str, type]] = {
    "clock": {"read_ns": int},
    "scheduling_delay": {"every_ns": int},
    "audit": {"resets": int, "earlier_commits": int, "earlier_until_ns": int},
}


def kinds_of(source: str) -> frozenset[str] | None:
    """Returns the kinds that a source may tell; None where there is no such source."""
    found = _SOURCE.fullmatch(source)
    return None if found is None else KINDS[next(name for name in found.groups() if name)] | OF_EVERY_WITNESS


def lacking(kind: str, body: Mapping[str, object]) -> list[str]:
    """Returns which fields an event lacks that one of its kind must have, or has of another type."""
    told = {name: of for name, of in OPTIONAL.get(kind, {}).items() if name in body}
    return [name for name, of in ({**REQUIRED.get(kind, {}), **told}).items() if not _is_a(body.get(name), of)]


def _is_a(value: object, of: type | tuple[type, ...]) -> bool:
    if isinstance(value, bool) or not isinstance(value, of):
        return False
    return not isinstance(value, int) or -(2**63) <= value < 2**63

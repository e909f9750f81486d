"""The topic of an audit and its readers: its records, by several threads side by side, and no more than allowed.

Where its partitions begin and end is told; read is only what somebody still had to read: from where the group stood at
the end of the window (with a sink: from the beginning of the window), up to those that were there long enough before
the end to have been handled. What came later is in flight. What a reset passed over is read as well.

Readers hand what they read to one event writer, which writes JSON lines; the judge makes its Parquet of them.

Why not Parquet at once, a part from each reader? A part that is cut off in the middle is lost whole, where a line is
not; and the JSON lines are the truth of every run folder: a history of two forms would be read in two ways, and could
be damaged in two. It would save little: of the 14 µs that a record costs on a small machine, 9 go into taking its batch
apart and 5 into the writer, so that 10^7 of them, twice what is read unasked, take two minutes and a half. Threads wait
for brokers side by side, but Python takes batches apart one at a time; processes would not, and are not built: they
would read faster from brokers that others need.

What bounds a reader: it holds one answer of a broker (1 MiB, or one batch that is larger), and the records of
transactions whose end it has not seen; it takes a batch only if the budget that it shares with the others still covers
it, and asks nobody for anything once the time is up.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka_trial.audit.bounded_reading import Budget, Log, connect, shares
from kafka_trial.audit.request import NS_PER_MS, AuditRequest, Identity
from kafka_trial.errors import InputError, UnjudgeableError
from kafka_trial.history.record_ids import record_id
from kafka_trial.history.recorder import EventWriter, Recorder
from kafka_trial.kafka_protocol.batches import COMMIT, Batch, Record, ended, records
from kafka_trial.kafka_protocol.cluster_queries import Topic
from kafka_trial.kafka_protocol.primitives import DecodeError
from kafka_trial.process.threads import ThreadGroup


def tell_topic(log: Log, topic: Topic, configs: Mapping[str, str | None], recorder: Recorder) -> None:
    """Records what the topic is, and where each partition begins and ends now; times are this machine's wall clock."""
    retention_ms = configs.get("retention.ms")
    common: dict[str, Any] = {"topic": topic.name, "topic_id": topic.topic_id}
    recorder.record(
        "topic",
        time_ns=time.time_ns(),
        **common,
        partitions=len(topic.partitions),
        cleanup_policy=configs.get("cleanup.policy"),
        retention_ms=int(retention_ms) if retention_ms else None,
    )
    first = log.at(0)
    for partition, offset in sorted(log.starts().items()):
        first_ns = first[partition][1] * NS_PER_MS if first[partition][1] > 0 else None
        fields = {"partition": partition, "offset": offset, "source_wall_ns": first_ns}
        recorder.record("log_start", time_ns=time.time_ns(), **common, **fields)
    asked_ns = time.time_ns()
    for partition, offset in sorted(log.log_ends().items()):
        recorder.record(
            "log_end", time_ns=time.time_ns(), **common, partition=partition, offset=offset, asked_ns=asked_ns
        )


def ranges_of(
    log: Log, committed: Mapping[int, int], request: AuditRequest, *, drain_ns: int
) -> dict[int, tuple[int, int]]:
    """Returns which offsets of each partition are to be read: from the group's position (the beginning of the window
    where it has none) to what came in last before `drain_ns`; with a sink from the beginning of the window on, where
    that is lower.
    """
    starts, stable, late, first = log.starts(), log.ends(), log.at(drain_ns), log.at(request.from_ns)
    ranges = {}
    for partition, start in starts.items():
        end = min(stable[partition], late[partition][0]) if late[partition][0] >= 0 else stable[partition]
        began = first[partition][0] if first[partition][0] >= 0 else end
        low = committed.get(partition, began)
        low = min(low, began) if request.sink else low
        ranges[partition] = max(start, low), end
    return ranges


def ranges_passed_over(
    moves: Iterable[tuple[int, int, int]], main: Mapping[int, tuple[int, int]], starts: Mapping[int, int]
) -> list[dict[int, tuple[int, int]]]:
    """Returns what is to be read beside the `main` ranges so that all is read that lies between two positions of each
    of the `moves` (partition, from, to): lower offsets first, none twice, each a set of ranges by partition."""
    by_partition: dict[int, list[tuple[int, int]]] = {}
    for partition, since, until in sorted(moves):
        parts = by_partition.setdefault(partition, [])
        low, (first, end) = max(since, starts.get(partition, 0)), main.get(partition, (until, until))
        for begin, over in ((low, min(until, first)), (max(low, end), until)) if first < end else ((low, until),):
            begins = max(begin, parts[-1][1] if parts else 0)
            parts += [(begins, over)] if begins < over else []
    most = max(map(len, by_partition.values()), default=0)
    return [{at: parts[n] for at, parts in by_partition.items() if n < len(parts)} for n in range(most)]


def expired(log: Log, request: AuditRequest) -> list[str]:
    """Returns which records of the window are not there any more, or may not be, as sentences."""
    first, starts = log.at(request.from_ns), log.starts()
    return [
        f"{log.topic}-{partition} before offset {start}: retention has taken it"
        for partition, start in sorted(starts.items())
        if start and first[partition][0] == start
    ]


JOIN_WITHIN_S = 24 * 3600.0  # readers end by their own limits
LATEST_NS = 2**62 - 1  # that a history holds: a producer may write any number as its record's time
CREATE_TIME, LOG_APPEND_TIME = "CreateTime", "LogAppendTime"  # as Kafka calls both (message.timestamp.type)
Ranges = Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """One record of a topic; `time_ns` 0: its producer did not say when. `log_append_time`: it is the broker's time."""

    partition: int
    offset: int
    time_ns: int
    key: bytes | None
    id: str | None
    size_bytes: int
    log_append_time: bool = False


Take = Callable[[ReadRecord], object]


class Taken:
    """Writes the records of the audited topic down; `earliest_ns` is the time of the oldest, `nameless` have no id.
    `timestamp_types`: how many have their producer's time, and how many their broker's."""

    def __init__(self, request: AuditRequest, event_writer: EventWriter) -> None:
        self.earliest_ns = request.until_ns
        self.nameless = 0
        self.timestamp_types = Counter[str]()
        self._topic = request.topic
        self._event_writer = event_writer
        self._lock = threading.Lock()

    def take(self, found: ReadRecord) -> None:
        """Takes one record; called by several readers at once."""
        with self._lock:
            self.earliest_ns = min(self.earliest_ns, found.time_ns)
            self.nameless += found.id is None
            self.timestamp_types[LOG_APPEND_TIME if found.log_append_time else CREATE_TIME] += 1
        self._event_writer.record(
            "record",
            time_ns=found.time_ns,
            topic=self._topic,
            partition=found.partition,
            offset=found.offset,
            id=found.id,
            key=None if found.key is None else found.key.decode(errors="backslashreplace"),
            size_bytes=found.size_bytes,
            source_wall_ns=found.time_ns,
        )

    def common_timestamp_type(self, configured: str | None) -> str | None:
        """Returns CreateTime if a record that was read has its producer's time, else LogAppendTime; `configured` if
        none was read. By the batches: the topic's config is about what is written from now on."""
        if not self.timestamp_types:
            return configured
        return CREATE_TIME if self.timestamp_types[CREATE_TIME] else LOG_APPEND_TIME


@dataclass
class Reading:
    """What readers of one topic hand over: every committed record once, and what could not be read."""

    positions: dict[int, int] = field(default_factory=dict)
    count: int = 0
    unread: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def counted(self, records: int) -> None:
        """Adds records that a reader has handed over."""
        with self._lock:
            self.count += records


@dataclass(frozen=True)
class Work:
    """What the readers of one topic share. `take` is called by all of them at once: it must bear that."""

    request: AuditRequest
    topic: str
    ranges: Ranges
    budget: Budget
    identity: Identity | None
    take: Take
    reading: Reading


class Records:
    """Turns batches of one partition into committed records; those of a transaction wait for its marker.

    Their ids are looked for where `identity` says; None: nobody needs them.
    """

    def __init__(self, partition: int, identity: Identity | None) -> None:
        self._partition = partition
        self._identity = identity
        self._pending: dict[int, list[ReadRecord]] = {}

    def take(self, batch: Batch, low: int, high: int) -> list[ReadRecord]:
        """Returns the records that are known to be committed now.

        Raises:
            DecodeError: bytes that are none, or a compression nobody knows.
        """
        if batch.control:
            end, waiting = ended(batch, self._pending)
            return waiting if end == COMMIT else []
        by_broker = batch.log_time_ms is not None
        found = [self._found(one, by_broker) for one in records(batch) if low <= one.offset < high]
        if batch.transactional:
            self._pending.setdefault(batch.producer_id, []).extend(found)
            return []
        return found

    @property
    def open(self) -> int:
        """How many records wait for the end of their transaction."""
        return sum(map(len, self._pending.values()))

    def _found(self, record: Record, log_append_time: bool) -> ReadRecord:
        where, name = self._identity, None
        if where is not None:
            name = record_id(record.headers, record.value, header=where.header, field=where.field)
        time_ns = min(max(0, record.time_ms) * NS_PER_MS, LATEST_NS)
        size_bytes = len(record.value or b"")
        return ReadRecord(self._partition, record.offset, time_ns, record.key, name, size_bytes, log_append_time)


def read_records(
    request: AuditRequest, topic: str, ranges: Ranges, budget: Budget, take: Take, *, identity: Identity | None
) -> Reading:
    """Reads ranges of a topic with bounded parallel readers and hands every committed record to `take`.

    Each reader has a connection of its own and reads its partitions one after the other; all share one budget.

    Raises:
        UnjudgeableError: a leader could not be reached.
        InputError: one did not let us in, or not read.
    """
    reading = Reading({partition: low for partition, (low, _) in ranges.items()})
    work = Work(request, topic, ranges, budget, identity, take, reading)
    wanted = [partition for partition, (low, high) in ranges.items() if low < high]
    try:
        with ThreadGroup("audit", join_within_s=JOIN_WITHIN_S) as thread_group:
            for number, share in enumerate(shares(wanted, request.limits.readers) if wanted else ()):
                thread_group.start(f"{topic} {number}", _read_share, work, share)
    except UnjudgeableError as error:
        if isinstance(error.__cause__, InputError):
            raise error.__cause__ from error
        raise
    for partition in wanted:
        low, high = reading.positions[partition], ranges[partition][1]
        if low < high:
            reading.unread.append(f"{topic}-{partition} from {low} to {high}: {budget.spent or 'it ended early'}")
    return reading


def _read_share(work: Work, share: list[int]) -> None:
    with connect(work.request) as brokers:
        log = Log.of(brokers, work.topic)
        for partition in share:
            read_partition(log, partition, work)


def read_partition(log: Log, partition: int, work: Work) -> None:
    """Reads one partition's range, as far as the budget goes."""
    low, high = work.ranges[partition]
    records, reading = Records(partition, work.identity), work.reading
    try:
        for batch in log.batches(partition, low, high, work.budget):
            found = records.take(batch, low, high)
            for one in found:
                work.take(one)
            reading.counted(len(found))
            reading.positions[partition] = batch.next_offset
    except DecodeError as error:
        reading.unread.append(f"{log.topic}-{partition} from {reading.positions[partition]}: {error}")
        return
    if records.open:
        reading.unread.append(
            f"{log.topic}-{partition}: {records.open} records of transactions whose end lies beyond what was read"
        )

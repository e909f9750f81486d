"""A sink's topic: the ids of what was handled, read as the audited topic is, by bounded readers side by side.

What is committed there counts, from when the earliest audited record may have been handled to when the last one may. A
record's time is its producer's: brokers of Kafka 4 let it be an hour ahead of their clock and no more, so reading goes
on for so long, lest a wrong clock hide what was handled. Whatever may be missing there is told, for a record without
its id is held against the group.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kafka_trial.audit.bounded_reading import Budget, Log
from kafka_trial.audit.readers import Ranges, ReadRecord, read_records
from kafka_trial.audit.request import NS_PER_S, AuditRequest
from kafka_trial.audit.sink import Identity
from kafka_trial.history.recorder import EventWriter

AHEAD_NS = 3600 * NS_PER_S  # message.timestamp.after.max.ms, an hour by default
CLEANUP = "cleanup.policy"


@dataclass(frozen=True)
class Span:
    """When the audited records may have been handled, in nanoseconds since 1970."""

    since_ns: int
    until_ns: int

    def holds(self, time_ns: int) -> bool:
        return self.since_ns <= time_ns <= self.until_ns


@dataclass(frozen=True)
class Places:
    """Where each partition of the sink begins, where what a committed reader sees ends, and where its log does;
    `first` and `late` are the first records of the span, and beyond it (-1: none)."""

    starts: Mapping[int, int]
    stable: Mapping[int, int]
    ends: Mapping[int, int]
    first: Mapping[int, int]
    late: Mapping[int, int]

    @classmethod
    def of(cls, log: Log, span: Span) -> Places:
        """Returns the places as they are now."""
        first, late = log.at(span.since_ns), log.at(span.until_ns + AHEAD_NS)
        offsets = ({partition: at for partition, (at, _) in found.items()} for found in (first, late))
        return cls(log.starts(), log.ends(), log.log_ends(), *offsets)

    def ranges(self) -> dict[int, tuple[int, int]]:
        """Returns which offsets of each partition are to be read."""
        return {partition: (self._begin(partition), self._end(partition)) for partition in self.starts}

    def missing(self, topic: str) -> Iterator[str]:
        """Yields what of the span is not there (any more), as sentences."""
        for partition, start in self.starts.items():
            if start and self.first[partition] in (-1, start):
                yield f"{topic}-{partition} before offset {start}: retention has taken it"
            wanted = self.ends[partition] if self.late[partition] < 0 else self.late[partition]
            if self.stable[partition] < wanted:
                yield f"{topic}-{partition} from {self.stable[partition]} on: an open transaction hides it"

    def _begin(self, partition: int) -> int:
        first = self.first[partition]
        return self._end(partition) if first < 0 else max(first, self.starts[partition])

    def _end(self, partition: int) -> int:
        late = self.late[partition]
        return self.stable[partition] if late < 0 else min(late, self.stable[partition])


class Ids:
    """Writes an `effect` for each id of the span; `nameless` and `timeless` count the records that cannot count."""

    def __init__(self, topic: str, span: Span, event_writer: EventWriter) -> None:
        self.nameless = 0
        self.timeless = 0
        self._topic = topic
        self._span = span
        self._pen = event_writer
        self._lock = threading.Lock()

    def take(self, found: ReadRecord) -> None:
        """Takes one record of the sink; called by several readers at once."""
        inside = self._span.holds(found.time_ns)
        if not found.time_ns or (inside and found.id is None):
            with self._lock:
                self.timeless += not found.time_ns
                self.nameless += found.id is None
        elif inside:
            self._write(found)

    def missing(self, identity: Identity) -> Iterator[str]:
        """Yields what keeps records of the sink from telling anything, as sentences."""
        if self.nameless:
            yield f"the ids of {self.nameless} records of {self._topic}: they have {identity}"
        if self.timeless:
            yield f"{self.timeless} records of {self._topic}: they do not say when they were written"

    def _write(self, found: ReadRecord) -> None:
        place = {"topic": self._topic, "partition": found.partition, "offset": found.offset}
        self._pen.record("effect", time_ns=found.time_ns, **place, id=found.id, outcome="ok")


def read_sink_topic(
    log: Log,
    asked: AuditRequest,
    span: Span,
    budget: Budget,
    event_writer: EventWriter,
    *,
    configs: Mapping[str, str | None],
) -> list[str]:
    """Reads the sink's topic and records its ids; returns what could not be read, as sentences.

    Raises:
        UnjudgeableError: a leader could not be reached.
        InputError: one did not let us in, or not read.
    """
    if asked.sink is None:
        return []
    places, ids = Places.of(log, span), Ids(log.topic, span, event_writer)
    ranges: Ranges = places.ranges()
    reading = read_records(asked, log.topic, ranges, budget, ids.take, identity=asked.sink.identity)
    missing = *places.missing(log.topic), *reading.unread, *compacted(log.topic, configs)
    return [*missing, *ids.missing(asked.sink.identity)]


def compacted(topic: str, configs: Mapping[str, str | None]) -> Iterator[str]:
    """Yields what is not known of a topic that is compacted, or may be, as a sentence."""
    policy = configs.get(CLEANUP)
    if policy is None:
        yield f"whether {topic} is compacted: nobody told its {CLEANUP}, which takes DESCRIBE_CONFIGS on it"
    elif "compact" in policy:
        yield f"what compaction has taken out of {topic} ({CLEANUP} {policy})"

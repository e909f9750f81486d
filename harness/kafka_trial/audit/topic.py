"""The topic of an audit: where its partitions begin and end, and the records that somebody still had to read.

Records are read only from where the group stood at the end of the window (with a sink: from the beginning of the
window), up to those that were there long enough before the end to have been handled; what came later is in flight.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka_trial.audit.asked import NS_PER_MS, Asked
from kafka_trial.audit.reading import Budget, Log, connect, shares
from kafka_trial.concurrency import Crew
from kafka_trial.history.recorder import Recorder
from kafka_trial.witness.batches import COMMIT, Batch, Record, ended, records
from kafka_trial.witness.control_read import record_id
from kafka_trial.witness.primitives import DecodeError
from kafka_trial.witness.questions import Topic

JOIN_WITHIN_S = 24 * 3600.0  # readers end by their own limits
Ranges = Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Found:
    """One record of a topic."""

    partition: int
    offset: int
    time_ns: int
    key: bytes | None
    id: str | None
    size_bytes: int


@dataclass
class Reading:
    """What readers of one topic hand over: every committed record once, and what could not be read."""

    positions: dict[int, int] = field(default_factory=dict)
    count: int = 0
    unread: list[str] = field(default_factory=list)


class Records:
    """Turns batches of one partition into committed records; those of a transaction wait for its marker."""

    def __init__(self, partition: int, asked: Asked) -> None:
        self._partition = partition
        self._asked = asked
        self._pending: dict[int, list[Found]] = {}

    def take(self, batch: Batch, low: int, high: int) -> list[Found]:
        """Returns the records that are known to be committed now.

        Raises:
            DecodeError: bytes that are none, or a compression nobody knows.
        """
        if batch.control:
            end, waiting = ended(batch, self._pending)
            return waiting if end == COMMIT else []
        found = [self._found(one) for one in records(batch) if low <= one.offset < high]
        if batch.transactional:
            self._pending.setdefault(batch.producer_id, []).extend(found)
            return []
        return found

    @property
    def open(self) -> int:
        """How many records wait for the end of their transaction."""
        return sum(map(len, self._pending.values()))

    def _found(self, record: Record) -> Found:
        asked, name = self._asked, None
        if asked.sink_topic is not None:
            name = record_id(record.headers, record.value, header=asked.id_header, field=asked.id_field)
        size_bytes = len(record.value or b"")
        return Found(self._partition, record.offset, record.time_ms * NS_PER_MS, record.key, name, size_bytes)


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


def ranges_of(log: Log, committed: Mapping[int, int], asked: Asked, *, drain_ns: int) -> dict[int, tuple[int, int]]:
    """Returns which offsets of each partition are to be read: from the group's position (the beginning of the window
    where it has none) to what came in last before `drain_ns`; with a sink from the beginning of the window on, where
    that is lower.
    """
    starts, stable, late, first = log.starts(), log.ends(), log.at(drain_ns), log.at(asked.from_ns)
    ranges = {}
    for partition, start in starts.items():
        end = min(stable[partition], late[partition][0]) if late[partition][0] >= 0 else stable[partition]
        began = first[partition][0] if first[partition][0] >= 0 else end
        low = committed.get(partition, began)
        low = min(low, began) if asked.sink_topic else low
        ranges[partition] = max(start, low), end
    return ranges


def read_records(asked: Asked, topic: str, ranges: Ranges, budget: Budget, take: Any) -> Reading:
    """Reads ranges of a topic with bounded parallel readers and hands every committed record to `take`.

    Raises:
        UnjudgeableError: a leader could not be reached.
    """
    reading = Reading({partition: low for partition, (low, _) in ranges.items()})
    wanted = [partition for partition, (low, high) in ranges.items() if low < high]
    with Crew("audit", join_within_s=JOIN_WITHIN_S) as crew:
        for number, share in enumerate(shares(wanted, asked.limits.readers) if wanted else ()):
            crew.start(f"{topic} {number}", _read_share, asked, topic, share, ranges, budget, take, reading)
    for partition in wanted:
        low, high = reading.positions[partition], ranges[partition][1]
        if low < high:
            reading.unread.append(f"{topic}-{partition} from {low} to {high}: {budget.spent or 'it ended early'}")
    return reading


def _read_share(
    asked: Asked, topic: str, share: list[int], ranges: Ranges, budget: Budget, take: Any, reading: Reading
) -> None:
    with connect(asked.bootstrap) as brokers:
        log = Log.of(brokers, topic)
        for partition in share:
            _read_partition(log, partition, Records(partition, asked), ranges[partition], budget, take, reading)


def _read_partition(
    log: Log, partition: int, records: Records, span: tuple[int, int], budget: Budget, take: Any, reading: Reading
) -> None:
    low, high = span
    try:
        for batch in log.batches(partition, low, high, budget):
            for found in records.take(batch, low, high):
                take(found)
                reading.count += 1
            reading.positions[partition] = batch.next_offset
    except DecodeError as error:
        reading.unread.append(f"{log.topic}-{partition} from {reading.positions[partition]}: {error}")
        return
    if records.open:
        reading.unread.append(
            f"{log.topic}-{partition}: {records.open} records of transactions whose end lies beyond what was read"
        )

"""The control read: what an undisturbed reader finds in the topics, record by record, up to the log ends.

Committed records only. It is what delivery is judged against: a record that is in the log and was never handled.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, TopicPartition

from kafka_trial.history.event import Slice
from kafka_trial.history.record_ids import checksums, record_id
from kafka_trial.history.recorder import Recorder
from kafka_trial.process.waiting import pause

GROUP: Final = "kafka-trial-control-read"  # named in requests only: it neither joins nor commits
_BATCH_RECORDS: Final = 500
_POLL_S: Final = 0.2
_RETRY_S: Final = 0.2
_RECORD_BYTES_MAX: Final = 16 * 1024 * 1024
_QUEUE_KIB: Final = 65536


@dataclass(frozen=True, slots=True)
class ControlRead:
    """How far a control read came: how many records it found in each topic, `positions` by topic and partition, and
    the last error if there was one."""

    counts: Mapping[str, int]
    positions: Mapping[Slice, int]
    complete: bool
    error: str | None = None


def control_read(
    bootstrap: str,
    starts: Mapping[Slice, int],
    ends: Mapping[Slice, int],
    recorder: Recorder,
    *,
    until_s: float,
) -> ControlRead:
    """Records every record in [start, end) of each partition, until all are read or the time is up."""
    positions, counts, error = dict(starts), Counter[str](), None
    if _done(positions, ends):
        return ControlRead(counts, positions, True)
    consumer = Consumer(reader_settings(bootstrap))
    try:
        consumer.assign([TopicPartition(*place, start) for place, start in starts.items()])
        while not _done(positions, ends) and time.monotonic() < until_s:
            for message in consumer.consume(_BATCH_RECORDS, _POLL_S):
                problem = message.error()
                place, offset = (str(message.topic()), int(message.partition() or 0)), int(message.offset() or 0)
                if problem is None:
                    counts[place[0]] += _take(message, ends, recorder)
                    positions[place] = offset + 1
                elif problem.code() == KafkaError._PARTITION_EOF:
                    positions[place] = max(positions[place], offset)
                else:
                    error = str(problem)
                    pause(_RETRY_S)
            recorder.flush()
    except KafkaException as failure:
        error = str(failure)
    finally:
        consumer.close()
    return ControlRead(counts, positions, _done(positions, ends), error)


def reader_settings(bootstrap: str) -> dict[str, Any]:
    """Returns the settings of a reader of committed records that neither joins a group nor commits."""
    return {
        "bootstrap.servers": bootstrap,
        "group.id": GROUP,
        "client.id": GROUP,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "check.crcs": True,
        "fetch.message.max.bytes": _RECORD_BYTES_MAX,
        "queued.max.messages.kbytes": _QUEUE_KIB,
        "log_level": 0,
    }


def _done(positions: Mapping[Slice, int], ends: Mapping[Slice, int]) -> bool:
    return all(positions.get(place, 0) >= end for place, end in ends.items())


def _take(message: Any, ends: Mapping[Slice, int], recorder: Recorder) -> int:
    if message.offset() >= ends[message.topic(), message.partition()]:
        return 0  # written after the snapshot
    value, key = message.value(), message.key()
    kind, time_ms = message.timestamp()
    recorder.record(
        "record",
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        id=record_id(message.headers() or (), value),
        key=None if key is None else key.decode(errors="backslashreplace"),
        **checksums(value),
        size_bytes=0 if value is None else len(value),
        source_wall_ns=None if kind == TIMESTAMP_NOT_AVAILABLE else time_ms * 1_000_000,
    )
    return 1

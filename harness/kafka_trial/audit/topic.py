"""The topic of an audit: where its partitions begin and end, and which records somebody still had to read.

Records are read only from where the group stood at the end of the window (with a sink: from the beginning of the
window), up to those that were there long enough before the end to have been handled; what came later is in flight.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from kafka_trial.audit.bounded_reading import Log
from kafka_trial.audit.request import NS_PER_MS, AuditRequest
from kafka_trial.history.recorder import Recorder
from kafka_trial.kafka_protocol.cluster_queries import Topic


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
    log: Log, committed: Mapping[int, int], asked: AuditRequest, *, drain_ns: int
) -> dict[int, tuple[int, int]]:
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
        low = min(low, began) if asked.sink else low
        ranges[partition] = max(start, low), end
    return ranges


def expired(log: Log, asked: AuditRequest) -> list[str]:
    """Returns which records of the window are not there any more, or may not be, as sentences."""
    first, starts = log.at(asked.from_ns), log.starts()
    return [
        f"{log.topic}-{partition} before offset {start}: retention has taken it"
        for partition, start in sorted(starts.items())
        if start and first[partition][0] == start
    ]

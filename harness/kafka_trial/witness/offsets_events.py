"""From a record of the offsets log to an event of the history: what happened, and where in the log.

The place in the log is the order of effect within a group; `source_wall_ns` is when the coordinator wrote the record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kafka_trial.kafka_protocol import offsets_records as records
from kafka_trial.kafka_protocol.offsets_decoder import decode_assignment, decode_value
from kafka_trial.kafka_protocol.offsets_records import (
    ClassicGroup,
    CurrentAssignment,
    GroupEpoch,
    Key,
    Member,
    OffsetCommit,
    Target,
    TargetEpoch,
    TopicPartitions,
    Value,
)

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record lies in the offsets log, when it was written, and the producer if it is part of a transaction."""

    log_partition: int
    log_offset: int
    time_ms: int
    producer_id: int | None = None

    def fields(self) -> Fields:
        return {
            "log_partition": self.log_partition,
            "log_offset": self.log_offset,
            "source_wall_ns": self.time_ms * 1_000_000,
        }


def event_of(key: Key, raw: bytes | None, place: Place) -> tuple[str, Fields] | None:
    """Returns kind and fields of the event a record is; None for details of a group that say nothing of ownership.

    Raises:
        DecodeError: the value is not one of its type.
    """
    if raw is None:
        return _tombstone(key, place)
    value = decode_value(key, raw)
    if value is None:
        return "unreadable", {"group": key.group, "record_type": key.record_type, "name": key.name} | place.fields()
    told = _told(key, value)
    if told is None:
        return None
    kind, fields = told
    if isinstance(value, OffsetCommit):
        fields["producer_id"] = place.producer_id
    return kind, {"group": key.group, **fields} | place.fields()


def _tombstone(key: Key, place: Place) -> tuple[str, Fields]:
    if key.record_type in (records.LEGACY_OFFSET_COMMIT, records.OFFSET_COMMIT):
        return "commit_tombstone", {"group": key.group, "topic": key.topic, "partition": key.partition} | place.fields()
    fields = {"group": key.group, "record_type": key.record_type, "member_id": key.member_id}
    return "group_tombstone", fields | place.fields()


def _told(key: Key, value: Value) -> tuple[str, Fields] | None:
    match value:
        case OffsetCommit():
            return "committed", _committed(key, value)
        case ClassicGroup():
            return "group", _classic_group(value)
        case GroupEpoch(epoch=epoch):
            return "group_epoch", {"epoch": epoch}
        case TargetEpoch(epoch=epoch):
            return "target_epoch", {"epoch": epoch}
        case Member():
            return "member", _member(key, value)
        case Target(partitions=partitions):
            return "target", {"member_id": key.member_id, "entries": list(_partitions(partitions))}
        case CurrentAssignment():
            return "member_assignment", _member_assignment(key, value)
        case _:  # partition metadata and regular expressions: how the coordinator got to its assignment
            return None


def _committed(key: Key, value: OffsetCommit) -> Fields:
    return {
        "topic": key.topic,
        "topic_id": value.topic_id,
        "partition": key.partition,
        "committed_offset": value.committed_offset,
        "leader_epoch": value.leader_epoch,
        "commit_time_ms": value.commit_time_ms,
    }


def _classic_group(value: ClassicGroup) -> Fields:
    return {
        "protocol": "classic",
        "epoch": value.generation,
        "state": "stable" if value.members else "empty",
        "members": [
            _without_none(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                host=member.host,
                session_timeout_ms=member.session_timeout_ms,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
            )
            for member in value.members
        ],
        "entries": list(_assigned(value)) if value.protocol_type in ("", "consumer") else None,
    }


def _assigned(value: ClassicGroup) -> Iterator[Fields]:
    """The assignment of all members; other protocol types (Kafka Connect) assign something else."""
    for member in value.members:
        for owned in decode_assignment(member.assignment).partitions:
            for partition in owned.partitions:
                yield {"topic": owned.topic, "partition": partition, "member_id": member.member_id}


def _member(key: Key, value: Member) -> Fields:
    return {
        "member_id": key.member_id,
        "instance_id": value.instance_id,
        "client_id": value.client_id,
        "host": value.host,
        "rebalance_timeout_ms": value.rebalance_timeout_ms,
        "session_timeout_ms": value.classic.session_timeout_ms if value.classic else None,
    }


def _member_assignment(key: Key, value: CurrentAssignment) -> Fields:
    return {
        "member_id": key.member_id,
        "epoch": value.epoch,
        "previous_epoch": value.previous_epoch,
        "state": value.state_name,
        "entries": list(_partitions(value.assigned)),
        "pending": list(_partitions(value.pending_revocation)),
    }


def _partitions(topics: Sequence[TopicPartitions]) -> Iterator[Fields]:
    for topic in topics:
        epochs: Sequence[int | None] = topic.assignment_epochs or [None] * len(topic.partitions)
        for partition, epoch in zip(topic.partitions, epochs, strict=True):
            yield _without_none(topic_id=topic.topic_id, partition=partition, assignment_epoch=epoch)


def _without_none(**fields: Any) -> Fields:
    return {name: value for name, value in fields.items() if value is not None}

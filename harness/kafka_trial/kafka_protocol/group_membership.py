"""What a member of a group asks its coordinator: joins, commits and leaves of both protocols, one request each.

For groups that the harness makes itself: with requests of its own it decides which member joins, commits and leaves in
which order, and no library adds a heartbeat or a commit of its own. The versions are the newest in plain encoding that
brokers from 3.7 to 4.4 answer. Schemas: `common/message/*.json` in Kafka's clients.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kafka_trial.kafka_protocol.cluster_queries import compact, compact_count, plain, refuse
from kafka_trial.kafka_protocol.connection import Connection
from kafka_trial.kafka_protocol.primitives import DecodeError, Reader

PROTOCOL_TYPE: Final = "consumer"
ASSIGNOR: Final = "range"
SESSION_TIMEOUT_MS: Final = 30_000
REBALANCE_WITHIN_S: Final = 30.0
NO_GENERATION: Final = -1  # of a commit by nobody who is a member
_TO_LEAVE: Final = -1
_NO_ASSIGNMENT: Final = -1


@dataclass(frozen=True, slots=True)
class Membership:
    """A member of a group: its id, and its generation (classic protocol) or member epoch."""

    member_id: str
    epoch: int


NOBODY: Final = Membership("", NO_GENERATION)


def join_classic(connection: Connection, group: str, topic: str) -> Membership:
    """Joins a group as a new member of the classic protocol, once its rebalance is over (JoinGroup v2).

    Raises:
        NoAnswerError: no answer, or a refusal.
    """
    subscription = struct.pack(">hi", 0, 1) + plain(topic) + _blob(None)
    body = plain(group) + struct.pack(">ii", SESSION_TIMEOUT_MS, SESSION_TIMEOUT_MS) + plain("") + plain(PROTOCOL_TYPE)
    body += struct.pack(">i", 1) + plain(ASSIGNOR) + _blob(subscription)
    return connection.ask((11, 2), body, _joined, broker_waits_s=REBALANCE_WITHIN_S)


def assign_all(connection: Connection, group: str, member: Membership, topic: str, partitions: Sequence[int]) -> None:
    """Has the leader, alone in its group, give itself partitions of a topic (SyncGroup v1).

    Raises:
        NoAnswerError: no answer, or a refusal.
    """
    assignment = struct.pack(">hi", 0, 1) + plain(topic)
    assignment += struct.pack(f">i{len(partitions)}i", len(partitions), *partitions) + _blob(None)
    body = plain(group) + struct.pack(">i", member.epoch) + plain(member.member_id)
    body += struct.pack(">i", 1) + plain(member.member_id) + _blob(assignment)
    connection.ask((14, 1), body, _synced, broker_waits_s=REBALANCE_WITHIN_S)


def leave_classic(connection: Connection, group: str, member: Membership) -> None:
    """Has a member of the classic protocol leave its group (LeaveGroup v1).

    Raises:
        NoAnswerError: no answer, or a refusal.
    """
    connection.ask((13, 1), plain(group) + plain(member.member_id), lambda reader: _throttled(reader, "LeaveGroup"))


def join_consumer(connection: Connection, group: str, topic: str) -> Membership:
    """Joins a group as a new member of the consumer protocol (ConsumerGroupHeartbeat v0).

    Raises:
        NoAnswerError: no answer, or a refusal.
    """
    return _heartbeat(connection, group, Membership("", 0), (topic,))


def heartbeat_consumer(connection: Connection, group: str, member: Membership) -> Membership:
    """Returns a member of the consumer protocol with the epoch that it has from now on.

    Raises:
        NoAnswerError: no answer, or a refusal.
    """
    return _heartbeat(connection, group, member, None)


def leave_consumer(connection: Connection, group: str, member: Membership) -> None:
    """Has a member of the consumer protocol leave its group.

    Raises:
        NoAnswerError: no answer, or a refusal.
    """
    _heartbeat(connection, group, Membership(member.member_id, _TO_LEAVE), None)


def join_streams(connection: Connection, group: str, topic: str, *, member_id: str) -> Membership:
    """Joins a group as a new member of the streams protocol, to read one topic (KIP-1071: StreamsGroupHeartbeat v0).

    Raises:
        NoAnswerError: no answer, or a refusal.
    """
    one, none = compact_count(1), compact_count(0)
    topology = struct.pack(">bi", 1, 0) + one + compact("0") + one + compact(topic) + none * 5 + b"\0\0"
    details = struct.pack(">i", SESSION_TIMEOUT_MS) + topology + none * 3 + compact(member_id) + b"\xff" + none
    return _streams_heartbeat(connection, group, Membership(member_id, 0), details)


def leave_streams(connection: Connection, group: str, member: Membership) -> None:
    """Has a member of the streams protocol leave its group.

    Raises:
        NoAnswerError: no answer, or a refusal.
    """
    unchanged = struct.pack(">i", -1) + b"\xff" + b"\0" * 4 + b"\xff\0"
    _streams_heartbeat(connection, group, Membership(member.member_id, _TO_LEAVE), unchanged)


def commit(
    connection: Connection, group: str, topic: str, positions: Mapping[int, int], *, member: Membership = NOBODY
) -> None:
    """Commits positions in a topic, by its partitions; by nobody, a group without members takes it (OffsetCommit v3).

    Raises:
        NoAnswerError: no answer, or a refusal.
    """
    body = plain(group) + struct.pack(">i", member.epoch) + plain(member.member_id) + struct.pack(">q", -1)
    body += struct.pack(">i", 1) + plain(topic) + struct.pack(">i", len(positions))
    body += b"".join(struct.pack(">iq", partition, position) + plain("") for partition, position in positions.items())
    connection.ask((8, 3), body, _committed)


def committed(connection: Connection, group: str) -> dict[tuple[str, int], int]:
    """Returns the committed positions of a group by topic and partition, as its coordinator has them (OffsetFetch v3).

    Raises:
        NoAnswerError: no answer, or the coordinator's refusal (with its code).
    """
    return connection.ask((9, 3), plain(group) + struct.pack(">i", -1), _fetched)


def delete_group(connection: Connection, group: str) -> None:
    """Deletes a group that has no members, with all that it has committed (DeleteGroups v1).

    Raises:
        NoAnswerError: no answer, or a refusal.
    """
    connection.ask((42, 1), struct.pack(">i", 1) + plain(group), _deleted)


def _heartbeat(connection: Connection, group: str, member: Membership, topics: Sequence[str] | None) -> Membership:
    joins = topics is not None
    body = compact(group) + compact(member.member_id) + struct.pack(">i", member.epoch) + b"\0\0"  # no static member
    body += struct.pack(">i", SESSION_TIMEOUT_MS if joins else -1)
    body += b"\0" if topics is None else compact_count(len(topics)) + b"".join(map(compact, topics))
    body += b"\0" + (compact_count(0) if joins else b"\0") + b"\0"  # no assignor, nothing owned, no tags
    return connection.ask((68, 0), body, _beaten, flexible=True)


def _streams_heartbeat(connection: Connection, group: str, member: Membership, details: bytes) -> Membership:
    """Sends `details`: from the rebalance timeout to the client's tags."""
    body = compact(group) + compact(member.member_id) + struct.pack(">ii", member.epoch, 0)
    body += b"\0\0" + details + b"\0\0\0\0"  # neither static nor of a rack; no task offsets, no shutdown, no tags
    return connection.ask((88, 0), body, _streams_beaten, flexible=True)


def _blob(raw: bytes | None) -> bytes:
    return struct.pack(">i", -1) if raw is None else struct.pack(">i", len(raw)) + raw


def _throttled(reader: Reader, what: str) -> None:
    reader.int32()  # throttle time
    refuse(what, reader.int16())


def _joined(reader: Reader) -> Membership:
    _throttled(reader, "JoinGroup")
    generation = reader.int32()
    reader.string()  # protocol
    reader.string()  # leader
    member_id = reader.string()
    reader.array(lambda: (reader.string(), reader.blob()))  # all members, told to the leader
    return Membership(member_id, generation)


def _synced(reader: Reader) -> None:
    _throttled(reader, "SyncGroup")
    reader.blob()  # the assignment


def _beaten(reader: Reader) -> Membership:
    reader.int32()  # throttle time
    refuse("ConsumerGroupHeartbeat", reader.int16(), reader.nullable_string())
    member = Membership(reader.nullable_string() or "", reader.int32())
    reader.int32()  # heartbeat interval
    if reader.int8() != _NO_ASSIGNMENT:
        reader.array(lambda: (reader.uuid(), reader.array(reader.int32), reader.tags()))
        reader.tags()
    return member


def _streams_beaten(reader: Reader) -> Membership:
    reader.int32()  # throttle time
    refuse("StreamsGroupHeartbeat", reader.int16(), reader.nullable_string())
    member = Membership(reader.string(), reader.int32())
    reader.raw(12)  # heartbeat interval, acceptable lag, interval of task offsets
    reader.nullable_array(lambda: (reader.int8(), reader.string(), reader.tags()))  # what keeps the group from work
    for _ in ("active", "standby", "warmup"):
        reader.nullable_array(lambda: (reader.string(), reader.array(reader.int32), reader.tags()))
    reader.int32()  # epoch of the endpoints
    if reader.nullable_array(lambda: None):
        raise DecodeError("endpoints of members that have none")
    return member


def _committed(reader: Reader) -> None:
    reader.int32()  # throttle time
    answers = reader.array(lambda: (reader.string(), reader.array(lambda: (reader.int32(), reader.int16()))))
    for _, partitions in answers:
        for _, code in partitions:
            refuse("OffsetCommit", code)


def _fetched(reader: Reader) -> dict[tuple[str, int], int]:
    reader.int32()  # throttle time
    answers = reader.array(lambda: (reader.string(), reader.array(lambda: _position(reader))))
    refuse("OffsetFetch", reader.int16())
    return {
        (topic, partition): position
        for topic, partitions in answers
        for partition, position in partitions
        if position >= 0
    }


def _position(reader: Reader) -> tuple[int, int]:
    partition, position = reader.int32(), reader.int64()
    reader.nullable_string()  # metadata
    refuse("OffsetFetch", reader.int16())
    return partition, position


def _deleted(reader: Reader) -> None:
    reader.int32()  # throttle time
    for _, code in reader.array(lambda: (reader.string(), reader.int16())):
        refuse("DeleteGroups", code)

"""What the witnesses ask brokers about groups: who coordinates one, what state it is in, who its members are."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from kafka_trial.kafka_protocol.cluster_queries import compact, compact_count, plain, refuse
from kafka_trial.kafka_protocol.connection import Connection, NoAnswerError
from kafka_trial.kafka_protocol.primitives import Reader

_GROUP: Final = 0
DEAD: Final = "Dead"


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member as its coordinator describes it."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group as its coordinator describes it; `epoch` for KIP-848 groups only."""

    state: str
    protocol: str
    members: tuple[GroupMember, ...]
    epoch: int | None = None


def group_state(connection: Connection, group: str) -> GroupState:
    """Returns a group of either protocol: asked as a classic one first; one that is dead as such may be a KIP-848 one.

    Raises:
        NoAnswerError: no answer.
    """
    state = classic_group(connection, group)
    if state.state != DEAD:
        return state
    try:
        return consumer_group(connection, group)
    except NoAnswerError as error:
        if error.code is None:
            raise
        return state  # it is none, or this broker knows no such groups


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group in a broker's list; `kind` (classic, consumer, share, streams) where the broker tells it."""

    name: str
    protocol_type: str
    state: str
    kind: str | None = None


def listed_groups(connection: Connection, *, version: int) -> tuple[ListedGroup, ...]:
    """Returns the groups that a broker coordinates (ListGroups v4, or v5 with the kind of each: KIP-848).

    Raises:
        NoAnswerError: no answer, or a refusal.
    """
    body = compact_count(0) * (2 if version >= 5 else 1) + b"\0"
    return connection.ask((16, version), body, lambda reader: _listed(reader, version=version), flexible=True)


def coordinator(connection: Connection, group: str) -> int:
    """Returns the broker that coordinates `group` (FindCoordinator v2).

    Raises:
        NoAnswerError: there is none at the moment (with Kafka's code).
    """
    return connection.ask((10, 2), plain(group) + struct.pack(">b", _GROUP), _coordinator)


def classic_group(connection: Connection, group: str) -> GroupState:
    """Returns a group that speaks the classic protocol; state `Dead` where there is none (DescribeGroups v4)."""
    body = struct.pack(">i", 1) + plain(group) + b"\0"
    return connection.ask((15, 4), body, _classic_group)


def consumer_group(connection: Connection, group: str) -> GroupState:
    """Returns a KIP-848 group (ConsumerGroupDescribe v0).

    Raises:
        NoAnswerError: it is none (with Kafka's code), or the broker does not know the request.
    """
    return connection.ask((69, 0), compact_count(1) + compact(group) + b"\0\0", _consumer_group, flexible=True)


def _coordinator(reader: Reader) -> int:
    reader.int32()  # throttle time
    code, message, node = reader.int16(), reader.nullable_string(), reader.int32()
    reader.string()  # its address
    reader.int32()
    refuse("coordinator", code, message)
    return node


def _classic_group(reader: Reader) -> GroupState:
    reader.int32()  # throttle time
    code, group = reader.array(lambda: _described_classic(reader))[0]
    refuse("group", code)
    return group


def _described_classic(reader: Reader) -> tuple[int, GroupState]:
    code = reader.int16()
    reader.string()
    state = reader.string()
    reader.string()  # protocol type
    reader.string()  # protocol
    members = reader.array(lambda: _classic_member(reader))
    reader.int32()  # authorised operations
    return code, GroupState(state, "classic", members)


def _classic_member(reader: Reader) -> GroupMember:
    member_id, instance_id, client_id, host = (
        reader.string(),
        reader.nullable_string(),
        reader.string(),
        reader.string(),
    )
    reader.blob()  # subscription
    reader.blob()  # assignment: the offsets log has it
    return GroupMember(member_id, client_id, host, instance_id)


def _consumer_group(reader: Reader) -> GroupState:
    reader.int32()  # throttle time
    code, message, group = reader.array(lambda: _described_consumer(reader))[0]
    refuse("group", code, message)
    return group


def _described_consumer(reader: Reader) -> tuple[int, str | None, GroupState]:
    code, message = reader.int16(), reader.nullable_string()
    reader.string()
    state, epoch = reader.string(), reader.int32()
    reader.int32()  # assignment epoch
    reader.string()  # assignor
    members = reader.array(lambda: _consumer_member(reader))
    reader.int32()  # authorised operations
    reader.tags()
    return code, message, GroupState(state, "consumer", members, epoch)


def _consumer_member(reader: Reader) -> GroupMember:
    member_id, instance_id, _, _ = reader.string(), reader.nullable_string(), reader.nullable_string(), reader.int32()
    client_id, host = reader.string(), reader.string()
    reader.array(reader.string)  # subscribed topics
    reader.nullable_string()  # subscribed regular expression
    _skip_assignment(reader)
    _skip_assignment(reader)
    reader.tags()
    return GroupMember(member_id, client_id, host, instance_id)


def _skip_assignment(reader: Reader) -> None:
    reader.array(lambda: (reader.uuid(), reader.string(), reader.array(reader.int32), reader.tags()))
    reader.tags()


def _listed(reader: Reader, *, version: int) -> tuple[ListedGroup, ...]:
    reader.int32()  # throttle time
    refuse("groups", reader.int16())
    return reader.array(lambda: _listed_group(reader, version=version))


def _listed_group(reader: Reader, *, version: int) -> ListedGroup:
    name, protocol_type, state = reader.string(), reader.string(), reader.string()
    kind = reader.string().lower() if version >= 5 else None
    reader.tags()
    return ListedGroup(name, protocol_type, state, kind)

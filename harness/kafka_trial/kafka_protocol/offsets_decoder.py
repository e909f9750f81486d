"""The decoder of `__consumer_offsets`: from bytes to the values of `offsets_records.py`; pure functions, no cluster.

Key = int16 record type + body; value = int16 version + body, or null (a tombstone). Keys are plain; values are plain
or flexible by version. Whatever does not fit is a DecodeError, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kafka_trial.kafka_protocol import offsets_records as records
from kafka_trial.kafka_protocol.offsets_records import (
    Assignment,
    ClassicGroup,
    ClassicMember,
    ClassicProtocols,
    ConsumerPartitions,
    CurrentAssignment,
    GroupEpoch,
    Key,
    Member,
    OffsetCommit,
    PartitionMetadata,
    RegularExpression,
    Subscription,
    Target,
    TargetEpoch,
    TopicMetadata,
    TopicPartitions,
    Value,
)
from kafka_trial.kafka_protocol.primitives import NO_TOPIC_ID, DecodeError, Reader

T = TypeVar("T")
_KEYS_WITH_MEMBER = (records.MEMBER, records.TARGET, records.CURRENT_ASSIGNMENT)
_KEYS_OF_OTHERS_WITH_MEMBER = (10, 13, 14, 19, 21, 22)


def decode_key(raw: bytes | None) -> Key:
    """Returns what a record is about.

    Raises:
        DecodeError: no key, or bytes that are not one of a known type.
    """
    if raw is None:
        raise DecodeError("a record without a key")
    reader = Reader(raw)
    record_type = reader.int16()
    if record_type not in records.NAMES:
        return Key(record_type, None)
    group = reader.string()
    if record_type in (records.LEGACY_OFFSET_COMMIT, records.OFFSET_COMMIT):
        key = Key(record_type, group, topic=reader.string(), partition=reader.int32())
    elif record_type in _KEYS_WITH_MEMBER:
        key = Key(record_type, group, member_id=reader.string())
    elif record_type == records.REGULAR_EXPRESSION:
        key = Key(record_type, group, regular_expression=reader.string())
    elif record_type in _DECODERS:
        key = Key(record_type, group)
    else:
        return Key(record_type, group, member_id=_member_of_others(record_type, reader))
    reader.end()
    return key


def decode_value(key: Key, raw: bytes) -> Value | None:
    """Returns the value of a record that is no tombstone; None where its type is not decoded (share, streams, unknown).

    Raises:
        DecodeError: bytes that are not a value of this type, or a version that is not known.
    """
    decoder = _DECODERS.get(key.record_type)
    if decoder is None:
        return None
    reader = Reader(raw)
    version = reader.int16()
    decode, version_max, flexible_from = decoder
    if not 0 <= version <= version_max:
        raise DecodeError(f"{key.name}: version {version}, known are 0 to {version_max}")
    reader.flexible = version >= flexible_from
    value = decode(reader, version)
    reader.end()
    return value


def decode_subscription(raw: bytes) -> Subscription:
    """Returns the subscription of a classic consumer; versions after 3 are read as 3, as Kafka's clients do.

    Raises:
        DecodeError: bytes that are none.
    """
    reader = Reader(raw)
    version = reader.int16()
    topics, user_data = reader.array(reader.string), reader.nullable_blob()
    return Subscription(
        version,
        topics,
        user_data,
        owned=reader.array(lambda: _consumer_partitions(reader)) if version >= 1 else (),
        generation=reader.int32() if version >= 2 else -1,
        rack=reader.nullable_string() if version >= 3 else None,
    )


def decode_assignment(raw: bytes) -> Assignment:
    """Returns the assignment of a classic consumer; no bytes at all is an empty one.

    Raises:
        DecodeError: bytes that are none.
    """
    if not raw:
        return Assignment(0, (), None)
    reader = Reader(raw)
    version = reader.int16()
    return Assignment(version, reader.array(lambda: _consumer_partitions(reader)), reader.nullable_blob())


def _consumer_partitions(reader: Reader) -> ConsumerPartitions:
    return ConsumerPartitions(reader.string(), reader.array(reader.int32))


def _member_of_others(record_type: int, reader: Reader) -> str | None:
    """The member in the key of a share or streams record; the rest of such keys is not looked at."""
    return reader.string() if record_type in _KEYS_OF_OTHERS_WITH_MEMBER else None


def _offset_commit(reader: Reader, version: int) -> OffsetCommit:
    committed_offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else -1
    metadata, commit_time_ms = reader.string(), reader.int64()
    expire_time_ms = reader.int64() if version == 1 else None
    topic_id = _tagged(reader.tags(), 0, Reader.uuid)
    return OffsetCommit(
        version,
        committed_offset,
        metadata,
        commit_time_ms,
        leader_epoch=leader_epoch if leader_epoch >= 0 else None,
        expire_time_ms=expire_time_ms,
        topic_id=None if topic_id == NO_TOPIC_ID else topic_id,
    )


def _classic_group(reader: Reader, version: int) -> ClassicGroup:
    group = ClassicGroup(
        version,
        protocol_type=reader.string(),
        generation=reader.int32(),
        protocol=reader.nullable_string(),
        leader=reader.nullable_string(),
        state_time_ms=reader.int64() if version >= 2 else -1,
        members=reader.array(lambda: _classic_member(reader, version)),
    )
    reader.tags()
    return group


def _classic_member(reader: Reader, version: int) -> ClassicMember:
    member = ClassicMember(
        member_id=reader.string(),
        instance_id=reader.nullable_string() if version >= 3 else None,
        client_id=reader.string(),
        host=reader.string(),
        rebalance_timeout_ms=reader.int32() if version >= 1 else -1,
        session_timeout_ms=reader.int32(),
        subscription=reader.blob(),
        assignment=reader.blob(),
    )
    reader.tags()
    return member


def _group_epoch(reader: Reader, _: int) -> GroupEpoch:
    return GroupEpoch(reader.int32(), _tagged(reader.tags(), 0, Reader.int64) or 0)


def _partition_metadata(reader: Reader, _: int) -> PartitionMetadata:
    metadata = PartitionMetadata(reader.array(lambda: _topic_metadata(reader)))
    reader.tags()
    return metadata


def _topic_metadata(reader: Reader) -> TopicMetadata:
    topic = TopicMetadata(
        reader.uuid(), reader.string(), reader.int32(), reader.array(lambda: _partition_racks(reader))
    )
    reader.tags()
    return topic


def _partition_racks(reader: Reader) -> tuple[int, tuple[str, ...]]:
    racks = reader.int32(), reader.array(reader.string)
    reader.tags()
    return racks


def _member(reader: Reader, _: int) -> Member:
    fields = (
        reader.nullable_string(),
        reader.nullable_string(),
        reader.string(),
        reader.string(),
        reader.array(reader.string),
        reader.nullable_string(),
        reader.int32(),
        reader.nullable_string(),
    )
    return Member(*fields, classic=_tagged(reader.tags(), 0, _classic_protocols))


def _classic_protocols(reader: Reader) -> ClassicProtocols | None:
    if reader.unsigned_varint() == 0:  # a nullable struct: 0 is null, and null is written
        return None
    protocols = ClassicProtocols(reader.int32(), reader.array(lambda: _protocol(reader)))
    reader.tags()
    return protocols


def _protocol(reader: Reader) -> tuple[str, bytes]:
    protocol = reader.string(), reader.blob()
    reader.tags()
    return protocol


def _target_epoch(reader: Reader, _: int) -> TargetEpoch:
    return TargetEpoch(reader.int32(), _tagged(reader.tags(), 0, Reader.int64) or 0)


def _target(reader: Reader, _: int) -> Target:
    target = Target(reader.array(lambda: _topic_partitions(reader)))
    reader.tags()
    return target


def _current_assignment(reader: Reader, _: int) -> CurrentAssignment:
    current = CurrentAssignment(
        reader.int32(),
        reader.int32(),
        reader.int8(),
        reader.array(lambda: _topic_partitions(reader)),
        reader.array(lambda: _topic_partitions(reader)),
    )
    reader.tags()
    return current


def _topic_partitions(reader: Reader) -> TopicPartitions:
    topic_id, partitions = reader.uuid(), reader.array(reader.int32)
    epochs = _tagged(reader.tags(), 0, lambda tagged: tagged.nullable_array(tagged.int32))
    if epochs is not None and len(epochs) != len(partitions):
        raise DecodeError(f"{len(epochs)} assignment epochs go with {len(partitions)} partitions")
    return TopicPartitions(topic_id, partitions, epochs)


def _regular_expression(reader: Reader, _: int) -> RegularExpression:
    expression = RegularExpression(reader.array(reader.string), reader.int64(), reader.int64())
    reader.tags()
    return expression


def _tagged(tags: dict[int, bytes], tag: int, read: Callable[[Reader], T]) -> T | None:
    """Decodes one tagged field, if it is there; tags that are not known are skipped, as Kafka does."""
    if tag not in tags:
        return None
    reader = Reader(tags[tag], flexible=True)
    value = read(reader)
    reader.end()
    return value


# Record type → (decoder of the body, newest version known, first flexible version).
_DECODERS: dict[int, tuple[Callable[[Reader, int], Value], int, int]] = {
    records.LEGACY_OFFSET_COMMIT: (_offset_commit, 4, 4),
    records.OFFSET_COMMIT: (_offset_commit, 4, 4),
    records.CLASSIC_GROUP: (_classic_group, 4, 4),
    records.GROUP_EPOCH: (_group_epoch, 0, 0),
    records.PARTITION_METADATA: (_partition_metadata, 0, 0),
    records.MEMBER: (_member, 0, 0),
    records.TARGET_EPOCH: (_target_epoch, 0, 0),
    records.TARGET: (_target, 0, 0),
    records.CURRENT_ASSIGNMENT: (_current_assignment, 0, 0),
    records.REGULAR_EXPRESSION: (_regular_expression, 0, 0),
}

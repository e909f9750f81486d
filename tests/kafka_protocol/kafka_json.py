"""Decoded records of the offsets log in the JSON that Kafka's own tools print, to compare the two."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from kafka_trial.kafka_protocol import offsets_records as records
from kafka_trial.kafka_protocol.offsets_decoder import decode_assignment, decode_subscription
from kafka_trial.kafka_protocol.offsets_records import (
    ClassicGroup,
    ConsumerPartitions,
    CurrentAssignment,
    GroupEpoch,
    Key,
    Member,
    OffsetCommit,
    PartitionMetadata,
    RegularExpression,
    Target,
    TargetEpoch,
    TopicPartitions,
    Value,
)


def key_json(key: Key) -> dict[str, Any]:
    """The `data` of a key."""
    if key.record_type in (records.LEGACY_OFFSET_COMMIT, records.OFFSET_COMMIT):
        return {"group": key.group, "topic": key.topic, "partition": key.partition}
    if key.record_type == records.CLASSIC_GROUP:
        return {"group": key.group}
    fields: dict[str, Any] = {"groupId": key.group}
    if key.member_id is not None:
        fields["memberId"] = key.member_id
    if key.regular_expression is not None:
        fields["regularExpression"] = key.regular_expression
    return fields


def value_json(value: Value, *, unfold: bool = False) -> dict[str, Any]:
    """The `data` of a value; `unfold` shows subscriptions and assignments decoded, as the log dumper does."""
    match value:
        case OffsetCommit():
            return _commit(value)
        case ClassicGroup():
            return _classic(value, unfold=unfold)
        case GroupEpoch():
            return {"epoch": value.epoch} | _tagged("metadataHash", value.metadata_hash)
        case TargetEpoch():
            return {"assignmentEpoch": value.epoch} | _tagged("assignmentTimestamp", value.time_ms)
        case Member():
            return _member(value)
        case Target():
            return {"topicPartitions": _partitions(value.partitions)}
        case CurrentAssignment():
            return {
                "memberEpoch": value.epoch,
                "previousMemberEpoch": value.previous_epoch,
                "state": value.state,
                "assignedPartitions": _partitions(value.assigned),
                "partitionsPendingRevocation": _partitions(value.pending_revocation),
            }
        case PartitionMetadata():
            return {
                "topics": [
                    {
                        "topicId": topic.topic_id,
                        "topicName": topic.topic,
                        "numPartitions": topic.partitions,
                        "partitionMetadata": [
                            {"partition": number, "racks": list(racks)} for number, racks in topic.racks
                        ],
                    }
                    for topic in value.topics
                ]
            }
        case RegularExpression():
            return {"topics": list(value.topics), "version": value.version, "timestamp": value.time_ms}


def _commit(value: OffsetCommit) -> dict[str, Any]:
    fields: dict[str, Any] = {"offset": value.committed_offset}
    if value.version >= 3:
        fields["leaderEpoch"] = -1 if value.leader_epoch is None else value.leader_epoch
    fields |= {"metadata": value.metadata, "commitTimestamp": value.commit_time_ms}
    if value.version == 1:
        fields["expireTimestamp"] = value.expire_time_ms
    return fields | (_tagged("topicId", value.topic_id) if value.version >= 4 else {})


def _classic(value: ClassicGroup, *, unfold: bool) -> dict[str, Any]:
    return {
        "protocolType": value.protocol_type,
        "generation": value.generation,
        "protocol": value.protocol,
        "leader": value.leader,
        "currentStateTimestamp": value.state_time_ms,
        "members": [
            {
                "memberId": member.member_id,
                "groupInstanceId": member.instance_id,
                "clientId": member.client_id,
                "clientHost": member.host,
                "rebalanceTimeout": member.rebalance_timeout_ms,
                "sessionTimeout": member.session_timeout_ms,
                "subscription": _subscription(member.subscription) if unfold else _base64(member.subscription),
                "assignment": _assignment(member.assignment) if unfold else _base64(member.assignment),
            }
            for member in value.members
        ],
    }


def _subscription(raw: bytes) -> dict[str, Any]:
    value = decode_subscription(raw)
    fields: dict[str, Any] = {"topics": list(value.topics), "userData": _base64(value.user_data)}
    if value.version >= 1:
        fields["ownedPartitions"] = [_by_name(owned) for owned in value.owned]
    if value.version >= 2:
        fields["generationId"] = value.generation
    return fields | ({"rackId": value.rack} if value.version >= 3 else {})


def _assignment(raw: bytes) -> dict[str, Any]:
    value = decode_assignment(raw)
    return {
        "assignedPartitions": [_by_name(owned) for owned in value.partitions],
        "userData": _base64(value.user_data),
    }


def _by_name(owned: ConsumerPartitions) -> dict[str, Any]:
    return {"topic": owned.topic, "partitions": list(owned.partitions)}


def _base64(raw: bytes | None) -> str | None:
    return None if raw is None else base64.b64encode(raw).decode()


def _member(value: Member) -> dict[str, Any]:
    classic = value.classic and {
        "sessionTimeoutMs": value.classic.session_timeout_ms,
        "supportedProtocols": [
            {"name": name, "metadata": _base64(metadata)} for name, metadata in value.classic.protocols
        ],
    }
    return {
        "instanceId": value.instance_id,
        "rackId": value.rack,
        "clientId": value.client_id,
        "clientHost": value.host,
        "subscribedTopicNames": list(value.topics),
        "subscribedTopicRegex": value.regular_expression,
        "rebalanceTimeoutMs": value.rebalance_timeout_ms,
        "serverAssignor": value.assignor,
        "classicMemberMetadata": classic,
    }


def _partitions(topics: Sequence[TopicPartitions]) -> list[dict[str, Any]]:
    return [
        {"topicId": topic.topic_id, "partitions": list(topic.partitions)}
        | _tagged("assignmentEpochs", None if topic.assignment_epochs is None else list(topic.assignment_epochs))
        for topic in topics
    ]


def _tagged(name: str, value: object) -> dict[str, Any]:
    """A tagged field with its default value is neither written nor printed."""
    return {name: value} if value else {}

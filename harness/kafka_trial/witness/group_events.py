"""Requests by which members join, keep and leave a group, as events: both protocols, classic and KIP-848."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence

from kafka_trial.kafka_protocol.offsets_decoder import decode_assignment
from kafka_trial.kafka_protocol.primitives import DecodeError
from kafka_trial.witness.request_fields import Body, Fields, Reader, member_of, topic_of


def _join(request: Body, response: Body) -> Iterator[Fields]:
    yield member_of(request, response) | {
        "epoch": response["generationId"],
        "session_timeout_ms": request["sessionTimeoutMs"],
        "rebalance_timeout_ms": request.get("rebalanceTimeoutMs"),
        "protocol": response.get("protocolName") or None,
        "leader": bool(response["leader"]) and response["leader"] == response["memberId"],
        "reason": request.get("reason") or None,
        "error": response["errorCode"],
    }


def _sync(request: Body, response: Body) -> Iterator[Fields]:
    yield member_of(request) | {
        "epoch": request["generationId"],
        "error": response["errorCode"],
        "entries": _assigned(response.get("assignment")),
    }


def _assigned(text: str | None) -> list[Fields] | None:
    """The assignment of a classic consumer, as it was told; None where it speaks something else (Kafka Connect)."""
    try:
        assignment = decode_assignment(base64.b64decode(text or ""))
    except (DecodeError, binascii.Error):
        return None
    return [
        {"topic": owned.topic, "partition": partition}
        for owned in assignment.partitions
        for partition in owned.partitions
    ]


def _heartbeat(request: Body, response: Body) -> Iterator[Fields]:
    yield member_of(request) | {"epoch": request["generationId"], "error": response["errorCode"]}


def _leave(request: Body, response: Body) -> Iterator[Fields]:
    """One event per member: several may leave at once (from version 3 on)."""
    answers = {answer["memberId"]: answer["errorCode"] for answer in response.get("members") or ()}
    for member in request.get("members") or [request]:
        yield member_of({"groupId": request["groupId"]} | dict(member)) | {
            "reason": member.get("reason") or None,
            "error": response["errorCode"] or answers.get(member["memberId"], 0),
        }


def _consumer_heartbeat(request: Body, response: Body) -> Iterator[Fields]:
    """KIP-848: `entries` is what the member says it owns, `assigned` what it is told to own; absent: as before."""
    assignment = response.get("assignment")
    yield member_of(request, response) | {
        "epoch": request["memberEpoch"],
        "answered_epoch": response["memberEpoch"],
        "error": response["errorCode"],
        "message": response.get("errorMessage"),
        "entries": _by_id(request.get("topicPartitions")),
        "assigned": _by_id(assignment["topicPartitions"]) if assignment else None,
    }


def _by_id(topics: Sequence[Body] | None) -> list[Fields] | None:
    if topics is None:
        return None
    return [topic_of(topic) | {"partition": partition} for topic in topics for partition in topic["partitions"]]


GROUP_READERS: dict[str, Reader] = {
    "JOIN_GROUP": _join,
    "SYNC_GROUP": _sync,
    "HEARTBEAT": _heartbeat,
    "LEAVE_GROUP": _leave,
    "CONSUMER_GROUP_HEARTBEAT": _consumer_heartbeat,
}

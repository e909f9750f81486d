"""The fields that events of several APIs share: a topic, a member, the first error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kafka_trial.kafka_protocol.primitives import NO_TOPIC_ID

Fields = dict[str, Any]
Body = Mapping[str, Any]
Reader = Callable[[Body, Body], Iterator[Fields]]  # a request and its response → the fields of its events


def topic_of(body: Body) -> Fields:
    """Returns a topic by name, by id, or by both."""
    fields: Fields = {}
    if body.get("name"):
        fields["topic"] = body["name"]
    if body.get("topicId", NO_TOPIC_ID) != NO_TOPIC_ID:
        fields["topic_id"] = body["topicId"]
    return fields


def first_error(entries: Sequence[Fields], error: int = 0) -> int:
    """Returns the request's own error, else the first one of its entries."""
    return error or next((entry["error"] for entry in entries if entry.get("error")), 0)


def member_of(request: Body, response: Body | None = None) -> Fields:
    """Returns group, member and instance; a first join learns its member id from the answer."""
    member_id = request.get("memberId") or (response or {}).get("memberId")
    return {
        "group": request["groupId"],
        "member_id": member_id or None,
        "instance_id": request.get("groupInstanceId", request.get("instanceId")),
    }

"""From requests to events: for each API the fields that a judge needs, and nothing of the rest.

Every function takes a line's request and response and yields the fields of its events; `Requests` chooses among them
and keeps what needs a memory: which topic ids are known, and what each connection fetches (`FetchSessions`). Offsets,
transactions and coordinators come first, then how members join, keep and leave a group, classic and KIP-848. Errors are
Kafka's codes; 0 is none. An entry has a topic's name, its id, or both, as far as they are known.

Fetches are kept thin: from which positions a connection fetches, and how many bytes it got. A client names all its
partitions in each request (librdkafka), or opens a fetch session and then names only what changed (Java, KIP-227): the
session is replayed here, so that every event speaks of positions in the same way. A fetch that asks as before and gets
nothing is left out; it says nothing new, and there are two a second for each member.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from kafka_trial.kafka_protocol.offsets_decoder import decode_assignment
from kafka_trial.kafka_protocol.primitives import NO_TOPIC_ID, DecodeError
from kafka_trial.witness.request_lines import Line

Fields = dict[str, Any]
Body = Mapping[str, Any]
Reader = Callable[[Body, Body], Iterator[Fields]]  # a request and its response → the fields of its events
K = TypeVar("K")
Place = tuple[str, int]  # topic id (name where there is none), partition
Positions = dict[Place, int]
FINAL: Final = -1
REMEMBERED_MAX: Final = 10_000
_ID_MARK: Final = "\0id:"  # no topic's name holds a zero


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


GROUP_KEY: Final = 0


class Requests:
    """Turns lines into events; one per broker, because connections and sessions are a broker's own."""

    def __init__(self, topics: dict[str, str]) -> None:
        self._topics = topics
        self._sessions = FetchSessions()

    def events(self, line: Line) -> Iterator[Fields]:
        """Yields the fields of the events one line is; none where it says nothing new."""
        if line.api == "METADATA":
            parts: Iterable[Fields] = self._metadata(line.response)
        elif line.api == "FETCH":
            parts = self._sessions.events(line)
        else:
            parts = _READERS[line.api](line.request, line.response) if line.api in _READERS else ()
        for part in parts:
            yield _common(line) | self._named(part)

    def _metadata(self, response: Body) -> Iterator[Fields]:
        """Topic ids that were not known: brokers speak of topics by id only."""
        found = {topic["topicId"]: topic["name"] for topic in response.get("topics") or () if _identified(topic)}
        new = {topic_id: name for topic_id, name in found.items() if self._topics.get(topic_id) != name}
        self._topics.update(new)
        if new:
            yield {"error": 0, "entries": [{"topic": name, "topic_id": topic_id} for topic_id, name in new.items()]}

    def _named(self, fields: Fields) -> Fields:
        for name in ("entries", "assigned"):
            for entry in fields.get(name) or ():
                if "topic" not in entry and entry.get("topic_id") in self._topics:
                    entry["topic"] = self._topics[entry["topic_id"]]
        return fields


def _common(line: Line) -> Fields:
    return {
        "api": line.api,
        "lane": line.lane,
        "listener": line.listener,
        "connection": line.connection,
        "client_id": line.client_id,
        "correlation_id": line.correlation_id,
        "duration_ms": line.duration_ms,
        "library": line.library,
        "source_wall_ns": line.source_wall_ns,
    }


def _identified(topic: Body) -> bool:
    return bool(topic.get("name")) and topic.get("topicId", NO_TOPIC_ID) != NO_TOPIC_ID


def _commit(request: Body, response: Body) -> Iterator[Fields]:
    answers = _answers(response["topics"])
    entries = [
        topic_of(topic)
        | {
            "partition": part["partitionIndex"],
            "committed_offset": part["committedOffset"],
            "error": answers.get((_place(topic), part["partitionIndex"]), -1),
        }
        for topic in request["topics"]
        for part in topic["partitions"]
    ]
    yield member_of(request) | {
        "epoch": request.get("generationIdOrMemberEpoch", request.get("generationId")),
        "transactional_id": request.get("transactionalId"),
        "producer_id": request.get("producerId"),
        "producer_epoch": request.get("producerEpoch"),
        "error": first_error(entries),
        "entries": entries,
    }


def _answers(topics: Sequence[Body]) -> dict[tuple[Any, int], int]:
    return {
        (_place(topic), part["partitionIndex"]): part["errorCode"] for topic in topics for part in topic["partitions"]
    }


def _place(topic: Body) -> Any:
    return topic.get("name") or topic.get("topicId")


def _offset_fetch(request: Body, response: Body) -> Iterator[Fields]:
    """One event per group: several may be asked for at once (from version 8 on)."""
    asked = request.get("groups") or [request]
    answered = response.get("groups") or [{"groupId": request.get("groupId")} | dict(response)]
    by_group = {group["groupId"]: group for group in answered}
    for group in asked:
        answer = by_group.get(group["groupId"], {})
        entries = [
            topic_of(topic)
            | {
                "partition": part["partitionIndex"],
                "committed_offset": part["committedOffset"],
                "error": part["errorCode"],
            }
            for topic in answer.get("topics") or ()
            for part in topic["partitions"]
        ]
        epoch = group.get("memberEpoch", -1)
        yield member_of(group) | {
            "epoch": epoch if epoch >= 0 else None,
            "error": first_error(entries, answer.get("errorCode", 0)),
            "entries": entries,
        }


def _list_offsets(request: Body, response: Body) -> Iterator[Fields]:
    """Where a member starts without a commit; `time_ms` -1 asks for the end, -2 for the start."""
    asked = {
        (topic["name"], part["partitionIndex"]): part["timestamp"]
        for topic in request["topics"]
        for part in topic["partitions"]
    }
    entries = [
        topic_of(topic)
        | {
            "partition": part["partitionIndex"],
            "offset": part.get("offset"),
            "time_ms": asked.get((topic["name"], part["partitionIndex"])),
            "error": part["errorCode"],
        }
        for topic in response["topics"]
        for part in topic["partitions"]
    ]
    yield {"error": first_error(entries), "entries": entries}


def _find_coordinator(request: Body, response: Body) -> Iterator[Fields]:
    if request.get("keyType", GROUP_KEY) != GROUP_KEY:
        return
    if "coordinators" not in response:
        yield {"group": request["key"], "coordinator": response["nodeId"], "error": response["errorCode"]}
    for found in response.get("coordinators") or ():
        yield {"group": found["key"], "coordinator": found["nodeId"], "error": found["errorCode"]}


def _transaction(request: Body, response: Body) -> Iterator[Fields]:
    """InitProducerId, AddOffsetsToTxn, EndTxn: who, which group's offsets, and how it was to end.

    An answer to EndTxn with the next epoch makes id and epoch one transaction's own (KIP-890).
    """
    committed = request.get("committed")
    next_epoch = request.get("producerId"), request.get("producerEpoch", -1) + 1
    own = committed is not None and (response.get("producerId"), response.get("producerEpoch")) == next_epoch
    yield {
        "group": request.get("groupId"),
        "transactional_id": request.get("transactionalId"),
        "producer_id": response.get("producerId", request.get("producerId")),
        "producer_epoch": response.get("producerEpoch", request.get("producerEpoch")),
        "timeout_ms": request.get("transactionTimeoutMs"),
        "state": None if committed is None else "commit" if committed else "abort",
        "own_epoch": True if own else None,
        "error": response["errorCode"],
    }


def _add_partitions(request: Body, response: Body) -> Iterator[Fields]:
    """Up to version 3 one transaction (from clients); later versions only brokers send, on listeners not logged."""
    entries = [
        topic_of(topic) | {"partition": part["partitionIndex"], "error": part["partitionErrorCode"]}
        for topic in response.get("resultsByTopicV3AndBelow") or ()
        for part in topic["resultsByPartition"]
    ]
    yield {
        "transactional_id": request.get("v3AndBelowTransactionalId"),
        "producer_id": request.get("v3AndBelowProducerId"),
        "producer_epoch": request.get("v3AndBelowProducerEpoch"),
        "error": first_error(entries, response.get("errorCode", 0)),
        "entries": entries,
    }


def _offset_delete(request: Body, response: Body) -> Iterator[Fields]:
    entries = [
        topic_of(topic) | {"partition": part["partitionIndex"], "error": part["errorCode"]}
        for topic in response.get("topics") or ()
        for part in topic["partitions"]
    ]
    yield {"group": request["groupId"], "error": first_error(entries, response["errorCode"]), "entries": entries}


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

_READERS: dict[str, Reader] = {
    **GROUP_READERS,
    "OFFSET_COMMIT": _commit,
    "TXN_OFFSET_COMMIT": _commit,
    "OFFSET_FETCH": _offset_fetch,
    "OFFSET_DELETE": _offset_delete,
    "LIST_OFFSETS": _list_offsets,
    "FIND_COORDINATOR": _find_coordinator,
    "INIT_PRODUCER_ID": _transaction,
    "ADD_OFFSETS_TO_TXN": _transaction,
    "END_TXN": _transaction,
    "ADD_PARTITIONS_TO_TXN": _add_partitions,
}


class FetchSessions:
    """What each connection and each session of one broker's clients fetches; the oldest are forgotten."""

    def __init__(self) -> None:
        self._sessions: dict[int, Positions] = {}
        self._connections: dict[str, Positions] = {}

    def events(self, line: Line) -> Iterator[Fields]:
        """Yields an event where partitions, positions, bytes or errors say something new.

        `entries` holds what changed or was answered; with `complete` it is everything fetched from now on.
        """
        request, response = line.request, line.response
        session, epoch = request.get("sessionId", 0), request.get("sessionEpoch", FINAL)
        if session and epoch == FINAL:
            self._sessions.pop(session, None)
            return
        incremental = bool(session) and epoch > 0
        before = self._sessions.get(session) if incremental else self._connections.get(line.connection, {})
        now = _replayed(before or {}, request) if incremental else _asked(request)
        _remember(self._connections, line.connection, now)
        if opened := response.get("sessionId", 0):
            _remember(self._sessions, opened, now)
        entries, changed = _entries(before or {}, now, _fetch_answers(response))
        error = response.get("errorCode", 0)
        if entries or changed or error:
            yield {
                "session_id": session or None,
                "error": error or next((entry["error"] for entry in entries if entry["error"]), 0),
                "complete": (changed and before is not None) or None,
                "entries": entries,
            }


def _remember(table: dict[K, Positions], key: K, positions: Positions) -> None:
    table[key] = positions
    while len(table) > REMEMBERED_MAX:
        table.pop(next(iter(table)))


def _asked(request: Mapping[str, Any]) -> Positions:
    return {
        (_name(topic), part["partition"]): part["fetchOffset"]
        for topic in request.get("topics") or ()
        for part in topic["partitions"]
    }


def _replayed(positions: Positions, request: Mapping[str, Any]) -> Positions:
    gone = {
        (_name(topic), partition)
        for topic in request.get("forgottenTopicsData") or ()
        for partition in topic["partitions"]
    }
    return {place: position for place, position in positions.items() if place not in gone} | _asked(request)


def _fetch_answers(response: Mapping[str, Any]) -> dict[Place, tuple[int, int]]:
    """Error and bytes of each partition answered."""
    return {
        (_name(topic), part["partitionIndex"]): (part["errorCode"], part.get("recordsSizeInBytes", 0))
        for topic in response.get("responses") or ()
        for part in topic["partitions"]
    }


def _entries(before: Positions, now: Positions, answers: dict[Place, tuple[int, int]]) -> tuple[list[Fields], bool]:
    complete = before.keys() != now.keys()
    entries = []
    for place, position in now.items():
        error, size_bytes = answers.get(place, (0, 0))
        if complete or error or size_bytes > 0 or before.get(place) != position:
            entries.append(_entry(place, position, error, size_bytes))
    return entries, complete


def _entry(place: Place, position: int, error: int, size_bytes: int) -> Fields:
    topic, partition = place
    return {
        "topic_id" if topic.startswith(_ID_MARK) else "topic": topic.removeprefix(_ID_MARK),
        "partition": partition,
        "offset": position,
        "size_bytes": max(0, size_bytes),
        "error": error,
    }


def _name(topic: Mapping[str, Any]) -> str:
    topic_id = topic.get("topicId", NO_TOPIC_ID)
    return str(topic.get("topic") or topic.get("name") or "") if topic_id == NO_TOPIC_ID else _ID_MARK + topic_id

"""Fetch lines, kept thin: from which positions a connection fetches, and how many bytes it got.

A client names all its partitions in each request (librdkafka), or opens a fetch session and then names only what
changed (Java, KIP-227): the session is replayed here, so that every event speaks of positions in the same way. A
fetch that asks as before and gets nothing is left out; it says nothing new, and there are two a second for each member.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

from kafka_trial.kafka_protocol.primitives import NO_TOPIC_ID
from kafka_trial.witness.request_lines import Line

K = TypeVar("K")
Fields = dict[str, Any]
Place = tuple[str, int]  # topic id (name where there is none), partition
Positions = dict[Place, int]
FINAL: Final = -1
REMEMBERED_MAX: Final = 10_000
_ID_MARK: Final = "\0id:"  # no topic's name holds a zero


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
        entries, changed = _entries(before or {}, now, _answers(response))
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


def _answers(response: Mapping[str, Any]) -> dict[Place, tuple[int, int]]:
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

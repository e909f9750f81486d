"""The wire: lines a consumer prints, translated into events of its history.

Dialects: `jsonl` (this project's, a superset of what Kafka's VerifiableConsumer prints), `verifiable` (Java's
VerifiableConsumer as it is), `none`. Kafka's `offset` in a commit is a position and becomes `committed_offset` here.
A line that cannot be read becomes an event that quotes it; it is never an error of the trial.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from kafka_trial.consumers.lost_events import OwnLines, lost_events
from kafka_trial.consumers.output import QUOTE_BYTES_MAX, Line
from kafka_trial.consumers.spec import OUTCOMES

BAD_LINES_QUOTED_MAX = 1000
PENDING_COMMITS_MAX = 10_000
INT64 = range(-(2**63), 2**63)
WALL_MS_MAX = 2**62 // 1_000_000

BOM = b"\xef\xbb\xbf"  # .NET writes one at the beginning of a stream

Body = Mapping[str, Any]
Record = Callable[..., int]  # as of Recorder.record: kind, then fields; returns the seq


class Wire:
    """Translates the lines of one incarnation; `record` writes an event and returns its seq."""

    def __init__(self, record: Record, *, dialect: str) -> None:
        self._write = record
        self._client: dict[str, Any] = {}
        self._readers = DIALECTS[dialect]
        self._own = OwnLines([name for name, reader in self._readers.items() if reader not in SAYS_NOTHING])
        self._pending: deque[tuple[int, list[dict[str, Any]]]] = deque(maxlen=PENDING_COMMITS_MAX)
        self._bad = 0
        self._bad_bytes = 0
        self._unquoted_events = 0

    def read(self, line: Line, *, time_ns: int) -> None:
        """Writes the events of one line; an empty line is nothing."""
        if not line.text.strip():
            return
        try:
            if not line.whole:
                raise ValueError("the line is too long")
            body = orjson.loads(line.text.removeprefix(BOM))
            reader = self._readers[body["name"]]
            self._client = _client(body) | _own_time(body)
            reader(self, body, time_ns)
            self._own.take(body)
        except (ValueError, KeyError, TypeError, orjson.JSONEncodeError) as error:
            self._bad_line(line, time_ns, reason=_reason(error))

    def _record(self, kind: str, **fields: Any) -> int:
        return self._write(kind, **fields, **self._client)

    def close(self, *, time_ns: int) -> None:
        """Says how many bad lines were not quoted any more."""
        self._client = {}
        unquoted = self._bad - BAD_LINES_QUOTED_MAX
        if unquoted > 0:
            message = f"({unquoted} further bad lines, not quoted)"
            about = {"size_bytes": self._bad_bytes, "count": unquoted, "events": self._unquoted_events or None}
            self._record("bad_line", time_ns=time_ns, message=message, **about)

    def _bad_line(self, line: Line, time_ns: int, *, reason: str) -> None:
        self._client = {}
        self._bad += 1
        lost = lost_events(line.text, self._own)
        if self._bad > BAD_LINES_QUOTED_MAX:
            self._bad_bytes += line.size_bytes
            self._unquoted_events += lost.events if lost else 0
            return
        quote = line.text[:QUOTE_BYTES_MAX].decode(errors="replace")
        told = {} if lost is None else {"events": lost.events, "reason": reason, **_place_of(lost.body)}
        self._record("bad_line", time_ns=time_ns, message=quote, size_bytes=line.size_bytes, **told)

    def _ready(self, body: Body, time_ns: int) -> None:
        self._record("ready", time_ns=time_ns)

    def _stopped(self, body: Body, time_ns: int) -> None:
        self._record("stopped", time_ns=time_ns)

    def _nothing(self, body: Body, time_ns: int) -> None:
        """Known, and no event: counts per poll, the wish to stop."""

    def _assigned(self, body: Body, time_ns: int) -> None:
        self._record("assigned", time_ns=time_ns, entries=_partitions(body))

    def _revoked(self, body: Body, time_ns: int) -> None:
        self._record("revoked", time_ns=time_ns, entries=_partitions(body))

    def _lost(self, body: Body, time_ns: int) -> None:
        self._record("lost", time_ns=time_ns, entries=_partitions(body))

    def _delivered(self, body: Body, time_ns: int) -> None:
        self._record("delivered", time_ns=time_ns, **_place(body))

    def _processed(self, body: Body, time_ns: int) -> None:
        outcome = body.get("outcome", "done")
        if outcome not in OUTCOMES:
            raise ValueError(f"outcome {outcome!r}")
        self._record("processed", time_ns=time_ns, outcome=outcome, **_place(body))

    def _record_data(self, body: Body, time_ns: int) -> None:
        """VerifiableConsumer has no handler: a record is processed when it is printed."""
        place = _place(body)
        self._record("delivered", time_ns=time_ns, **place)
        self._record("processed", time_ns=time_ns, outcome="done", **place)

    def _commit_requested(self, body: Body, time_ns: int) -> None:
        entries = _positions(body)
        seq = self._record("commit", time_ns=time_ns, outcome="invoke", entries=entries)
        self._pending.append((seq, entries))

    def _committed(self, body: Body, time_ns: int) -> None:
        entries = _positions(body)
        ok = body.get("success", True)
        if not isinstance(ok, bool):
            raise ValueError("success is true or false")
        self._record(
            "commit",
            time_ns=time_ns,
            outcome="ok" if ok else "fail",
            op=self._invoke_of(entries),
            entries=entries,
            message=_text(body.get("error")) or None,
        )

    def _invoke_of(self, entries: list[dict[str, Any]]) -> int | None:
        found = next((waiting for waiting in self._pending if waiting[1] == entries), None)
        if found is None:
            return None
        self._pending.remove(found)
        return found[0]

    def _error(self, body: Body, time_ns: int) -> None:
        self._record("error", time_ns=time_ns, message=_text(body["message"]))


Reader = Callable[[Wire, Body, int], None]
_KAFKAS: dict[str, Reader] = {
    "startup_complete": Wire._ready,
    "partitions_assigned": Wire._assigned,
    "partitions_revoked": Wire._revoked,
    "records_consumed": Wire._nothing,
    "record_data": Wire._record_data,
    "offsets_committed": Wire._committed,
    "shutdown_requested": Wire._nothing,
    "shutdown_complete": Wire._stopped,
}
_OURS: dict[str, Reader] = {
    "partitions_lost": Wire._lost,
    "record_delivered": Wire._delivered,
    "record_processed": Wire._processed,
    "commit_requested": Wire._commit_requested,
    "error": Wire._error,
}
SAYS_NOTHING = (Wire._nothing, Wire._error)  # no verdict rests on these
DIALECTS: Mapping[str, Mapping[str, Reader]] = {"jsonl": _KAFKAS | _OURS, "verifiable": _KAFKAS}


def _partitions(body: Body) -> list[dict[str, Any]]:
    return [{"topic": _name(entry), "partition": _number(entry, "partition")} for entry in _list(body["partitions"])]


def _positions(body: Body) -> list[dict[str, Any]]:
    return [
        {
            "topic": _name(entry),
            "partition": _number(entry, "partition"),
            "committed_offset": _number(entry, "offset"),
        }
        for entry in _list(body.get("offsets"))
    ]


def _place(body: Body) -> dict[str, Any]:
    return {
        "topic": _name(body),
        "partition": _number(body, "partition"),
        "offset": _number(body, "offset"),
        "id": _short(body.get("id")),
        "key": _short(body.get("key")),
    }


def _place_of(body: Body | None) -> dict[str, Any]:
    """Returns the place of the record that a lost event names; nothing where it names none, or none that can be."""
    try:
        body = body or {}
        return {"topic": _name(body), "partition": _number(body, "partition"), "offset": _number(body, "offset")}
    except (ValueError, KeyError, TypeError):
        return {}


def _reason(error: Exception) -> str:
    """Returns what was wrong with a line."""
    told = f"{error} is missing or not known" if isinstance(error, KeyError) else str(error)
    return told[:QUOTE_BYTES_MAX]


def _client(body: Body) -> dict[str, str]:
    """Which client of its process a line speaks for, where it says so: several may share one process."""
    return {name: told for name in ("client_id", "member_id") if (told := _short(body.get(name)))}


def _own_time(body: Body) -> dict[str, int]:
    """When it was by the consumer's own clock, where it says so."""
    time_ms = body.get("time_ms")
    if time_ms is None:
        return {}
    if isinstance(time_ms, bool) or not isinstance(time_ms, int | float) or not 0 <= time_ms < WALL_MS_MAX:
        raise ValueError("time_ms is the milliseconds since 1970")
    return {"source_wall_ns": round(time_ms * 1000) * 1000}


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError("a list is expected")
    return value


def _name(body: Body) -> str:
    topic = body["topic"]
    if not isinstance(topic, str) or len(topic) > 249:
        raise ValueError("topic is no topic's name")
    return topic


def _number(body: Body, name: str) -> int:
    value = body[name]
    if not isinstance(value, int) or isinstance(value, bool) or value not in INT64:
        raise ValueError(f"{name} is a whole number of 64 bits")
    return value


def _short(value: Any) -> str | None:
    """An id or a key; one that is no string, or longer than a quote, is left out: records are known by offset too."""
    return value if isinstance(value, str) and len(value) <= QUOTE_BYTES_MAX else None


def _text(value: Any) -> str:
    return "" if value is None else str(value)[:QUOTE_BYTES_MAX]

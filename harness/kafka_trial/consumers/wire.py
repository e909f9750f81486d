"""The wire: lines a consumer prints, translated into events of its history.

Dialects: `jsonl` (this project's, a superset of what Kafka's VerifiableConsumer prints), `verifiable` (Java's
VerifiableConsumer as it is), `none`. Kafka's `offset` in a commit is a position and becomes `committed_offset` here. A
line that cannot be read becomes an event that quotes it; it is never an error of the trial.

A line that cannot be read may have been an event, or is text. Text is text, whatever words it holds, and so is the JSON
of a log. An event is lost where the line has the shape of one: an object whose `name` is an event's, also behind a
prefix, between colours or inside the JSON of a log; the cut-off beginning of an object that begins as the program's own
lines do and has no field of others; or the middle of one. Of an event that names its record, and stands alone in its
line, that is kept.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from kafka_trial.consumers.output import QUOTE_BYTES_MAX, Line
from kafka_trial.consumers.spec import OUTCOMES

BAD_LINES_QUOTED_MAX = 1000
PENDING_COMMITS_MAX = 10_000
INT64 = range(-(2**63), 2**63)
WALL_MS_MAX = 2**62 // 1_000_000

BOM = b"\xef\xbb\xbf"  # .NET writes one at the beginning of a stream

Body = Mapping[str, Any]
Record = Callable[..., int]  # as of Recorder.record: kind, then fields; returns the seq
LOOKED_AT_MAX: Final = 1 << 13  # of a line, in bytes: a line is untrusted
OBJECTS_MAX: Final = 64  # of a line, for the same reason
FIELDS_MAX: Final = 1000
FIELDS: Final = (
    *("name", "topic", "partition", "offset", "id", "key", "outcome", "partitions", "offsets", "success", "error"),
    *("time_ms", "client_id", "member_id", "timestamp", "value", "count"),
)
_HEAD: Final = re.compile(r'(?=\{\s*\\{0,3}"name\\{0,3}"\s*:)')
_NAME: Final = re.compile(r'\\{0,3}"name\\{0,3}"\s*:\s*\\{0,3}"([a-z_]*)(.?)', re.DOTALL)
_OBJECT: Final = re.compile(r'\{\s*"')
_TOKEN: Final = re.compile(r'"((?:[^"\\]|\\.)*)("?)|([{}\[\],:])', re.DOTALL)
_MIDDLE: Final = re.compile(r'"(topic|partition|offset|outcome)"\s*:\s*["\d]')
_PLACE: Final = ("topic", "partition", "offset")
_DECODER: Final = json.JSONDecoder()


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


@dataclass
class OwnLines:
    """What the readable lines of one incarnation look like: the fields they begin with, and all that they carry."""

    names: Collection[str]  # of the events that a verdict rests on
    begin_with: set[str] = field(default_factory=lambda: {"name"})
    fields: set[str] = field(default_factory=lambda: set(FIELDS))

    def take(self, body: Mapping[str, Any]) -> None:
        """Takes a line that could be read; of fields that are ever new ones only so many are kept."""
        if len(self.fields) + len(body) <= FIELDS_MAX:
            self.begin_with.add(next(iter(body)))
            self.fields.update(body)


@dataclass(frozen=True)
class Lost:
    """How many events a line was, and the object of the only one, where it is whole."""

    events: int
    body: Mapping[str, Any] | None = None


def lost_events(text: bytes, own: OwnLines) -> Lost | None:
    """Returns how many events a line that could not be read may have been; None where it is text."""
    said = text[:LOOKED_AT_MAX].decode(errors="replace")
    if (body := _json(text)) is not None:
        return _lost_of_json(body, said, own)
    parts = [part for part in _HEAD.split(said, OBJECTS_MAX) if part]
    found = [one for part in parts if (one := _lost(part, own)) is not None]
    if not found:
        return None
    return found[0] if len(found) == 1 else Lost(sum(one.events for one in found))


def _json(text: bytes) -> Any:
    """Returns what a line says, None where it is no JSON."""
    try:
        return orjson.loads(text)
    except ValueError:
        return None


def _lost_of_json(body: Any, said: str, own: OwnLines) -> Lost | None:
    """Returns the events of a line that is JSON as a whole: it is one, or has some inside."""
    if isinstance(body, dict) and (body.get("name") in own.names or _is_nearly_one(body)):
        return Lost(1, body)
    inside = sum(_is_event(match, own.names) for match in _NAME.finditer(said))
    return Lost(inside) if inside else None


def _lost(part: str, own: OwnLines) -> Lost | None:
    """Returns the events of a part of a line, in which an object with a name begins at most at its start."""
    wholes, cut, rest = _objects(part)
    named = [match for match in _NAME.finditer(part) if _is_event(match, own.names)]
    if named:
        alone = len(named) == 1 and wholes and wholes[0].get("name") == named[0][1]
        return Lost(len(named), wholes[0] if alone else None)
    if (near := next((body for body in wholes if _is_nearly_one(body)), None)) is not None:
        return Lost(1, near)
    middle = len({match[1] for match in _MIDDLE.finditer(rest)}) > 1
    return Lost(1) if middle or (cut and _may_be_own(cut, own)) else None


def _is_event(name: re.Match[str], names: Collection[str]) -> bool:
    """Tells whether a name is an event's; of one that is cut off, whether it may have become one."""
    return name[1] in names if name[2] else any(known.startswith(name[1]) for known in names)


def _is_nearly_one(body: Mapping[str, Any]) -> bool:
    """Tells whether an object is an event of a misspelt name: one of records, and it names its record."""
    name = body.get("name")
    return isinstance(name, str) and name.startswith("record_") and all(place in body for place in _PLACE)


def _objects(part: str) -> tuple[list[Mapping[str, Any]], str, str]:
    """Returns the whole objects in a text, the one that is cut off by its end, and the text around them."""
    wholes: list[Mapping[str, Any]] = []
    around, at = [], 0
    for _ in range(OBJECTS_MAX):
        if (begins := _OBJECT.search(part, at)) is None:
            break
        around.append(part[at : begins.start()])
        try:
            body, at = _DECODER.raw_decode(part, begins.start())
            wholes.append(body)
        except json.JSONDecodeError as error:
            if _cut_off(error, part):
                return wholes, part[begins.start() :], "".join(around)
            around.append(part[begins.start() : (at := begins.end())])
        except (ValueError, RecursionError):
            at = begins.end()
    return wholes, "", "".join([*around, part[at:]])


def _cut_off(error: json.JSONDecodeError, part: str) -> bool:
    """Tells whether an object is JSON as far as it goes."""
    return error.pos >= len(part.rstrip()) or error.msg.startswith("Unterminated string")


def _may_be_own(cut: str, own: OwnLines) -> bool:
    """Tells whether an object that is cut off, before the name of an event or in it, may have been a line of ours."""
    keys = list(_keys(cut))
    whole, last = [key for key, ended in keys if ended], [key for key, ended in keys if not ended]
    if "name" in whole:
        return any(_is_event(match, own.names) for match in _NAME.finditer(cut))
    begins, *others = [key for key, _ in keys]
    first = {name for name in own.begin_with if name == begins or (not whole and name.startswith(begins))}
    known = all(key in own.fields for key in whole[1:])
    return bool(first) and known and all(any(name.startswith(key) for name in own.fields) for key in last if others)


def _keys(cut: str) -> Iterator[tuple[str, bool]]:
    """Yields the fields of an object that is cut off, and whether each is whole."""
    depth, key_next = 0, False
    for token in _TOKEN.finditer(cut):
        mark = token[3]
        if mark is None:
            if depth == 1 and key_next:
                yield token[1], bool(token[2])
            key_next = False
            continue
        depth += (mark in "{[") - (mark in "}]")
        key_next = mark == "{" or (mark == "," and depth == 1)

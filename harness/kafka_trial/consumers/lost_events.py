"""Lost events: which lines that could not be read may have been events of the contract, and which are text.

Stands behind `wire.py`. Text is text, whatever words it holds, and so is the JSON of a log. An event is lost where the
line has the shape of one: an object whose `name` is an event's, also behind a prefix, between colours or inside the
JSON of a log; the cut-off beginning of an object that begins as the program's own lines do and has no field of others;
or the middle of one. Of an event that names its record, and stands alone in its line, that is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

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

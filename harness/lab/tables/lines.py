"""A table by version as JSON with one line for each API or setting, in which only what changed stands again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from kafka_trial.compatibility.tables import order, standing

Row = Sequence[Any] | None  # what one version says of an API or a setting; None: it has no such
Line = Sequence[Sequence[Any]]  # the rows of one API or setting, each with the version from which on it stands
ABSENT = [None]


def with_version(
    table: Mapping[str, Line], known: Sequence[str], version: str, now: Mapping[str, Row]
) -> dict[str, list[list[Any]]]:
    """Returns a table's lines with what one version says put into its place."""
    after = in_order(known, version)
    lines = {}
    for name in sorted(table.keys() | now.keys()):
        line = table.get(name, ())
        told = {one: now.get(name) if one == version else _row(line, one, known) for one in after}
        if written := shortened(told):
            lines[name] = written
    return lines


def in_order(known: Sequence[str], version: str) -> list[str]:
    """Returns the versions with another one among them, the oldest first."""
    return sorted({*known, version}, key=order)


def shortened(told: Mapping[str, Row]) -> list[list[Any]]:
    """Returns the rows that differ from the one before them, each with its version first."""
    line: list[list[Any]] = []
    before: Any = ABSENT
    for version, row in told.items():
        now = ABSENT if row is None else list(row)
        if now != before:
            line.append([version, *now])
        before = now
    return line


def as_json(head: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]], *, nested: bool) -> bytes:
    """Returns the head's fields and the tables as JSON; `nested`: each table is one of several under `settings`."""
    out = ["{"]
    out += [f" {_dumps(name)}: {_dumps(value)}," for name, value in head.items()]
    if nested:
        out.append(' "settings": {')
    for number, (name, table) in enumerate(tables.items(), 1):
        lines = [f"  {_dumps(key)}: {_dumps(value)}" for key, value in table.items()]
        out += [f" {_dumps(name)}: {{", ",\n".join(lines), " }" + ("," if number < len(tables) else "")]
    return "\n".join([*out, *([" }"] if nested else []), "}", ""]).encode()


def _row(line: Line, version: str, known: Sequence[str]) -> Row:
    row = standing(line, version, known) if version in known else None
    return None if row is None or row[0] is None else row


def _dumps(value: object) -> str:
    return orjson.dumps(value).decode()

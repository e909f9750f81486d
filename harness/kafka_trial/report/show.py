"""`show RUN SOURCE#NUMBER`: one event of a run's history, whole, and its neighbours in the same file.

Reports name the events that prove an anomaly as `source#number`: line `number` of `history/<source>.jsonl`, counted
from 0. What consumers wrote is made printable here.
"""

from __future__ import annotations

from itertools import islice

import orjson

from kafka_trial.errors import InputError, unknown_name
from kafka_trial.history.event import from_line
from kafka_trial.history.store import RunFolder
from kafka_trial.report.event_text import bounded, in_words, who

LINE_MAX = 4096


def show(folder: RunFolder, name: str, *, around: int) -> str:
    """Returns an event, its fields one a line, with `around` lines of its file before and after it.

    Raises:
        InputError: the name is no `source#number`, or the history has no such file or line.
    """
    source, number = _parts(folder, name)
    first = max(0, number - around)
    with (folder.history / f"{source}.jsonl").open("rb") as file:
        lines = list(islice(file, first, number + around + 1))
    if len(lines) <= number - first:
        raise InputError(name, f"history/{source}.jsonl ends before line {number}")
    told = [_line(f"{source}#{first + at}", line, marked=first + at == number) for at, line in enumerate(lines)]
    return "\n".join([*told, "", *_fields(lines[number - first])])


def _parts(folder: RunFolder, name: str) -> tuple[str, int]:
    source, found, number = name.rpartition("#")
    if not found or not number.isdecimal():
        raise InputError(name, "is no event: write SOURCE#NUMBER, as in offsets#131")
    known = sorted(path.stem for path in folder.history_files())
    if source not in known:
        raise InputError(name, unknown_name("history file", source, known))
    return source, int(number)


def _line(name: str, line: bytes, *, marked: bool) -> str:
    try:
        event = from_line(line)
    except (ValueError, TypeError):
        told = f"no event: {bounded(line.decode(errors='replace'))}"
    else:
        told = f"{event.time_ns / 1e9:.3f} s  {who(event)}: {in_words(event)}"
    return f"{'▶' if marked else ' '} {name}  {told}"


def _fields(line: bytes) -> list[str]:
    try:
        body = orjson.loads(line)
    except orjson.JSONDecodeError:
        return [bounded(line.decode(errors="replace"), most=LINE_MAX)]
    if not isinstance(body, dict):
        return [bounded(line.decode(errors="replace"), most=LINE_MAX)]
    return [f"  {bounded(key)}: {bounded(orjson.dumps(value).decode(), most=LINE_MAX)}" for key, value in body.items()]

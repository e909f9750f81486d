"""Lines to columns: the JSON lines of one history file as Arrow tables, block by block.

The fast path hands whole blocks to Arrow with an explicit schema. A block that Arrow refuses is read line by line: what
is no event is counted and named, never dropped in silence, and a field of the wrong type is as good as absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from kafka_trial.errors import InputError
from kafka_trial.history.event import SCHEMA

BLOCK_BYTES = 32 * 1024 * 1024
PARSE_BYTES = 4 * 1024 * 1024
QUOTED_MAX = 3
LINE_BYTES_MAX = 16 * 1024 * 1024  # of the longest event there is: a sink takes no body above that
NUMBER_MAX = 2**62  # of times and places in a file: what lies beyond is no clock's, and sums of it would overflow

ENTRY = pa.struct(
    [
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int64()),
        ("committed_offset", pa.int64()),
        ("member_id", pa.string()),
        ("error", pa.int64()),
        ("assignment_epoch", pa.int64()),
        ("offset", pa.int64()),
        ("size_bytes", pa.int64()),
    ]
)
EVENTS = pa.schema(
    [
        ("schema", pa.int64()),
        ("source", pa.string()),
        ("seq", pa.int64()),
        ("time_ns", pa.int64()),
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int64()),
        ("offset", pa.int64()),
        ("committed_offset", pa.int64()),
        ("id", pa.string()),
        ("key", pa.string()),
        ("outcome", pa.string()),
        ("checksum", pa.int64()),
        ("json_checksum", pa.int64()),
        ("source_wall_ns", pa.int64()),
        ("asked_ns", pa.int64()),
        ("group", pa.string()),
        ("log_offset", pa.int64()),
        ("commit_time_ms", pa.int64()),
        ("protocol", pa.string()),
        ("member", pa.string()),
        ("member_id", pa.string()),
        ("record_type", pa.int64()),
        ("epoch", pa.int64()),
        ("api", pa.string()),
        ("lane", pa.int64()),
        ("connection", pa.string()),
        ("client_id", pa.string()),
        ("complete", pa.bool_()),
        ("duration_ms", pa.float64()),
        ("entries", pa.list_(ENTRY)),
        ("pending", pa.list_(ENTRY)),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int64()),
        ("own_epoch", pa.bool_()),
        ("state", pa.string()),
        ("log_partition", pa.int64()),
        ("error", pa.int64()),
        ("timeout_ms", pa.int64()),
    ]
)
NO_NUMBERS = (b"NaN", b"Inf")  # Arrow takes them for numbers, JSON has none such
_NO_NUMBER = re.compile(rb"[:,\[]\s*-?(NaN|Inf)")
NEEDED = ("source", "seq", "time_ns", "kind")


@dataclass
class LineStats:
    """What one file holds: events read, and whatever is wrong with it, as sentences."""

    events: int = 0
    bad_lines: int = 0
    bad_examples: list[str] = field(default_factory=list)
    misfits: int = 0
    misfit_examples: list[str] = field(default_factory=list)
    torn: bool = False
    out_of_turn: int = 0
    turn_examples: list[str] = field(default_factory=list)
    strangers: set[str] = field(default_factory=set)

    def take_misfits(self, number: int, body: dict[str, Any]) -> None:
        """Notes the fields of a line's event that are of another type: they are as good as absent."""
        wrong = [name for name, kind in _TYPES.items() if _misfits(body.get(name), kind)]
        self.misfits += len(wrong)
        room = QUOTED_MAX - len(self.misfit_examples)
        self.misfit_examples += [f"line {number}, {name}" for name in wrong[:room]]

    def defects(self, source: str) -> list[str]:
        """Returns the sentences: each is a reason why the history cannot be trusted."""
        found = [_counted(self.bad_lines, "line is no event", "lines are no events", self.bad_examples)]
        fields = ("field is of the wrong type", "fields are of the wrong type")
        found += [_counted(self.misfits, *fields, self.misfit_examples)]
        found += ["its last line is torn: its writer was killed in mid-write"] if self.torn else []
        turns = ("place has events missing or repeated", "places have events missing or repeated")
        found += [_counted(self.out_of_turn, *turns, self.turn_examples)]
        found += [f"it holds events of another source: {name!r:.60}" for name in sorted(self.strangers)[:QUOTED_MAX]]
        return [f"{source}: {sentence}" for sentence in found if sentence]


def _counted(count: int, one: str, several: str, examples: Sequence[str]) -> str:
    """Returns how often something is wrong, and the first cases; nothing where it is not."""
    return f"{count} {one if count == 1 else several} (first: {'; '.join(examples)})" if count else ""


@dataclass(frozen=True)
class Block:
    """Some consecutive events of one file: their columns, and their lines where someone asks for them."""

    events: pa.Table
    raw: bytes

    def bodies(self, rows: Any) -> list[dict[str, Any]]:
        """Returns some events as plain data."""
        if not len(rows):
            return []
        lines = [line for line in self.raw.split(b"\n") if line]
        bodies = [orjson.loads(lines[row]) for row in rows.tolist()]
        return [body for body in bodies if isinstance(body, dict)]


def read_blocks(path: Path, line_stats: LineStats) -> Iterator[Block]:
    """Yields the events of a history file in order; what cannot be read goes into `line_stats`.

    Raises:
        InputError: a line is of a newer schema.
    """
    source, number, expected = path.stem, 0, 0
    for raw in _raw_blocks(path, line_stats):
        block = _parsed(raw) or _line_by_line(raw, number, line_stats)
        number += raw.count(b"\n")
        _check_schema(path, block)
        expected = _check_turns(block.events, source, expected, line_stats)
        line_stats.events += block.events.num_rows
        if block.events.num_rows:
            yield block


def _raw_blocks(path: Path, line_stats: LineStats) -> Iterator[bytes]:
    """Yields whole lines, some megabytes at a time; a last line without its newline is torn.

    Of a line that is too long only so much is kept as shows that it is.
    """
    rest = b""
    with path.open("rb") as file:
        while chunk := file.read(BLOCK_BYTES):
            cut = chunk.rfind(b"\n") + 1
            if not cut:
                rest = (rest + chunk)[: LINE_BYTES_MAX + 1]
                continue
            yield rest + chunk[:cut]
            rest = chunk[cut:]
    line_stats.torn = bool(rest)


def _parsed(raw: bytes) -> Block | None:
    """Returns the block as Arrow reads it; None where a line is no event, or a field of another type."""
    try:
        raw.decode()
        events = pj.read_json(
            pa.BufferReader(raw),
            read_options=pj.ReadOptions(block_size=max(PARSE_BYTES, _longest(raw)), use_threads=True),
            parse_options=pj.ParseOptions(explicit_schema=EVENTS, unexpected_field_behavior="ignore"),
        )
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    if any(word in raw for word in NO_NUMBERS) and _NO_NUMBER.search(raw):
        return None
    lines = raw.count(b"\n")
    whole = events.num_rows == lines == raw.count(b"\n{") + raw.startswith(b"{")
    if not whole or _longest(raw) > LINE_BYTES_MAX + 1 or any(events[name].null_count for name in NEEDED):
        return None
    return Block(events, raw) if not _wrong_schema(events) and not _out_of_range(events) else None


def _longest(raw: bytes) -> int:
    ends = np.flatnonzero(np.frombuffer(raw, np.uint8) == 10)
    return int(np.diff(ends, prepend=-1).max(initial=0)) + 1


def _wrong_schema(events: pa.Table) -> bool:
    schemas = pc.unique(events["schema"]).to_pylist()
    return any(schema is None or schema < 1 for schema in schemas)


def _out_of_range(events: pa.Table) -> bool:
    bounds = [pc.min_max(events[name]) for name in ("seq", "time_ns")]
    return any(not 0 <= bound["min"].as_py() <= bound["max"].as_py() < NUMBER_MAX for bound in bounds)


def _line_by_line(raw: bytes, before: int, line_stats: LineStats) -> Block:
    bodies, lines = [], []
    for number, line in enumerate(raw.split(b"\n")[:-1], before + 1):
        body = _body(line)
        if isinstance(body, str):
            line_stats.bad_lines += 1
            if len(line_stats.bad_examples) < QUOTED_MAX:
                line_stats.bad_examples.append(f"line {number}, {body}")
        else:
            bodies.append({name: _fitting(body.get(name), kind) for name, kind in _TYPES.items()})
            lines.append(line)
            line_stats.take_misfits(number, body)
    return Block(pa.Table.from_pylist(bodies, schema=EVENTS), b"\n".join(lines) + b"\n")


def _body(line: bytes) -> dict[str, Any] | str:
    """Returns the event of a line, or what is wrong with it."""
    if len(line) > LINE_BYTES_MAX:
        return f"longer than {LINE_BYTES_MAX // 1024**2} MiB"
    try:
        body = orjson.loads(line)
    except orjson.JSONDecodeError:
        return "not JSON"
    if not isinstance(body, dict):
        return "not an object"
    for name in NEEDED:
        if _fitting(body.get(name), _TYPES[name]) is None:
            return f"{name} is missing or of the wrong type"
    for name in ("seq", "time_ns"):
        if not 0 <= body[name] < NUMBER_MAX:
            return f"{name} is no number of a {'line' if name == 'seq' else 'clock'}"
    return body if (_fitting(body.get("schema"), pa.int64()) or 0) >= 1 else "its schema is missing"


def _misfits(value: Any, kind: Any) -> bool:
    """Tells whether a value, or one inside a list of entries, is there and of another type."""
    if value is None:
        return False
    if not pa.types.is_list(kind) or not isinstance(value, list):
        return _fitting(value, kind) is None
    return any(
        not isinstance(entry, dict) or any(_misfits(entry.get(item.name), item.type) for item in ENTRY)
        for entry in value
    )


def _fitting(value: Any, kind: Any) -> Any:
    """Returns a value of the wanted type, or None."""
    if kind == pa.string():
        return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    if kind == pa.bool_():
        return value if isinstance(value, bool) else None
    if kind == pa.int64():
        fits = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
        return value if fits else None
    if kind == pa.float64():
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    if not isinstance(value, list):
        return None
    return [
        {item.name: _fitting(entry.get(item.name), item.type) for item in ENTRY}
        for entry in value
        if isinstance(entry, dict)
    ]


_TYPES = {item.name: item.type for item in EVENTS}


def _check_schema(path: Path, block: Block) -> None:
    newest = pc.max(block.events["schema"]).as_py() if block.events.num_rows else None
    if newest is not None and newest > SCHEMA:
        raise InputError(
            str(path), f"has events of schema {newest}, this version reads up to {SCHEMA}; upgrade kafka-trial"
        )


def _check_turns(events: pa.Table, source: str, expected: int, line_stats: LineStats) -> int:
    """Notes where seq is not the next number, or the source is not the file's; returns the seq that must follow."""
    if not events.num_rows:
        return expected
    seq = events["seq"].to_numpy()
    due = np.concatenate([[expected], seq[:-1] + 1])
    wrong = np.flatnonzero(seq != due)
    line_stats.out_of_turn += len(wrong)
    for row in wrong[: QUOTED_MAX - len(line_stats.turn_examples)].tolist():
        line_stats.turn_examples.append(f"#{seq[row]} stands where #{due[row]} is due")
    line_stats.strangers |= set(pc.unique(events["source"]).to_pylist()) - {source}
    return int(seq[-1]) + 1

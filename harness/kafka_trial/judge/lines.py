"""Lines to columns: the JSON lines of one history file as Arrow tables, block by block.

Arrow reads whole blocks, and tells itself which fields there are: a column that must be there costs as much where it is
empty. A block that Arrow refuses, or in which a field is of another type, is read line by line: what is no event is
counted and named, never dropped in silence, and a field of the wrong type is as good as absent.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from numpy.typing import NDArray

from kafka_trial.errors import InputError
from kafka_trial.history.event import SCHEMA

SPLIT_BYTES = 32 * 1024 * 1024
PARSE_BYTES = 1024 * 1024
QUOTED_MAX = 3
NEWLINE, OPENING = b"\n{"
LINE_BYTES_MAX = 16 * 1024 * 1024  # of the longest event there is: a sink takes no body above that
NUMBER_MAX = 2**62  # of times and places in a file: what lies beyond is no clock's, and sums of it would overflow

Read = TypeVar("Read")

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
ENTRIES = pa.list_(ENTRY)
EVENTS = pa.schema(
    [
        ("schema", pa.int64()),
        ("source", pa.string()),
        ("seq", pa.int64()),
        ("time_ns", pa.int64()),
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int64()),
        ("offset", pa.int64()),
        ("committed_offset", pa.int64()),
        ("id", pa.string()),
        ("key", pa.string()),
        ("entity", pa.string()),
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
        ("entries", ENTRIES),
        ("pending", ENTRIES),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int64()),
        ("own_epoch", pa.bool_()),
        ("state", pa.string()),
        ("log_partition", pa.int64()),
        ("error", pa.int64()),
        ("timeout_ms", pa.int64()),
        ("row", pa.int64()),
        ("count", pa.int64()),
    ]
)
_NO_NUMBER = re.compile(rb"[:,\[]\s*-?(NaN|Inf)")  # Arrow takes them for numbers, JSON has none such
NEEDED = ("source", "seq", "time_ns", "kind")
ALWAYS = ("schema", *NEEDED)


@dataclass
class LineStats:
    """What one file holds: events read, and whatever is wrong with it, as sentences."""

    lines: int = 0
    events: int = 0
    bad_lines: int = 0
    bad_examples: list[tuple[int, str]] = field(default_factory=list)  # the number of the line, and what is wrong
    misfits: int = 0
    misfit_examples: list[tuple[int, str]] = field(default_factory=list)
    torn: bool = False
    size: int = 0  # in bytes
    checksums: list[int] = field(default_factory=list)  # the CRC-32 of each split
    out_of_turn: int = 0
    turn_examples: list[str] = field(default_factory=list)
    strangers: set[str] = field(default_factory=set)

    def take_misfits(self, number: int, body: dict[str, Any]) -> None:
        """Notes the fields of a line's event that are of another type: they are as good as absent."""
        wrong = [name for name, kind in _TYPES.items() if _misfits(body.get(name), kind)]
        self.misfits += len(wrong)
        room = QUOTED_MAX - len(self.misfit_examples)
        self.misfit_examples += [(number, name) for name in wrong[:room]]

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> LineStats:
        """Returns what `to_plain` was told."""
        examples = {
            name: [(number, said) for number, said in plain[name]] for name in ("bad_examples", "misfit_examples")
        }
        return cls(**{**plain, **examples, "strangers": set(plain["strangers"])})

    def to_plain(self) -> dict[str, Any]:
        """Returns all of it as JSON can hold it."""
        return asdict(self) | {"strangers": sorted(self.strangers)}

    def add(self, split: LineStats) -> None:
        """Adds what the next split of the file holds, its lines numbered from 1."""
        for mine, its in ((self.bad_examples, split.bad_examples), (self.misfit_examples, split.misfit_examples)):
            mine += [(self.lines + number, said) for number, said in its[: QUOTED_MAX - len(mine)]]
        self.lines += split.lines
        self.bad_lines += split.bad_lines
        self.misfits += split.misfits
        self.torn |= split.torn
        self.size += split.size
        self.checksums += split.checksums

    def defects(self, source: str) -> list[str]:
        """Returns the sentences: each is a reason why the history cannot be trusted."""
        bad, misfits = (
            [f"line {number}, {said}" for number, said in examples]
            for examples in (self.bad_examples, self.misfit_examples)
        )
        found = [_counted(self.bad_lines, "line is no event", "lines are no events", bad)]
        found += [_counted(self.misfits, "field is of the wrong type", "fields are of the wrong type", misfits)]
        found += ["its last line is torn: its writer was killed in mid-write"] if self.torn else []
        turns = ("place has events missing or repeated", "places have events missing or repeated")
        found += [_counted(self.out_of_turn, *turns, self.turn_examples)]
        found += [f"it holds events of another source: {name!r:.60}" for name in sorted(self.strangers)[:QUOTED_MAX]]
        return [f"{source}: {message}" for message in found if message]


def _counted(count: int, one: str, several: str, examples: Sequence[str]) -> str:
    """Returns how often something is wrong, and the first cases; nothing where it is not."""
    return f"{count} {one if count == 1 else several} (first: {'; '.join(examples)})" if count else ""


@dataclass(frozen=True)
class Block:
    """Some consecutive events of one file: their columns, of EVENTS those that any of them has; their lines, from
    `starts` to `ends` (without the newline) in `raw`; and where these lie in the file, from `begins` to `finishes`."""

    events: pa.Table
    raw: bytes
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    begins: NDArray[np.int64]
    finishes: NDArray[np.int64]

    def line(self, row: int) -> bytes:
        """Returns the line of an event."""
        return self.raw[self.starts[row] : self.ends[row]]

    def bodies(self, rows: Any) -> list[dict[str, Any]]:
        """Returns some events as plain data."""
        bodies = [orjson.loads(self.line(row)) for row in rows.tolist()]
        return [body for body in bodies if isinstance(body, dict)]


def splits_of(path: Path) -> range:
    """Returns where the splits of a file begin, in bytes."""
    return range(0, path.stat().st_size, SPLIT_BYTES)


def read_blocks(path: Path, line_stats: LineStats) -> Iterator[Block]:
    """Yields the events of a history file in order; what cannot be read goes into `line_stats`.

    Raises:
        InputError: a line is of a newer schema.
    """
    typed = set(ALWAYS)
    return checked((read_split(path, at, typed) for at in splits_of(path)), path, line_stats)


def checked(splits: Iterable[tuple[Block, LineStats]], path: Path, line_stats: LineStats) -> Iterator[Block]:
    """Yields the blocks of a file's splits, in order, that hold events, and notes in `line_stats` what is wrong.

    Raises:
        InputError: a line is of a newer schema.
    """
    expected = 0
    for block, split in splits:
        line_stats.add(split)
        _check_schema(path, block)
        expected = _check_turns(block.events, path.stem, expected, line_stats)
        line_stats.events += block.events.num_rows
        if block.events.num_rows:
            yield block


def read_split(path: Path, at: int, typed: set[str] | None = None) -> tuple[Block, LineStats]:
    """Returns the events on the lines of a file that begin in the split at byte `at`, and what is wrong with them.

    `typed` are the fields whose type Arrow is told; those that it takes for something else are added.
    """
    line_stats = LineStats()
    raw, begins = _lines_of(path, at, line_stats)
    ends = np.flatnonzero(np.frombuffer(raw, np.uint8) == NEWLINE)
    line_stats.lines = len(ends)
    starts = np.concatenate([[0], ends[:-1] + 1])[: len(ends)]
    events = _parsed(raw, starts, ends, set(ALWAYS) if typed is None else typed)
    if events is None:
        events, good = _line_by_line(raw, line_stats)
        starts, ends = starts[good], ends[good]
    return Block(events, raw, starts, ends, begins + starts, begins + ends), line_stats


def read_ahead(blocks: Iterator[Read]) -> Iterator[Read]:
    """Yields what an iterator yields, none of it None, and has it read the next one meanwhile."""
    with ThreadPoolExecutor(1, "history-reader") as pool:
        coming = pool.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = pool.submit(next, blocks, None)
            yield block


def _lines_of(path: Path, at: int, line_stats: LineStats) -> tuple[bytes, int]:
    """Returns the whole lines that begin in a split, and where the first one begins.

    A last line without its newline is torn. Of a line that is too long only so much is kept as shows that it is.
    """
    with path.open("rb") as file:
        file.seek(max(0, at - 1))
        at_line = at == 0 or file.read(1) == b"\n"
        raw = file.read(SPLIT_BYTES)
        line_stats.size, line_stats.checksums = len(raw), [zlib.crc32(raw)]
        skipped = 0 if at_line else raw.find(b"\n") + 1
        if not at_line and not skipped:
            return b"", at  # the midst of one long line
        raw = raw[skipped:]
        last = len(raw) - raw.rfind(b"\n") - 1  # so much of a line whose end is not here
        rest = file.readline(max(1, LINE_BYTES_MAX + 2 - last)) if last else b"\n"
        if not rest.endswith(b"\n"):
            too_long = last + len(rest) > LINE_BYTES_MAX
            rest, line_stats.torn = rest + b"\n", not too_long
        if line_stats.torn:
            raw = raw[:-last]
        elif last:
            raw = b"".join([raw, rest])
    return raw, at + skipped


def _parsed(raw: bytes, starts: Any, ends: Any, typed: set[str]) -> pa.Table | None:
    """Returns the events of the lines as Arrow reads them; None where a line is none, or a field of another type."""
    longest = int((ends - starts).max(initial=0)) + 1
    objects = (np.frombuffer(raw, np.uint8)[starts] == OPENING).all()
    if not len(ends) or not objects or longest > LINE_BYTES_MAX + 1 or not _is_text(raw):
        return None
    events = _events_of(raw, longest, typed)
    if events is None or events.num_rows != len(ends) or any(events[name].null_count for name in NEEDED):
        return None
    known = events.select([name for name in EVENTS.names if name in events.column_names])
    known = known.cast(pa.schema([EVENTS.field(name) for name in known.column_names]))  # entries have fields of others
    return None if _wrong_schema(known) or _out_of_range(known) else known


def _events_of(raw: bytes, longest: int, typed: set[str]) -> pa.Table | None:
    """Returns the fields of the lines, ours with their types; None where one of these is of another."""
    try:
        typed |= {name for name, sign in _LISTS.items() if name not in typed and sign in raw}
        events = _read(raw, longest, typed, "infer")
        mistaken = {item.name for item in events.schema if not _becomes(item.type, _TYPES.get(item.name))} - typed
        if mistaken:
            typed |= mistaken
            events = _read(raw, longest, typed, "infer")
        return None if _holds_no_numbers(events.columns) else events
    except pa.ArrowException:  # perhaps because of a field that is nothing to us
        with suppress(pa.ArrowException):
            return None if _NO_NUMBER.search(raw) else _read(raw, longest, EVENTS.names, "ignore")
    return None


def _becomes(read: pa.DataType, wanted: pa.DataType | None) -> bool:
    """Tells whether a field that Arrow has read is what it must be, or can be made that: an API's `key` is a number,
    and a record's is none. None: it may be anything."""
    return wanted is None or read == wanted or (wanted == pa.string() and read == pa.int64())


def _read(raw: bytes, longest: int, typed: Collection[str], others: str) -> pa.Table:
    schema = pa.schema([item for item in EVENTS if item.name in typed])
    return pj.read_json(
        pa.BufferReader(raw),
        read_options=pj.ReadOptions(block_size=max(PARSE_BYTES, longest), use_threads=True),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others),
    )


def _is_text(raw: bytes) -> bool:
    try:
        return raw.isascii() or bool(raw.decode())
    except UnicodeDecodeError:
        return False


def _holds_no_numbers(columns: Sequence[pa.ChunkedArray]) -> bool:
    """Tells whether a real number anywhere is NaN or infinite."""
    for column in columns:
        if pa.types.is_floating(column.type) and pc.all(pc.is_finite(column)).as_py() is False:
            return True
        if pa.types.is_list(column.type) and _holds_no_numbers([pc.list_flatten(column)]):
            return True
        if pa.types.is_struct(column.type) and _holds_no_numbers(column.flatten()):
            return True
    return False


def _wrong_schema(events: pa.Table) -> bool:
    schemas = pc.unique(events["schema"]).to_pylist()
    return any(schema is None or schema < 1 for schema in schemas)


def _out_of_range(events: pa.Table) -> bool:
    bounds = [pc.min_max(events[name]) for name in ("seq", "time_ns")]
    return any(not 0 <= bound["min"].as_py() <= bound["max"].as_py() < NUMBER_MAX for bound in bounds)


def _line_by_line(raw: bytes, line_stats: LineStats) -> tuple[pa.Table, list[int]]:
    """Returns the events of the lines that are such, and which lines these are."""
    bodies, good = [], []
    for number, line in enumerate(raw.split(b"\n")[:-1]):
        body = _body(line)
        if isinstance(body, str):
            line_stats.bad_lines += 1
            if len(line_stats.bad_examples) < QUOTED_MAX:
                line_stats.bad_examples.append((number + 1, body))
        else:
            bodies.append({name: _fitting(body.get(name), kind) for name, kind in _TYPES.items()})
            good.append(number)
            line_stats.take_misfits(number + 1, body)
    return pa.Table.from_pylist(bodies, schema=EVENTS), good


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
# How fields of lists stand in a line: no entry has all that it may have, so Arrow would take it for something else.
_LISTS = {name: f'"{name}":['.encode() for name, kind in _TYPES.items() if pa.types.is_list(kind)}


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

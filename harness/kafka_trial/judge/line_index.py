"""The line index: where the lines of a history lie, in stretches of some hundred, and which time each covers.

Made while the files are read, and kept with the slice rows: a report shows some dozens of events out of millions, and
finds them without reading the files once more. It also says of each file what it was made from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from kafka_trial.history.event import Event, event_of, fields_of
from kafka_trial.judge.lines import Block, LineStats, read_blocks

STRETCH_LINES = 128
NUMBERS = ("at", "size", "first_ns", "last_ns", "first_seq", "last_seq")
TABLE = pa.schema([("file", pa.string()), *((name, pa.int64()) for name in NUMBERS)])
ABOUT = b"kafka_trial"  # the metadata of the Parquet file that are ours


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some lines of a file, by their bytes; the earliest and the latest time, the least and the greatest `seq`."""

    file: Path
    at: int
    size: int
    first_ns: int
    last_ns: int
    first_seq: int
    last_seq: int

    def events(self, seqs: Container[int] | None = None) -> Iterator[Event]:
        """Yields the events of the stretch, or those of some `seqs`; lines that are none are left out."""
        with self.file.open("rb") as file:
            file.seek(self.at)
            lines = BytesIO(file.read(self.size))
        for line in lines:
            with suppress(ValueError):  # counted when the file was read
                fields = fields_of(line)
                if seqs is None or fields["seq"] in seqs:
                    yield event_of(fields)


@dataclass(frozen=True)
class LineIndex:
    """All stretches of a history; the topics by topic id; `damaged`: how many lines of a file are no events."""

    stretches: Sequence[Stretch]
    topics: Mapping[str, str]
    damaged: Mapping[str, int]


@dataclass
class LineIndexBuilder:
    """Takes the blocks of all files, each file's in order; `made_from` is the size of each, and its splits' CRC-32."""

    stretch_lines: int = STRETCH_LINES
    topics: dict[str, str] = field(default_factory=dict)
    damaged: Counter[str] = field(default_factory=Counter)
    made_from: dict[str, list[int]] = field(default_factory=dict)
    _parts: list[pa.Table] = field(default_factory=list)

    def take(self, file: Path, block: Block) -> None:
        """Notes where the lines of a block lie."""
        firsts = np.arange(0, block.events.num_rows, self.stretch_lines)
        lasts = np.append(firsts[1:], block.events.num_rows) - 1
        columns = {"at": block.begins[firsts], "size": block.finishes[lasts] + 1 - block.begins[firsts]}
        for name, column in (("ns", "time_ns"), ("seq", "seq")):
            values = block.events[column].to_numpy()
            columns |= {f"first_{name}": np.minimum.reduceat(values, firsts)}
            columns |= {f"last_{name}": np.maximum.reduceat(values, firsts)}
        self._parts.append(pa.table({"file": [file.name] * len(firsts), **columns}, schema=TABLE))
        self._take_topics(block.events)

    def end(self, file: Path, line_stats: LineStats) -> None:
        """Notes what was read of a file in all."""
        if damaged := line_stats.bad_lines + line_stats.torn:
            self.damaged[file.name] = damaged
        self.made_from[file.name] = [line_stats.size, *line_stats.checksums]

    def write(self, path: Path) -> None:
        """Writes the index as a Parquet file."""
        about = orjson.dumps({"topics": self.topics, "damaged": self.damaged})
        pq.write_table(self._table().replace_schema_metadata({ABOUT: about}), path)

    def index(self, folder: Path) -> LineIndex:
        """Returns the index of what has been taken, its files in a folder."""
        return _index(self._table(), folder, self.topics, self.damaged)

    def _table(self) -> pa.Table:
        return pa.concat_tables([TABLE.empty_table(), *self._parts])

    def _take_topics(self, events: pa.Table) -> None:
        if {"topic", "topic_id"} <= set(events.column_names):
            for pair in events.select(["topic", "topic_id"]).group_by(["topic", "topic_id"]).aggregate([]).to_pylist():
                if pair["topic"] is not None and pair["topic_id"] is not None:
                    self.topics[pair["topic_id"]] = pair["topic"]


def read_index(path: Path, folder: Path) -> LineIndex:
    """Returns the index that a Parquet file holds; the files that it is about lie in `folder`.

    Raises:
        OSError, ValueError, KeyError: there is none, or it was cut off.
    """
    table = pq.read_table(path)
    about = orjson.loads((table.schema.metadata or {})[ABOUT])
    return _index(table, folder, about["topics"], about["damaged"])


def index_of(files: Sequence[Path], *, stretch_lines: int = STRETCH_LINES) -> LineIndex:
    """Returns the index of some files of one folder, read for this alone.

    Raises:
        InputError: a line is of a newer schema.
    """
    builder = LineIndexBuilder(stretch_lines)
    for file in files:
        line_stats = LineStats()
        for block in read_blocks(file, line_stats):
            builder.take(file, block)
        builder.end(file, line_stats)
    return builder.index(files[0].parent if files else Path())


def _index(table: pa.Table, folder: Path, topics: Mapping[str, str], damaged: Mapping[str, int]) -> LineIndex:
    names, *numbers = (table[name].to_pylist() for name in table.column_names)
    files = {name: folder / name for name in set(names)}
    stretches = [Stretch(files[name], *row) for name, *row in zip(names, *numbers, strict=True)]
    return LineIndex(stretches, topics, damaged)

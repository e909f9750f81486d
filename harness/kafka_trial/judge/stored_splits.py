"""Stored splits: what one process read of a history file's split, for another that goes on in the file's order.

On a Spark cluster every split is read by a task of its own, and the slice rows are made by one that carries what needs
the order of the files (`spark_reader.py`). Between them lies a Parquet file for each split, a fraction of its size: the
columns, where the lines lie, and the whole line of the few events that are read as plain data.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from kafka_trial.judge.columns import Columns
from kafka_trial.judge.group_answers import telling
from kafka_trial.judge.lines import Block, LineStats, checked, read_split
from kafka_trial.judge.trial_context_builder import TAKERS

ABOUT = b"kafka_trial"  # the metadata of the Parquet file that are ours
BEGINS, FINISHES, LINE = "_begins", "_finishes", "_line"


def store_split(path: Path, at: int, folder: Path) -> None:
    """Reads the split of a history file at a byte, and stores what it holds in a folder."""
    block, line_stats = read_split(path, at)
    columns = Columns(block.events)
    whole = np.flatnonzero(columns.is_kind(*TAKERS) | telling(columns))
    lines = np.full(len(columns), None, object)
    lines[whole] = [block.line(row) for row in whole.tolist()]
    table = block.events.append_column(BEGINS, pa.array(block.begins)).append_column(FINISHES, pa.array(block.finishes))
    table = table.append_column(LINE, pa.array(lines, pa.binary()))
    table = table.replace_schema_metadata({ABOUT: orjson.dumps(line_stats.to_plain())})
    pq.write_table(table, _place(path, at, folder), compression="snappy")


def stored_blocks(path: Path, splits: range, folder: Path, line_stats: LineStats) -> Iterator[Block]:
    """Yields the events of a history file whose splits are all stored, as `lines.read_blocks` would.

    Raises:
        InputError: a line is of a newer schema.
    """
    return checked((_stored(_place(path, at, folder)) for at in splits), path, line_stats)


def _stored(place: Path) -> tuple[Block, LineStats]:
    table = pq.read_table(place)
    about = orjson.loads(table.schema.metadata[ABOUT])
    begins, finishes = (table[name].to_numpy() for name in (BEGINS, FINISHES))
    lines = [line or b"" for line in table[LINE].to_pylist()]
    ends = np.cumsum([len(line) for line in lines], dtype=np.int64)
    starts = np.concatenate([[0], ends[:-1]])[: len(ends)]
    events = table.drop_columns([BEGINS, FINISHES, LINE])
    return Block(events, b"".join(lines), starts, ends, begins, finishes), LineStats.from_plain(about)


def _place(path: Path, at: int, folder: Path) -> Path:
    return folder / f"{path.stem}-{at}.parquet"

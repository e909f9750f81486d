"""Reading on a Spark cluster: the executors read the history and leave the cache of the run folder behind.

Every split of every file is a task of its own; one more, which carries what needs the files' order, makes the slice
rows of what these have stored. The driver reads no history. The executors must see the run folder under the driver's
path, and be able to write into it.

Between the tasks lies a Parquet file for each split, a fraction of its size: the columns, where the lines lie, and the
whole line of the few events that are read as plain data.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from kafka_trial.errors import InputError, UnjudgeableError
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.cache import CONTEXT, SliceRows, cached_rows, know_checksums, make_cache
from kafka_trial.judge.columns import Columns
from kafka_trial.judge.group_answers import telling
from kafka_trial.judge.lines import SPLIT_BYTES, Block, LineStats, checked, read_split, splits_of
from kafka_trial.judge.spark_session import spark_failures_named
from kafka_trial.judge.trial_context_builder import TAKERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Split = tuple[str, int]  # a file's name, and where in it the split begins
Told = TypeVar("Told")


def slice_rows_on(spark: SparkSession, folder: RunFolder) -> SliceRows:
    """Returns the slice rows of a run folder as `cache.slice_rows`, read by the executors of a Spark cluster.

    Raises:
        InputError: an event is of a newer schema.
        UnjudgeableError: an executor cannot read the run folder, or not write into it.
    """
    folder = RunFolder(folder.path.absolute())
    splits = [(path.name, at) for path in folder.history_files() for at in splits_of(path)]
    if (folder.cache / CONTEXT).exists():
        _know_checksums(spark, folder, splits)
        known = cached_rows(folder)
        if known is not None:
            return known
    _make(spark, folder, splits)
    made = orjson.loads((folder.cache / CONTEXT).read_bytes())["made_from"]
    know_checksums(folder, {name: checksums for name, (_, *checksums) in made.items()})
    known = cached_rows(folder)
    if known is None:
        raise UnjudgeableError(f"the history in {folder.path} has changed while it was read")
    return known


def _know_checksums(spark: SparkSession, folder: RunFolder, splits: Sequence[Split]) -> None:
    checksums: dict[str, list[int]] = {path.name: [] for path in folder.history_files()}
    for (name, _), checksum in zip(splits, _each(spark, splits, lambda one: _checksum(folder, one)), strict=True):
        checksums[name].append(checksum)
    know_checksums(folder, checksums)


def _make(spark: SparkSession, folder: RunFolder, splits: Sequence[Split]) -> None:
    """Has the executors make the cache, in a folder that takes the old one's place when all is there."""
    new = folder.path / "cache-being-made"
    shutil.rmtree(new, ignore_errors=True)
    try:
        (new / "splits").mkdir(parents=True)
        _each(spark, splits, lambda one: store_split(folder.history / one[0], one[1], new / "splits"))
        (refused,) = _each(spark, [new], lambda place: _make_of_stored(folder, place))
        if refused is not None:
            raise InputError(*refused)
        shutil.rmtree(new / "splits")
        shutil.rmtree(folder.cache, ignore_errors=True)
        new.replace(folder.cache)
    except OSError as error:
        raise UnjudgeableError(f"the cache in {folder.path} was not made: {error}; do executors see it?") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _make_of_stored(folder: RunFolder, place: Path) -> tuple[str, list[str]] | None:
    """Makes the cache of the splits stored in it; returns what is wrong with the history where it cannot be read."""
    try:
        make_cache(
            place,
            folder.history_files(),
            read=lambda path, line_stats: stored_blocks(path, splits_of(path), place / "splits", line_stats),
        )
    except InputError as error:
        return error.where, error.problems
    return None


def _checksum(folder: RunFolder, split: Split) -> int:
    name, at = split
    with (folder.history / name).open("rb") as file:
        file.seek(at)
        return zlib.crc32(file.read(SPLIT_BYTES))


def _each(spark: SparkSession, items: Sequence[Split] | Sequence[Path], work: Callable[..., Told]) -> list[Told]:
    """Returns what a function makes of each item, each a task of its own.

    Raises:
        UnjudgeableError: a task failed as often as Spark tries it.
    """
    with spark_failures_named("an executor could not read the history"):
        found: list[Told] = spark.sparkContext.parallelize(items, max(1, len(items))).map(work).collect()
        return found


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

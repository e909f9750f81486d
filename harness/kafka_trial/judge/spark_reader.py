"""Reading on a Spark cluster: the executors read the history and leave the cache of the run folder behind.

Every split of every file is a task of its own; one more, which carries what needs the files' order, makes the slice
rows of what these have stored (`stored_splits.py`). The driver reads no history. The executors must see the run folder
under the driver's path, and be able to write into it.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import orjson

from kafka_trial.errors import InputError, UnjudgeableError
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.cache import CONTEXT, SliceRows, cached_rows, know_checksums, make_cache
from kafka_trial.judge.lines import SPLIT_BYTES, splits_of
from kafka_trial.judge.stored_splits import store_split, stored_blocks

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
    from py4j.protocol import Py4JJavaError

    try:
        found: list[Told] = spark.sparkContext.parallelize(items, max(1, len(items))).map(work).collect()
        return found
    except Py4JJavaError as error:
        lines = [line.strip() for line in str(error.java_exception).splitlines()]
        told = next((line for line in reversed(lines) if "Error" in line and not line.startswith("at ")), lines[0])
        raise UnjudgeableError(f"an executor could not read the history: {told}") from error

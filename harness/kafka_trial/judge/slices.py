"""Slices: Spark deals whole slices to its workers, and each of these runs all invariants over them in one pass.

A *call* is some whole slices of about so many rows as a call of the kernels is worth, the largest first. A worker reads
the rows of its calls itself from the cache, which everybody can read; they lie there in stretches that are in the order
of their slices, so that most of what belongs to other calls is passed over. (Read, shuffled and sorted by Spark, a row
cost as much as all invariants together.) What comes back is small: anomalies, counts, summaries, series.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.functions import vectorized_udf  # type: ignore[attr-defined]
from pyspark.util import PythonEvalType

from kafka_trial import plugins
from kafka_trial.errors import UnjudgeableError
from kafka_trial.invariants.trial_context import TrialContext
from kafka_trial.judge.arrow_rows import ROWS
from kafka_trial.judge.findings import FOUND, SLICE_ROWS_MAX, find
from kafka_trial.judge.spark_session import failures_told

if TYPE_CHECKING:
    from kafka_trial.judge.cache import SliceRows

Batches = Iterator[pa.RecordBatch]
CALL_ROWS = 500_000
FOUND_DDL = "slice long, what string, name string, body string"


def find_on_spark(
    rows: SliceRows, trial_context: TrialContext, *, spark: SparkSession, partitions: int | None = None
) -> pa.Table:
    """Returns what all invariants find in the slice rows (schema FOUND), in no particular order.

    Raises:
        UnjudgeableError: the rows are not what the history was written as, one slice has more of them than a call
            holds, or a task failed as often as Spark tries it: the rows cannot be read there, a worker was killed.
    """
    frame = found_frame(spark, rows, trial_context, partitions=partitions)
    with failures_told(f"Spark could not judge the slice rows in {rows.path.parent}"):
        return frame.toArrow()


def found_frame(
    spark: SparkSession, rows: SliceRows, trial_context: TrialContext, *, partitions: int | None = None
) -> DataFrame:
    """Returns the frame of findings: calls by number, judged in one pass, by so many tasks (default: each its own)."""
    _check(rows)
    calls = calls_of(rows.by_slice, call_rows=min(CALL_ROWS, -(-rows.count // (partitions or 1))))
    numbers = spark.range(0, len(calls), 1, partitions or max(1, len(calls)))
    return map_in_arrow(numbers, _judging(rows.path.absolute(), calls, trial_context), FOUND_DDL)


def calls_of(by_slice: Mapping[int, int], *, call_rows: int) -> list[dict[int, int]]:
    """Returns calls of about `call_rows` rows from how many rows each slice has: each the like of some whole slices.

    Raises:
        UnjudgeableError: one slice has more rows than a call can hold.
    """
    calls: list[dict[int, int]] = []
    for slice_, count in sorted(by_slice.items(), key=lambda one: (-one[1], one[0])):
        if count > SLICE_ROWS_MAX:
            raise UnjudgeableError(
                f"one partition's slice has {count} rows, and a call holds no more than {SLICE_ROWS_MAX}"
            )
        if not calls or sum(calls[-1].values()) + count > call_rows:
            calls.append({})
        calls[-1][slice_] = count
    return calls


def rows_of(path: Path, call: Mapping[int, int]) -> pa.Table:
    """Returns the rows of the slices of a call, slice by slice, those of each in the order of the history.

    Raises:
        UnjudgeableError: they are not so many as were written.
    """
    rows = pq.read_table(path, filters=pc.field("slice").isin(list(call)), use_threads=False)
    slices = rows["slice"].to_numpy()
    numbers, counts = np.unique(slices, return_counts=True)
    if dict(zip(numbers.tolist(), counts.tolist(), strict=True)) != call:
        raise UnjudgeableError(f"the cached slice rows are not those that were written; delete {path.parent}")
    return rows.take(np.argsort(slices, kind="stable"))


def _judging(
    path: Path, calls: Sequence[Mapping[int, int]], trial_context: TrialContext
) -> Callable[[Batches], Batches]:
    known = plugins.loaded()

    def judge(batches: Batches) -> Batches:
        plugins.ensure(known)
        for number in (number for batch in batches for number in batch["id"].to_pylist()):
            yield from find(rows_of(path, calls[number]), trial_context).cast(FOUND).to_batches()

    return judge


def _check(rows: SliceRows) -> None:
    """Compares the columns in the cache with what is to be judged; all differences at once."""
    written = pq.read_schema(rows.path)
    wrong = [
        f"{name}: {written.field(name).type if name in written.names else 'missing'}, not {ROWS.field(name).type}"
        for name in ROWS.names
        if name not in written.names or written.field(name).type != ROWS.field(name).type
    ]
    if wrong or written.names != ROWS.names:
        raise UnjudgeableError(
            f"the cached slice rows have other columns: {'; '.join(wrong)}; delete {rows.path.parent}"
        )


def map_in_arrow(rows: DataFrame, work: Callable[[Batches], Batches], schema: str) -> DataFrame:
    """Returns what a function makes of the batches of a frame: `DataFrame.mapInArrow`, which insists on pandas though
    neither it nor the worker then uses it."""
    function = vectorized_udf(work, schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = function(*[rows[name] for name in rows.columns])
    return DataFrame(rows._jdf.mapInArrow(column._jc, False, None), rows.sparkSession)

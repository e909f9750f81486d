"""Slices: Spark deals whole slices to its workers, and each of these runs all invariants over them in one pass.

A batch is some whole slices, the largest first, of at most so many rows as are worth a pass. A worker reads the rows of
its batches itself from the cache, which everybody can read; they lie there in runs that are sorted by slice, so that
most row groups of other batches are passed over. (Read, shuffled and sorted by Spark, a row cost as much as all
invariants together.) What comes back is small: anomalies, counts, summaries, series.
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
from kafka_trial.judge.arrow_rows import ROWS
from kafka_trial.judge.findings import FOUND, SLICE_ROWS_MAX, find
from kafka_trial.judge.spark_session import spark_failures_named
from kafka_trial.model.trial_context import TrialContext

if TYPE_CHECKING:
    from kafka_trial.judge.cache import SliceRows

ArrowBatches = Iterator[pa.RecordBatch]
BATCH_ROWS_MIN, BATCH_ROWS = 100_000, 500_000  # what one pass of a worker takes, but for a slice that is larger
BATCHES_MAX = 64  # of a large history: each of them looks for its rows in every sorted run
FOUND_DDL = "slice long, what string, name string, body string"


def find_on_spark(
    rows: SliceRows, trial_context: TrialContext, *, spark: SparkSession, partitions: int | None = None
) -> pa.Table:
    """Returns what all invariants find in the slice rows (schema FOUND), in no particular order.

    Raises:
        UnjudgeableError: the cached columns or counts are not those that were written, one slice has more of them than
        a batch
            holds, or a task failed as often as Spark tries it: the rows cannot be read there, a worker was killed.
    """
    with spark_failures_named(f"Spark could not judge the slice rows in {rows.path.parent}"):
        return found_frame(spark, rows, trial_context, partitions=partitions).toArrow()


def found_frame(
    spark: SparkSession, rows: SliceRows, trial_context: TrialContext, *, partitions: int | None = None
) -> DataFrame:
    """Returns the frame of findings: batches by number, each judged in one pass; `partitions`: by so many tasks
    (default: each by its own; about as many as there are cores, and a small history is one)."""
    _check(rows)
    batches = batches_of(
        rows.by_slice, batch_rows=_batch_rows(rows.count, partitions, spark.sparkContext.defaultParallelism)
    )
    numbers = spark.range(0, len(batches), 1, partitions or max(1, len(batches)))
    return map_in_arrow(numbers, _judging(rows.path.absolute(), batches, trial_context), FOUND_DDL)


def _batch_rows(count: int, partitions: int | None, cores: int) -> int:
    """Returns how many rows a batch is to have, so that there is work for all cores, and none is too little for one."""
    if partitions is not None:
        return max(1, -(-count // partitions))
    return max(BATCH_ROWS_MIN, min(BATCH_ROWS, -(-count // cores)), count // BATCHES_MAX)


def batches_of(by_slice: Mapping[int, int], *, batch_rows: int) -> list[dict[int, int]]:
    """Returns batches (slice → how many rows) of at most `batch_rows` rows, or of one slice that is larger.

    Those of one slice come first; the others are neighbours, so that they share row groups.

    Raises:
        UnjudgeableError: one slice has more rows than a batch can hold.
    """
    batches: list[dict[int, int]] = []
    for slice_, count in sorted(by_slice.items(), key=lambda one: (-max(one[1], batch_rows), one[0])):
        if count > SLICE_ROWS_MAX:
            raise UnjudgeableError(
                f"one partition's slice has {count} rows, and a batch holds no more than {SLICE_ROWS_MAX}"
            )
        if not batches or sum(batches[-1].values()) + count > batch_rows:
            batches.append({})
        batches[-1][slice_] = count
    return batches


def rows_of(path: Path, batch: Mapping[int, int]) -> pa.Table:
    """Returns the rows of the slices of a batch, slice by slice, those of each in the order of the history.

    Raises:
        UnjudgeableError: they are not so many as were written.
    """
    rows = pq.read_table(path, filters=pc.field("slice").isin(list(batch)), use_threads=False, pre_buffer=False)
    slices = rows["slice"].to_numpy()
    numbers, counts = np.unique(slices, return_counts=True)
    if dict(zip(numbers.tolist(), counts.tolist(), strict=True)) != batch:
        raise UnjudgeableError(f"the cached slice rows are not those that were written; delete {path.parent}")
    return rows.take(np.argsort(slices, kind="stable"))


def _judging(
    path: Path, batches: Sequence[Mapping[int, int]], trial_context: TrialContext
) -> Callable[[ArrowBatches], ArrowBatches]:
    known = plugins.loaded()

    def judge(numbers: ArrowBatches) -> ArrowBatches:
        plugins.ensure(known)
        for number in (number for some in numbers for number in some["id"].to_pylist()):
            yield from find(rows_of(path, batches[number]), trial_context).cast(FOUND).to_batches()

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


def map_in_arrow(rows: DataFrame, work: Callable[[ArrowBatches], ArrowBatches], schema: str) -> DataFrame:
    """Returns what a function makes of the batches of a frame: `DataFrame.mapInArrow`, which insists on pandas though
    neither it nor the worker then uses it."""
    function = vectorized_udf(work, schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = function(*[rows[name] for name in rows.columns])
    return DataFrame(rows._jdf.mapInArrow(column._jc, False, None), rows.sparkSession)

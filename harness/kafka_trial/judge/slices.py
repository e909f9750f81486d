"""Slices: Spark shuffles the slice rows by slice, and runs all invariants over whole slices in one pass.

The plan is one exchange and one `mapInArrow`. A slice never straddles a call: the batches of a task are joined until
whole slices fill a batch of kernels. What comes back is small: anomalies, counts, summaries, series.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name Spark's own documentation uses
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.functions import vectorized_udf  # type: ignore[attr-defined]
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.util import PythonEvalType

from kafka_trial import plugins
from kafka_trial.errors import UnjudgeableError
from kafka_trial.invariants.trial_context import TrialContext
from kafka_trial.judge.arrow_rows import ROWS
from kafka_trial.judge.findings import FOUND, SLICE_ROWS_MAX, find
from kafka_trial.judge.session import failures_told

if TYPE_CHECKING:
    from kafka_trial.judge.cache import SliceRows

Batches = Iterator[pa.RecordBatch]
CALL_ROWS = 2_000_000  # whole slices are judged together until they are so many rows
ROWS_PER_TASK = 500_000
FOUND_DDL = "slice long, what string, name string, body string"


def find_on_spark(
    rows: SliceRows, trial_context: TrialContext, *, spark: SparkSession, partitions: int | None = None
) -> pa.Table:
    """Returns what all invariants find in the slice rows (schema FOUND), in no particular order.

    Raises:
        UnjudgeableError: the frame is not what the history was written as, or a task failed as often as Spark tries
            it: the rows cannot be read there, one slice is larger than a call holds, a worker was killed.
    """
    with failures_told(f"Spark could not judge the slice rows in {rows.path.parent}"):
        return found_frame(spark, rows, trial_context, partitions=partitions).toArrow()


def found_frame(
    spark: SparkSession, rows: SliceRows, trial_context: TrialContext, *, partitions: int | None = None
) -> DataFrame:
    """Returns the frame of findings: slice rows, shuffled by slice, judged in one pass."""
    place = f"file://{rows.path.absolute()}"  # without the scheme, a cluster would look for it in its own file system
    frame = spark.read.schema(_spark_schema()).parquet(place)
    _check(frame, rows)
    tasks = partitions or min(max(1, -(-rows.count // ROWS_PER_TASK)), max(1, len(trial_context.slices)))
    shared = (
        frame.repartition(tasks, F.col("slice")) if tasks > 1 else frame.coalesce(1)
    )  # one task: nothing to shuffle
    return _map_in_arrow(shared.sortWithinPartitions("slice"), _judging(trial_context), FOUND_DDL)


def _judging(trial_context: TrialContext) -> Callable[[Batches], Batches]:
    known = plugins.loaded()

    def judge(batches: Batches) -> Batches:
        plugins.ensure(known)
        for whole in whole_slices(batches, call_rows=CALL_ROWS):
            yield from find(whole, trial_context).cast(FOUND).to_batches()

    return judge


def whole_slices(batches: Batches, *, call_rows: int) -> Iterator[pa.Table]:
    """Yields tables of whole slices from batches sorted by slice, each of about `call_rows` rows.

    Raises:
        UnjudgeableError: one slice has more rows than a call can hold.
    """
    waiting: list[pa.Table] = []
    size = 0
    for batch in batches:
        waiting.append(pa.Table.from_batches([batch]))
        size += batch.num_rows
        if size >= call_rows:
            joined = pa.concat_tables(waiting)
            cut = _start_of_last_slice(joined)
            if cut:
                yield joined.slice(0, cut)
            waiting = [joined.slice(cut)]
            size = joined.num_rows - cut
            if size > SLICE_ROWS_MAX:
                raise UnjudgeableError(
                    f"one partition's slice has over {SLICE_ROWS_MAX} rows, more than one call holds"
                )
    if size:
        yield pa.concat_tables(waiting)


def _start_of_last_slice(rows: pa.Table) -> int:
    numbers = rows["slice"].combine_chunks()
    return int(pc.index(numbers, numbers[-1]).as_py())


def _spark_schema() -> T.StructType:
    return from_arrow_schema(ROWS)


def _check(frame: DataFrame, rows: SliceRows) -> None:
    """Compares the frame's columns with what was written; all differences at once."""
    import pyarrow.parquet as pq

    written = pq.read_schema(rows.path)
    wrong = [
        f"{name}: {written.field(name).type if name in written.names else 'missing'}, not {ROWS.field(name).type}"
        for name in ROWS.names
        if name not in written.names or written.field(name).type != ROWS.field(name).type
    ]
    if wrong or frame.columns != ROWS.names:
        raise UnjudgeableError(
            f"the cached slice rows have other columns: {'; '.join(wrong)}; delete {rows.path.parent}"
        )


def _map_in_arrow(rows: DataFrame, work: Callable[[Batches], Batches], schema: str) -> DataFrame:
    # DataFrame.mapInArrow insists on pandas, which neither it nor the worker then uses.
    function = vectorized_udf(work, schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = function(*[rows[name] for name in rows.columns])
    return DataFrame(rows._jdf.mapInArrow(column._jc, False, None), rows.sparkSession)

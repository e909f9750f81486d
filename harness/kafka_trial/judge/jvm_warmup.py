"""One small Spark session that does once what the judge does, so that its JVM can archive the classes it loaded.

Run by `cluster/spark_java.py` as a process of its own, never in a trial: `python -m kafka_trial.judge.jvm_warmup`, with
the JVM's options in KAFKA_TRIAL_SPARK_OPTIONS.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name Spark's own documentation uses
from pyspark.sql.pandas.functions import vectorized_udf  # type: ignore[attr-defined]
from pyspark.util import PythonEvalType

ENDED_WITHIN_S = 120


def main() -> int:
    """Starts a session, runs the judge's kind of plan on a few rows, and waits for the JVM to write its archive."""
    session = _session(os.environ["KAFKA_TRIAL_SPARK_OPTIONS"])
    jvm = session.sparkContext._gateway.proc  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory(prefix="kafka-trial-training-") as folder:
        _work(session, Path(folder))
        session.stop()
        jvm.stdin.close()  # the gateway's JVM ends when its standard input does
        jvm.wait(ENDED_WITHIN_S)
    return int(jvm.returncode)


def _session(options: str) -> SparkSession:
    settings = {
        "spark.driver.extraJavaOptions": options,
        "spark.driver.host": "127.0.0.1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _work(session: SparkSession, folder: Path) -> None:
    rows = {
        "source": ["a", "b"] * 500,
        "time_ns": list(range(1000)),
        "offset": [n if n % 5 else None for n in range(1000)],
        "partitions": [[n % 3, n % 7] for n in range(1000)],
        "done": [n % 2 == 0 for n in range(1000)],
    }
    pq.write_table(pa.table(rows), folder / "events.parquet")
    events = session.read.parquet(str(folder / "events.parquet"))
    slices = (
        events.select("source", "time_ns", "offset", "done", F.explode("partitions").alias("partition"))
        .join(F.broadcast(events.groupBy("source").agg(F.max("time_ns").alias("last"))), on="source", how="left")
        .withColumn("late", F.when(F.col("time_ns") > 10, F.col("last") - F.col("time_ns")).otherwise(F.lit(0)))
        .repartition(2, "partition")
        .sortWithinPartitions("partition", "time_ns")
    )
    judged = _map_in_arrow(slices, "partition long, time_ns long, offset long, source string")
    judged.groupBy("partition").agg(F.count("*"), F.max("time_ns"), F.min("offset")).orderBy("partition").toArrow()
    judged.union(judged).where(F.col("offset").isNotNull()).collect()
    judged.coalesce(1).write.parquet(str(folder / "judged.parquet"))


def _map_in_arrow(rows: DataFrame, schema: str) -> DataFrame:
    def whole(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.select(["partition", "time_ns", "offset", "source"])

    # DataFrame.mapInArrow insists on pandas, which neither it nor the worker then uses.
    function = vectorized_udf(whole, schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = function(*[rows[name] for name in rows.columns])
    return DataFrame(rows._jdf.mapInArrow(column._jc, False, None), rows.sparkSession)


if __name__ == "__main__":
    sys.exit(main())

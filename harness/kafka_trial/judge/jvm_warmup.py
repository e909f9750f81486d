"""One small Spark session that does once what the judge does, so that its JVM can archive the classes it loaded.

Run by `cluster/spark_java.py` as a process of its own, never in a trial: `python -m kafka_trial.judge.jvm_warmup`, with
the JVM's options in KAFKA_TRIAL_SPARK_OPTIONS.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from kafka_trial.judge.slices import map_in_arrow
from kafka_trial.judge.spark_session import LOCAL, LOOPBACK, SETTINGS

ENDED_WITHIN_S = 120


def main() -> int:
    """Starts a session, runs the judge's kind of plan on a few rows, and waits for the JVM to write its archive."""
    session = _session(os.environ["KAFKA_TRIAL_SPARK_OPTIONS"])
    jvm = session.sparkContext._gateway.proc  # type: ignore[union-attr]
    _work(session)
    session.stop()
    jvm.stdin.close()  # the gateway's JVM ends when its standard input does
    jvm.wait(ENDED_WITHIN_S)
    return int(jvm.returncode)


def _session(options: str) -> SparkSession:
    builder = SparkSession.builder.master(LOCAL)
    for name, value in (SETTINGS | LOOPBACK | {"spark.driver.extraJavaOptions": options}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _work(session: SparkSession) -> None:
    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    for calls in (1, 4):
        map_in_arrow(session.range(0, calls, 1, calls), same, "id long").toArrow()


if __name__ == "__main__":
    sys.exit(main())

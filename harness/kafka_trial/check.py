"""Judging a run folder: history → anomalies → verdict → pages. The one way there, for `run`, `check` and pytest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_trial.history.store import RunFolder
from kafka_trial.judge.judge import judge
from kafka_trial.report.report import write_reports
from kafka_trial.verdict.collect import reach_verdict
from kafka_trial.verdict.decide import Verdict

if TYPE_CHECKING:
    from kafka_trial.judge.session import SparkSession


def check_run(
    folder: RunFolder,
    *,
    spark: SparkSession | None = None,
    spark_master: str | None = None,
    partitions: int | None = None,
) -> Verdict:
    """Judges the history of a run folder again, writes the verdict and the pages, and returns the verdict.

    `spark` is an existing session; without one, `spark_master` is a Spark master's URL (this machine by default).
    `partitions` are those of Spark. The verdict depends on none of them.

    Raises:
        InputError: it is no run folder, or of a newer schema.
        StartError: there is no Java to run Spark on, or nobody answers at the master's URL.
    """
    verdict = reach_verdict(folder, judge(folder, spark=spark, master=spark_master, partitions=partitions))
    write_reports(folder)
    return verdict

"""The Spark session of the judge: one a process, quick to start, silent, on loopback.

It is started in a thread while a cluster boots (`warm_session`), so that a trial does not wait for it. `--spark-master`
or an existing session take the judge elsewhere; pyspark is imported nowhere but in `judge/`.
"""

from __future__ import annotations

import atexit
import os
import shlex
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_trial.cluster.spark_java import spark_class_data_archive, spark_environment, spark_jvm_options
from kafka_trial.concurrency import Crew

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[2]"
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.worker.reuse": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_LOCK = threading.Lock()


def session(master: str | None = None) -> SparkSession:
    """Returns the session of this process, started the first time; `master` (default: this machine) counts only then.

    Raises:
        StartError: there is no Java.
    """
    with _LOCK:
        return _started(master or os.environ.get("KAFKA_TRIAL_SPARK_MASTER", LOCAL))


def warm_session(master: str | None = None) -> None:
    """Begins to start the session in a thread; whoever asks for it next waits for the rest, and has its errors."""
    if not _SESSIONS:
        _crew().start("warm", session, master)


@cache
def _crew() -> Crew:
    return Crew("spark")


_SESSIONS: dict[str, SparkSession] = {}


def _started(master: str) -> SparkSession:
    existing = next(iter(_SESSIONS.values()), None)
    if existing is not None:
        return existing
    os.environ.update(spark_environment())
    archive = spark_class_data_archive() if master.startswith("local") else None
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("kafka-trial")
    quiet = f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}"
    scratch = tempfile.gettempdir()
    local = spark_jvm_options(archive) if master.startswith("local") else []
    options = shlex.join([quiet, f"-Djava.io.tmpdir={scratch}", *local])
    own = {"spark.driver.extraJavaOptions": options, "spark.local.dir": scratch}
    for name, value in (SETTINGS | own).items():
        builder = builder.config(name, value)
    started = builder.getOrCreate()
    _SESSIONS[master] = started
    atexit.register(started.stop)
    return started

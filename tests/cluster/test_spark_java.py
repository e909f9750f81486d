"""Java for Spark: a launcher that serves every Java, and an archive that is really used."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_trial.cluster import spark_java
from kafka_trial.errors import StartError

TRAINING = [sys.executable, "-m", "kafka_trial.judge.jvm_warmup"]


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache of its own, and nothing remembered from another."""
    monkeypatch.setenv("KAFKA_TRIAL_CACHE", str(tmp_path / "cache"))
    _forget()
    yield tmp_path
    _forget()


def test_the_launcher_drops_one_flag_and_hands_on_the_rest(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spaces, quotes and empty words arrive as they were."""
    java = fresh / "a folder" / "java"
    java.parent.mkdir()
    java.write_text('#!/bin/sh\nfor word do echo "<$word>"; done\n')
    java.chmod(0o755)
    monkeypatch.setattr(spark_java, "find_java", lambda: java)
    launcher = spark_java.spark_java_home() / "bin" / "java"
    words = ["-cp", "a b:c*", "--add-modules=jdk.incubator.vector", "--add-modules=other", "", 'it\'s "$HOME"']
    said = subprocess.run([launcher, *words], capture_output=True, text=True, check=True).stdout.splitlines()
    assert said == [f"<{word}>" for word in words if "vector" not in word]


def test_without_an_archive_no_option_names_one() -> None:
    """With one, it is named and its complaints are silenced."""
    without, with_one = spark_java.spark_jvm_options(None), spark_java.spark_jvm_options(Path("/a.jsa"))
    assert not [option for option in without if "Archive" in option]
    assert [option for option in with_one if option not in without] == [
        "-XX:SharedArchiveFile=/a.jsa",
        "-Xlog:cds=off",
        "-Xlog:cds+dynamic=off",
    ]


def test_a_failed_training_is_told_and_not_repeated(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions then start without it; `doctor --fetch` makes the next one try again, and so does time."""
    tried: list[Path] = []

    def fail(archive: Path) -> None:
        tried.append(archive)
        raise StartError("no space left")

    monkeypatch.setattr(spark_java, "_train", fail)
    got = [spark_java.spark_class_data_archive(), spark_java.spark_class_data_archive()]
    assert (got, len(tried), spark_java.archive_failure()) == ([None, None], 1, "no space left")
    spark_java.forget_archive_failure()
    spark_java.spark_class_data_archive()
    assert len(tried) == 2
    (note,) = (fresh / "cache" / "archive").glob("*.failed")
    os.utime(note, (1, 1))
    spark_java.spark_class_data_archive()
    assert len(tried) == 3


def test_looking_does_not_train(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make=False` answers from what is there."""
    monkeypatch.setattr(spark_java, "_train", lambda _: pytest.fail("trained"))
    assert spark_java.spark_class_data_archive(make=False) is None


def test_spark_installed_again_gets_another_archive(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The JVM would turn the old one down for the times of the jars; it is deleted, no other folder's or Java's is."""
    jar, other = fresh / "pyspark" / "jars" / "a.jar", fresh / "other"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"jar")
    monkeypatch.setattr(spark_java, "_train", lambda archive: archive.write_bytes(b"archive"))

    def archive_of(folder: Path) -> Path | None:
        monkeypatch.setattr(spark_java, "pyspark_folder", lambda: folder)
        _forget()
        return spark_java.spark_class_data_archive()

    monkeypatch.setattr(spark_java, "java_identity", lambda _: "another")
    on_another_java = archive_of(jar.parent.parent)
    monkeypatch.setattr(spark_java, "java_identity", lambda _: "this")
    first, again, elsewhere = (archive_of(folder) for folder in (jar.parent.parent, jar.parent.parent, other))
    os.utime(jar, ns=(1, 1))
    later = archive_of(jar.parent.parent)
    assert (first == again, later != first) == (True, True)
    places = (first, later, elsewhere, on_another_java)
    assert [place.exists() for place in places if place] == [False, True, True, True]


@pytest.mark.spark
def test_a_session_takes_its_classes_from_the_archive(tmp_path: Path) -> None:
    """The JVM's own class log says so, for Spark's classes and for most of all."""
    archive = spark_java.spark_class_data_archive()
    assert archive is not None, spark_java.archive_failure()
    log = tmp_path / "classes.log"
    options = [*spark_java.spark_jvm_options(archive), f"-Xlog:class+load:file={log}"]
    environment = os.environ | spark_java.spark_environment() | {"KAFKA_TRIAL_SPARK_OPTIONS": shlex.join(options)}
    done = subprocess.run(TRAINING, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    loaded = log.read_text()
    assert re.search(r"org\.apache\.spark\.SparkContext source: shared objects file \(top\)", loaded)
    assert loaded.count("source: shared objects file") > loaded.count("source: jar") + loaded.count("source: file:")


def _forget() -> None:
    spark_java.spark_java_home.cache_clear()
    spark_java.spark_archive_place.cache_clear()

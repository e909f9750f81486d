"""A Spark cluster elsewhere: a master and two workers, processes of their own, judge a stored run to the same bytes."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafka_trial.check import check_run
from kafka_trial.cli import main
from kafka_trial.cluster.spark_java import pyspark_folder, spark_environment
from kafka_trial.errors import PASS, WRONG_INPUT
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.lines import splits_of
from kafka_trial.process.children import Child, ChildProcesses
from kafka_trial.process.waiting import wait_until
from kafka_trial.registry import CHECKOUT
from lab.scale.history import write_history
from lab.scale.shapes import Shape

pytestmark = pytest.mark.spark

STORED = CHECKOUT / "fixtures" / "histories" / "member-killed"
SPARK_CLASS = pyspark_folder() / "bin" / "spark-class"
DEPLOY = "org.apache.spark.deploy"
STARTED = re.compile(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
UP_WITHIN_S = 300
JUDGE = """
import resource, sys
from kafka_trial.history.store import open_run_folder
from kafka_trial.judge.judge import judge
from pathlib import Path
judge(open_run_folder(Path(sys.argv[1])), master=sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
IN_OPEN, IN_ISDIR, INOTIFY_EVENT = 0x20, 0x40000000, struct.Struct("=iIII")  # inotify(7)
CHECKED_WITHIN_S = 900


@dataclass(frozen=True)
class SparkCluster:
    """A running one: the master's URL, and the folders in which its workers keep their executors."""

    url: str
    work: tuple[Path, Path]

    def executors(self) -> list[int]:
        """Returns how many executors each worker has run."""
        return [len(list(folder.glob("app-*/[0-9]*"))) for folder in self.work]


@pytest.fixture
def spark_cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    """Starts a master and two workers on loopback, on ports that the kernel draws."""
    with ChildProcesses("standalone") as child_processes:
        log = tmp_path / "master.log"
        children = [_start(child_processes, "master", [f"{DEPLOY}.master.Master"], log)]
        url = _told(log, STARTED, children[0])
        work = tmp_path / "work-0", tmp_path / "work-1"
        for folder in work:
            words = [f"{DEPLOY}.worker.Worker", "--cores", "1", "--memory", "1g", "--work-dir", str(folder), url]
            children.append(_start(child_processes, folder.name, words, tmp_path / f"{folder.name}.log"))
        for folder, child in zip(work, children[1:], strict=True):
            _told(tmp_path / f"{folder.name}.log", re.compile("(Successfully registered with master)"), child)
        yield SparkCluster(url, work)
        for child in reversed(children):
            child.end()


def test_the_bytes_are_those_of_the_embedded_judge(spark_cluster: SparkCluster, tmp_path: Path) -> None:
    """Both workers ran executors, and nothing in the verdict or the anomalies tells of it."""
    run = RunFolder(tmp_path / "run")
    shutil.copytree(STORED, run.path)
    check_run(run)
    embedded = {name: (run.path / name).read_bytes() for name in ("verdict.json", "anomalies.jsonl")}
    for name in embedded:
        (run.path / name).unlink()
    words = ["check", str(run.path), "--spark-master", spark_cluster.url, "--partitions", "4"]
    command = [sys.executable, "-m", "kafka_trial", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=CHECKED_WITHIN_S, check=False)
    assert done.returncode == PASS, done.stderr
    assert {name: (run.path / name).read_bytes() for name in embedded} == embedded
    assert spark_cluster.executors() == [1, 1]


@pytest.mark.rotates
def test_executors_read_the_history_once_and_the_driver_none_of_it(spark_cluster: SparkCluster, tmp_path: Path) -> None:
    """Every split of every file is opened by one task, the files that the driver opens are a few lines; its memory does
    not grow with the history."""
    few, many = (write_history(tmp_path / name, Shape(events)) for name, events in (("few", 10**5), ("many", 10**6)))
    peaks_kb = [_peak_kb_of_driver(spark_cluster, few), 0]
    with opened_files(many.history) as opened:
        peaks_kb[1] = _peak_kb_of_driver(spark_cluster, many)
    expected = {path.name: len(splits_of(path)) for path in many.history_files()}
    assert opened == expected
    assert max(expected.values()) > 2
    assert peaks_kb[1] <= 1.1 * peaks_kb[0], peaks_kb
    assert spark_cluster.executors() == [2, 2]


def test_what_is_no_master_is_refused_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2, and what would be one."""
    assert main(["check", str(STORED), "--spark-master", "spark:/somewhere"]) == WRONG_INPUT
    assert "Valid: local[N], spark://HOST:PORT, yarn, k8s://URL" in capsys.readouterr().err


def _peak_kb_of_driver(cluster: SparkCluster, run: RunFolder) -> int:
    """Judges a run on the cluster, the driver being a process of its own; returns the most memory that this one had."""
    done = subprocess.run(
        [sys.executable, "-c", JUDGE, str(run.path), cluster.url],
        capture_output=True,
        text=True,
        timeout=CHECKED_WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@contextmanager
def opened_files(folder: Path) -> Iterator[dict[str, int]]:
    """Counts how often each file of a folder is opened by anybody on this machine (inotify); filled in at the end."""
    libc, opened = ctypes.CDLL(None, use_errno=True), dict[str, int]()
    descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    watched = libc.inotify_add_watch(descriptor, bytes(folder), IN_OPEN)
    assert watched >= 0, ctypes.get_errno()
    try:
        yield opened
        with suppress(BlockingIOError):
            while events := os.read(descriptor, 1 << 16):
                while events:
                    _, mask, _, size = INOTIFY_EVENT.unpack_from(events)
                    name, events = (
                        events[INOTIFY_EVENT.size :][:size].rstrip(b"\0"),
                        events[INOTIFY_EVENT.size + size :],
                    )
                    if not mask & IN_ISDIR:
                        opened[name.decode()] = opened.get(name.decode(), 0) + 1
    finally:
        os.close(descriptor)


def _start(child_processes: ChildProcesses, name: str, words: list[str], log: Path) -> Child:
    command = [str(SPARK_CLASS), words[0], "--host", "127.0.0.1", "--port", "0", "--webui-port", "0", *words[1:]]
    environment = os.environ | spark_environment() | {"SPARK_HOME": str(pyspark_folder())}
    with log.open("wb") as output:
        return child_processes.spawn(name, command, env=environment, stdout=output, stderr=output)


def _told(log: Path, what: re.Pattern[str], child: Child) -> str:
    """Waits until a process has said something, and returns it; one that went says why in its log."""

    def said() -> str | None:
        assert child.alive, log.read_text()[-2000:]
        found = what.search(log.read_text(errors="replace"))
        return found[1] if found else None

    return wait_until(said, within_s=UP_WITHIN_S, what=f"{child.name} to say {what.pattern!r}")

"""A Spark cluster elsewhere: a master and two workers, processes of their own, judge a stored run to the same bytes."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafka_trial.check import check_run
from kafka_trial.cli import main
from kafka_trial.cluster.spark_java import (
    pyspark_folder,
    spark_class_data_archive,
    spark_environment,
    spark_jvm_options,
)
from kafka_trial.errors import PASS, WRONG_INPUT
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.lines import splits_of
from kafka_trial.process.children import Child, ChildProcesses
from kafka_trial.process.waiting import wait_until
from kafka_trial.registry import CHECKOUT, PLUGINS
from lab.scale.history import write_history
from lab.scale.shapes import Shape
from plugin_files import write_plugins

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
JUDGE_BY_PLUGIN = """
import sys
from pathlib import Path
from kafka_trial import plugins
from kafka_trial.check import check_run
from kafka_trial.history.store import RunFolder
plugins.load([sys.argv[3]])
Path(sys.argv[3]).unlink()
verdict = check_run(RunFolder(Path(sys.argv[1])), spark_master=sys.argv[2])
print(verdict.verdict.upper(), *(violation.anomaly for violation in verdict.violations))
"""
HOOK = """
import os, sys
def note(event, arguments):
    if event == "open" and "/history/" in str(arguments[0]) and str(arguments[0]).endswith(".jsonl"):
        descriptor = os.open({opened!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, (str(arguments[0]) + os.linesep).encode())
        os.close(descriptor)
sys.addaudithook(note)
"""
CHECKED_WITHIN_S = 900


@dataclass(frozen=True)
class SparkCluster:
    """A running one: the master's URL, and the folders in which its workers keep their executors."""

    url: str
    work: tuple[Path, Path]
    opened: Path  # the history files that any Python process of it has opened, one a line

    def executors(self) -> list[int]:
        """Returns how many executors each worker has run."""
        return [len(list(folder.glob("app-*/[0-9]*"))) for folder in self.work]


@pytest.fixture
def spark_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkCluster]:
    """Starts a master and two workers on loopback, on ports that the kernel draws; these, their executors and drivers
    are processes that live for seconds, and begin like the judge's own."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", shlex.join(spark_jvm_options(spark_class_data_archive())))
    hooked = tmp_path / "hooked"
    hooked.mkdir()
    (hooked / "sitecustomize.py").write_text(HOOK.format(opened=str(tmp_path / "opened")))
    monkeypatch.setenv("PYTHONPATH", str(hooked))
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
        yield SparkCluster(url, work, tmp_path / "opened")
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


@pytest.mark.rotates(together="dear")
def test_executors_read_the_history_once_and_the_driver_none_of_it(spark_cluster: SparkCluster, tmp_path: Path) -> None:
    """Every split of every file is opened by one task, the files that the driver opens are a few lines; its memory does
    not grow with the history."""
    few, many = (write_history(tmp_path / name, Shape(events)) for name, events in (("few", 10**5), ("many", 10**6)))
    peaks_kb = [_peak_kb_of_driver(spark_cluster, few), 0]
    spark_cluster.opened.unlink()
    peaks_kb[1] = _peak_kb_of_driver(spark_cluster, many)
    opened = Counter(Path(line).name for line in spark_cluster.opened.read_text().splitlines())
    assert opened == {path.name: len(splits_of(path)) for path in many.history_files()}
    assert opened["workload.jsonl"] > 2
    assert peaks_kb[1] <= 1.1 * peaks_kb[0], peaks_kb
    assert spark_cluster.executors() == [2, 2]


@pytest.mark.rotates(together="dear")
def test_executors_judge_by_a_plug_in(
    spark_cluster: SparkCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver alone is told of the file, and it is gone when executors start: they were handed its text."""
    monkeypatch.setenv(PLUGINS, "")
    run, plugin = RunFolder(tmp_path / "run"), write_plugins(tmp_path)["anomaly"]
    shutil.copytree(STORED, run.path)
    words = [str(run.path), spark_cluster.url, str(plugin)]
    done = subprocess.run(
        [sys.executable, "-c", JUDGE_BY_PLUGIN, *words],
        capture_output=True,
        text=True,
        timeout=CHECKED_WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "FAIL odd-record" in done.stdout
    assert sum(spark_cluster.executors()) > 0


def test_what_is_no_master_is_refused_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2, and what would be one."""
    assert main(["check", str(STORED), "--spark-master", "spark:/somewhere"]) == WRONG_INPUT
    assert "Valid: local[N], spark://HOST:PORT, yarn, k8s://URL" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["0", "-3"])
def test_no_task_is_no_number_of_tasks(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2 before anything is judged."""
    assert main(["check", str(STORED), "--partitions", number]) == WRONG_INPUT
    assert f"--partitions: {number} must be between 1 and" in capsys.readouterr().err


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

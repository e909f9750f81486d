"""What earlier runs left behind is named with what to do; what still runs is not."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from kafka_trial.cluster import doctor
from kafka_trial.cluster.doctor import FOLDER_PREFIX, MARKER, SCRATCH_PREFIX, _Process, leftovers
from kafka_trial.process import supervisor
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.waiting import wait_until

LONG_AGO_S = 10**9
SLEEPER = [sys.executable, "-c", "import threading; threading.Event().wait()"]
HARNESS = """
import threading
from kafka_trial.process.children import ChildProcesses
child_processes = ChildProcesses("victim")
print(child_processes._process.pid, flush=True)
threading.Event().wait()
"""


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Temporary folder, cache and state of its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("KAFKA_TRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def test_a_supervisor_whose_harness_is_gone_is_named() -> None:
    """It was stopped when its harness was killed, so that it could not end; the remedy ends it."""
    harness = subprocess.Popen([sys.executable, "-c", HARNESS], stdout=subprocess.PIPE, text=True)
    assert harness.stdout is not None
    supervisor = int(harness.stdout.readline())
    harness.stdout.close()
    try:
        before = _remedies()
        os.kill(supervisor, signal.SIGSTOP)
        harness.kill()
        harness.wait(10)
        assert (f"kill -9 {supervisor}" in before, f"kill -9 {supervisor}" in _remedies()) == (False, True)
    finally:
        harness.kill()
        os.kill(supervisor, signal.SIGKILL)
    wait_until(lambda: not _runs(supervisor), within_s=10, what="the supervisor to be gone")


def test_a_broker_without_a_supervisor_is_named(tmp_path: Path) -> None:
    """The same command under a supervisor is nobody's leftover."""
    command = [*SLEEPER, f"{MARKER}{tmp_path}/c"]
    with subprocess.Popen(command) as orphan, ChildProcesses("test") as child_processes:
        supervised = child_processes.spawn("broker", command)
        named = _remedies()
        orphan.kill()
    assert (f"kill -9 {orphan.pid}" in named, f"kill -9 {supervised.pid}" in named) == (True, False)


@pytest.mark.parametrize("place", ["kafka_trial/process/supervisor.py", "kafka_trial/supervisor.py"])
def test_a_broker_under_the_supervisor_of_another_installation_is_not_named(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else's checkout or virtual environment, of this version or the one before: their trial is running, and
    neither of the two is a leftover."""
    other = tmp_path / "other" / place
    other.parent.mkdir(parents=True)
    shutil.copy(supervisor.__file__, other)
    with monkeypatch.context() as there:
        there.setattr(supervisor, "__file__", str(other))
        child_processes = ChildProcesses("theirs")
    with child_processes:
        broker = child_processes.spawn("broker", [*SLEEPER, f"{MARKER}{tmp_path}/c"])
        named = _remedies()
    assert (f"kill -9 {broker.pid}" in named, f"kill -9 {child_processes._process.pid}" in named) == (False, False)


def test_below_somebody_who_cannot_be_looked_at_nothing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user's process above a broker, or above a supervisor, may be what keeps them."""
    own = os.getuid()
    there = [
        _Process(71, 70, own, ("java", f"{MARKER}{tmp_path}/c")),
        _Process(72, 70, own, ("python", "/x/kafka_trial/supervisor.py")),
    ]
    monkeypatch.setattr(doctor, "_processes", lambda: iter(there))

    def denied(pid: int) -> psutil.Process:
        raise psutil.AccessDenied(pid)

    monkeypatch.setattr(psutil, "Process", denied)
    assert leftovers() == []


@pytest.mark.parametrize(("prefix", "marker"), [(FOLDER_PREFIX, MARKER), (SCRATCH_PREFIX, "")])
def test_the_folder_of_a_killed_cluster_or_judge_is_named(tmp_path: Path, prefix: str, marker: str) -> None:
    """Neither one that a process still uses, nor one so young that its process may be about to start."""
    dead, used, young = (tmp_path / f"{prefix}{name}" for name in ("dead", "used", "young"))
    for folder in (dead, used, young):
        folder.mkdir()
    for folder in (dead, used):
        os.utime(folder, (LONG_AGO_S, LONG_AGO_S))
    with _sleeping(f"{marker}{used}"):
        assert [one.remedy for one in leftovers() if one.what == "leftover folder"] == [f"rm -r {dead}"]


def test_a_half_made_part_of_the_cache_is_named(tmp_path: Path) -> None:
    """One whose maker still runs is not."""
    with subprocess.Popen(["true"]) as ended:
        pass
    for pid in (ended.pid, os.getpid()):
        (tmp_path / "cache" / "archive").mkdir(parents=True, exist_ok=True)
        (tmp_path / "cache" / "archive" / f".x.jsa.{pid}").touch()
    found = [Path(one.where).name for one in leftovers() if one.what == "half-made part"]
    assert found == [f".x.jsa.{ended.pid}"]


def _remedies() -> str:
    return "\n".join(f"{one.remedy}\n" for one in leftovers())


@contextmanager
def _sleeping(*words: str) -> Iterator[None]:
    with subprocess.Popen([*SLEEPER, *words]) as process:
        try:
            yield
        finally:
            process.kill()


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False

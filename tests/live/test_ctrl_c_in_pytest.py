"""Ctrl-C in a pytest session of trials: the session ends, nothing is left running, and no librdkafka was in it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from harness_process import HEARS_CTRL_C
from kafka_trial.errors import INTERRUPTED
from kafka_trial.history.store import HistoryTail
from kafka_trial.process.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.rotates(together="dear")]

MINE = """
from pathlib import Path
from kafka_trial.scenario import scenario_from_toml

def test_first(trial):
    trial(scenario_from_toml(Path({quick!r}))[0]).must_pass()

def test_second(trial):
    trial(scenario_from_toml(Path({quick!r}))[0]).must_pass()
"""
RUN = Path("test_first-python-at-least-once-4.3.1-") / "quick"


def test_ctrl_c_ends_the_session_healed_and_cleaned_up(tmp_path: Path, quick: Path) -> None:
    """SIGINT in mid-fault: 130, the fault healed in the journal, the second test never begun, no process left."""
    (tmp_path / "test_mine.py").write_text(MINE.format(quick=str(quick)))
    history = tmp_path / "runs" / RUN / "history"
    with _pytest(tmp_path) as session:
        follower = HistoryTail(history, "nemesis.jsonl")
        wait_until(
            lambda: any(event.kind == "injected" for event in follower.new_events()),
            within_s=240,
            what="an injected fault",
            alive=lambda: None if session.poll() is None else (tmp_path / "told").read_text(),
        )
        held = {Path(line.path).name for line in psutil.Process(session.pid).memory_maps()}
        started = psutil.Process(session.pid).children(recursive=True)
        session.send_signal(2)
        assert session.wait(90) == INTERRUPTED, (tmp_path / "told").read_text()
    _, alive = psutil.wait_procs(started, timeout=10)
    told = (tmp_path / "told").read_text()
    assert (alive, "healed and cleaned up" in told, "1 failed" in told, "test_second" in told) == (
        [],
        True,
        False,
        False,
    )
    assert [place.name for place in (tmp_path / "runs").iterdir()] == [RUN.parent.name]
    kinds = [event.kind for event in HistoryTail(history, "nemesis.jsonl").new_events()]
    assert kinds.count("healed") == kinds.count("injected") >= 1
    assert [name for name in held if "rdkafka" in name or "cimpl" in name] == []


@contextmanager
def _pytest(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", HEARS_CTRL_C, "-m", "pytest", "-v", "-p", "no:cacheprovider", "test_mine.py"]
    command += ["--consumer", "python-at-least-once", "--trial-seed", "7", "--trial-runs", "runs"]
    with (folder / "told").open("wb") as told:
        session = subprocess.Popen(command, cwd=folder, stdout=told, stderr=told)
    try:
        yield session
    finally:
        session.kill()
        session.wait(10)

"""A harness in a process of its own, which a test signals or kills at a phase that it waits for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from kafka_trial.history.store import HistoryTail
from kafka_trial.process.waiting import wait_until

HELD = Path(__file__).parent / "held_harness.py"
QUICK = Path(__file__).parent / "live" / "quick.toml"
BEGINS_WITHIN_S = 120
# Who starts tests in the background has Ctrl-C ignored, and so have its children.
HEARS_CTRL_C = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


@contextmanager
def harness_running(
    out: Path,
    *,
    consumer: str = "python-at-least-once",
    host: str | None = None,
    check: bool = False,
    stops_in: str | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Starts a trial in a process of its own, and kills it in the end; `stops_in`: the phase where it stops itself."""
    harness_words = ["-m", "kafka_trial"] if stops_in is None else [str(HELD), stops_in]
    command = [sys.executable, "-c", HEARS_CTRL_C, *harness_words, "run", str(QUICK)]
    command += ["--consumer", consumer, *([] if check else ["--no-check"]), "--seed", "7", "--out", str(out)]
    environment = os.environ | ({"DOCKER_HOST": host} if host else {})
    with out.with_name("said").open("wb") as said:
        harness = subprocess.Popen(command, stderr=said, env=environment)
    try:
        yield harness
    finally:
        harness.kill()
        harness.wait(10)


def wait_for_phase(run: Path, phase: str, harness: subprocess.Popen[bytes]) -> None:
    follower = HistoryTail(run / "history", "run.jsonl")
    wait_until(
        lambda: any(event.details.get("phase") == phase for event in follower.new_events()),
        within_s=BEGINS_WITHIN_S,
        what=f"phase {phase}",
        every_s=0.02,
        alive=lambda: None if harness.poll() is None else f"the harness exited with {harness.returncode}",
        detail=run.with_name("said").read_text,
    )


def wait_until_stopped(harness: subprocess.Popen[bytes], said: Path) -> None:
    """Waits until a harness has stopped itself, in the phase that it was told."""
    process = psutil.Process(harness.pid)
    wait_until(
        lambda: process.status() == psutil.STATUS_STOPPED,
        within_s=BEGINS_WITHIN_S,
        what="the harness to stop itself",
        alive=lambda: None if harness.poll() is None else f"the harness exited with {harness.returncode}",
        detail=said.read_text,
    )

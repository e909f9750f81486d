"""The pipes between the harness and a witness process: what each end makes of the other's silence, words and death."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_trial.errors import StartError
from kafka_trial.history.event import from_line
from kafka_trial.process.children import ChildProcesses, start_child_rpc
from kafka_trial.witness.witness import Witness, snapshot_all

PROGRAM = """
import sys
from pathlib import Path
from kafka_trial.errors import UnjudgeableError
from kafka_trial.history.recorder import Recorder
from kafka_trial.process.waiting import pause
from kafka_trial.witness.rpc_server import Answer, serve

class Watching:
    def step(self):
        if sys.argv[2] == "fails": raise UnjudgeableError("the log was cut")
        if sys.argv[2] == "crashes": raise RuntimeError("a bug")
        pause(0.01)
    def snapshot(self, *, within_s):
        if sys.argv[2] == "hangs": pause(60)
        return Answer(sys.argv[2], f"asked within {within_s:g}", 3, 5)

if sys.argv[2] == "never ready": sys.exit("no brokers here")
with Recorder(Path(sys.argv[1]), "w") as recorder:
    sys.exit(serve(Watching(), [recorder]))
"""


@contextmanager
def _witness(folder: Path, behaviour: str) -> Iterator[Witness]:
    argv = [sys.executable, "-c", PROGRAM, str(folder), behaviour]
    with ChildProcesses("witness") as child_processes:
        witness = Witness("w", start_child_rpc(child_processes, "witness", argv, stderr=folder / "stderr"))
        yield witness
        witness.stop(within_s=2)


def _recorded(folder: Path) -> list[str]:
    return [from_line(line).details["state"] for line in (folder / "w.jsonl").read_bytes().splitlines()]


@pytest.mark.parametrize("state", ["complete", "behind", "undecodable"])
def test_what_a_witness_says_reaches_the_run_and_the_history(tmp_path: Path, state: str) -> None:
    """Its state at the snapshot, with a message, on both ways."""
    with _witness(tmp_path, state) as witness:
        witness.ready(within_s=10)
        assert witness.snapshot(within_s=7) == state
        assert witness.message == "asked within 7"
        assert witness.stop() == 0
    assert _recorded(tmp_path) == ["ready", state]


def test_the_end_of_its_stdin_stops_it(tmp_path: Path) -> None:
    """So does the death of the harness: nothing is left behind."""
    with _witness(tmp_path, "complete") as witness:
        witness.ready(within_s=10)
        assert (witness.stop(), witness.alive) == (0, False)


@pytest.mark.parametrize(("behaviour", "said"), [("fails", "the log was cut"), ("crashes", "RuntimeError: a bug")])
def test_a_witness_that_died_is_dead_at_the_snapshot(tmp_path: Path, behaviour: str, said: str) -> None:
    """Whether it knew why, or not: its last words are in the message."""
    with _witness(tmp_path, behaviour) as witness:
        witness.ready(within_s=10)
        assert snapshot_all([witness], within_s=5) == {"w": "dead"}
        assert said in (witness.message or "")


def test_a_witness_killed_with_9_is_dead_at_the_snapshot(tmp_path: Path) -> None:
    """No last words at all."""
    with _witness(tmp_path, "complete") as witness:
        witness.ready(within_s=10)
        witness.child.kill()
        witness.child.wait(within_s=10)
        assert witness.snapshot(within_s=5) == "dead"


def test_a_witness_that_does_not_answer_in_time_is_behind(tmp_path: Path) -> None:
    """It lives, but nobody knows how far it has come."""
    with _witness(tmp_path, "hangs") as witness:
        witness.ready(within_s=10)
        assert witness.snapshot(within_s=-4.5) == "behind"
        assert "in vain" in (witness.message or "")


def test_a_witness_that_does_not_start_says_why(tmp_path: Path) -> None:
    """The trial cannot begin, and the message carries its stderr."""
    with _witness(tmp_path, "never ready") as witness, pytest.raises(StartError, match="no brokers here"):
        witness.ready(within_s=10)

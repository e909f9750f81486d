"""An upgrade that is cut short in a stage: by Ctrl-C, SIGTERM, kill -9, or a disk that is full.

What was played stays and is told, what was not is unknown, and nothing is left running. Stages and ends take turns.
"""

from __future__ import annotations

import os
import signal
import subprocess
from itertools import product
from pathlib import Path

import orjson
import pytest

from kafka_trial.cli import main
from kafka_trial.errors import INTERRUPTED, PASS, UNKNOWN
from kafka_trial.history.store import HistoryTail
from kafka_trial.process.waiting import wait_until
from kafka_trial.upgrade.outcome import GO, NOT_KNOWN
from machines import ENDS_WITHIN_S, Machine, disk_of, fill
from tiers import in_turn

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]

CONSUMER = "python-at-least-once"
STAGES = ("before", "mixed-1", "mixed-2", "rolled", "rolled-back", "forward-again", "finalised", "reloaded")
FULL_DISK = "a full disk"
ENDS = ("SIGINT", FULL_DISK, "SIGKILL", "SIGTERM")
DISK_BYTES = 1 << 30
STAGE_WITHIN_S = 600
STATUSES = {"SIGINT": INTERRUPTED, "SIGTERM": INTERRUPTED, "SIGKILL": -signal.SIGKILL, FULL_DISK: UNKNOWN}
SAID = {"SIGINT": "healed and cleaned up", "SIGTERM": "healed and cleaned up", FULL_DISK: "free space, or choose"}


def words(out: Path) -> list[str | Path]:
    return ["upgrade", "--from", "3.9.2", "--to", "4.3.1", "--consumer", CONSUMER, "--seed", "7", "--out", out]


def wait_for_stage(out: Path, stage: str, harness: subprocess.Popen[str]) -> None:
    """Waits until something is done in a stage."""
    follower = HistoryTail(out / "trials" / CONSUMER / "history", "run.jsonl")
    wait_until(
        lambda: any(event.details.get("stage") == stage for event in follower.new_events()),
        within_s=STAGE_WITHIN_S,
        what=f"stage {stage}",
        every_s=0.02,
        alive=lambda: None if harness.poll() is None else f"the harness exited with {harness.returncode}",
    )


def told(out: Path) -> dict[str, str]:
    """The outcome of each stage for the cluster, by the record."""
    record = orjson.loads((out / "upgrade.json").read_bytes())
    return {one["stage"]: one["outcome"] for one in record["outcomes"] if not one["subject"]}


@pytest.fixture
def machine() -> Machine:
    """This machine as it is."""
    return Machine(dict(os.environ))


def test_what_was_played_stays(machine: Machine, tmp_path: Path) -> None:
    """Each stage before has its verdict and, unless nobody could write any more, stands in a record that holds."""
    stage, end = in_turn([*product(STAGES, ENDS)])
    before = STAGES[: STAGES.index(stage)]
    with disk_of(DISK_BYTES, tmp_path / "disk") as disk:
        out = disk / "upgrade"
        with machine.started(*words(out)) as harness:
            wait_for_stage(out, stage, harness)
            fill(disk) if end == FULL_DISK else harness.send_signal(signal.Signals[end])
            said = "".join(harness.communicate(timeout=ENDS_WITHIN_S))
        assert machine.left() == []
        assert (harness.returncode, SAID.get(end, "") in said, "Traceback" in said) == (STATUSES[end], True, False), (
            said
        )
        (disk / "filler").unlink(missing_ok=True)
        assert [one for one in before if not (out / "stages" / one / CONSUMER / "verdict.json").exists()] == []
        if before and end in ("SIGINT", "SIGTERM"):
            assert told(out) == dict.fromkeys(STAGES, NOT_KNOWN) | dict.fromkeys(before, GO)
            assert main(["verify", str(out)]) == PASS

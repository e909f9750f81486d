"""A stage's history: what was seen up to its snapshot, with its own phases, one control read, and no gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.upgrade.stage_history import StageEnd, stage_end, write_stage

STAGES = ("before", "rolled")


@pytest.fixture(name="two_stages")
def made_stages(tmp_path: Path) -> tuple[RunFolder, list[StageEnd]]:
    """A trial of two stages that went on after the second one."""
    folder = create_run_folder(tmp_path / "trial", "upgrade", "consumer")
    folder.write_json("run.json", {"schema": 1, "seed": 7})
    ends = []
    with Recorder(folder.history, "run") as run, Recorder(folder.history, "observer") as observer:
        run.record("phase", phase="prepare")
        run.record("phase", phase="steady")
        for number, stage in enumerate(STAGES):
            for phase in ("faults", "heal", "drain", "snapshot"):
                run.record("phase", phase=phase, stage=stage)
            observer.record("log_end", topic="t", partition=0, offset=number)
            for offset in range(number + 1):
                observer.record("record", topic="t", partition=0, offset=offset)
            observer.record("control_read", topic="t", state="complete", count=number + 1)
            ends.append(stage_end(stage, folder))
        run.record("phase", phase="stop")
        observer.record("log_end", topic="t", partition=0, offset=9)
    return folder, ends


def told(folder: RunFolder, source: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (folder.history / f"{source}.jsonl").read_bytes().splitlines()]


def written(two_stages: tuple[RunFolder, list[StageEnd]], number: int, tmp_path: Path) -> RunFolder:
    whole, ends = two_stages
    place = create_run_folder(tmp_path / f"stage-{number}", "upgrade", "consumer")
    write_stage(whole, ends[number], place)
    return place


@pytest.mark.parametrize(
    ("number", "phases"),
    [
        (0, ["prepare", "steady", "faults", "heal", "drain", "snapshot"]),
        (
            1,
            [
                *("prepare", "steady", "faults", "heal of before", "drain of before", "snapshot of before"),
                *("faults of rolled", "heal", "drain", "snapshot"),
            ],
        ),
    ],
)
def test_phases_are_those_of_the_stage(
    two_stages: tuple[RunFolder, list[StageEnd]], number: int, phases: list[str], tmp_path: Path
) -> None:
    """The first faults begin what was disturbed; heal, drain and snapshot are the stage's own; it ends there."""
    lines = told(written(two_stages, number, tmp_path), "run")
    assert [line["phase"] for line in lines if line["kind"] == "phase"] == phases
    assert (lines[-1]["kind"], lines[-1]["outcome"]) == ("end", "ok")
    assert [line["seq"] for line in lines] == list(range(len(lines)))


def test_of_several_control_reads_the_last_one_counts(
    two_stages: tuple[RunFolder, list[StageEnd]], tmp_path: Path
) -> None:
    """The second stage has both records once, and what was told before; nothing of later."""
    lines = told(written(two_stages, 1, tmp_path), "observer")
    assert [(line["kind"], line.get("offset")) for line in lines] == [
        ("log_end", 0),
        ("log_end", 1),
        ("record", 0),
        ("record", 1),
        ("control_read", None),
    ]
    assert [line["seq"] for line in lines] == list(range(5))


def test_a_line_that_was_being_written_is_left_out(
    two_stages: tuple[RunFolder, list[StageEnd]], tmp_path: Path
) -> None:
    """The file had grown by half a line when its size was taken."""
    whole, (end, _) = two_stages
    longer = {name: size + 5 for name, size in end.sizes_bytes.items()}
    place = create_run_folder(tmp_path / "stage", "upgrade", "consumer")
    write_stage(whole, StageEnd(end.stage, end.time_ns, longer), place)
    assert [line["kind"] for line in told(place, "observer")] == ["log_end", "record", "control_read"]
    assert place.read_json("run.json")["seed"] == 7

"""`show`: one event of a history, with its neighbours."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial.errors import InputError
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.report.show import show


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = create_run_folder(tmp_path / "run", "test", "test")
    with Recorder(folder.history, "offsets") as recorder:
        for value in range(4):
            recorder.record("committed", group="g", topic="t", partition=0, committed_offset=value, log_offset=value)
    return folder


def test_an_event_is_shown_whole_among_its_neighbours(run: RunFolder) -> None:
    """The event is marked, the lines around it are there, and its fields follow."""
    lines = show(run, "offsets#2", around=1).splitlines()
    assert [line[:11] for line in lines[:3]] == ["  offsets#1", "▶ offsets#2", "  offsets#3"]
    assert "  committed_offset: 2" in lines


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("offsets", "is no event: write SOURCE#NUMBER"),
        ("offset#1", "Did you mean 'offsets'"),
        ("offsets#4", "ends before line 4"),
    ],
)
def test_what_is_not_there_is_wrong_input(run: RunFolder, name: str, problem: str) -> None:
    """No number, no such file, no such line."""
    with pytest.raises(InputError, match=problem):
        show(run, name, around=1)


def test_a_line_that_is_no_event_is_shown_as_it_stands(run: RunFolder) -> None:
    """Made printable: a stranger cannot write to the terminal."""
    with (run.history / "offsets.jsonl").open("ab") as file:
        file.write(b"\x1b[2J torn\n")
    assert show(run, "offsets#4", around=0).splitlines() == ["▶ offsets#4  no event: ·[2J torn·", "", "·[2J torn·"]

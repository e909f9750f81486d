"""A judge that cannot warm up judges all the same, and tells what is wrong then."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial.errors import StartError
from kafka_trial.history.store import RunFolder
from kafka_trial.judge import warm_up as module
from kafka_trial.judge.warm_up import TIMES, warm_up


def test_it_judges_a_history_of_two_lines_several_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of its own, with a line of the run and one of a member."""
    judged: list[list[str]] = []
    monkeypatch.setattr(module, "judge", lambda folder: judged.append([file.stem for file in folder.history_files()]))
    warm_up(tmp_path)
    assert [sorted(names) for names in judged] == [["consumer-m0-0", "run"]] * TIMES


def test_what_fails_is_left_to_the_first_judgement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java, or no room to write."""

    def fails(folder: RunFolder) -> None:
        asked.append(folder)
        raise StartError("no Java")

    asked: list[RunFolder] = []
    monkeypatch.setattr(module, "judge", fails)
    warm_up(tmp_path)
    assert len(asked) == 1
    warm_up(tmp_path / "nowhere")
    assert len(asked) == 1

"""Cuts by name: every cell is a scenario of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial import registry
from kafka_trial.cluster.kafka_cut import API_KEYS, WHERE
from kafka_trial.errors import InputError
from kafka_trial.nemesis.cut_scenarios import CUT_ACTIONS, cells_of, cut_scenario, scenario_of
from kafka_trial.nemesis.schedule import make_plan
from kafka_trial.scenario import scenario_problems


def test_every_cell_is_a_sound_scenario_with_one_cut() -> None:
    """For all APIs, places and actions: nothing of it is refused, and by its name the same is found."""
    cells = cells_of(API_KEYS, actions=CUT_ACTIONS)
    assert len(cells) == len(API_KEYS) * len(WHERE) * len(CUT_ACTIONS) == len({cell.name for cell in cells})
    for cell in cells:
        scenario = scenario_of(cell)
        assert scenario_problems(scenario) == []
        assert make_plan(scenario.schedule, seed=1).cuts
        assert registry.find_scenario(cell.name) == scenario
        assert registry.scenario_file(cell.name) is None


@pytest.mark.parametrize(
    "name", ["control", "cut", "cut-Fetch", "cut-Fetch-after-kill.toml", "cut-Fetch-after-kill-2", "cut-off-for-good"]
)
def test_what_is_not_called_like_a_cut_is_none(name: str) -> None:
    """A file may begin with the word, and a scenario of somebody's own."""
    assert cut_scenario(name) is None


def test_a_file_may_be_called_like_a_cut(tmp_path: Path) -> None:
    """By its ending it is known."""
    file = tmp_path / "cut-Fetch-after-kill.toml"
    file.write_text('schema = 1\nname = "mine"\n')
    assert registry.find_scenario(str(file)).name == "mine"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cut-OffsetComit-before-kill", "OffsetCommit"),
        ("cut-Fetch-between-kill", "after, answered, before"),
        ("cut-Fetch-after-swallow", "close, delay, hold, kill, pause"),
    ],
)
def test_a_cut_that_does_not_exist_is_told_with_what_there_is(name: str, said: str) -> None:
    """Of each part of its name."""
    with pytest.raises(InputError, match=said):
        registry.find_scenario(name)

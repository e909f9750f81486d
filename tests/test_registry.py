"""Finding scenarios and consumers by name or path."""

from pathlib import Path

import pytest

from kafka_trial import registry
from kafka_trial.errors import InputError
from kafka_trial.nemesis.schedule import schedule_problems

SUITES = {
    "control",
    "member-killed",
    "member-paused",
    "rebalance-storm",
    "coordinator-lost",
    "leader-lost",
    "slow-network",
    "stalled-network",
    "rolling-deploy",
    "rolling-restart",
    "large-records",
    "aborted-records",
}


def test_every_suite_registers_its_scenario() -> None:
    """The twelve suites are there, and each scenario has its suite's name."""
    assert set(registry.scenarios()) == set(registry.suites()) == SUITES


def test_every_registered_schedule_names_real_faults() -> None:
    """No suite asks for a fault, target or option that the nemesis does not know."""
    problems = {name: schedule_problems(scenario.schedule) for name, scenario in registry.scenarios().items()}
    assert {name: found for name, found in problems.items() if found} == {}


def test_an_unknown_scenario_lists_the_valid_ones() -> None:
    """The nearest name first, then all."""
    with pytest.raises(InputError, match=r"unknown scenario 'membr-killed'. Did you mean 'member-killed'\?.*control"):
        registry.find_scenario("membr-killed")


def test_a_scenario_file_is_read(tmp_path: Path) -> None:
    """A TOML file is a scenario too; one that is wrong says so with its path."""
    file = tmp_path / "mine.toml"
    file.write_text("members = 2\n")
    assert registry.find_scenario(str(file)).members == 2
    file.write_text("membres = 2\n")
    with pytest.raises(InputError, match=r"mine.toml.*membres"):
        registry.find_scenario(str(file))


def test_a_consumer_is_found_by_file_folder_or_name(tmp_path: Path) -> None:
    """A path wins; a fixture has a name; anything else is told the nearest names, and where all of them are."""
    file = tmp_path / "consumer.toml"
    file.write_text("")
    assert registry.find_consumer(str(file)) == registry.find_consumer(str(tmp_path)) == file
    assert registry.find_consumer("python-at-least-once").parent.name == "python-at-least-once"
    with pytest.raises(InputError, match=r"Did you mean python-at-least-once.*kafka-trial list consumers"):
        registry.find_consumer("python-at-least-onse")

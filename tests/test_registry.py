"""Finding scenarios and consumers by name or path."""

import json
from pathlib import Path

import pytest

from kafka_trial import registry
from kafka_trial.errors import InputError
from kafka_trial.nemesis.schedule import schedule_problems
from kafka_trial.scenario import Load, Scenario, Step, scenario_to_table

SUITES = {
    "control",
    "hot-runs",
    "partitions-added",
    "member-killed",
    "member-paused",
    "rebalance-storm",
    "slow-handlers",
    "coordinator-lost",
    "leader-lost",
    "slow-network",
    "stalled-network",
    "rolling-deploy",
    "rolling-restart",
    "large-records",
    "aborted-records",
    "overtaken",
    "tombstones",
    "failing-endpoint",
    "poison-record",
    "down-too-long",
    "cold-neighbour",
    "several-topics",
    "several-topics-killed",
    "rogue-readers",
    "fail-over",
    "topic-created",
    "remote-reads",
    "remote-reads-fail",
}


def test_every_suite_registers_its_scenario() -> None:
    """The twenty-eight suites are there, and each scenario has its suite's name."""
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


def test_the_scenario_of_a_run_folder_is_read(tmp_path: Path) -> None:
    """So that a scenario that was a value of Python can be replayed."""
    asked = Scenario("my-stall", schedule=(Step("stall", "member", at_s=1, for_s=10),), load=Load(aborted_ratio=0.1))
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(scenario_to_table(asked)))
    assert registry.find_scenario(str(file)) == asked
    file.write_text('{"schema": 9}')
    with pytest.raises(InputError, match=r"scenario.json: schema = 9"):
        registry.find_scenario(str(file))


def test_a_scenario_of_a_file_is_known_by_its_place() -> None:
    """A registered name needs none."""
    places = [registry.scenario_file("control"), registry.scenario_file("it's/mine.toml")]
    assert places == [None, Path("it's/mine.toml").absolute()]


def test_a_consumer_is_found_by_file_folder_or_name(tmp_path: Path) -> None:
    """A path wins; a fixture has a name; anything else is told the nearest names, and where all of them are."""
    file = tmp_path / "consumer.toml"
    file.write_text("")
    assert registry.find_consumer(str(file)) == registry.find_consumer(str(tmp_path)) == file
    assert registry.find_consumer("python-at-least-once").parent.name == "python-at-least-once"
    with pytest.raises(InputError, match=r"Did you mean 'python-at-least-once'.*kafka-trial list consumers"):
        registry.find_consumer("python-at-least-onse")

"""Faults are found by name and say what they hit, break and heal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_trial.errors import InputError
from kafka_trial.history.consequences import BY_FAULT_NAME, Consequence, consequences_in
from kafka_trial.nemesis.fault import SCOPES, fault, find_fault, list_faults, step_problems
from kafka_trial.nemesis.targets import ROLES

EXPECTED = (
    "answers-held broker-kill broker-pause broker-replace broker-restart close cold-reads crash-point cut "
    "fail-back fail-over finalise-feature half-open handler-failing handler-slow join kill latency leader-move leave "
    "move-client partitions-added pause poison-record records-deleted refused remote-reads requests-held restart "
    "rolling-restart slow-link stall terminate topic-created version-roll"
)


def test_every_kind_is_registered() -> None:
    """The kinds the documentation promises are there."""
    assert " ".join(list_faults()) == EXPECTED


def test_each_fault_says_what_it_does() -> None:
    """Each has a summary, known roles and a known scope."""
    wrong = [
        spec.name
        for spec in list_faults().values()
        if not spec.summary.endswith(".") or not set(spec.targets) <= set(ROLES) or spec.scope not in SCOPES
    ]
    assert wrong == []


def test_histories_that_only_name_a_fault_mean_what_it_says() -> None:
    """Those from before faults said their consequences; of a cut they named the fault that it acts as."""
    said = {name: spec.consequences_of({}) for name, spec in list_faults().items() if name != "cut"}
    assert said == BY_FAULT_NAME
    assert {name: consequences_in({"fault": name}) for name in said} == {
        name: tuple(one for one in Consequence if one in does) for name, does in said.items()
    }
    assert consequences_in({"fault": "cut", "acts_as": "kill"}) == consequences_in({"fault": "kill"})
    assert consequences_in({"fault": "of a plug-in"}) == (Consequence.LOSES_ANSWERS,)
    assert Consequence.FREEZES_BROKER in consequences_in({"fault": "broker-pause", "consequences": ["stops-broker"]})
    strange = (Consequence.FREEZES, Consequence.LOSES_ANSWERS)
    assert consequences_in({"fault": "kill", "consequences": ["freezes", "of a newer version"]}) == strange


@pytest.mark.parametrize(
    ("options", "like"),
    [
        ({"then": "kill"}, "kill"),
        ({"then": "pause"}, "pause"),
        ({"then": "kill-broker"}, "broker-kill"),
        ({"action": "close"}, "close"),
        ({"action": "hold"}, "stall"),
        ({"action": "hold", "where": "after"}, "answers-held"),
    ],
)
def test_a_cut_does_what_follows_on_it(options: dict[str, str], like: str) -> None:
    """What is held before the broker may reach it when nobody hears the answer any more."""
    assert find_fault("cut").consequences_of(options) == find_fault(like).consequences_of({})


@pytest.mark.parametrize(
    ("consequences", "sentence"),
    [
        (None, "does not say its consequences: some of kills, stops"),
        (["kils"], "the consequence 'kils', which is none"),
        (["harmless", "kills"], "is harmless, and yet kills"),
    ],
)
def test_a_fault_that_does_not_say_its_consequences_is_refused(consequences: list[str] | None, sentence: str) -> None:
    """Of a plug-in too: bounds and excuses would be too small, and the consumer blamed."""
    with pytest.raises(ValueError, match=sentence):
        fault("nap", targets=("member",), scope="members", heals=True, consequences=consequences)
    assert "nap" not in list_faults()


def test_what_a_fault_says_by_its_options_is_checked_too() -> None:
    """When it is asked, with the options of a step."""
    said = replace(find_fault("cut"), consequences=lambda options: [options["api"]])
    with pytest.raises(ValueError, match="fault cut has the consequence"):
        said.consequences_of({})


def test_a_closed_connection_loses_the_answer_also_where_its_member_is_paused() -> None:
    """What was held is dropped."""
    assert find_fault("cut").consequences_of({"action": "close", "then": "pause"}) == {
        Consequence.FREEZES,
        Consequence.LOSES_ANSWERS,
    }


def test_only_half_open_does_not_heal() -> None:
    """A fault that cannot heal live connections says so."""
    assert [spec.name for spec in list_faults().values() if not spec.heals] == ["half-open"]


def test_a_crash_point_has_a_first_time() -> None:
    """The zeroth time that a member asks is none."""
    assert step_problems("crash-point", "member", {"nth": 0}) == ["crash-point: nth must be 1 or more, not 0"]
    assert step_problems("crash-point", "member", {"nth": 3}) == []


def test_an_unknown_fault_names_the_valid_ones() -> None:
    """A misspelt fault is answered with the nearest and all names."""
    with pytest.raises(InputError, match="Did you mean 'stall'"):
        find_fault("stal")


def test_a_neighbour_that_reads_nothing_is_refused() -> None:
    """Before anything starts."""
    assert step_problems("cold-reads", "all", {"bytes_per_s": 0}) == ["cold-reads: bytes_per_s must be 1 or more"]
    assert step_problems("cold-reads", "all", {"bytes_per_s": 1}) == []

"""Faults are found by name and say what they hit, break and heal."""

from __future__ import annotations

import pytest

from kafka_trial.errors import InputError
from kafka_trial.nemesis.fault import SCOPES, find_fault, list_faults, step_problems
from kafka_trial.nemesis.targets import ROLES

EXPECTED = (
    "answers-held broker-kill broker-pause broker-replace broker-restart close crash-point cut finalise-feature "
    "half-open handler-failing handler-slow join kill latency leader-move leave move-client partitions-added pause "
    "poison-record records-deleted refused requests-held restart rolling-restart slow-link stall terminate version-roll"
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

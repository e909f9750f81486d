"""A part of a scenario's load: what becomes smaller, what stays, and when it is too little for a verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kafka_trial import registry
from kafka_trial.errors import InputError
from kafka_trial.scenario import (
    Burst,
    Limits,
    Load,
    Scenario,
    Step,
    scenario_from_table,
    scenario_from_toml,
    scenario_to_table,
)
from kafka_trial.trial.load_factor import at_load, load_too_small, records_planned

WHOLE = Scenario(
    "s",
    load=Load(opening_burst=2000, rate_per_s=300, bursts=(Burst(1, 600), Burst(2, 4))),
    schedule=(Step("kill", "member", at_s=1, for_s=4),),
)


def test_burst_rate_and_bursts_become_smaller() -> None:
    """All else stays as the scenario says, and no burst vanishes; the factor is kept with it."""
    load = replace(WHOLE.load, factor=0.1, opening_burst=200, rate_per_s=30.0, bursts=(Burst(1, 60), Burst(2, 1)))
    assert at_load(WHOLE, 0.1) == replace(WHOLE, load=load)
    assert at_load(WHOLE, 1) == WHOLE


def test_a_scenario_that_was_scaled_is_not_scaled_again() -> None:
    """That of a run folder is played as it was; with another factor nobody knows of what."""
    stored, problems = scenario_from_table(
        {name: value for name, value in scenario_to_table(at_load(WHOLE, 0.1)).items() if name != "schema"}
    )
    assert (stored, problems) == (at_load(WHOLE, 0.1), [])
    assert stored is not None
    assert at_load(stored, 0.1) is stored
    with pytest.raises(InputError, match=r"--load: s is at a load of 0\.1 already"):
        at_load(stored, 0.5)
    assert "factor" not in scenario_to_table(WHOLE)["load"]


def test_a_file_does_not_scale_itself(tmp_path: Path) -> None:
    """A factor in a scenario of one's own would only be told, and change nothing."""
    (tmp_path / "s.toml").write_text('name = "s"\n[load]\nfactor = 0.1\n')
    assert scenario_from_toml(tmp_path / "s.toml") == (
        None,
        ["load.factor says what a run has done: lessen the load with --load, or [load] in consumer.toml"],
    )


@pytest.mark.parametrize("factor", [0, -1, 1.1, float("nan")])
def test_a_factor_is_a_part(factor: float) -> None:
    """Above nothing, at most all."""
    with pytest.raises(InputError, match=r"--load: .* must be above 0 and at most 1"):
        at_load(WHOLE, factor)


@pytest.mark.parametrize(
    ("load", "planned"),
    [
        (Load(opening_burst=50, rate_per_s=10, steady_s=1), 110),
        (Load(opening_burst=50, rate_per_s=10, steady_s=1, quiet_after_s=2), 80),
        (Load(opening_burst=50, rate_per_s=10, steady_s=1, aborted_ratio=0.5), 80),
        (Load(opening_burst=50, rate_per_s=10, steady_s=1, bursts=(Burst(1, 7), Burst(9, 7))), 117),
        (Load(opening_burst=50, rate_per_s=10, steady_s=1, records_max=60), 60),
    ],
)
def test_what_is_planned_counts_what_is_sure_to_be_sent(load: Load, planned: int) -> None:
    """The schedule ends after five seconds; it may last longer, never shorter."""
    assert records_planned(replace(WHOLE, load=load)) == planned


def test_too_small_a_load_is_refused_with_the_least_that_will_do() -> None:
    """The minimum of records stays; the least factor that is told is one that is taken."""
    told = load_too_small(WHOLE, 0.01)
    assert told == "at a load of 0.01 it plans 45 records, and a verdict takes 100: give at least 0.023"
    with pytest.raises(InputError, match=r"scenario s: at a load of 0\.01 it plans"):
        at_load(WHOLE, 0.01)
    assert at_load(WHOLE, 0.023).load.opening_burst == 46
    assert load_too_small(WHOLE, 0.022) is not None
    strict = replace(WHOLE, limits=Limits(records_judged_min=5000))
    assert load_too_small(strict, 1) is None
    assert str(load_too_small(strict, 0.5)).endswith("its load cannot be made smaller")


def test_a_tenth_fits_all_suites_but_those_of_few_large_records() -> None:
    """Which are refused by name."""
    refused = [name for name, one in registry.scenarios().items() if load_too_small(one, 0.1)]
    assert refused == ["hot-runs", "large-records"]

"""The load factor: the same trial with a smaller load, for consumers to which a suite's own load is too much.

It multiplies the opening burst, the rate and the bursts. Faults, times, keys and sizes stay, and so does the least
number of records that a verdict may rest on: a load that cannot reach it is refused.
"""

from __future__ import annotations

import math
from dataclasses import replace

from kafka_trial.errors import InputError
from kafka_trial.scenario import Load, Scenario, factor_problem

STEPS_A_UNIT = 1000  # the least factor is told in thousandths


def at_load(scenario: Scenario, factor: float) -> Scenario:
    """Returns the scenario with `factor` of its load; one that has that factor already (a scenario.json) as it is.

    Raises:
        InputError: the factor is not above 0 and at most 1, the scenario was scaled by another one, or too few records
            would be sent.
    """
    if scenario.load.factor == factor:
        return scenario
    if scenario.load.factor != 1:
        raise InputError("--load", f"{scenario.name} is at a load of {scenario.load.factor:g} already; leave it out")
    if problem := factor_problem(factor):
        raise InputError("--load", problem)
    if problem := load_too_small(scenario, factor):
        raise InputError(f"scenario {scenario.name}", problem)
    return _scaled(scenario, factor)


def load_too_small(scenario: Scenario, factor: float) -> str | None:
    """Returns why a verdict cannot rest on so little of a scenario's load, and the least factor; None where it can."""
    least, planned = scenario.limits.records_judged_min, records_planned(_scaled(scenario, factor))
    if factor == 1 or scenario.load.factor != 1 or planned >= least:
        return None
    what = "its smallest topic has" if scenario.further_topics else "it plans"
    few = f"at a load of {factor:g} {what} {planned} records, and a verdict takes {least}"
    if (needed := _least_factor(scenario)) is None:
        return f"{few}: its load cannot be made smaller"
    return f"{few}: give at least {needed:g}"


def records_planned(scenario: Scenario) -> int:
    """Returns how many records are sent at least, if the trial takes no longer than its schedule says: to the topic
    that gets the fewest."""
    faults_s = max([scenario.min_faults_s, *(step.at_s + step.for_s for step in scenario.schedule)])
    return min(_records_planned(load, faults_s) for load in scenario.loads)


def _records_planned(load: Load, faults_s: float) -> int:
    steady_s = load.steady_s + min(faults_s, math.inf if load.quiet_after_s is None else load.quiet_after_s)
    steady = int(load.rate_per_s * steady_s * (1 - load.aborted_ratio))
    bursts = sum(burst.records for burst in load.bursts if burst.at_s <= faults_s)
    return min(load.opening_burst + steady + bursts, load.records_max)


def _scaled(scenario: Scenario, factor: float) -> Scenario:
    load = scenario.load
    smaller = replace(
        load,
        factor=factor,
        opening_burst=_times(load.opening_burst, factor),
        rate_per_s=load.rate_per_s * factor,
        bursts=tuple(replace(burst, records=_times(burst.records, factor)) for burst in load.bursts),
    )
    further = tuple(
        replace(one, opening_burst=_times(one.opening_burst, factor), rate_per_s=one.rate_per_s * factor)
        for one in scenario.further_topics
    )
    return replace(scenario, load=smaller, further_topics=further)


def _times(records: int, factor: float) -> int:
    return max(1, round(records * factor))


def _least_factor(scenario: Scenario) -> float | None:
    """Returns the least factor, in thousandths, with which enough records are sent; None where only the whole is."""
    factors = (thousandths / STEPS_A_UNIT for thousandths in range(1, STEPS_A_UNIT))
    least = scenario.limits.records_judged_min
    return next((factor for factor in factors if records_planned(_scaled(scenario, factor)) >= least), None)

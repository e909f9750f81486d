"""Which suites `certify --budget` tries: those that find most per minute, by the calibration that the wheel ships.

Greedy: next comes the suite with the highest gain for each second it takes. Its gain is, summed over the anomalies that
no chosen suite finds yet, the share of its calibrated trials that found them. Those without a gain come last, the
shortest first. One that does not fit is left out, and a shorter one may still fit.

A suite fits where all trials end in time by the calibrated durations, n side by side, the longest begun first and the
others in any order: the start of brokers and judge; then the longest trial, or, where that is more, the second longest
and an n-th of all others (Graham, 1969).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from types import MappingProxyType
from typing import Any, Final

import orjson

from kafka_trial.consumers.spec import KafkaSettings
from kafka_trial.errors import InputError
from kafka_trial.report.explain import TABLE
from kafka_trial.scenario import Scenario
from kafka_trial.trial.group_watch import ADDING, CREATING

UNIT_S = {"s": 1, "m": 60, "h": 3600, "": 60}
NO_ROOM = "no room in a budget of {:g} s"
NOT_TIMED = "nobody has measured how long it takes"
NO_WAITS: Final[Mapping[str, float]] = MappingProxyType({})


@dataclass(frozen=True)
class Chosen:
    """The suites there is time for, in the order in which they are worth it, and why each other one is left out."""

    suites: list[str]
    left_out: dict[str, str]


def budget_seconds(given: str) -> float:
    """Returns a budget in seconds: `90s`, `10m`, `2h`, or plain minutes.

    Raises:
        InputError: it is none of these, or no time at all.
    """
    form = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", given.strip())
    if form is None or float(form[1]) == 0:
        raise InputError("--budget", f"{given!r} is no length of time: give 90s, 10m, 2h, or plain minutes as 10")
    return float(form[1]) * UNIT_S[form[2]]


def suite_seconds(
    table: Mapping[str, Any] | None = None, *, waits_s: Mapping[str, float] = NO_WAITS
) -> dict[str, float]:
    """Returns how long a trial of each suite takes that was timed; `waits_s`: how much longer with some consumer."""
    timed = (table or _calibration())["suites"]
    return {name: row["seconds"] + waits_s.get(name, 0.0) for name, row in timed.items()}


def waits_for_metadata_s(kafka: KafkaSettings, scenarios: Iterable[Scenario]) -> dict[str, float]:
    """Returns how many seconds the trials of a consumer may wait for its clients to notice partitions, by suite.

    A member of a classic group notices that its topic has grown when it asks for metadata again, at most its declared
    age later; those who were timed asked every two seconds. The coordinator tells members of KIP-848.
    """
    if kafka.protocol == "consumer":
        return {}
    return {
        one.name: kafka.metadata_age_s
        for one in scenarios
        if {ADDING, CREATING} & {step.fault for step in one.schedule}
    }


def choose_suites(
    names: Sequence[str],
    *,
    budget_s: float,
    trials_each: int = 1,
    side_by_side: int = 1,
    waits_s: Mapping[str, float] = NO_WAITS,
    table: Mapping[str, Any] | None = None,
) -> Chosen:
    """Returns which of these suites to try within a budget, each `trials_each` times; `waits_s` as in `suite_seconds`.

    Raises:
        InputError: there is room for none; it names the shortest.
    """
    table = table or _calibration()
    finds = {name: row["finds"] for name, row in table["suites"].items()}
    seconds = suite_seconds(table, waits_s=waits_s)
    waiting = [name for name in names if name in seconds]
    not_timed = dict.fromkeys((name for name in names if name not in seconds), NOT_TIMED)

    def ends_s(suites: Sequence[str]) -> float:
        longest_s, second_s, *_ = sorted([0.0] + trials_each * [seconds[name] for name in suites], reverse=True)
        all_s = trials_each * sum(seconds[name] for name in suites)
        return float(table["timed"]["first_s"] + max(longest_s, second_s + (all_s - second_s) / side_by_side))

    def worth(name: str) -> tuple[float, float, str]:
        covered = {anomaly for suite in chosen for anomaly in finds[suite]}
        adds = sum(share for anomaly, share in finds[name].items() if anomaly not in covered)
        return -adds / seconds[name], seconds[name], name

    chosen: list[str] = []
    while fits := [name for name in waiting if ends_s([*chosen, name]) <= budget_s]:
        chosen.append(min(fits, key=worth))
        waiting.remove(chosen[-1])
    if not chosen:
        raise InputError("--budget", _too_small(budget_s, {name: ends_s([name]) for name in waiting}))
    return Chosen(chosen, not_timed | dict.fromkeys(waiting, NO_ROOM.format(budget_s)))


def _too_small(budget_s: float, ends_s: Mapping[str, float]) -> str:
    if not ends_s:
        return f"none of these suites can be chosen: {NOT_TIMED}; leave --budget out"
    shortest = min(ends_s, key=ends_s.__getitem__)
    return (
        f"{budget_s:g} s is too little for any suite: the shortest, {shortest}, takes {ceil(ends_s[shortest])} s by "
        "the calibration; give at least that, or fewer versions (--kafka) and seeds (--repeat)"
    )


def _calibration() -> dict[str, Any]:
    return dict(orjson.loads(TABLE.read_bytes()))

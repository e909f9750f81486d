"""What another version makes of settings: those that are set, and those whose default is another one.

A value that is set stays what it is; brokers of the other version may refuse it (out of range, no longer a choice) or
not know the setting any more. Where nothing is set, the default counts, and it may have changed. Defaults of consumers,
producers and admin clients are those of the Java client: they change when the client's library does, not with brokers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kafka_trial.compatibility.meanings import BEHAVIOURS, Behaviour, explanation
from kafka_trial.compatibility.tables import NO_VALUE, Change, ConfigKey, changes, minor, order

REFUSED, GONE, CHANGES = "refused", "gone", "changes"
WEIGHTS: Final = (REFUSED, GONE, CHANGES)
REQUIRED: Final = "(required)"
UNEXPLAINED: Final = "unexplained"
RANGE: Final = re.compile(r"\[(-?[\d.]+)?,\.\.\.(?:,(-?[\d.]+))?\]")
CHOICES: Final = re.compile(r"(\(case insensitive\) )?\[(\w+(?:, \w+)*)\]")


@dataclass(frozen=True)
class ConfigFinding:
    """What becomes of one setting, as a sentence with its source."""

    role: str
    name: str
    weight: str
    message: str


def judge_settings(role: str, given: Mapping[str, str], *, now: str, to: str) -> list[ConfigFinding]:
    """Returns what version `to` makes of a role's settings: `given` are those that are set; others have defaults."""
    found = [finding for change in changes(role, now, to) if (finding := _judged(change, given, to=to))]
    return sorted(found, key=lambda finding: (WEIGHTS.index(finding.weight), finding.name))


def behaviours(*, now: str, to: str, whom: Iterable[str]) -> Iterator[Behaviour]:
    """Yields what brokers of `to` do otherwise than those of `now`, for those whom it concerns; both ways."""
    lower, upper = sorted((order(minor(now)), order(minor(to))))
    concerned = {*whom, "everyone"}
    yield from (one for one in BEHAVIOURS if lower < order(one.since) <= upper and one.whom in concerned)


def new_settings(role: str, *, now: str, to: str) -> list[str]:
    """Returns the settings that only version `to` has, and of which nothing is to be said."""
    told = {finding.name for finding in judge_settings(role, {}, now=now, to=to)}
    return [change.name for change in changes(role, now, to) if change.before is None and change.name not in told]


def _judged(change: Change, given: Mapping[str, str], *, to: str) -> ConfigFinding | None:
    value = given.get(change.name)
    if value is None:
        return _by_default(change)
    if change.after is None:
        told = f"{change.name} = {value} is set, and {to} has no such setting"
        return _finding(change, GONE, told)
    if refused(value, change.after):
        told = f"{change.name} = {value} is set, and {to} takes {change.after.valid} only"
        return _finding(change, REFUSED, told)
    return None


def _by_default(change: Change) -> ConfigFinding | None:
    why = explanation(change.role, change.name)
    if change.after is None:
        return None
    if change.before is None:
        if why is None or not why.new:
            return None
        return _finding(change, CHANGES, f"{change.name}: new, {_shown(change.after)} by default")
    if _same(change.before.default, change.after.default):
        return None
    if change.after.default == REQUIRED:
        return _finding(change, CHANGES, f"{change.name}: {_shown(change.before)} → must be set")
    return _finding(change, CHANGES, f"{change.name}: {_shown(change.before)} → {_shown(change.after)}")


def _finding(change: Change, weight: str, told: str) -> ConfigFinding:
    why = explanation(change.role, change.name)
    more = UNEXPLAINED if why is None else f"{why.source}: {why.means}"
    return ConfigFinding(change.role, change.name, weight, f"{told} (since {minor(change.since)}; {more})")


def refused(value: str, setting: ConfigKey) -> bool:
    """Tells whether a value is certainly none that a setting takes: out of its range, or none of its choices."""
    if (limits := RANGE.fullmatch(setting.valid)) and re.fullmatch(r"-?\d+(\.\d+)?", value):
        least, most = limits[1], limits[2]
        return (least is not None and float(value) < float(least)) or (most is not None and float(value) > float(most))
    if (choices := CHOICES.fullmatch(setting.valid)) and value:
        allowed = choices[2].split(", ")
        words = value.split(",") if setting.type == "LIST" else [value]
        folded = [str.casefold(one) for one in allowed] if choices[1] else allowed
        return any((word.strip().casefold() if choices[1] else word.strip()) not in folded for word in words)
    return False


def _same(before: str, after: str) -> bool:
    """Nothing and an empty list say the same (KIP-1161)."""
    return before == after or {before, after} == {NO_VALUE, ""}


def _shown(setting: ConfigKey) -> str:
    return {NO_VALUE: "none", "": "empty"}.get(setting.default, setting.default)

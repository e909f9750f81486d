"""What was asked, as a run folder says: the consumer's claim, and how much had to be judged under which faults."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka_trial.claim import Claim, claim_problems
from kafka_trial.errors import InputError
from kafka_trial.history.store import RunFolder
from kafka_trial.scenario import Limits, Topic
from kafka_trial.verdict.sanitize import plain


@dataclass(frozen=True)
class Scope:
    """What the scenario asked for, as far as the verdict needs it; `doubts`: why some of it cannot be known."""

    partitions: int | None = None
    records_judged_min: int = Limits().records_judged_min
    planned: tuple[Mapping[str, Any], ...] = ()
    doubts: tuple[str, ...] = ()


def claim_of(folder: RunFolder) -> tuple[Claim, list[str]]:
    """Returns the claim of the run folder's consumer.toml, and why it cannot be known, if so."""
    try:
        table = tomllib.loads((folder.path / "consumer.toml").read_text(encoding="utf-8")).get("claim", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return Claim("unclaimed"), [
            f"nobody knows what was claimed: consumer.toml cannot be read ({type(error).__name__})"
        ]
    problems = claim_problems(table) if isinstance(table, dict) else ["[claim] is not a table"]
    if problems:
        return Claim("unclaimed"), [f"nobody knows what was claimed: {plain(problem)}" for problem in problems]
    return Claim(**table), []


def scope_of(folder: RunFolder) -> Scope:
    """Returns what the run folder's scenario and schedule asked for; defaults, and doubts, where they are damaged."""
    scenario, schedule = (_table(folder, name) for name in ("scenario.json", "schedule.json"))
    topic, limits = (_section(scenario, name) for name in ("topic", "limits"))
    faults = schedule.get("faults") if schedule else None
    planned = tuple(fault for fault in faults if isinstance(fault, Mapping)) if isinstance(faults, list) else ()
    doubts = [] if scenario else [f"nobody knows how much was to be judged: {_damaged('scenario.json')}"]
    if not isinstance(faults, list) or len(planned) < len(faults):
        doubts.append(f"nobody knows how many faults were planned: {_damaged('schedule.json')}")
    return Scope(
        partitions=topic.get("partitions", Topic().partitions) if scenario else None,
        records_judged_min=limits.get("records_judged_min", Limits().records_judged_min),
        planned=planned,
        doubts=tuple(doubts),
    )


def _damaged(name: str) -> str:
    return f"{name} is missing or damaged"


def _section(table: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    section = (table or {}).get(name)
    return section if isinstance(section, Mapping) else {}


def _table(folder: RunFolder, name: str) -> Mapping[str, Any] | None:
    try:
        value = folder.read_json(name)
    except InputError:
        return None
    return value if isinstance(value, Mapping) else None

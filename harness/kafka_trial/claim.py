"""The claim: what a consumer's team promises, and which anomalies break that promise.

The same anomalies are computed whatever the claim; the claim only sorts them (`verdict/`). The keys and the table
of violations are a contract (consumer.toml, section [claim]).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from kafka_trial.errors import none_of, shown, unknown_name

DELIVERY = ("at-least-once", "at-most-once", "exactly-once", "unclaimed")
ACROSS_PARTITIONS = "key-across-partitions"
ORDER = ("partition", "key", ACROSS_PARTITIONS, "none")
COMMITS = ("settling", "monotonic")
STATE = ("key", "entity", "none")


@dataclass(frozen=True)
class Claim:
    """What is promised. Sizes in bytes, times in seconds; None means no limit, or derived."""

    delivery: str
    order: str = "partition"
    commits: str = "settling"
    state: str = "key"
    fenced: bool = False
    no_rogue_reader: bool = False
    converge_within_s: float | None = None
    memory_max_bytes: int | None = None
    redelivered_max_ratio: float | None = None
    lag_age_max_s: float | None = None
    reads_cold_bytes_max: int | None = None
    cold_after_s: float | None = None


SWITCHES = ("fenced", "no_rogue_reader")
LIMITS = (
    *("converge_within_s", "memory_max_bytes", "redelivered_max_ratio", "lag_age_max_s"),
    *("reads_cold_bytes_max", "cold_after_s"),
)
CHOICES = {"delivery": DELIVERY, "order": ORDER, "commits": COMMITS, "state": STATE}


def claim_problems(table: dict[str, Any]) -> list[str]:
    """Returns every problem of a [claim] table as a sentence; empty when it is sound."""
    valid = [field.name for field in fields(Claim)]
    problems = [f"[claim] {unknown_name('key', key, valid)}" for key in table if key not in valid]
    if "delivery" not in table:
        problems.append(f"[claim] delivery is missing; write one of: {', '.join(DELIVERY)}")
    for key, choices in CHOICES.items():
        if key in table and table[key] not in choices:
            problems.append(none_of(f"[claim] {key}", table[key], choices))
    problems += [
        f"[claim] {key} = {shown(table[key])} must be true or false"
        for key in SWITCHES
        if not isinstance(table.get(key, False), bool)
    ]
    if "cold_after_s" in table and "reads_cold_bytes_max" not in table:
        problems.append("[claim] cold_after_s says nothing without reads_cold_bytes_max: say how much may be read, too")
    return problems + [
        f"[claim] {key} = {shown(table[key])} must be a positive number"
        for key in LIMITS
        if key in table and not _positive(table[key])
    ]


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf

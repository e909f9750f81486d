"""Consumer settings: what consumer.toml says that judging needs.

Read again at each `check`, for a claim may be changed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kafka_trial.model.trial_context import Settings

SUCCESSORS = "successor-*.toml"
TIMES = ("session_timeout_s", "poll_interval_s", "metadata_age_s", "request_timeout_s", "ready_within_s")


def settings_of(path: Path) -> Settings:
    """Returns what consumer.toml declares, for the bounds and for which rules apply; defaults where it says nothing.

    The file was checked before the trial; one that cannot be read now leaves the defaults. Where members were moved to
    successors, which lie beside it, the longest of each time counts.
    """
    told = [_declared(file) for file in (path, *sorted(path.parent.glob(SUCCESSORS)))]
    longest: dict[str, Any] = {name: _longest(told, name) for name in TIMES}
    return replace(told[0], **longest)


def _longest(told: Sequence[Settings], name: str) -> float | None:
    return max((value for one in told if (value := getattr(one, name)) is not None), default=None)


def _declared(path: Path) -> Settings:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return Settings()
    kafka, progress, evidence, claim = (_section(table, name) for name in ("kafka", "progress", "evidence", "claim"))
    given = {
        "protocol": kafka.get("protocol"),
        "session_timeout_s": kafka.get("session_timeout_s"),
        "poll_interval_s": kafka.get("poll_interval_s"),
        "metadata_age_s": kafka.get("metadata_age_s"),
        "request_timeout_s": kafka.get("request_timeout_s"),
        "commit_interval_s": progress.get("interval_s"),
        "progress": progress.get("kind"),
        "delivery": claim.get("delivery"),
        "converge_within_s": claim.get("converge_within_s"),
        "memory_max_bytes": claim.get("memory_max_bytes"),
        "lag_age_max_s": claim.get("lag_age_max_s"),
        "reads_cold_bytes_max": claim.get("reads_cold_bytes_max"),
        "cold_after_s": claim.get("cold_after_s"),
        "events": evidence.get("events", "jsonl"),
        "sink": evidence.get("sink", "none"),
        "no_effect": tuple(evidence["no_effect"]) if "no_effect" in evidence else None,
        "effects": evidence.get("effects"),
        "body": evidence.get("body"),
        "handler": evidence.get("handler"),
        "stdout": evidence.get("stdout"),
        "handler_max_s": evidence.get("handler_max_s"),
        "ready_within_s": _section(table, "ready").get("within_s"),
        "declared": (*kafka, *(f"stop.{name}" for name in _section(table, "stop"))),
    }
    return replace(Settings(), **{name: value for name, value in given.items() if value is not None})


def _section(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = table.get(name, {})
    return section if isinstance(section, Mapping) else {}

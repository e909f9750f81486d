"""The settings an audit judges by, and the consumer.toml that stands for them in its run folder.

Declared by the claim's file, else told by the group's own records, else Kafka's defaults: the longer they are, the
longer anything must last before anybody is blamed for it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from kafka_trial.audit.offsets import GroupSettings
from kafka_trial.audit.request import NS_PER_S, AuditRequest
from kafka_trial.claim import claim_problems
from kafka_trial.errors import InputError, reason
from kafka_trial.model.liveness_bounds import stall_window_s, timing_of
from kafka_trial.model.trial_context import Settings

SESSION_TIMEOUT_S, POLL_INTERVAL_S, COMMIT_INTERVAL_S = 45.0, 300.0, 5.0  # Kafka's defaults
UNCLAIMED = {"delivery": "unclaimed", "order": "none"}


def read_claim(path: Path) -> Mapping[str, Any]:
    """Returns the tables of a claim's file: [claim], and if it has them [kafka] and [progress], as in consumer.toml.

    Raises:
        InputError: it cannot be read, or claims what there is not.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(str(path), f"cannot be read as TOML: {reason(error)}") from error
    if not isinstance(tables.get("claim"), dict):
        raise InputError(str(path), "has no [claim] table. Write one with delivery = ..., or leave --claim away")
    problems = claim_problems(tables["claim"])
    if problems:
        raise InputError(str(path), problems)
    return {name: tables[name] for name in ("claim", "kafka", "progress") if isinstance(tables.get(name), dict)}


def settings_of(request: AuditRequest, told: GroupSettings | None = None) -> Settings:
    """Returns what is known of the group's settings; before the log was read, what is declared or Kafka's default."""
    kafka, progress = (request.claim.get(name, {}) for name in ("kafka", "progress"))
    session_s = told.session_timeout_ms / 1000 if told and told.session_timeout_ms else SESSION_TIMEOUT_S
    poll_s = told.rebalance_timeout_ms / 1000 if told and told.rebalance_timeout_ms else POLL_INTERVAL_S
    return replace(
        Settings(),
        protocol=str(kafka.get("protocol", told.protocol if told else "classic")),
        session_timeout_s=float(kafka.get("session_timeout_s", session_s)),
        poll_interval_s=float(kafka.get("poll_interval_s", poll_s)),
        commit_interval_s=float(progress.get("interval_s", COMMIT_INTERVAL_S)),
        progress=str(progress.get("kind", "kafka")),
        events="none",
        sink=request.sink.kind if request.sink else "none",
    )


def settle_ns(settings: Settings) -> int:
    """Returns for how long a thing must have stood before it counts as standing: the window W of stuck partitions."""
    return int(stall_window_s(timing_of(settings)) * NS_PER_S)


def consumer_toml(request: AuditRequest, settings: Settings) -> str:
    """Returns the consumer.toml that says to the judge what is known of this group."""
    tables: dict[str, Mapping[str, Any]] = {
        "kafka": {
            "protocol": settings.protocol,
            "session_timeout_s": settings.session_timeout_s,
            "poll_interval_s": settings.poll_interval_s,
        },
        "progress": {"kind": settings.progress, "interval_s": settings.commit_interval_s},
        "evidence": {"events": settings.events, "sink": settings.sink},
        "claim": request.claim.get("claim", UNCLAIMED),
    }
    lines = [
        "# Written by an audit: what is known of this group, for the judge.",
        "schema = 1",
        _line("name", request.group),
    ]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(_line(key, value) for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _line(key: str, value: Any) -> str:
    text = orjson.dumps(value).decode().replace("\x7f", "\\u007f")  # which TOML, unlike JSON, wants escaped
    return f"{key} = {text}"  # JSON's other strings, numbers and booleans are TOML's

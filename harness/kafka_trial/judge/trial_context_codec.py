"""The trial context as plain data, for the cache, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from kafka_trial.invariants.group_timeouts import DeclaredTimeouts
from kafka_trial.invariants.trial_context import (
    Connection,
    Epoch,
    GroupAnswer,
    HeartbeatRun,
    Incarnation,
    LostEvents,
    Membership,
    OomRise,
    OpenTransaction,
    OwnClient,
    Peak,
    Settings,
    TrialContext,
    Window,
)


def to_plain(trial_context: TrialContext) -> dict[str, Any]:
    """Returns the trial context as plain data, for the cache."""
    plain = asdict(trial_context)
    return plain | {"lanes": sorted(trial_context.lanes.items())}


def from_plain(plain: Mapping[str, Any]) -> TrialContext:
    """Returns the trial context that `to_plain` wrote."""
    return TrialContext(
        **dict(plain)
        | {
            "slices": tuple((topic, partition) for topic, partition in plain["slices"]),
            "lives": tuple(Incarnation(**life) for life in plain["lives"]),
            "windows": tuple(Window(**window) for window in plain["windows"]),
            "connections": tuple(Connection(**one) for one in plain["connections"]),
            "own_clients": tuple(OwnClient(**one) for one in plain["own_clients"]),
            "memberships": tuple(Membership(**one) for one in plain["memberships"]),
            "group_answers": tuple(_group_answer(one) for one in plain["group_answers"]),
            "heartbeat_runs": tuple(HeartbeatRun(**one) for one in plain["heartbeat_runs"]),
            "settings": _settings(plain["settings"]),
            "told": DeclaredTimeouts(**plain["told"] | {"leaves": tuple(map(tuple, plain["told"]["leaves"]))}),
            "lanes": dict(plain["lanes"]),
            "lost_events": tuple(LostEvents(**one) for one in plain["lost_events"]),
            "peaks": tuple(Peak(**peak) for peak in plain["peaks"]),
            "oom_rises": tuple(OomRise(**rise) for rise in plain["oom_rises"]),
            "open_transactions": tuple(OpenTransaction(**one) for one in plain["open_transactions"]),
            "epochs": tuple(Epoch(**epoch) for epoch in plain["epochs"]),
            **{
                name: tuple(plain[name])
                for name in (
                    *("sources", "members", "member_ids", "owners", "environment"),
                    *("topic_changes", "fetching", "shared_lanes", "logs", "timed"),
                )
            },
            **{
                name: tuple(map(tuple, plain[name]))
                for name in ("clocks", "delays", "harness_stalls", "readings", "refusals", "false_times")
            },
        }
    )


def _group_answer(plain: Mapping[str, Any]) -> GroupAnswer:
    listed = {name: None if plain[name] is None else tuple(plain[name]) for name in ("assigned", "owned")}
    return GroupAnswer(**dict(plain) | listed)


def _settings(plain: Mapping[str, Any]) -> Settings:
    return Settings(**dict(plain) | {name: tuple(plain[name]) for name in ("no_effect", "declared")})

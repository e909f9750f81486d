"""Circumstances as plain data, for the cache, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from kafka_trial.invariants.circumstances import (
    Circumstances,
    Epoch,
    Life,
    Membership,
    OomRise,
    OpenTransaction,
    Peak,
    Settings,
    Window,
)
from kafka_trial.invariants.told import Told


def to_plain(circumstances: Circumstances) -> dict[str, Any]:
    """Returns the circumstances as plain data, for the cache."""
    plain = asdict(circumstances)
    return plain | {"lanes": sorted(circumstances.lanes.items())}


def from_plain(plain: Mapping[str, Any]) -> Circumstances:
    """Returns the circumstances that `to_plain` wrote."""
    return Circumstances(
        **dict(plain)
        | {
            "slices": tuple((topic, partition) for topic, partition in plain["slices"]),
            "lives": tuple(Life(**life) for life in plain["lives"]),
            "windows": tuple(Window(**window) for window in plain["windows"]),
            "memberships": tuple(Membership(**one) for one in plain["memberships"]),
            "settings": Settings(**plain["settings"] | {"declared": tuple(plain["settings"]["declared"])}),
            "told": Told(**plain["told"] | {"leaves": tuple(map(tuple, plain["told"]["leaves"]))}),
            "lanes": dict(plain["lanes"]),
            "peaks": tuple(Peak(**peak) for peak in plain["peaks"]),
            "oom_rises": tuple(OomRise(**rise) for rise in plain["oom_rises"]),
            "open_transactions": tuple(OpenTransaction(**one) for one in plain["open_transactions"]),
            "epochs": tuple(Epoch(**epoch) for epoch in plain["epochs"]),
            **{
                name: tuple(plain[name])
                for name in (
                    *("sources", "members", "member_ids", "owners", "environment"),
                    *("topic_changes", "fetching", "logs"),
                )
            },
            **{name: tuple(map(tuple, plain[name])) for name in ("clocks", "delays", "standstills", "refusals")},
        }
    )

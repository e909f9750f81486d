"""Until when brokers can go back to the version they came from, computed from the features' levels.

Before a level is finalised that the old version does not support, brokers simply become old again. Afterwards the level
has to be lowered first. metadata.version can be lowered only while no level between changes the metadata's records
(`MetadataVersion.checkIfMetadataChanged`; forcing it is not implemented, KAFKA-13896); kraft.version never; others can.
And a node that replays a level from the metadata log which it does not support refuses to work, even when that was
lowered later (`FeatureControlManager.replay`): it has to start from a snapshot that was taken after. Tried in November
2026: a node of 4.0.2 died at its start ("Error loading metadata log record") after one of 4.2.2 had raised its cluster
to 4.2-IV1 and lowered it to 4.0-IV3; with a newer snapshot it came up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kafka_trial.cluster.versions import Release
from kafka_trial.compatibility.feature_levels import (
    KRAFT,
    METADATA,
    defaults_of,
    level_name,
    metadata_versions,
    supported,
)

NEWER_SNAPSHOT: Final = (
    "every node needs a snapshot of the metadata that is newer (metadata.log.max.snapshot.interval.ms: an hour)"
)


@dataclass(frozen=True)
class WayBack:
    """The way back from one release to another, if features are raised to the levels that are asked for.

    `ends_with`: by feature the lowest level whose finalisation ends it. `lower_first`: by feature the level to which it
    has to be lowered before, for those that can be. Neither: brokers can go back whatever is finalised.
    """

    before: Release
    after: Release
    ends_with: Mapping[str, int]
    lower_first: Mapping[str, int]

    def __str__(self) -> str:
        told = [f"Reversible: brokers can go back to {self.before} whatever is finalised."]
        if self.ends_with:
            first = " or ".join(f"{level_name(feature, level)} or higher" for feature, level in self.ends_with.items())
            told = [f"Reversible until {first} is finalised: from then on brokers cannot go back to {self.before}."]
        if self.lower_first:
            lowered = ", ".join(level_name(feature, level) for feature, level in self.lower_first.items())
            told += [f"Features that were raised are lowered before brokers go back ({lowered}), and {NEWER_SNAPSHOT}."]
        if "transaction.version" in self.lower_first:
            told += ["Lowering transaction.version ends transactional producers that are at work."]
        return " ".join(told)


def reversible_until(
    before: Release, after: Release, finalised: Mapping[str, int], raised: Mapping[str, int] | None = None
) -> WayBack:
    """Returns until when a move can be taken back; `finalised` are the levels in force before it.

    `raised` are the levels that are to be finalised after it: by default all that a new cluster of `after` would have.

    Raises:
        InputError: nothing is known of the features of one of the two.
    """
    there = supported(before)
    ends: dict[str, int] = {}
    lowered: dict[str, int] = {}
    for feature, target in {**finalised, **(defaults_of(after) if raised is None else raised)}.items():
        highest = there.get(feature, (0, 0))[1]
        beyond = range(max(highest, finalised.get(feature, 0)) + 1, target + 1)
        first = next((level for level in beyond if not may_be_lowered(feature, level, highest)), None)
        if first is not None:
            ends[feature] = first
        elif beyond:
            lowered[feature] = highest
    return WayBack(before, after, ends, lowered)


def may_be_lowered(feature: str, level: int, to: int) -> bool:
    """Whether Kafka lets a finalised level be lowered."""
    if feature == KRAFT:
        return False
    if feature == METADATA:
        known = metadata_versions()
        return all(one in known and not known[one].changes_metadata for one in range(to + 1, level + 1))
    return True


def lowering(feature: str, level: int, to: int) -> str:
    """Returns what to do so that nodes can work again which support a feature only up to a lower level."""
    named = level_name(feature, to).removeprefix(f"{feature} ")
    return f"Lower {level_name(feature, level)} to {named} (kafka-features downgrade); {NEWER_SNAPSHOT}"

"""The features of clusters by Kafka version: which levels there are, and which of them brokers of a version support.

`feature_levels.json` is what Kafka's own classes say (MetadataVersion, Feature and QuorumFeatures in the jars);
`python -m lab.kafka_versions` writes it again. A level is finalised for the whole cluster (KIP-584); a node that does
not support a finalised level refuses to work. Levels that are not ready for production are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

from kafka_trial.cluster.versions import Release, parse_release
from kafka_trial.errors import InputError

TABLE: Final = Path(__file__).with_name("feature_levels.json")
METADATA: Final = "metadata.version"
KRAFT: Final = "kraft.version"
FIRST_KRAFT: Final = Release(3, 3)  # of which upgrades to 4.x start
ONLY_METADATA_UNTIL: Final = Release(3, 9)  # kraft.version is the second feature of all (KIP-853)
LOWEST_BEFORE_4: Final = 1


@dataclass(frozen=True)
class MetadataVersion:
    """One level of metadata.version: its name, and whether it changed the metadata's records (no way back then)."""

    level: int
    name: str
    changes_metadata: bool


@dataclass(frozen=True)
class FeatureLevel:
    """One level of another feature: at which metadata.version a new cluster has it, and which levels it needs."""

    feature: str
    level: int
    default_at: str
    needs: Mapping[str, int]


@cache
def metadata_versions() -> Mapping[int, MetadataVersion]:
    """Returns the metadata versions by their levels, the oldest first."""
    return {row[0]: MetadataVersion(*row) for row in _table()["metadata_versions"]}


@cache
def feature_levels() -> Mapping[str, Mapping[int, FeatureLevel]]:
    """Returns the levels of all other features, from 1 on."""
    return {
        name: {level: FeatureLevel(name, level, default, needs) for level, default, needs in rows}
        for name, rows in _table()["features"].items()
    }


def supported(release: Release) -> Mapping[str, tuple[int, int]]:
    """Returns by feature the lowest and the highest level that nodes of a release support.

    All patches of a line support the same. What is not among them can only be at level 0, which is off.

    Raises:
        InputError: nothing is known of its line.
    """
    rows: dict[str, dict[str, list[int]]] = _table()["supported"]
    for number in sorted(rows, key=parse_release, reverse=True):
        if parse_release(number).line == release.line:
            return {feature: (lowest, highest) for feature, (lowest, highest) in rows[number].items()}
    if FIRST_KRAFT <= release < ONLY_METADATA_UNTIL:  # a name of metadata.version bears the line it came with
        own = [one.level for one in metadata_versions().values() if _line_of(one.name) <= release]
        return {METADATA: (LOWEST_BEFORE_4, max(own))}
    raise InputError(f"Kafka {release}", f"the features of {release.line} are not known; known: {', '.join(rows)}")


def level_name(feature: str, level: int) -> str:
    """Returns a level as Kafka's tools print it: `metadata.version 4.3-IV0`, `share.version 1`."""
    known = metadata_versions().get(level) if feature == METADATA else None
    return f"{feature} {known.name if known else level}"


def defaults_of(release: Release) -> Mapping[str, int]:
    """Returns the levels that a release raises a cluster to: all that are a default at its newest metadata.version.

    kraft.version is left out: raised, it makes static voters dynamic, for good (KAFKA-21426).
    """
    newest = supported(release)[METADATA][1]
    at = {one.name: one.level for one in metadata_versions().values()}
    found = {METADATA: newest}
    for name, levels in feature_levels().items():
        highest = supported(release).get(name, (0, 0))[1]
        own = [one.level for one in levels.values() if one.level <= highest and at[one.default_at] <= newest]
        if own and name != KRAFT:
            found[name] = max(own)
    return found


def _line_of(name: str) -> Release:
    return parse_release(name.partition("-")[0])


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = orjson.loads(TABLE.read_bytes())
    return table

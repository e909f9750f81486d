"""The features of clusters by Kafka version: which levels there are, which brokers support, which an upgrade finalises.

`feature_levels.json` is what Kafka's own classes say (MetadataVersion, Feature and QuorumFeatures in the jars); `python
-m lab.kafka_versions` writes it again. A level is finalised for the whole cluster (KIP-584); a node that does not
support a finalised level refuses to work. Levels that are not ready for production are left out.

They are finalised by name, never by a release version (`kafka-features upgrade --release-version`): from 4.1 on that
raises kraft.version too, and static voters become dynamic for good (KAFKA-21426). metadata.version comes first: the
levels of other features may need one (KIP-1022; in the tables eligible.leader.replicas.version 1 does).
transaction.version is its own step, so that a transaction can be open across it; eligible.leader.replicas.version comes
after it, because from then on min.insync.replicas is the cluster's and no single broker's, which what follows has to
live with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

from kafka_trial.cluster.versions import Release, parse_release
from kafka_trial.errors import InputError, UnjudgeableError

TABLE: Final = Path(__file__).with_name("feature_levels.json")
METADATA: Final = "metadata.version"
KRAFT: Final = "kraft.version"
FIRST_KRAFT: Final = Release(3, 3)  # of which upgrades to 4.x start
ONLY_METADATA_UNTIL: Final = Release(3, 9)  # kraft.version is the second feature of all (KIP-853)
LOWEST_BEFORE_4: Final = 1
TRANSACTIONS: Final = "transaction.version"
ELIGIBLE_LEADERS: Final = "eligible.leader.replicas.version"
ORDER: Final = (METADATA, "group.version", TRANSACTIONS, ELIGIBLE_LEADERS, "share.version", "streams.version")
Levels = Mapping[str, tuple[int, int]]  # by feature the lowest and the highest that a broker supports


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


@dataclass(frozen=True)
class Raise:
    """A feature whose level is raised, from which level to which."""

    feature: str
    before: int
    level: int

    def __str__(self) -> str:
        was = level_name(self.feature, self.before).removeprefix(f"{self.feature} ")
        return f"{self.feature} {was} → {level_name(self.feature, self.level).removeprefix(f'{self.feature} ')}"


def levels_to_raise(after: Release, finalised: Mapping[str, int], supported: Mapping[int, Levels]) -> tuple[Raise, ...]:
    """Returns what is raised after all brokers are of a release, one after the other.

    Up to what a new cluster of it has, but for kraft.version. `finalised`: the levels in force, a feature that is not
    among them is at 0; `supported`: what each broker answers, by its id.

    Raises:
        UnjudgeableError: a broker does not support such a level: it is still of the version before.
        InputError: nothing is known of the features of the release.
    """
    wanted = {name: level for name, level in defaults_of(after).items() if level > finalised.get(name, 0)}
    lacking = [
        f"broker {broker} supports {level_name(name, levels.get(name, (0, 0))[1])} at most, not "
        f"{level_name(name, level)}"
        for broker, levels in sorted(supported.items())
        for name, level in wanted.items()
        if levels.get(name, (0, 0))[1] < level
    ]
    if lacking:
        raise UnjudgeableError(f"not all brokers are of {after} yet: {'; '.join(lacking)}")
    return tuple(Raise(name, finalised.get(name, 0), wanted[name]) for name in _in_order(wanted, finalised))


def _in_order(wanted: Mapping[str, int], finalised: Mapping[str, int]) -> Iterator[str]:
    """Yields features in their order, those that the order does not know last; each after what its level needs."""
    now, left = dict(finalised), sorted(wanted, key=lambda name: (_place(name), name))
    while left:
        ready = next((name for name in left if _has_what_it_needs(name, wanted[name], now)), None)
        if ready is None:
            raise UnjudgeableError(f"a level that another one needs is not finalised: {', '.join(left)}")
        now[ready] = wanted[ready]
        left.remove(ready)
        yield ready


def _place(name: str) -> int:
    return ORDER.index(name) if name in ORDER else len(ORDER)


def _has_what_it_needs(name: str, level: int, now: Mapping[str, int]) -> bool:
    known = feature_levels().get(name, {}).get(level)
    return known is None or all(now.get(needed, 0) >= least for needed, least in known.needs.items())

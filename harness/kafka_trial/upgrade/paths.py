"""Paths: which move of a cluster from one version of Kafka to another is allowed, and until when it can be undone.

Said before anything starts, by rules with their sources, each about versions down to the patch. What a version supports
of each feature, and which metadata versions change what stands in the metadata log, comes from Kafka's own classes
(`features.json`, written by `python -m lab.tables.features`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

from kafka_trial.kafka_protocol.features import METADATA_VERSION

FEATURES: Final = Path(__file__).with_name("features.json")
IN_PLACE, REPLACE = "in-place", "replace"
KRAFT_SINCE, KRAFT_ONLY = (3, 3), (4, 0)
CONSUMER_PROTOCOL_SINCE = (4, 0)
KNOWS_CONSUMER_GROUPS = (3, 4, 1)
KRAFT_VERSION: Final = "kraft.version"


@dataclass(frozen=True)
class Refusal:
    """Why a move is not allowed: the rule, where it stands, and what to do instead."""

    rule: str
    source: str
    remedy: str

    @property
    def sentence(self) -> str:
        return f"{self.rule} ({self.source}): {self.remedy}"


@dataclass(frozen=True)
class Flaw:
    """Versions that are not to be upgraded to: from the first that has the flaw to the one that mends it."""

    first: str
    mended: str
    what: str
    source: str


FLAWS: Final = (
    Flaw("4.0.0", "4.0.1", "brokers refuse JoinGroup 0 and 1, which old clients send", "KAFKA-19444"),
    Flaw(
        "4.0.0",
        "4.0.2",
        "no rebalance follows where a classic static member replaces the last one of the consumer protocol",
        "KAFKA-19546",
    ),
    Flaw("4.2.0", "4.2.1", "after a compaction and a restart a coordinator cannot load its groups", "KAFKA-20254"),
    Flaw("4.2.0", "4.2.1", "transactional producers fail in a mixed cluster: UNSUPPORTED_VERSION", "KAFKA-20322"),
    Flaw("4.2.0", "4.2.1", "a share group can come to a deadlock", "KAFKA-20505"),
)


def order(version: str) -> tuple[int, ...]:
    """Returns what versions are compared by: 4.10.0 comes after 4.9.1."""
    return tuple(int(part) for part in version.split("."))


def refusals(
    before: str,
    after: str,
    *,
    shape: str = IN_PLACE,
    protocols: Sequence[str] = (),
    replaces_voters: bool = False,
    kraft_version: int = 0,
) -> list[Refusal]:
    """Returns why the move is not allowed, as far as the versions tell; empty where it is.

    `protocols`: of the groups on the cluster. `replaces_voters`: whether controllers of the quorum are to be exchanged
    too, and not brokers alone. `kraft_version`: as finalised.
    """
    told: list[Refusal] = []
    if order(after) < order(before):
        told.append(
            Refusal(
                f"{after} is older than {before}",
                "Kafka, Upgrading: a downgrade is possible until a metadata version that changes metadata is finalised",
                f"name them the other way round: the way back to {before} is one of the stages of an upgrade",
            )
        )
    if order(after) >= KRAFT_ONLY and order(before) < KRAFT_SINCE:
        told.append(
            Refusal(
                f"brokers of {before} know no KRaft that {after} can take over",
                "Kafka 4.0, Upgrading: from 3.3 on, in KRaft mode",
                "upgrade to 3.9 first, migrate from ZooKeeper to KRaft there, then go on",
            )
        )
    told += _flawed(after)
    if "consumer" in protocols and order(before) < CONSUMER_PROTOCOL_SINCE:
        told.append(
            Refusal(
                f"groups of the consumer protocol cannot begin on {before}",
                "KIP-848, general availability in 4.0",
                "begin with a consumer of the classic protocol, and name the other one as its successor",
            )
        )
    if replaces_voters and kraft_version < 1:
        told.append(
            Refusal(
                "controllers of a static quorum cannot be exchanged",
                "KIP-853: voters are added and removed where kraft.version is 1",
                "replace brokers alone, or change to dynamic voters first, with kraft.version 1 (from 4.1 on)",
            )
        )
    return told


def _flawed(version: str) -> Iterator[Refusal]:
    for flaw in FLAWS:
        if order(flaw.first) <= order(version) < order(flaw.mended):
            yield Refusal(f"in {version} {flaw.what}", flaw.source, f"upgrade to {flaw.mended} or later")


def below_consumer_groups(version: str, protocols: Sequence[str]) -> Refusal | None:
    """Returns why a cluster that has had groups of these protocols must not go back to a version; None where it may."""
    if "consumer" not in protocols or order(version) >= KNOWS_CONSUMER_GROUPS:
        return None
    return Refusal(
        f"brokers of {version} cannot read the records of a group of the consumer protocol",
        "Kafka 4.0, Upgrading: no downgrade below 3.4.1",
        "go back no further than 3.4.1",
    )


def way_back(before: str, finalised: Mapping[str, int]) -> list[Refusal]:
    """Returns what keeps a cluster with these features in force from going back to brokers of a version; empty where
    nothing does."""
    told = []
    for name, level in sorted(finalised.items()):
        lowest, highest = supported(before).get(name, (0, 0))
        if name == METADATA_VERSION:
            if level > highest and (first := _first_change(highest, level)) is not None:
                told.append(
                    Refusal(
                        f"{name} {metadata_name(level)} is finalised, and {metadata_name(first)} changed the metadata",
                        "KIP-584, KIP-778; MetadataVersion.didMetadataChange",
                        f"there is no way back to {before}: lowering it would lose metadata, which is not implemented",
                    )
                )
            elif level > highest:
                told.append(
                    Refusal(
                        f"{name} {metadata_name(level)} is finalised, {before} knows {metadata_name(highest)} at most",
                        "KIP-584",
                        f"lower it first, to {metadata_name(highest)}: no metadata changed in between",
                    )
                )
        elif not lowest <= level <= highest:
            told.append(
                Refusal(
                    f"{name} {level} is finalised, {before} supports {highest} at most",
                    "KIP-584",
                    f"lower it first, to {highest}",
                )
            )
    return told


def reversible_until(before: str, after: str) -> str:
    """Returns until which step the move can be undone, as a sentence."""
    first = _first_change(supported(before)[METADATA_VERSION][1], supported(after)[METADATA_VERSION][1])
    if first is None:
        return (
            f"reversible to the end: no metadata version between those of {before} and {after} changes the metadata; "
            "features have to be lowered before brokers go back"
        )
    return (
        f"reversible until metadata.version {metadata_name(first)} is finalised: it changes what stands in the "
        f"metadata log, and brokers of {before} could not read it"
    )


def supported(version: str) -> Mapping[str, tuple[int, int]]:
    """Returns the lowest and the highest level of each feature that brokers of a version support."""
    return {name: (lowest, highest) for name, (lowest, highest) in _table()["supported"][version].items()}


def metadata_name(level: int) -> str:
    """Returns the name of a metadata version: 3.9-IV0 of 21."""
    return str(_table()["metadata"][str(level)][0])


def _first_change(above: int, until: int) -> int | None:
    """Returns the first metadata version above one, up to another, that changes the metadata; None where none does."""
    changing = (int(level) for level, (_, changes) in _table()["metadata"].items() if changes)
    return min((level for level in changing if above < level <= until), default=None)


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = orjson.loads(FEATURES.read_bytes())
    return table

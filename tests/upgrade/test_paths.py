"""Paths: each rule refuses on one side of its edge and not on the other; what can be undone follows from the tables."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_trial.upgrade.paths import (
    below_consumer_groups,
    metadata_name,
    refusals,
    reversible_until,
    supported,
    way_back,
)

FINALISED = {"metadata.version": 21, "kraft.version": 0}


@pytest.mark.parametrize(
    ("before", "after", "more", "sources"),
    [
        ("3.3.0", "4.4.0", {}, []),
        ("3.2.3", "4.4.0", {}, ["Kafka 4.0, Upgrading: from 3.3 on, in KRaft mode"]),
        ("3.2.3", "3.9.2", {}, []),
        ("3.9.2", "4.0.0", {}, ["KAFKA-19444", "KAFKA-19546"]),
        ("3.9.2", "4.0.1", {}, ["KAFKA-19546"]),
        ("3.9.2", "4.0.2", {}, []),
        ("4.1.2", "4.2.0", {}, ["KAFKA-20254", "KAFKA-20322", "KAFKA-20505"]),
        ("4.1.2", "4.2.1", {}, []),
        ("4.9.1", "4.10.0", {}, []),
        ("3.9.2", "4.4.0", {"protocols": ["consumer"]}, ["KIP-848, general availability in 4.0"]),
        ("3.9.2", "4.4.0", {"protocols": ["classic"]}, []),
        ("4.0.2", "4.4.0", {"protocols": ["consumer"]}, []),
        (
            "4.0.2",
            "4.4.0",
            {"replaces_voters": True},
            ["KIP-853: voters are added and removed where kraft.version is 1"],
        ),
        ("4.0.2", "4.4.0", {"replaces_voters": True, "kraft_version": 1}, []),
    ],
)
def test_a_move_is_refused_by_its_rule(before: str, after: str, more: dict[str, Any], sources: list[str]) -> None:
    """Versions count to the patch, and as numbers; each refusal names its source and says what to do."""
    told = refusals(before, after, **more)
    assert [one.source for one in told] == sources
    assert all(one.remedy and one.source in one.sentence and one.rule in one.sentence for one in told)


def test_an_older_version_is_no_upgrade() -> None:
    """The rule says which way it is meant."""
    assert [one.rule for one in refusals("4.3.1", "4.1.2")] == ["4.1.2 is older than 4.3.1"]


@pytest.mark.parametrize(
    ("version", "protocols", "refused"),
    [("3.4.0", ["consumer"], True), ("3.4.1", ["consumer"], False), ("3.4.0", ["classic"], False)],
)
def test_records_of_consumer_groups_keep_a_cluster_from_going_below(
    version: str, protocols: list[str], refused: bool
) -> None:
    """From 3.4.1 on brokers pass over records that they do not know."""
    assert (below_consumer_groups(version, protocols) is not None) == refused


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("3.9.2", "4.0.2", "reversible until metadata.version 4.0-IV1 is finalised"),
        ("3.9.2", "4.4.0", "reversible until metadata.version 4.0-IV1 is finalised"),
        ("4.0.2", "4.2.2", "reversible to the end"),
        ("4.2.2", "4.3.1", "reversible until metadata.version 4.3-IV0 is finalised"),
        ("4.3.1", "4.4.0", "reversible until metadata.version 4.4-IV1 is finalised"),
    ],
)
def test_until_when_a_move_can_be_undone(before: str, after: str, words: str) -> None:
    """Until the first metadata version that changes the metadata, of those that only the new brokers know."""
    assert reversible_until(before, after).startswith(words)


@pytest.mark.parametrize(
    ("before", "finalised", "rules"),
    [
        ("3.9.2", FINALISED, []),
        (
            "3.9.2",
            FINALISED | {"metadata.version": 22},
            ["metadata.version 4.0-IV0 is finalised, 3.9.2 knows 3.9-IV0 at most"],
        ),
        (
            "3.9.2",
            FINALISED | {"metadata.version": 23},
            ["metadata.version 4.0-IV1 is finalised, and 4.0-IV1 changed the metadata"],
        ),
        (
            "4.0.2",
            FINALISED | {"metadata.version": 29, "transaction.version": 2},
            ["metadata.version 4.2-IV1 is finalised, 4.0.2 knows 4.0-IV3 at most"],
        ),
        ("3.9.2", FINALISED | {"group.version": 1}, ["group.version 1 is finalised, 3.9.2 supports 0 at most"]),
        ("4.0.2", FINALISED | {"group.version": 1}, []),
        ("4.3.1", FINALISED | {"share.version": 2}, ["share.version 2 is finalised, 4.3.1 supports 1 at most"]),
    ],
)
def test_what_keeps_brokers_from_going_back(before: str, finalised: dict[str, int], rules: list[str]) -> None:
    """Metadata that changed, for good; a level that the old version does not support, until it is lowered."""
    assert [one.rule for one in way_back(before, finalised)] == rules


def test_levels_are_those_of_kafkas_classes() -> None:
    """As measured on brokers: 4.4.0 supports metadata versions 7 to 33, and 3.9.2 formats with 3.9-IV0."""
    assert (supported("4.4.0")["metadata.version"], metadata_name(21)) == ((7, 33), "3.9-IV0")

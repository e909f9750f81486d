"""What another version makes of settings: by the tables of real versions, with the reason or none."""

from __future__ import annotations

from fnmatch import filter as filter_names

import pytest

from kafka_trial.compatibility.settings import (
    BEHAVIOURS,
    EXPLANATIONS,
    behaviours,
    judge_settings,
    new_settings,
    refused,
)
from kafka_trial.compatibility.tables import ROLES, ConfigKey, changes, settings, versions


def messages(role: str, given: dict[str, str], *, now: str = "3.9.2", to: str = "4.4.0") -> dict[str, tuple[str, str]]:
    """Returns weight and sentence of each setting of which something is said."""
    return {one.name: (one.weight, one.message) for one in judge_settings(role, given, now=now, to=to)}


def test_a_default_that_changed_is_told_with_its_reason() -> None:
    """Of a producer that sets nothing."""
    assert messages("producer", {})["linger.ms"] == (
        "changes",
        "linger.ms: 0 → 5 (since 4.0; KIP-1030: a record waits up to 5 ms for others of its batch)",
    )


def test_a_value_that_is_set_stays() -> None:
    """A default is nobody's who has set another, or the same."""
    assert "linger.ms" not in messages("producer", {"linger.ms": "0"})
    assert "message.timestamp.after.max.ms" not in messages("topic", {"message.timestamp.after.max.ms": "5"})
    assert "message.timestamp.after.max.ms" in messages("topic", {})


def test_a_value_that_is_refused_is_the_worst() -> None:
    """It comes first; a value in range is no finding."""
    found = judge_settings(
        "topic", {"segment.bytes": "65536", "message.format.version": "2.8"}, now="3.9.2", to="4.4.0"
    )
    assert [(one.weight, one.name) for one in found] == [
        ("refused", "segment.bytes"),
        ("gone", "message.format.version"),
        ("changes", "message.timestamp.after.max.ms"),
    ]
    assert found[0].message.startswith(
        "segment.bytes = 65536 is set, and 4.4.0 takes [1048576,...] only (since 4.1; KIP-1030"
    )
    assert "segment.bytes" not in messages("topic", {"segment.bytes": "1048576"})


def test_what_nobody_explained_is_said_to_be_unexplained() -> None:
    """Rather than left out, or guessed."""
    weight, message = messages("admin", {})["enable.metrics.push"]
    assert (weight, message) == ("changes", "enable.metrics.push: true → false (since 4.0; unexplained)")


def test_a_new_setting_counts_where_its_default_changes_a_behaviour() -> None:
    """Of the others it is only known that they came."""
    found = messages("broker", {})
    assert found["group.consumer.assignment.interval.ms"][1].startswith(
        "group.consumer.assignment.interval.ms: new, 1000 by default (since 4.3; KIP-1263: "
    )
    assert "share.coordinator.threads" in new_settings("broker", now="3.9.2", to="4.4.0")
    assert "share.coordinator.threads" not in found


def test_nothing_and_an_empty_list_are_the_same() -> None:
    """KIP-1161 made many lists empty that were absent before."""
    assert "ssl.cipher.suites" in {change.name for change in changes("consumer", "4.1.2", "4.2.1")}
    assert "ssl.cipher.suites" not in messages("consumer", {}, now="4.1.2", to="4.2.1")


def test_patches_of_one_minor_hardly_differ() -> None:
    """4.2.2 brought a limit; 4.4.0 has it, and 4.3.1 has not."""
    assert messages("topic", {}, now="4.2.1", to="4.2.2") == {}
    assert new_settings("topic", now="4.2.1", to="4.2.2") == ["max.decompressed.message.bytes"]
    assert "max.decompressed.message.bytes" not in settings("4.3.1", "topic")


@pytest.mark.parametrize(
    ("value", "type_", "valid", "is_refused"),
    [
        ("13", "INT", "[14,...]", True),
        ("14", "INT", "[14,...]", False),
        ("26", "INT", "[5,...,25]", True),
        ("-1", "INT", "[-1,...]", False),
        ("1.5", "DOUBLE", "[0.0,...,1.0]", True),
        ("newest", "STRING", "[earliest, latest, none]", True),
        ("latest", "STRING", "[earliest, latest, none]", False),
        ("Rebootstrap", "STRING", "(case insensitive) [NONE, REBOOTSTRAP]", False),
        ("by_duration:PT5S", "STRING", "[by_duration:PnDTnHnMn.nS, earliest, latest, none]", False),
        ("compact,delete", "LIST", "[compact, delete]", False),
        ("compact,keep", "LIST", "[compact, delete]", True),
        ("x", "STRING", "non-empty string", False),
        ("", "LIST", "[compact, delete]", False),
    ],
)
def test_only_what_is_certain_is_refused(value: str, type_: str, valid: str, is_refused: bool) -> None:
    """A rule that is not understood refuses nothing."""
    assert refused(value, ConfigKey(type_, "LOW", "", valid)) is is_refused


def test_the_way_back_is_told_too() -> None:
    """From 4.4 to 3.9 the default is the old one again, and what is set may be unknown there."""
    found = messages("producer", {}, now="4.4.0", to="3.9.2")
    assert found["linger.ms"][1].startswith("linger.ms: 5 → 0 (since 4.0; KIP-1030")
    assert messages("group", {"consumer.session.timeout.ms": "9000"}, now="4.4.0", to="3.9.2")[
        "consumer.session.timeout.ms"
    ] == ("gone", "consumer.session.timeout.ms = 9000 is set, and 3.9.2 has no such setting (since 4.0; unexplained)")


def test_a_change_is_dated_by_the_last_version_that_brought_one() -> None:
    """The protocols came one after the other: consumer with 4.0, streams with 4.1."""
    assert (
        "classic → classic,consumer,streams (since 4.1; "
        in messages("broker", {})["group.coordinator.rebalance.protocols"][1]
    )
    assert (
        "classic → classic,consumer (since 4.0; "
        in messages("broker", {}, to="4.0.2")["group.coordinator.rebalance.protocols"][1]
    )


def test_another_order_of_a_map_is_no_change() -> None:
    """3.7 and 3.9 print the map of listeners in different orders."""
    old, new = (settings(version, "broker")["listener.security.protocol.map"] for version in ("3.7.2", "3.9.2"))
    assert old.default != new.default
    assert "listener.security.protocol.map" not in messages("broker", {}, now="3.7.2", to="3.9.2")


def test_behaviours_are_those_between_the_two() -> None:
    """By minor version, both ways; of those whom they concern."""
    found = [one.since for one in behaviours(now="4.2.1", to="4.4.0", whom=["consumer"])]
    assert found == ["4.3"]
    assert list(behaviours(now="4.2.1", to="4.2.2", whom=["consumer"])) == []
    assert {one.whom for one in behaviours(now="4.4.0", to="3.9.2", whom=["transactions"])} == {
        "everyone",
        "transactions",
    }


def test_every_explanation_is_of_a_setting_that_changed() -> None:
    """A pattern that explains nothing is misspelt, or stands too long."""
    pairs = [(before, versions()[-1]) for before in versions()[:-1]]
    changed = {change.name for role in ROLES for before, after in pairs for change in changes(role, before, after)}
    patterns = {pattern for one in EXPLANATIONS for pattern in one.names}
    assert [pattern for pattern in sorted(patterns) if not filter_names(changed, pattern)] == []
    assert {one.whom for one in BEHAVIOURS} <= {"everyone", "classic", "consumer", "transactions"}

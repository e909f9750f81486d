"""Which levels are finalised after an upgrade, and in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kafka_trial.cluster.versions import parse_release
from kafka_trial.compatibility.feature_levels import (
    KRAFT,
    FeatureLevel,
    Levels,
    defaults_of,
    feature_levels,
    levels_to_raise,
    supported,
)
from kafka_trial.errors import UnjudgeableError


def raised(after: str, finalised: Mapping[str, int], brokers: Mapping[int, Levels] | None = None) -> list[str]:
    """Returns what is raised, in words; by default both brokers are of that version."""
    release = parse_release(after)
    known = supported(release)
    return [str(one) for one in levels_to_raise(release, finalised, brokers or {0: known, 1: known})]


def test_all_features_are_raised_by_name_the_metadata_first() -> None:
    """From 3.9.2 to 4.3.1: six features, and kraft.version is none of them."""
    before = defaults_of(parse_release("3.9.2"))
    assert raised("4.3.1", {**before, KRAFT: 0}) == [
        "metadata.version 3.9-IV0 → 4.3-IV0",
        "group.version 0 → 1",
        "transaction.version 0 → 2",
        "eligible.leader.replicas.version 0 → 1",
        "share.version 0 → 1",
        "streams.version 0 → 1",
    ]


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ("3.7.2", "3.9.2", ["metadata.version 3.7-IV4 → 3.9-IV0"]),
        ("4.2.2", "4.3.1", ["metadata.version 4.2-IV1 → 4.3-IV0"]),
        ("4.3.1", "4.4.0", ["metadata.version 4.3-IV0 → 4.4-IV2", "share.version 1 → 2"]),
        ("4.2.1", "4.2.2", []),
    ],
)
def test_only_what_is_higher_is_raised(before: str, after: str, wanted: list[str]) -> None:
    """What is finalised already stays as it is."""
    assert raised(after, defaults_of(parse_release(before))) == wanted


def test_a_broker_that_is_still_old_is_named() -> None:
    """The controller would refuse; the upgrade is not that far."""
    brokers = {0: supported(parse_release("4.3.1")), 1: supported(parse_release("4.0.2"))}
    with pytest.raises(UnjudgeableError, match=r"broker 1 supports metadata.version 4.0-IV3 at most, not .*4.3-IV0"):
        raised("4.3.1", defaults_of(parse_release("4.0.2")), brokers)


def test_a_level_waits_for_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the order says; a need that nobody raises is an error, no endless loop."""
    known = dict(feature_levels())
    known["group.version"] = {1: FeatureLevel("group.version", 1, "4.0-IV0", {"streams.version": 1})}
    monkeypatch.setattr("kafka_trial.compatibility.feature_levels.feature_levels", lambda: known)
    order = [one.split()[0] for one in raised("4.3.1", defaults_of(parse_release("3.9.2")))]
    assert order[-2:] == ["streams.version", "group.version"]
    known["group.version"] = {1: replace(known["group.version"][1], needs={"metadata.version": 99})}
    with pytest.raises(UnjudgeableError, match=r"needs is not finalised: group.version"):
        raised("4.3.1", defaults_of(parse_release("3.9.2")))

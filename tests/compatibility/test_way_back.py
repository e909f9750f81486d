"""Until when brokers can go back, from the levels of features alone."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafka_trial.cluster.versions import parse_release
from kafka_trial.compatibility.feature_levels import METADATA, defaults_of, level_name, metadata_versions, supported
from kafka_trial.compatibility.way_back import WayBack, may_be_lowered, reversible_until

LEVEL = {one.name: one.level for one in metadata_versions().values()}
# Typed, as read in Kafka's sources; the table is read from the jars.
CHANGING = [
    "3.3-IV1",
    "3.3-IV2",
    "3.3-IV3",
    "3.4-IV0",
    "3.5-IV2",
    "3.6-IV1",
    "3.6-IV2",
    "3.7-IV0",
    "3.7-IV2",
    "4.0-IV1",
]
CHANGING += ["4.3-IV0", "4.4-IV1", "4.4-IV2"]


def way(before: str, after: str, raised: Mapping[str, int] | None = None) -> WayBack:
    """Returns the way back of a cluster that was as new at `before`."""
    old, new = parse_release(before), parse_release(after)
    return reversible_until(old, new, defaults_of(old), raised)


@pytest.mark.parametrize(
    ("before", "after", "ends"),
    [
        ("3.7.2", "3.9.2", {}),
        ("3.9.2", "4.0.2", {METADATA: "4.0-IV1"}),
        ("3.9.2", "4.4.0", {METADATA: "4.0-IV1"}),
        ("4.0.2", "4.2.2", {}),
        ("4.0.2", "4.3.1", {METADATA: "4.3-IV0"}),
        ("4.2.2", "4.3.1", {METADATA: "4.3-IV0"}),
        ("4.2.1", "4.2.2", {}),
        ("4.3.1", "4.4.0", {METADATA: "4.4-IV1"}),
    ],
)
def test_the_way_back_ends_with_the_first_level_that_changes_the_metadata(
    before: str, after: str, ends: dict[str, str]
) -> None:
    """Among those that the old version does not support."""
    assert way(before, after).ends_with == {feature: LEVEL[level] for feature, level in ends.items()}


def test_a_level_below_the_first_that_changes_the_metadata_can_be_lowered() -> None:
    """4.3.1 to 4.4.0 with 4.4-IV0 finalised goes back, with 4.4-IV1 no more."""
    back = [way("4.3.1", "4.4.0", {METADATA: LEVEL[name]}) for name in ("4.4-IV0", "4.4-IV1")]
    assert [(one.ends_with, one.lower_first) for one in back] == [
        ({}, {METADATA: LEVEL["4.3-IV0"]}),
        ({METADATA: LEVEL["4.4-IV1"]}, {}),
    ]


def test_kraft_version_is_never_lowered() -> None:
    """It ends the way back to a version without it, and not the one to a version that has it."""
    raised = {"kraft.version": 1}
    ends = [way(before, "4.1.2", raised).ends_with for before in ("3.7.2", "3.9.2")]
    assert ends == [raised, {}]


def test_other_features_are_lowered_first() -> None:
    """To the highest level that the old version supports, which is 0 where it has no such feature."""
    assert way("4.0.2", "4.2.2").lower_first == {METADATA: LEVEL["4.0-IV3"], "share.version": 0, "streams.version": 0}
    assert way("4.3.1", "4.4.0").lower_first == {"share.version": 1}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            "4.2.2",
            "4.3.1",
            "Reversible until metadata.version 4.3-IV0 or higher is finalised: "
            "from then on brokers cannot go back to 4.2.2.",
        ),
        ("4.2.1", "4.2.2", "Reversible: brokers can go back to 4.2.1 whatever is finalised."),
    ],
)
def test_the_sentence(before: str, after: str, told: str) -> None:
    """What is printed before anything starts."""
    assert str(way(before, after)) == told


def test_the_sentence_says_what_has_to_be_lowered() -> None:
    """And what that does to producers."""
    told = str(way("3.9.2", "4.0.2"))
    assert "(group.version 0, transaction.version 0), and every node needs a snapshot of the metadata" in told
    assert told.endswith("Lowering transaction.version ends transactional producers that are at work.")


def test_which_metadata_versions_change_the_metadata() -> None:
    """What the jars say is what was read in Kafka's sources (MetadataVersion.java)."""
    known = metadata_versions().values()
    assert [one.name for one in known if one.changes_metadata and one.level > LEVEL["3.3-IV0"]] == CHANGING
    assert not may_be_lowered(METADATA, LEVEL["4.3-IV0"], LEVEL["4.2-IV1"])
    assert may_be_lowered(METADATA, LEVEL["4.2-IV1"], LEVEL["4.0-IV3"])
    assert not may_be_lowered(METADATA, 99, 98)


def test_what_a_line_supports() -> None:
    """All patches of a line the same; before 3.9 metadata.version alone, up to the last that bears the line's name."""
    of = {number: supported(parse_release(number)) for number in ("3.3.1", "3.6.0", "3.8.1", "4.3.0", "4.3.1")}
    assert [of[one][METADATA][1] for one in ("3.3.1", "3.6.0", "3.8.1")] == [
        LEVEL[one] for one in ("3.3-IV3", "3.6-IV2", "3.8-IV0")
    ]
    assert of["4.3.0"] == of["4.3.1"]
    assert [level_name(METADATA, 30), level_name(METADATA, 99), level_name("share.version", 1)] == [
        "metadata.version 4.3-IV0",
        "metadata.version 99",
        "share.version 1",
    ]


def test_what_a_release_raises_a_cluster_to() -> None:
    """What new clusters of it have, without kraft.version: share groups only from 4.2 on, where they are no preview."""
    assert defaults_of(parse_release("3.9.2")) == {METADATA: LEVEL["3.9-IV0"]}
    assert defaults_of(parse_release("4.1.2")) == {
        METADATA: LEVEL["4.1-IV1"],
        "group.version": 1,
        "transaction.version": 2,
        "eligible.leader.replicas.version": 1,
    }
    assert defaults_of(parse_release("4.4.0"))["share.version"] == 2

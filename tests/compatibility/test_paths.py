"""Which moves between Kafka versions are allowed: each rule on both sides of its edge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kafka_trial.cluster.versions import KNOWN, parse_release
from kafka_trial.compatibility.avoid import flaws_of, must_register_again, open_flaws
from kafka_trial.compatibility.feature_levels import metadata_versions
from kafka_trial.compatibility.paths import RULES, ClusterState, Move, refusals, require_path
from kafka_trial.errors import InputError

OLD, NEW = "3.9.2", "4.3.1"
LEVEL = {one.name: one.level for one in metadata_versions().values()}


def move(before: str, after: str, *, cluster: Mapping[str, Any] | None = None, **more: Any) -> Move:
    """Returns a move; `cluster` is what is known of the cluster."""
    return Move(parse_release(before), parse_release(after), ClusterState(**(cluster or {})), **more)


def rules(asked: Move) -> list[str]:
    """Returns the names of the rules that refuse a move."""
    return [one.rule for one in refusals(asked)]


def at(**levels: int | str) -> dict[str, Any]:
    """Returns what is known of a cluster with finalised levels; `metadata` by its name, `group` for group.version."""
    found = {f"{name}.version": LEVEL[level] if isinstance(level, str) else level for name, level in levels.items()}
    return {"finalised": found}


def back(before: str, after: str, *, cluster: Mapping[str, Any] | None = None) -> Move:
    """Returns a move that is meant to go down."""
    return move(before, after, cluster=cluster, way_back=True)


HAD_GROUPS = {"had_consumer_groups": True}
DYNAMIC, STATIC = {"voters": "dynamic"}, {"voters": "static"}
CONSUMER, SHARE, STREAMS = (frozenset([one]) for one in ("consumer", "share", "streams"))
EDGES: list[tuple[str, Move, Move]] = [  # a rule, what it refuses, what it allows
    ("same-version", move(NEW, NEW), move("4.3.0", NEW)),
    ("direction", move(NEW, "4.2.2"), move("4.2.2", NEW)),
    ("direction", back("4.2.2", NEW), back(NEW, "4.2.2")),
    ("direction", move("4.10.0", "4.9.1", protocols=frozenset()), move("4.9.1", "4.10.0")),
    ("zookeeper", move(OLD, "4.0.2", cluster={"zookeeper": True}), move(OLD, "4.0.2")),
    (
        "zookeeper",
        move("3.7.2", "4.0.0", cluster={"zookeeper": True}),
        move("3.7.2", "3.9.99", cluster={"zookeeper": True}),
    ),
    ("kraft-3.3", move("3.2.99", "4.0.2"), move("3.3.0", "4.0.2")),
    ("kraft-3.3", move("3.2.3", "4.4.0"), move("3.2.3", OLD)),
    ("feature-levels", move(OLD, NEW, cluster=at(metadata="3.3-IV2")), move(OLD, NEW, cluster=at(metadata="3.3-IV3"))),
    (
        "feature-levels",
        back(NEW, "4.2.2", cluster=at(metadata="4.3-IV0")),
        back(NEW, "4.2.2", cluster=at(metadata="4.2-IV1")),
    ),
    (
        "feature-levels",
        back("4.0.2", OLD, cluster=at(group=1)),
        back("4.0.2", OLD, cluster=at(group=0)),
    ),
    (
        "feature-levels",
        back(OLD, "3.8.1", cluster=at(kraft=1)),
        back(OLD, "3.9.0", cluster=at(kraft=1)),
    ),
    (
        "feature-levels",
        back("4.4.0", NEW, cluster=at(share=2)),
        back("4.4.0", NEW, cluster=at(share=1)),
    ),
    ("avoid", move("3.4.1", "3.5.1"), move("3.4.1", "3.5.2")),
    ("avoid", move(OLD, "4.0.0"), move(OLD, "4.0.2")),
    ("avoid", move(OLD, "4.0.1"), move(OLD, "4.0.2")),
    ("avoid", move(OLD, "4.1.0"), move(OLD, "4.1.1")),
    ("avoid", move("4.1.2", "4.2.0"), move("4.1.2", "4.2.1")),
    (
        "consumer-groups",
        back("3.9.2", "3.4.0", cluster=HAD_GROUPS),
        back(OLD, "3.4.0"),
    ),
    (
        "consumer-groups",
        back(OLD, "3.4.0", cluster=HAD_GROUPS),
        back(OLD, "3.4.1", cluster=HAD_GROUPS),
    ),
    (
        "formatted-by",
        back("4.4.0", NEW, cluster={"formatted_by": parse_release("4.4.0")}),
        back("4.4.0", "4.2.2", cluster={"formatted_by": parse_release("4.3.99")}),
    ),
    (
        "formatted-by",
        back("4.4.1", "4.4.0", cluster={"formatted_by": parse_release("4.4.1")}),
        back("4.4.1", "4.4.0", cluster={"formatted_by": parse_release("4.4.0")}),
    ),
    (
        "dynamic-voters",
        move(OLD, "4.0.99", cluster=STATIC, voters_after="dynamic"),
        move(OLD, "4.1.1", cluster=STATIC, voters_after="dynamic"),
    ),
    ("dynamic-voters", move("3.8.99", "4.1.2", cluster=DYNAMIC), move("3.9.0", "4.1.2", cluster=DYNAMIC)),
    (
        "dynamic-voters",
        move("4.1.2", NEW, cluster=DYNAMIC, voters_after="static"),
        move("4.1.2", NEW, cluster=DYNAMIC, voters_after="dynamic"),
    ),
    (
        "replace-voters",
        move(OLD, NEW, cluster=STATIC, replaced="voters"),
        move(OLD, NEW, cluster=STATIC, replaced="brokers"),
    ),
    (
        "replace-voters",
        move("4.1.2", NEW, cluster=at(kraft=0), replaced="voters"),
        move("4.1.2", NEW, cluster=at(kraft=1), replaced="voters"),
    ),
    ("replace-voters", move("4.1.2", NEW, replaced="voters"), move("4.1.2", NEW, cluster=DYNAMIC, replaced="voters")),
    ("group-protocols", move(OLD, NEW, protocols=CONSUMER), move(OLD, NEW, protocols_after=CONSUMER)),
    ("group-protocols", move("3.7.2", OLD, protocols_after=CONSUMER), move("4.0.2", NEW, protocols=CONSUMER)),
    ("group-protocols", move("4.0.2", NEW, protocols=SHARE), move("4.1.2", NEW, protocols=SHARE)),
    ("group-protocols", move("4.1.2", NEW, protocols=STREAMS), move("4.2.2", NEW, protocols=STREAMS)),
    (
        "group-protocols",
        move("4.0.2", NEW, cluster=at(group=0), protocols=CONSUMER),
        move("4.0.2", NEW, cluster=at(group=1), protocols=CONSUMER),
    ),
    ("group-protocols", move("2.8.2", OLD, protocols=CONSUMER), move("2.8.2", OLD, protocols=frozenset(["classic"]))),
]


@pytest.mark.parametrize(("rule", "refused", "allowed"), EDGES, ids=[f"{row[0]}-{no}" for no, row in enumerate(EDGES)])
def test_a_rule_refuses_on_one_side_of_its_edge(rule: str, refused: Move, allowed: Move) -> None:
    """That rule, and none on the other side."""
    assert (rule in rules(refused), rules(allowed)) == (True, [])


def test_every_rule_has_an_edge_and_says_where_it_comes_from() -> None:
    """No rule without a test on both sides, without a source, or without saying what it refuses and allows."""
    assert {rule for rule, _, _ in EDGES} == RULES.keys()
    documented = {name for name, (source, rule) in RULES.items() if source and "Refused: " in (rule.__doc__ or "")}
    assert documented == RULES.keys()


@pytest.mark.parametrize(
    ("after", "issues"),
    [
        ("3.5.1", ["KAFKA-15353"]),
        ("4.0.0", ["KAFKA-19444", "KAFKA-19546"]),
        ("4.0.1", ["KAFKA-19546"]),
        ("4.0.2", []),
        ("4.1.0", ["KAFKA-19546"]),
        ("4.1.1", []),
        ("4.2.0", ["KAFKA-20254", "KAFKA-20322", "KAFKA-20505"]),
        ("4.2.1", []),
    ],
)
def test_each_flaw_ends_with_the_patch_that_mends_it(after: str, issues: list[str]) -> None:
    """Line by line, for a move from an older version."""
    found = flaws_of(parse_release("3.4.1"), parse_release(after))
    assert [flaw.issue for flaw, mended in found if mended > parse_release(after)] == issues


def test_static_voters_may_become_dynamic_from_4_1_on() -> None:
    """With the first release of that line, to be avoided as it is."""
    assert rules(move(OLD, "4.1.0", cluster=STATIC, voters_after="dynamic")) == ["avoid"]


def test_all_moves_up_between_known_versions_are_allowed() -> None:
    """Skipped lines included; the trial's own clusters are such."""
    numbers = list(KNOWN)
    pairs = [(old, new) for place, old in enumerate(numbers) for new in numbers[place + 1 :]]
    assert [pair for pair in pairs if refusals(move(*pair, cluster=STATIC))] == []


def test_a_refusal_names_the_rule_the_issue_and_what_to_do() -> None:
    """The patch that mends, never a line alone; each flaw by itself, and only where the roll meets it."""
    told = [str(one) for one in refusals(move("4.1.2", "4.2.0"))]
    assert [("KAFKA-20322" in one, "(avoid; " in one, "Take 4.2.1 or newer" in one) for one in told].count(
        (True, True, True)
    ) == 1
    assert len(told) == 3
    assert not any("KAFKA-20322" in str(one) for one in refusals(back("4.3.1", "4.2.0")))


def test_a_downgrade_is_refused_by_what_is_finalised() -> None:
    """The level by its name, and whether it can be lowered."""
    (metadata,) = refusals(back("4.3.1", "4.2.2", cluster=at(metadata="4.3-IV0")))
    (group,) = refusals(back("4.0.2", OLD, cluster=at(metadata="3.9-IV0", group=1)))
    assert metadata.because == (
        "downgrade refused, because metadata.version 4.3-IV0 is finalised, "
        "and 4.2.2 knows metadata.version 4.2-IV1 at most"
    )
    assert metadata.remedy.startswith("It cannot be lowered")
    assert group.because == "downgrade refused, because group.version 1 is finalised, and 3.9.2 has no group.version"
    assert group.remedy.startswith("Lower group.version 1 to 0 (kafka-features downgrade); every node needs a snapshot")


def test_all_reasons_are_told_at_once_as_wrong_input() -> None:
    """Status 2, before anything starts."""
    asked = move("3.2.3", "4.0.0", cluster={"zookeeper": True})
    with pytest.raises(InputError) as refused:
        require_path(asked, where="--to 4.0.0")
    assert (refused.value.exit_status, len(refused.value.problems)) == (2, 4)
    require_path(move(OLD, NEW), where="--to")


def test_a_line_that_nobody_knows_is_no_guess() -> None:
    """Where a rule needs the features of a version that is in no table, the move is wrong input, not allowed."""
    with pytest.raises(InputError, match=r"Kafka 4\.9\.0: the features of 4\.9 are not known; known: 3\.7\.2, "):
        refusals(move(NEW, "4.9.0", cluster=at(metadata="4.3-IV0")))


def test_what_no_patch_mends_refuses_nothing_and_is_reported() -> None:
    """Those that the release has; and that of registrations, where controllers older than 3.9 are moved."""
    last = parse_release("3.9.2")
    assert [[flaw.issue for flaw in open_flaws(last, parse_release(one))] for one in (OLD, "4.0.2", "4.4.0")] == [
        [],
        ["KAFKA-21117"],
        ["KAFKA-21117", "KAFKA-21426"],
    ]
    moves = (("3.8.1", "4.0.0"), ("3.9.0", "4.0.0"), ("3.8.1", "3.9.2"))
    assert [must_register_again(*map(parse_release, one)) for one in moves] == [True, False, False]

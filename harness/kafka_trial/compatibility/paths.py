"""Whether brokers may be moved from one version of Kafka to another, by which rule not, and how to do it then.

A rule looks at a move and at what is known of the cluster; nothing is asked of brokers here. `RULES` are all of them:
each names its source, and its docstring says where its edge is. What is not known (None) refuses nothing, but that
voters are exchanged: that has to be known to be possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from kafka_trial.cluster.versions import KRAFT_ONLY, Release
from kafka_trial.compatibility.avoid import flaws_of
from kafka_trial.compatibility.feature_levels import KRAFT, level_name, supported
from kafka_trial.compatibility.way_back import lowering, may_be_lowered
from kafka_trial.errors import InputError

Voters = Literal["static", "dynamic"]
OLDEST_BEFORE_4: Final = Release(3, 3)
LAST_WITH_ZOOKEEPER: Final = Release(3, 9)
DYNAMIC_VOTERS: Final = Release(3, 9)  # KIP-853
STATIC_BECOME_DYNAMIC: Final = Release(4, 1)
SKIPS_UNKNOWN_RECORDS: Final = Release(3, 4, 1)
ONE_CHECKPOINT: Final = Release(4, 4)
# Which feature turns a group protocol on, and where it is said; `classic` needs none.
PROTOCOLS: Final = {
    "consumer": ("group.version", "KIP-848"),
    "share": ("share.version", "KIP-932"),
    "streams": ("streams.version", "KIP-1071"),
}


@dataclass(frozen=True)
class ClusterState:
    """What is known of a cluster before it is moved.

    `finalised`: the level of each feature, None where nobody has asked; a feature that is not among them is at 0.
    `formatted_by`: the newest version whose kafka-storage formatted a data folder of it. `had_consumer_groups`: whether
    a group ever had members of the protocols of KIP-848, KIP-932 or KIP-1071.
    """

    finalised: Mapping[str, int] | None = None
    zookeeper: bool = False
    voters: Voters | None = None
    formatted_by: Release | None = None
    had_consumer_groups: bool | None = None


@dataclass(frozen=True)
class Move:
    """A move of all brokers of a cluster from one release to another.

    `way_back`: it is meant to go down. `replaced`: which nodes are exchanged for new ones, instead of being restarted
    on their data. `voters_after`: what the voters of the controllers' quorum are to be in the end. `protocols`: those
    that groups speak before and after; `protocols_after`: those that they speak only then.
    """

    before: Release
    after: Release
    cluster: ClusterState = field(default_factory=ClusterState)
    way_back: bool = False
    replaced: Literal["nothing", "brokers", "voters"] = "nothing"
    voters_after: Voters | None = None
    protocols: frozenset[str] = frozenset()
    protocols_after: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Refusal:
    """Why a move is not allowed: by which rule, where that is said, and what to do."""

    rule: str
    source: str
    because: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.because} ({self.rule}; {self.source}). {self.remedy}"


Found = Iterator[tuple[str, str]]  # why not, and what to do
RULES: dict[str, tuple[str, Callable[[Move], Found]]] = {}


def refusals(move: Move) -> list[Refusal]:
    """Returns all reasons why a move is not allowed, in the order of the rules; none: it is.

    Raises:
        InputError: nothing is known of the features of one of the two.
    """
    return [
        Refusal(name, source, because, remedy)
        for name, (source, rule) in RULES.items()
        for because, remedy in rule(move)
    ]


class PathError(InputError):
    """A move that rules refuse; every reason is among its problems."""


def require_path(move: Move, *, where: str) -> None:
    """Does nothing where a move is allowed.

    Raises:
        PathError: it is not; with every reason.
    """
    if found := refusals(move):
        raise PathError(where, [str(one) for one in found])


def _rule(name: str, source: str) -> Callable[[Callable[[Move], Found]], Callable[[Move], Found]]:
    def register(rule: Callable[[Move], Found]) -> Callable[[Move], Found]:
        RULES[name] = source, rule
        return rule

    return register


@_rule("same-version", "nothing moves")
def _same_version(move: Move) -> Found:
    """Refused: 4.3.1 to 4.3.1. Allowed: one patch more."""
    if move.before == move.after:
        yield f"the brokers are of {move.before} already", "Name two versions"


@_rule("direction", "Kafka documentation, Upgrading")
def _direction(move: Move) -> Found:
    """Refused: 4.3.1 to 4.2.2 as an upgrade, and 4.2.2 to 4.3.1 as a way back."""
    if move.after < move.before and not move.way_back:
        yield f"{move.after} is older than {move.before}: that is a way back, no upgrade", "Exchange the two"
    elif move.after > move.before and move.way_back:
        yield f"{move.after} is newer than {move.before}: that is an upgrade, no way back", "Exchange the two"


@_rule("zookeeper", "KIP-833, KIP-866; Kafka 4.0 documentation, Upgrading to 4.0")
def _zookeeper(move: Move) -> Found:
    """Refused: with ZooKeeper to 4.0.0. Allowed: with ZooKeeper to 3.9.2, and to 4.0.0 with KRaft."""
    if move.cluster.zookeeper and move.after >= KRAFT_ONLY:
        remedy = f"On {LAST_WITH_ZOOKEEPER.line} migrate it from ZooKeeper to KRaft and end the migration, then move on"
        yield f"the cluster uses ZooKeeper, and {move.after} has none", remedy


@_rule("kraft-3.3", "Kafka 4.0 documentation, Upgrading to 4.0 from any version 3.3.x through 3.9.x")
def _kraft_3_3(move: Move) -> Found:
    """Refused: 3.2.3 to 4.0.2. Allowed: 3.3.0 to 4.0.2, and 3.2.3 to 3.9.2."""
    if move.before < OLDEST_BEFORE_4 and move.after >= KRAFT_ONLY:
        yield (
            f"{move.after} is reached from KRaft clusters of {OLDEST_BEFORE_4.line} and newer, not from {move.before}",
            f"Move to {LAST_WITH_ZOOKEEPER.line} first, and finalise its metadata.version",
        )


@_rule("feature-levels", "KIP-584, KIP-778; FeatureControlManager, QuorumFeatures")
def _feature_levels(move: Move) -> Found:
    """Refused: a finalised level that nodes of the new version do not support, metadata.version 3.3-IV2 for 4.0 as well
    as 4.3-IV0 for 4.2. Allowed: the lowest and the highest level that they do."""
    finalised = move.cluster.finalised or {}
    there = supported(move.after) if finalised else {}
    for feature, level in sorted(finalised.items()):
        lowest, highest = there.get(feature, (0, 0))
        if level < lowest:
            needed = level_name(feature, lowest)
            yield (
                f"{level_name(feature, level)} is finalised, and {move.after} needs {needed} or higher",
                f"Raise {needed} while the brokers are of {move.before}",
            )
        elif level > highest:
            kind = "downgrade refused, because " if move.way_back else ""
            knows = f"knows {level_name(feature, highest)} at most" if highest else f"has no {feature}"
            yield (
                f"{kind}{level_name(feature, level)} is finalised, and {move.after} {knows}",
                lowering(feature, level, highest)
                if may_be_lowered(feature, level, highest)
                else "It cannot be lowered: restore a cluster of the old version from elsewhere, or stay",
            )


@_rule("avoid", "issue tracker of Apache Kafka")
def _avoid(move: Move) -> Found:
    """Refused: a version with a flaw that a roll or its groups meet. Allowed: the patch that mends it."""
    for flaw, mended in flaws_of(move.before, move.after):
        yield f"{move.after} is to be avoided: {flaw.what} ({flaw.issue})", f"Take {mended} or newer"


@_rule("consumer-groups", "KIP-915 (KAFKA-14869)")
def _consumer_groups(move: Move) -> Found:
    """Refused: to 3.4.0 where groups ever spoke a new protocol. Allowed: to 3.4.1, and to 3.4.0 where none did."""
    if move.cluster.had_consumer_groups and move.after < SKIPS_UNKNOWN_RECORDS:
        yield (
            f"the offsets log holds records of new group protocols, and coordinators of {move.after} cannot load them",
            f"Never go below {SKIPS_UNKNOWN_RECORDS}, which skips what it does not know",
        )


@_rule("formatted-by", "KIP-1170; Kafka 4.4 documentation, Notable changes in 4.4.0")
def _formatted_by(move: Move) -> Found:
    """Refused: to 4.3.1 where 4.4.0 has formatted. Allowed: to 4.4.0 then, and to 4.2.2 where 4.3.1 has."""
    by = move.cluster.formatted_by
    if by is not None and by >= ONE_CHECKPOINT and move.after < by:
        yield (
            f"data folders were formatted by kafka-storage of {by}, and a broker must not be older than that",
            f"Stay at {by} or newer; a cluster that is to go back has to be formatted by its oldest version",
        )


@_rule("dynamic-voters", "KIP-853; KAFKA-16538; Kafka 4.1 documentation, Upgrade")
def _dynamic_voters(move: Move) -> Found:
    """Refused: static voters made dynamic in a move to 4.0.2; dynamic ones on 3.8. Allowed: that to 4.1.0."""
    older = min(move.before, move.after)
    if move.cluster.voters == "dynamic" and older < DYNAMIC_VOTERS:
        yield f"the voters are dynamic, which {older} does not know", f"Stay at {DYNAMIC_VOTERS.line} or newer"
    if move.cluster.voters == "static" and move.voters_after == "dynamic" and move.after < STATIC_BECOME_DYNAMIC:
        yield (
            f"static voters cannot become dynamic on {move.after}",
            f"Keep them static; from {STATIC_BECOME_DYNAMIC.line} on raising kraft.version to 1 does it, for good",
        )
    if move.cluster.voters == "dynamic" and move.voters_after == "static":
        yield "dynamic voters cannot become static again", "Keep them dynamic"


@_rule("replace-voters", "KIP-853; Kafka documentation, KRaft, Provisioning nodes")
def _replace_voters(move: Move) -> Found:
    """Refused: voters exchanged for new nodes where they are static, or kraft.version is 0. Allowed: with kraft.version
    1; brokers in either case."""
    kraft = (move.cluster.finalised or {}).get(KRAFT, 0)
    if move.replaced == "voters" and not (move.cluster.voters == "dynamic" or kraft >= 1):
        yield (
            "static voters cannot be exchanged for new nodes (kraft.version is not 1)",
            "Replace brokers only, beside controllers that stay and are rolled in place",
        )


@_rule("group-protocols", "KIP-848, KIP-932, KIP-1071; supported features in the jars")
def _group_protocols(move: Move) -> Found:
    """Refused: a protocol that one of the two lacks, or that is off before. Allowed: one that is spoken only after."""
    for protocol in sorted((move.protocols | move.protocols_after) - {"classic"}):
        feature, kip = PROTOCOLS[protocol]
        spoken_on = [move.before, move.after] if protocol in move.protocols else [move.after]
        lacking = [str(one) for one in spoken_on if not _has(one, feature)]
        level = None if move.cluster.finalised is None else move.cluster.finalised.get(feature, 0)
        if lacking:
            yield (
                f'the group protocol "{protocol}" ({kip}) is not spoken by brokers of {" and ".join(lacking)}',
                f"Take a consumer of the classic protocol, and for after the move a successor that speaks {protocol}",
            )
        elif protocol in move.protocols and level == 0:
            yield f'the group protocol "{protocol}" is off: {feature} is 0', f"Raise {feature} before the move"


def _has(release: Release, feature: str) -> bool:
    return release >= OLDEST_BEFORE_4 and supported(release).get(feature, (0, 0))[1] > 0

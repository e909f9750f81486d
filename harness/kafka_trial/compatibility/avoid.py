"""Versions of Kafka that brokers should not be moved to, with the issue and the patch that mends it.

A flaw stands with its patches, never with a line alone: 4.0.2 is sound where 4.0.1 is not. What no patch mends yet
refuses nothing and is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kafka_trial.cluster.versions import Release


@dataclass(frozen=True)
class Flaw:
    """A flaw of brokers: in which releases, the first that have it and those that mend it, line by line.

    `below`: only where brokers older than that take part in the roll.
    """

    issue: str
    what: str
    spans: tuple[tuple[Release, Release], ...]
    below: Release | None = None


@dataclass(frozen=True)
class OpenFlaw:
    """A flaw that no release mends, from one on, as far as was known in November 2026; `below`: only where brokers
    older than that are moved."""

    issue: str
    what: str
    since: Release
    remedy: str
    below: Release | None = None


FLAWS: Final = (
    Flaw(
        "KAFKA-15353",
        "in a roll a partition's in-sync replicas may become empty, and it is unavailable then",
        ((Release(3, 5), Release(3, 5, 2)),),
    ),
    Flaw(
        "KAFKA-19444",
        "JoinGroup v0 and v1 are missing, with which several clients begin",
        ((Release(4, 0), Release(4, 0, 1)),),
    ),
    Flaw(
        "KAFKA-19546",
        "a group whose last static member of the consumer protocol is replaced by a classic one with another "
        "subscription does not rebalance",
        ((Release(4, 0), Release(4, 0, 2)), (Release(4, 1), Release(4, 1, 1))),
    ),
    Flaw(
        "KAFKA-20254",
        "after compaction and a restart no coordinator can load a group that was converted to the streams protocol",
        ((Release(4, 2), Release(4, 2, 1)),),
    ),
    Flaw(
        "KAFKA-20322",
        "transactions fail with UnsupportedVersion while brokers of 4.1 or older are in the cluster",
        ((Release(4, 2), Release(4, 2, 1)),),
        below=Release(4, 2),
    ),
    Flaw("KAFKA-20505", "share groups may stand still in a deadlock", ((Release(4, 2), Release(4, 2, 1)),)),
)
REGISTERS_AGAIN: Final = "KAFKA-17492"
OPEN_FLAWS: Final = (
    OpenFlaw(
        "KAFKA-21117",
        "a group that went from the consumer protocol back to the classic one may not be loaded after compaction",
        Release(4, 0),
        "Do not convert groups back, or delete them and set their offsets anew",
    ),
    OpenFlaw(
        "KAFKA-21426",
        "kafka-features upgrade --release-version raises kraft.version too: static voters become dynamic, for good",
        Release(4, 1),
        "Raise each feature by its name",
    ),
    OpenFlaw(
        REGISTERS_AGAIN,
        "brokers that register with a controller older than 3.9 register without features whose lowest level is 0 "
        "(group, transaction, share, streams, eligible leader replicas), and none of these can be finalised",
        Release(4, 0),
        "When all controllers are of the new version, restart every broker once more",
        below=Release(3, 9),  # BrokerRegistrationRequest of version 4
    ),
)


def flaws_of(before: Release, after: Release) -> Iterator[tuple[Flaw, Release]]:
    """Yields the flaws that brokers of a release have when they are moved to it, with the release that mends each."""
    for flaw in FLAWS:
        if flaw.below is None or before < flaw.below:
            yield from ((flaw, mended) for first, mended in flaw.spans if first <= after < mended)


def open_flaws(before: Release, after: Release) -> list[OpenFlaw]:
    """Returns what is known of a move to a release and mended by none."""
    return [one for one in OPEN_FLAWS if after >= one.since and (one.below is None or before < one.below)]


def must_register_again(before: Release, after: Release) -> bool:
    """Whether brokers that were moved must be restarted once more before features can be finalised."""
    return any(flaw.issue == REGISTERS_AGAIN for flaw in open_flaws(before, after))

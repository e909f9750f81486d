"""What changed between Kafka versions that may explain a difference, by KIP, issue or release note.

Only what our clusters really do is named: a default that the harness sets itself cannot differ in its trials, and
explains nothing (KIP-1263's assignment interval, which `cluster/wiring.py` sets to 0). That something is named means
that it changed and can have this effect, not that it was shown to be the cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kafka_trial.cluster.versions import Release, parse_release

UNEXPLAINED: Final = "unexplained"
ANY, CLASSIC, CONSUMER = "any", "classic", "consumer"
RISES, FALLS, EITHER = "rises", "falls", "either"


@dataclass(frozen=True)
class KnownChange:
    """A change of Kafka: from which release on, which figures or anomalies it can move and in which direction, for
    groups of which protocol, whether only for consumers with progress in transactions; `settings`: the broker settings
    whose defaults it is about."""

    since: Release
    names: tuple[str, ...]
    direction: str
    means: str
    source: str
    protocol: str = ANY
    transactions: bool = False
    settings: tuple[str, ...] = ()

    def explains(self, name: str, *, rises: bool, consumer: ConsumerKind) -> bool:
        """Whether it can move this figure or anomaly in this direction, for such a consumer."""
        return (
            name in self.names
            and self.direction in (EITHER, RISES if rises else FALLS)
            and self.protocol in (ANY, consumer.protocol)
            and (consumer.transactions or not self.transactions)
        )


@dataclass(frozen=True)
class ConsumerKind:
    """What of a consumer decides which changes concern it: its group protocol, and whether its progress is in
    transactions."""

    protocol: str = CLASSIC
    transactions: bool = False


KNOWN_CHANGES: Final = (
    KnownChange(
        Release(4, 0),
        ("rebalance", "detection", "convergence", "redelivered", "throughput"),
        EITHER,
        "the new group coordinator serves classic groups too, on four threads, and commits wait for others that are "
        "written with them",
        "KIP-848",
        settings=("group.coordinator.threads", "group.coordinator.append.linger.ms"),
    ),
    KnownChange(
        Release(4, 0),
        ("fail", "never-assigned", "never-rejoined", "stuck-partition", "late-convergence", "uncommitted-progress"),
        RISES,
        "requests of clients from before 2.1 are not answered any more",
        "KIP-896",
    ),
    KnownChange(
        Release(4, 0),
        ("throughput", "convergence", "hanging-transaction", "torn-transaction"),
        EITHER,
        "each transaction has an epoch of its own (transaction.version 2)",
        "KIP-890",
        transactions=True,
    ),
    KnownChange(
        Release(4, 3),
        ("redelivered", "illegal-redelivery", "commit-lost"),
        FALLS,
        "a commit with an older member epoch is taken while the member still owns the partition",
        "KIP-1251",
        protocol=CONSUMER,
    ),
)


def known_changes(name: str, *, rises: bool, before: str, after: str, consumer: ConsumerKind) -> Iterator[KnownChange]:
    """Yields what changed from a version (exclusive) to another (inclusive) that may explain a figure or an anomaly."""
    first, last = parse_release(before), parse_release(after)
    for one in KNOWN_CHANGES:
        if first < one.since <= last and one.explains(name, rises=rises, consumer=consumer):
            yield one

"""Suites that no header names: a sin whose own suite is another is tried on each of them, and what it must show there.

So every suite that has several topics, neighbours, tiers or mirrors has a sin that it must find.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True)
class FurtherSuite:
    """A suite on which a sin is tried besides: the anomalies that it must show there, and those that it may."""

    suite: str
    must: tuple[str, ...]
    may: tuple[str, ...] = ()


FURTHER_SUITES: Final[Mapping[str, FurtherSuite]] = MappingProxyType(
    {
        # Whoever takes a partition over begins where the wrong topic's offset leads.
        "commits-offset-for-wrong-topic": FurtherSuite(
            "several-topics-killed",
            ("commit-ahead", "commit-past-end", "commit-regression"),
            ("illegal-redelivery", "skipped"),
        ),
        # Its members read for too short a time to tell that no commit explains it.
        "reads-its-topic-again": FurtherSuite("cold-neighbour", ("cold-read",), ("rogue-reader",)),
        # Where nothing comes after it has sought to the end, it commits nothing any more.
        "sheds-lag": FurtherSuite(
            "remote-reads", ("commit-ahead", "poll-skip", "skipped"), ("stuck-partition", "unseen")
        ),
    }
)


def further_suite(consumer: str) -> FurtherSuite | None:
    """Returns the suite besides its header's on which a sin is tried, whatever variant of it this is; None for most."""
    return FURTHER_SUITES.get(consumer.partition("/")[0])

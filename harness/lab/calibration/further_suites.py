"""Suites that no header names: each is tried with a sin of the zoo besides, whose own suite is another.

So every suite has a sin that it must find. The sin must show there what its header promises.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

FURTHER_SUITE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "commits-offset-for-wrong-topic": "several-topics-killed",
        "reads-its-topic-again": "cold-neighbour",
        "sheds-lag": "remote-reads",
        "starves-second-topic": "several-topics-killed",
    }
)


def further_suites(consumer: str) -> tuple[str, ...]:
    """Returns the suites besides its header's on which a sin is tried, whatever variant of it this is."""
    sin = consumer.partition("/")[0]
    return (FURTHER_SUITE[sin],) if sin in FURTHER_SUITE else ()

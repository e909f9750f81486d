"""Storms: literal histories, each of at most eight lines. W is 10 s for these settings."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from histories import (
    Line,
    after,
    exited,
    fault,
    finding,
    generation,
    group_epoch,
    judged,
    not_judged,
    started,
    stood_still,
)

STORM = [generation(epoch) for epoch in range(3, 9)]


def test_a_group_left_alone_is_stable() -> None:
    """Members join at the start, and then nothing happens for long."""
    assert judged("rebalance-storm", [generation(1), generation(2), after(30)]) == []


@pytest.mark.parametrize("record", [generation, group_epoch])
def test_rebalance_storm_is_broken(record: Callable[[int], Line]) -> None:
    """Half a minute later, five rises within a second, in the classic protocol and in KIP-848's."""
    found = finding("rebalance-storm", [record(2), after(30), *(record(epoch) for epoch in range(3, 8))])
    assert [(one.topic, one.attributes, one.events) for one in found.instances] == [
        (None, {"bumps": 5, "from": 2, "to": 7, "lasted_ms": 40}, tuple(f"offsets#{n}" for n in range(1, 6)))
    ]


@pytest.mark.parametrize(
    "cause",
    [
        exited("m0", code=0, asked="stop"),
        started("m0-1"),
        fault("stall", "m1"),
        stood_still(1),
        Line("observer", "topic", {"topic": "t", "topic_id": "T", "partitions": 2}),
    ],
)
def test_rebalance_storm_only_looks_broken_where_something_happened(cause: Line) -> None:
    """A member went, or came, a fault, a standstill, more partitions: nine seconds later it is still explained."""
    assert judged("rebalance-storm", [generation(2), after(30), cause, after(9), *STORM]) == []


def test_rebalance_storm_only_looks_broken_at_one_mishap() -> None:
    """A member lost and back, two generations each: four rises."""
    assert judged("rebalance-storm", [generation(2), after(30), *STORM[:4]]) == []


def test_rebalance_storm_counts_rises_only() -> None:
    """The same generation written again and again is none."""
    assert judged("rebalance-storm", [generation(2), after(30), *[generation(3)] * 6]) == []


def test_rebalance_storm_is_not_judged_without_a_group() -> None:
    """Partitions assigned by hand leave no generation in the log."""
    because = "the offsets log holds no generation or epoch of the group"
    assert not_judged("rebalance-storm", [after(30)]) == because


def test_rebalance_storm_is_not_judged_before_the_snapshot() -> None:
    """The trial ended before it could be looked at."""
    assert "snapshot" in not_judged("rebalance-storm", STORM, snapshot=False)

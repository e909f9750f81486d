"""Storms: literal histories, each of at most eight lines. W is 10 s for these settings."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from histories import (
    Line,
    after,
    at_once,
    exited,
    fault,
    finding,
    generation,
    group_epoch,
    healed,
    judged,
    not_judged,
    phase,
    said,
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
    """A member went, or came, a fault, a stall, more partitions: nine seconds later it is still explained."""
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


QUIET = [generation(2), after(30)]
FIVE = [generation(epoch) for epoch in range(3, 8)]


@pytest.mark.parametrize(
    "cause",
    [
        started("m0-1"),
        exited("m0", code=0, asked="stop"),
        said("m0", "stopped"),
        stood_still(1),
        Line("observer", "topic", {"topic": "t", "topic_id": "T", "partitions": 2}),
    ],
    ids=["started", "exited", "stopped", "stood still", "more partitions"],
)
@pytest.mark.parametrize(("more_ms", "found"), [(0, 0), (10, 1)])
def test_a_rise_is_explained_for_exactly_the_window(cause: Line, more_ms: int, found: int) -> None:
    """Ten seconds: the fifth rise comes then, or ten milliseconds later than the first of five that are not."""
    lines = [*QUIET, cause, after(9.95 + more_ms / 1000 * 5), *FIVE]
    assert len(judged("rebalance-storm", lines)) == found


@pytest.mark.parametrize(("wait_s", "found"), [(0.45, 0), (0.5, 1)])
def test_a_rise_just_before_a_cause_is_explained_too(wait_s: float, found: int) -> None:
    """Half a second is no order between sources: of five rises the last, or none, lies near enough."""
    assert len(judged("rebalance-storm", [*QUIET, *FIVE, after(wait_s), exited("m0", code=0, asked="stop")])) == found


@pytest.mark.parametrize(
    ("after_it", "found"), [([], 0), ([healed(), after(9)], 0), ([healed(), after(11)], 1)], ids=str
)
def test_a_fault_explains_until_a_window_after_its_healing(after_it: list[Line], found: int) -> None:
    """However long it was in force."""
    lines = [*QUIET, fault("stall", "m1"), after(60), *after_it, *FIVE]
    assert len(judged("rebalance-storm", lines)) == found


def test_a_short_stall_explains_nothing() -> None:
    """A quarter of the session timeout exactly."""
    assert len(judged("rebalance-storm", [*QUIET, stood_still(0.75), *FIVE])) == 1
    assert judged("rebalance-storm", [*QUIET, *FIVE, stood_still(1.2)]) == []  # it had begun before they came


def test_rebalance_storm_ends_at_the_snapshot() -> None:
    """Rises that come when the trial has been looked at are not counted; one in that instant is."""
    after_it = [*QUIET, *FIVE[:4], phase("snapshot"), FIVE[4]]
    assert judged("rebalance-storm", after_it, snapshot=False) == []
    assert len(judged("rebalance-storm", [*QUIET, *FIVE, at_once(phase("snapshot"))], snapshot=False)) == 1


def test_rebalance_storm_is_told_of_unexplained_rises_only() -> None:
    """Two that a start explains, one fall, and five that nothing does."""
    lines = [*QUIET, started("m0-1"), generation(10), generation(12), after(30), generation(5), *FIVE[3:4]]
    rises = [generation(epoch) for epoch in (7, 9, 9, 11, 12)]
    found = finding("rebalance-storm", [*lines, *rises])
    assert [(one.attributes, one.events) for one in found.instances] == [
        (
            {"bumps": 5, "from": 5, "to": 12, "lasted_ms": 50},
            ("offsets#4", "offsets#5", "offsets#6", "offsets#8", "offsets#9"),
        )
    ]

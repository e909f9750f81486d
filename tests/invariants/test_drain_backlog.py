"""Which part of a backlog takes longest: all of it together, or that of one partition."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafka_trial.model.drain_backlog import DrainBacklog, slowest_backlog

SIX = dict.fromkeys(range(6), 100)


@pytest.mark.parametrize(
    ("left", "rate_per_s", "burst", "slowest"),
    [
        ([(0, 60), (1, 60)], 60.0, {}, DrainBacklog(120, 60.0)),
        ([(0, 60)], None, SIX, DrainBacklog(60, None)),
        ([(partition, 60) for partition in SIX], 60.0, SIX, DrainBacklog(360, 60.0)),
        ([(0, 60), (1, 0)], 60.0, SIX, DrainBacklog(60, 10.0, of_one=True)),
        ([(0, 60)], 60.0, SIX | {0: 500}, DrainBacklog(60, 30.0, of_one=True)),
        ([(None, 60)], 60.0, SIX, DrainBacklog(60, 10.0, of_one=True)),
        ([(9, 60)], 60.0, SIX, DrainBacklog(60, 10.0, of_one=True)),
        ([(0, 4), (1, 3), (2, 3), (3, 3), (4, 3), (5, 2)], 3.0, SIX, DrainBacklog(18, 3.0)),
    ],
    ids=[
        "no burst told",
        "no rate",
        "even",
        "behind one owner",
        "a hot partition",
        "another topic",
        "added since",
        "less than a record a second each",
    ],
)
def test_what_takes_longest_counts(
    left: list[tuple[int | None, int]], rate_per_s: float | None, burst: Mapping[int, int], slowest: DrainBacklog
) -> None:
    """By the time that B leaves for it, which is never less than for all together."""
    assert slowest_backlog(left, rate_per_s, burst) == slowest

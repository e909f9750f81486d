"""Wall times on the harness's clock."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_trial.model.clocks import earliest
from kafka_trial.model.kernels import NEVER, NONE
from kafka_trial.model.trial_context import TOLERANCE_NS, TrialContext
from kafka_trial.model.wall_clock import monotonic

PAIRS = ((1000, 0), (2000, 900), (3000, 2100))  # the wall clock jumped twice


@pytest.mark.parametrize(
    ("wall", "ours"),
    [
        (900, -100),
        (1000, 0),
        (1499, 499),
        (1500, 500),
        (1501, 401),
        (2000, 900),
        (2501, 1601),
        (3000, 2100),
        (9999, 9099),
    ],
)
def test_a_wall_time_is_read_by_the_nearest_pair_of_clocks(wall: int, ours: int) -> None:
    """By the earlier one of two that are as near."""
    about = TrialContext(clocks=PAIRS)
    assert monotonic(about, np.array([wall, NONE]), np.array([7, 8])).tolist() == [ours, 8]


def test_without_clocks_a_wall_time_says_nothing() -> None:
    """What was heard instead is taken."""
    assert monotonic(TrialContext(), np.array([1500, NONE]), np.array([7, 8])).tolist() == [7, 8]
    alone = TrialContext(clocks=PAIRS[1:2])
    assert monotonic(alone, np.array([0, 1999, 2001]), np.array([7, 8, 9])).tolist() == [-1100, 899, 901]


SPANS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), max_size=4)


@given(SPANS, st.lists(st.integers(0, 40), max_size=6))
def test_what_was_heard_in_a_stall_or_just_after_it_may_be_as_old(
    spans: list[tuple[int, int]], heard: list[int]
) -> None:
    """As its beginning, if it was heard by half a second after its end."""
    half = TOLERANCE_NS // 2
    harness_stalls = []
    for begin, size in sorted(spans):  # in order, and further apart than the tolerance
        if not harness_stalls or begin * half > harness_stalls[-1][1] + TOLERANCE_NS:
            harness_stalls.append((begin * half, (begin + size) * half))
    times = np.array([at * half for at in heard], np.int64)
    expected = [next((b for b, e in harness_stalls if b <= at <= e + TOLERANCE_NS), at) for at in times.tolist()]
    assert earliest(TrialContext(harness_stalls=tuple(harness_stalls)), times).tolist() == expected


def test_what_was_never_heard_stays_so() -> None:
    """A stall that nobody saw the end of."""
    about = TrialContext(harness_stalls=((NONE, NONE + 5), (0, NEVER - TOLERANCE_NS)))
    assert earliest(about, np.array([NONE, 3, NEVER])).tolist() == [NONE, 0, NEVER]

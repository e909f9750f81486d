"""The segmented kernels say the same as plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_trial.invariants import kernels as k

LARGE = st.sampled_from([k.NONE, k.NEVER, 2**62, -(2**62)])
VALUES = st.one_of(st.integers(-5, 5), LARGE)
ROWS = st.lists(st.tuples(st.integers(0, 3), VALUES), max_size=12)


def _columns(rows: list[tuple[int, int]]) -> tuple[Any, Any]:
    return np.array([g for g, _ in rows], np.int64), np.array([v for _, v in rows], np.int64)


@given(ROWS, ROWS)
def test_composites_sort_as_pairs(rows: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    """One integer a row, comparable between arrays, for any 64-bit values."""
    one, two = k.composites(_columns(rows), _columns(others))
    both = [*zip(one.tolist(), rows, strict=True), *zip(two.tolist(), others, strict=True)]
    assert all((a < b) == (p < q) and (a == b) == (p == q) for a, p in both for b, q in both)


@given(ROWS)
def test_max_before_and_min_after(rows: list[tuple[int, int]]) -> None:
    """The greatest value before each row, and the least after it, inside its group."""
    rows.sort(key=lambda row: row[0])
    group, value = _columns(rows)
    before, after = k.max_before(group, value), k.min_after(group, value)
    for place, (mine, _) in enumerate(rows):
        earlier = [v for g, v in rows[:place] if g == mine]
        later = [v for g, v in rows[place + 1 :] if g == mine]
        assert (rows[before[place]][1] if before[place] >= 0 else None) == max(earlier, default=None)
        assert (rows[after[place]][1] if after[place] >= 0 else None) == min(later, default=None)


@given(ROWS, ROWS)
def test_lookups(rows: list[tuple[int, int]], wanted: list[tuple[int, int]]) -> None:
    """The last row at or before a value, and the first at or after it, inside its group."""
    rows.sort()
    group, value = _columns(rows)
    of_group, of_value = _columns(wanted)
    low = k.at_or_before(group, value, of_group, of_value).tolist()
    high = k.at_or_after(group, value, of_group, of_value).tolist()
    for place, (g, v) in enumerate(wanted):
        assert low[place] == max((n for n, row in enumerate(rows) if row[0] == g and row[1] <= v), default=-1)
        assert high[place] == min((n for n, row in enumerate(rows) if row[0] == g and row[1] >= v), default=-1)


@given(st.lists(st.tuples(st.integers(0, 2), VALUES, VALUES).filter(lambda one: one[1] < one[2]), max_size=8), ROWS)
def test_covering(intervals: list[tuple[int, int, int]], points: list[tuple[int, int]]) -> None:
    """How many intervals of its group cover each point; ends are open."""
    group, first, end = (
        np.array(column, np.int64) for column in (zip(*intervals, strict=True) if intervals else ((),) * 3)
    )
    counted = k.covering(group, first, end, *_columns(points)).tolist()
    assert counted == [sum(g == i and a <= p < b for i, a, b in intervals) for g, p in points]


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=10),
    st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), max_size=6),
)
@settings(max_examples=300)
def test_greatest_in(values: list[int], ranges: list[tuple[int, int]]) -> None:
    """The greatest value of each range, -1 for an empty one; ranges overlap and come in any order."""
    ranges = [(min(a, len(values)), min(b, len(values))) for a, b in ranges]
    first, end = (np.array(column, np.int64) for column in (zip(*ranges, strict=True) if ranges else ((), ())))
    found = k.greatest_in(np.array(values), first, end).tolist()
    expected = [max(values[a:b], default=None) for a, b in ranges]
    assert [values[at] if at >= 0 else None for at in found] == expected


@given(ROWS)
def test_in_ranges_and_number_in(rows: list[tuple[int, int]]) -> None:
    """Ranges laid end to end; the place of each row in its run."""
    rows.sort()
    group, _ = _columns(rows)
    first = k.first_of(group)
    which, row = k.in_ranges(first, np.append(first[1:], len(group)) if len(first) else first)
    assert row.tolist() == list(range(len(rows)))
    assert (row - first[which]).tolist() == k.number_in(group).tolist()


@pytest.mark.parametrize("size", [0, 1, 5])
def test_per_group_of_nothing(size: int) -> None:
    """Groups without rows keep the value they start with."""
    empty = np.empty(0, np.int64)
    assert k.per_group(empty, empty, size, how="max", start=7).tolist() == [7] * size


@pytest.mark.parametrize("looked_up", [k.at_or_before, k.at_or_after, k.exactly, k.between])
def test_rows_out_of_order_are_not_looked_up(looked_up: Any) -> None:
    """An answer would be a guess; of groups or of values in a group."""
    wanted = [np.array([0])] * (3 if looked_up is k.between else 2)
    for group, value in (([1, 0], [0, 0]), ([0, 0], [1, 0])):
        with pytest.raises(ValueError, match="not in their order"):
            looked_up(np.array(group), np.array(value), *wanted)

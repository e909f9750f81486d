"""The segmented kernels say the same as plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafka_trial.model import kernels as k

LARGE = st.sampled_from([k.NONE, k.NEVER, 2**62, -(2**62)])
VALUES = st.one_of(st.integers(-5, 5), LARGE)
ROWS = st.lists(st.tuples(st.integers(0, 3), VALUES), max_size=12)


def _columns(rows: list[tuple[int, int]]) -> tuple[Any, Any]:
    return np.array([g for g, _ in rows], np.int64), np.array([v for _, v in rows], np.int64)


@given(ROWS, ROWS)
@example([(-1, 0)], [(-1, k.NONE)])
@example([(-1, k.NEVER), (-1, k.NONE)], [])
def test_composites_sort_as_pairs(rows: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    """One integer a row, comparable between arrays, for any 64-bit values, those of nobody's group too."""
    one, two = k.composites(_columns(rows), _columns(others))
    both = [*zip(one.tolist(), rows, strict=True), *zip(two.tolist(), others, strict=True)]
    assert all((a < b) == (p < q) and (a == b) == (p == q) for a, p in both for b, q in both)


WALL_NS = st.integers(1_764_000_000 * 10**9, 1_764_000_600 * 10**9)


@given(st.lists(st.tuples(st.integers(0, 3), st.one_of(WALL_NS, st.sampled_from([k.NONE, k.NEVER]))), max_size=12))
@example([(0, k.NONE), (0, k.NONE + 1), (0, 1_764_000_000 * 10**9), (0, k.NEVER - 1), (0, k.NEVER), (3, k.NONE)])
def test_composites_of_times_need_no_ranks(rows: list[tuple[int, int]]) -> None:
    """Where only NONE, NEVER and their neighbours lie far from the others, nothing is sorted for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(k, "_dense", None)
        (one,) = k.composites(_columns(rows))
    both = list(zip(one.tolist(), rows, strict=True))
    assert all((a < b) == (p < q) and (a == b) == (p == q) for a, p in both for b, q in both)


@given(st.lists(st.tuples(VALUES, st.booleans(), st.integers(-1, 2**40), VALUES), max_size=12))
def test_ordered(rows: list[tuple[int, ...]]) -> None:
    """Rows by columns of any 64-bit integers, the first weighing most; equal ones stay in their order."""
    columns = [np.array(column) for column in zip(*rows, strict=True)] or [np.empty(0, np.int64)] * 4
    assert k.ordered(*columns).tolist() == sorted(range(len(rows)), key=lambda row: rows[row])


@given(ROWS)
def test_first_of_several(rows: list[tuple[int, int]]) -> None:
    """A run begins where any of the columns differs from the row before."""
    expected = [row for row in range(len(rows)) if row == 0 or rows[row] != rows[row - 1]]
    assert k.first_of(*_columns(rows)).tolist() == expected


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


MASKED = st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=12)


@given(ROWS, st.integers(1, 3))
def test_previous_in_and_next_in(rows: list[tuple[int, int]], steps: int) -> None:
    """The row so many before, and the one after, of the same group."""
    rows.sort()
    group, _ = _columns(rows)
    before, after = k.previous_in(group, steps=steps).tolist(), k.next_in(group).tolist()
    for place, (mine, _) in enumerate(rows):
        back = place - steps
        assert before[place] == (back if back >= 0 and rows[back][0] == mine else -1)
        assert after[place] == (place + 1 if place + 1 < len(rows) and rows[place + 1][0] == mine else -1)
    assert k.previous_in(group).tolist() == k.previous_in(group, steps=1).tolist()


@given(ROWS)
def test_running_max(rows: list[tuple[int, int]]) -> None:
    """The first row of the greatest value of its group so far, itself included."""
    rows.sort(key=lambda row: row[0])
    found = k.running_max(*_columns(rows)).tolist()
    for place, (mine, _) in enumerate(rows):
        so_far = [row for row in range(place + 1) if rows[row][0] == mine]
        assert found[place] == max(so_far, key=lambda row: (rows[row][1], -row))


@given(MASKED)
def test_last_true(rows: list[tuple[int, bool]]) -> None:
    """The last row of the group so far that is marked."""
    rows.sort(key=lambda row: row[0])
    group, mask = np.array([g for g, _ in rows], np.int64), np.array([m for _, m in rows], np.bool_)
    found = k.last_true(group, mask).tolist()
    for place, (mine, _) in enumerate(rows):
        assert found[place] == max((row for row in range(place + 1) if rows[row] == (mine, True)), default=-1)


@given(ROWS, ROWS)
def test_exactly(rows: list[tuple[int, int]], wanted: list[tuple[int, int]]) -> None:
    """The last row that equals what is looked up."""
    rows.sort()
    found = k.exactly(*_columns(rows), *_columns(wanted)).tolist()
    assert found == [max((n for n, row in enumerate(rows) if row == one), default=-1) for one in wanted]


@given(ROWS, st.lists(st.tuples(st.integers(0, 3), VALUES, VALUES), max_size=6))
def test_between(rows: list[tuple[int, int]], wanted: list[tuple[int, int, int]]) -> None:
    """The rows of a group from a value on and below another: a range, empty where there is none."""
    rows.sort()
    of_group, low, high = (
        np.array(column, np.int64) for column in (zip(*wanted, strict=True) if wanted else ((),) * 3)
    )
    first, end = k.between(*_columns(rows), of_group, low, high)
    for place, (mine, least, most) in enumerate(wanted):
        inside = [n for n, (g, v) in enumerate(rows) if g == mine and least <= v < most]
        assert list(range(first[place], end[place])) == inside
        assert end[place] >= first[place]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6))
def test_in_ranges_laid_end_to_end(ranges: list[tuple[int, int]]) -> None:
    """They overlap, and come in any order; one whose end lies before its beginning is empty."""
    first, end = (np.array(column, np.int64) for column in (zip(*ranges, strict=True) if ranges else ((),) * 2))
    which, rows = k.in_ranges(first, end)
    expected = [(number, row) for number, (low, high) in enumerate(ranges) for row in range(low, high)]
    assert list(zip(which.tolist(), rows.tolist(), strict=True)) == expected


@given(st.lists(st.integers(0, 2), max_size=8))
def test_runs_of_equal_groups(group: list[int]) -> None:
    """Where each begins, and the place of each row in it, though a group comes again."""
    begins = [place for place, one in enumerate(group) if place == 0 or group[place - 1] != one]
    assert k.first_of(np.array(group, np.int64)).tolist() == begins
    assert k.starts_of(np.array(group, np.int64)).tolist() == [place in begins for place in range(len(group))]
    number = k.number_in(np.array(group, np.int64)).tolist()
    assert number == [place - max(begin for begin in begins if begin <= place) for place in range(len(group))]


@given(st.lists(st.tuples(st.integers(0, 3), VALUES), max_size=8), st.integers(4, 6))
def test_counts_and_per_group(rows: list[tuple[int, int]], size: int) -> None:
    """How many rows each group has, their least and their greatest value."""
    group, value = _columns(rows)
    mine = [[v for g, v in rows if g == one] for one in range(size)]
    assert k.counts(group, size).tolist() == [len(values) for values in mine]
    least = k.per_group(group, value, size, how="min", start=k.NEVER).tolist()
    greatest = k.per_group(group, value, size, how="max", start=k.NONE).tolist()
    assert least == [min(values, default=k.NEVER) for values in mine]
    assert greatest == [max(values, default=k.NONE) for values in mine]


@given(st.lists(VALUES, max_size=4), st.lists(st.integers(-1, 3), max_size=5), VALUES)
def test_picked(values: list[int], index: list[int], missing: int) -> None:
    """The value at each index; what is missing where that is -1."""
    index = [at if at < len(values) else -1 for at in index]
    found = k.picked(np.array(values, np.int64), np.array(index, np.int64), missing).tolist()
    assert found == [values[at] if at >= 0 else missing for at in index]


COLUMNS = st.lists(st.tuples(VALUES, st.integers(0, 2), VALUES), max_size=8)


@given(COLUMNS)
def test_joined_and_ordered(rows: list[tuple[int, int, int]]) -> None:
    """One integer a row that sorts as all columns do, the first weighing most; rows that are equal keep their order."""
    columns = [np.array(column, np.int64) for column in (zip(*rows, strict=True) if rows else ((),) * 3)]
    whole = k.joined(*columns).tolist()
    assert all(
        (a < b) == (p < q) and (a == b) == (p == q)
        for a, p in zip(whole, rows, strict=True)
        for b, q in zip(whole, rows, strict=True)
    )
    assert k.ordered(*columns).tolist() == sorted(range(len(rows)), key=lambda row: rows[row])
    assert k.ordered(columns[0]).tolist() == sorted(range(len(rows)), key=lambda row: rows[row][0])


@pytest.mark.parametrize("values", [[0, 2**40, 2**41], [-(2**61), 0, 2**61], [k.NONE, 0, k.NEVER], [0, 2**62 // 3]])
def test_joined_of_large_numbers(values: list[int]) -> None:
    """Pairs of them, in every order, as they would sort."""
    pairs = [(one, other) for one in values for other in values]
    first, second = _columns(pairs)
    assert np.argsort(k.joined(first, second), kind="stable").tolist() == sorted(
        range(len(pairs)), key=lambda place: pairs[place]
    )


def test_the_least_value_of_the_intervals_that_cover_a_point() -> None:
    """As one finds it by looking at every interval for every point."""
    rng = np.random.default_rng(7)
    group, low, value = (rng.integers(0, most, 60) for most in (3, 30, 100))
    high = low + rng.integers(-2, 20, 60)
    of_group, at = rng.integers(0, 4, 200), rng.integers(0, 50, 200)
    found = k.least_covering(group, low, high, value, of_group, at, missing=k.NEVER)
    for place, point in enumerate(at):
        covers = (group == of_group[place]) & (low <= point) & (point < high)
        assert found[place] == value[covers].min(initial=k.NEVER)

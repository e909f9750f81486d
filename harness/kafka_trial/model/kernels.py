"""Segmented kernels: the few vectorised operations on which every index and invariant is built.

A *group* is an integer array that says to which segment (slice, ownership epoch, key …) each row belongs. All functions
take and return numpy arrays; none loops over rows or groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Array = NDArray[Any]

NONE = -(2**63)  # "there is none", sorts before every value
NEVER = 2**63 - 1  # "it did not happen", sorts after every value


def composites(*pairs: tuple[Array, Array]) -> list[Ints]:
    """Returns for each (group, value) pair of arrays one array of integers that sorts as (group, value) would.

    The integers of all pairs are comparable. Values may be any 64-bit integers: where group and value do not fit into
    63 bits together, values at either end of all (NONE, NEVER) are moved up to the others, else replaced by their rank.
    """
    filled = [values for _, values in pairs if len(values)]
    if not filled:
        return [np.empty(0, np.int64) for _ in pairs]
    groups_max = max(int(g.max()) for g, _ in pairs if len(g)) + 2
    low, high = min(int(v.min()) for v in filled), max(int(v.max()) for v in filled)
    if (high - low + 1) * groups_max < 2**62:
        return [g.astype(np.int64) * (high - low + 1) + (v.astype(np.int64) - low) for g, v in pairs]
    known = [inside for v in filled if len(inside := v[(v > NONE + 1) & (v < NEVER - 1)])]
    low = min((int(v.min()) for v in known), default=0) - 2
    high = max((int(v.max()) for v in known), default=0) + 2
    if (high - low + 1) * groups_max < 2**62:
        return [g.astype(np.int64) * (high - low + 1) + (_moved_up(v, low, high) - low) for g, v in pairs]
    cuts = np.cumsum([len(v) for _, v in pairs])[:-1]
    groups, ranks = (_dense(np.concatenate([pair[place] for pair in pairs])) for place in (0, 1))
    size = int(ranks.max()) + 1
    return [g * size + part for g, part in zip(np.split(groups, cuts), np.split(ranks, cuts), strict=True)]


def _moved_up(values: Array, low: int, high: int) -> Ints:
    """Returns the values with those at either end of all (NONE and its neighbour, NEVER and its) just outside of those
    between `low` + 2 and `high` - 2."""
    v = values.astype(np.int64)
    return np.where(v <= NONE + 1, v - NONE + low, np.where(v >= NEVER - 1, v - NEVER + high, v))


def _dense(values: Array) -> Ints:
    if in_order(values):
        return np.cumsum(starts_of(values)) - 1
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def joined(*columns: Array) -> Ints:
    """Returns one integer a row that is equal where all columns are equal and sorts as they would, column by column."""
    whole = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        (whole,) = composites((whole, column))
        if len(whole) and int(whole.max()) > 2**40:
            whole = _dense(whole)
    return whole


def ordered(*columns: Array) -> Ints:
    """Returns the stable order of rows by columns, the first one weighing most."""
    keys = _keys(columns)
    if len(keys) > 1:
        return np.lexsort(keys[::-1])
    return np.arange(len(keys[0])) if in_order(keys[0]) else np.argsort(keys[0], kind="stable")


def _keys(columns: Sequence[Array]) -> list[Array]:
    """Returns as few arrays as will do that sort as the columns do: neighbours that fit into 63 bits are one."""
    keys, size = list(columns[:1]), 0  # the last key is from 0 on, and below its size, where that is not 0
    for column in columns[1:] if len(columns[0]) else ():
        (low, high), first = _range(column), keys[-1]
        floor, top = (0, size - 1) if size else _range(first)
        span = high - low + 1
        if (top - floor + 1) * span < 2**62:
            keys[-1] = (first.astype(np.int64) - floor) * span + (column.astype(np.int64) - low)
            size = (top - floor + 1) * span
        else:
            keys, size = [*keys, column], 0
    return keys


def _range(values: Array) -> tuple[int, int]:
    return int(values.min()), int(values.max())


def in_order(values: Array) -> bool:
    """Tells whether no value is below the one before it."""
    return not (values[1:] < values[:-1]).any()


def starts_of(*groups: Array) -> Bools:
    """Returns True at the first row of each run of equal groups; of several arrays, of rows that are equal in all."""
    first = np.ones(len(groups[0]), np.bool_)
    first[1:] = groups[0][1:] != groups[0][:-1]
    for group in groups[1:]:
        first[1:] |= group[1:] != group[:-1]
    return first


def previous_in(group: Array, *, steps: int = 1) -> Ints:
    """Returns the index of the row before each one inside its group (rows sorted by group), else -1."""
    before = np.arange(len(group), dtype=np.int64) - steps
    before[:steps] = -1
    return np.where((before >= 0) & (group[before] == group), before, -1) if len(group) else before


def next_in(group: Array) -> Ints:
    """Returns the index of the row after each one inside its group (rows sorted by group), else -1."""
    after = np.arange(1, len(group) + 1, dtype=np.int64)
    after[-1:] = -1
    return np.where((after >= 0) & (group[after] == group), after, -1) if len(group) else after


def running_max(group: Array, values: Array) -> Ints:
    """Returns, row by row, the index of the (earliest) greatest value of its group so far, itself included."""
    (keys,) = composites((group, values))
    peaks = np.maximum.accumulate(keys) if len(keys) else keys
    fresh = np.ones(len(keys), np.bool_)
    fresh[1:] = peaks[1:] > peaks[:-1]
    return np.maximum.accumulate(np.where(fresh, np.arange(len(keys)), 0)) if len(keys) else peaks


def max_before(group: Array, values: Array) -> Ints:
    """Returns the index of the greatest value of its group before each row (rows sorted by group), else -1."""
    before = previous_in(group)
    return np.where(before >= 0, running_max(group, values)[before], -1) if len(group) else before


def min_after(group: Array, values: Array) -> Ints:
    """Returns the index of the least value of its group after each row (rows sorted by group), else -1."""
    size = len(group)
    turned = max_before(group[::-1].max(initial=0) - group[::-1], -1 - values[::-1])
    return np.where(turned >= 0, size - 1 - turned, -1)[::-1]


def last_true(group: Array, mask: Array) -> Ints:
    """Returns the index of the last row of the group, up to and with each row, where `mask` is True; else -1."""
    marks = np.where(mask, np.arange(len(group)), -1)
    last = np.maximum.accumulate(marks) if len(marks) else marks
    return np.where((last >= 0) & (group[last] == group), last, -1) if len(group) else last


def at_or_before(group: Array, value: Array, of_group: Array, of_value: Array) -> Ints:
    """Returns, for each (of_group, of_value), the index of the last row with the same group and value <= it; else -1.

    `group`, `value` are sorted.
    """
    keys, wanted = composites((group, value), (of_group, of_value))
    _expect_sorted(keys)
    found = np.searchsorted(keys, wanted, side="right") - 1
    return np.where((found >= 0) & (group[found] == of_group), found, -1) if len(group) else found


def at_or_after(group: Array, value: Array, of_group: Array, of_value: Array) -> Ints:
    """Returns, for each (of_group, of_value), the index of the first row with the same group and value >= it; else -1.

    `group`, `value` are sorted.
    """
    keys, wanted = composites((group, value), (of_group, of_value))
    _expect_sorted(keys)
    found = np.searchsorted(keys, wanted, side="left")
    if not len(group):
        return np.full(len(found), -1, np.int64)
    inside = found.clip(0, len(group) - 1)
    return np.where((found < len(group)) & (group[inside] == of_group), found, -1)


def _expect_sorted(keys: Ints) -> None:
    """Sees that rows are in the order that looking them up needs: an answer out of disorder would be a guess.

    Raises:
        ValueError: they are not.
    """
    if not in_order(keys):
        raise ValueError("rows that were to be looked up are not in their order")


def exactly(group: Array, value: Array, of_group: Array, of_value: Array) -> Ints:
    """Returns, for each (of_group, of_value), the index of the row that equals it, else -1; the rows are sorted."""
    found = at_or_before(group, value, of_group, of_value)
    return np.where((found >= 0) & (value[found] == of_value), found, -1) if len(value) else found


def between(group: Array, value: Array, of_group: Array, low: Array, high: Array) -> tuple[Ints, Ints]:
    """Returns, for each wanted group, the range [first, end) of rows with low <= value < high; the rows are sorted."""
    keys, lows, highs = composites((group, value), (of_group, low), (of_group, high))
    _expect_sorted(keys)
    first, end = np.searchsorted(keys, lows, side="left"), np.searchsorted(keys, highs, side="left")
    return first, np.maximum(first, end)


def covering(group: Array, first: Array, end: Array, of_group: Array, at: Array) -> Ints:
    """Returns how many intervals [first, end) of its group cover each point; intervals in any order, none empty."""
    begun_keys, ended_keys, points = composites((group, first), (group, end), (of_group, at))
    begun = np.searchsorted(np.sort(begun_keys), points, side="right")
    return begun - np.searchsorted(np.sort(ended_keys), points, side="right")


def least_covering(
    group: Array, low: Array, high: Array, value: Array, of_group: Array, at: Array, *, missing: int
) -> Ints:
    """Returns for each point the least value of the intervals [low, high) of its group that cover it, else `missing`.

    `missing` is above all values. A sparse table: each interval is two overlapping blocks of 2^n points, handed down.
    """
    order = ordered(of_group, at) if len(at) else np.empty(0, np.int64)
    first, end = between(of_group[order], at[order], group, low, high)
    least = np.full(len(at), missing, np.int64)
    filled = end > first
    first, end, value = first[filled], end[filled], value[filled]
    level = np.frexp(end - first)[1] - 1  # the greatest power of two that fits
    tables = [np.full(len(at), missing, np.int64) for _ in range(int(level.max(initial=0)) + 1)]
    for height, table in enumerate(tables):
        here = level == height
        np.minimum.at(table, first[here], value[here])
        np.minimum.at(table, end[here] - (1 << height), value[here])
    for height in range(len(tables) - 1, 0, -1):
        half, above, below = 1 << (height - 1), tables[height], tables[height - 1]
        np.minimum(below, above, out=below)
        np.minimum(below[half:], above[:-half], out=below[half:])
    least[order] = tables[0]
    return least


def in_ranges(first: Array, end: Array) -> tuple[Ints, Ints]:
    """Returns (which range, which row) for every row of every range [first, end): ranges laid end to end."""
    sizes = np.maximum(end - first, 0)
    which = np.repeat(np.arange(len(first)), sizes)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(first, sizes)


def greatest_in(values: Array, first: Array, end: Array) -> Ints:
    """Returns the index of the (last) greatest value of each range [first, end), -1 where the range is empty."""
    found = np.full(len(first), -1, np.int64)
    filled = np.flatnonzero(end > first)
    if not len(filled):
        return found
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values) + 1, np.int64)
    ranks[order] = np.arange(len(values))
    ranks[-1] = -1  # reduceat wants every end to be an index
    edges = np.stack([first[filled], end[filled]], axis=1).ravel()
    found[filled] = order[np.maximum.reduceat(ranks, edges)[::2]]
    return found


def first_of(*groups: Array) -> Ints:
    """Returns the indices of the first row of each run of equal groups, as `starts_of` does."""
    return np.flatnonzero(starts_of(*groups))


def number_in(group: Array) -> Ints:
    """Returns the place of each row inside its run of equal groups, from 0."""
    if not len(group):
        return np.empty(0, np.int64)
    begins = first_of(group)
    return np.arange(len(group)) - np.repeat(begins, np.diff(np.append(begins, len(group))))


def counts(group: Array, size: int) -> Ints:
    """Returns how many rows each of `size` groups has."""
    return np.bincount(group, minlength=size).astype(np.int64) if len(group) else np.zeros(size, np.int64)


def per_group(group: Array, values: Array, size: int, *, how: str, start: int) -> Ints:
    """Returns for each of `size` groups the min or max of its values, `start` where it has none."""
    best = np.full(size, start, np.int64)
    operator: np.ufunc = {"min": np.minimum, "max": np.maximum}[how]
    operator.at(best, group, values)
    return best


def true_or_none(holds: Bools) -> Array:
    """Returns True where that holds, and None elsewhere: an attribute that is there only if it is true."""
    found: Array = np.array([None, True], dtype=object)[holds.astype(np.int64)]
    return found


def value_at(values: Array, index: Array, missing: Any) -> Array:
    """Returns values[index], and `missing`, a value of their type, where the index is -1."""
    if not len(values):
        return np.full(len(index), missing, values.dtype)
    return np.where(index >= 0, values[index], missing).astype(values.dtype)


def picked(values: Array, index: Array, missing: int) -> Ints:
    """Returns values[index], and `missing` where the index is -1."""
    if not len(values):
        return np.full(len(index), missing, np.int64)
    return np.where(index >= 0, values[index], missing).astype(np.int64)

"""A batch: the rows of some whole slices, and what is derived from them once for all anomalies.

What is derived stands in modules of its own: ownership epochs in `ownership_epochs.py`, handlers in `handlers.py`, the
commits that took effect in `commits_log.py`, and so on. Each is a function of a batch, marked as an `index`: it is
computed when it is first asked for, and kept with its batch. Tables are sorted by slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, wraps
from typing import Any, Self, TypeVar

import numpy as np

from kafka_trial.model import clocks, wall_clock
from kafka_trial.model.families import Family, FamilyTable, families_of, in_common
from kafka_trial.model.kernels import NEVER, NONE, Array, Bools, Ints, first_of, ordered
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table
from kafka_trial.model.trial_context import TrialContext

T = TypeVar("T")


class Batch:
    """Whole slices with their indexes: `rows` has the columns of `rows.NUMBERS`, and `key`, a place in `keys`.

    Nobody sees these but `of`, which gives them the names of their family (`families.py`).
    """

    def __init__(self, rows: Table, trial_context: TrialContext, keys: Sequence[str] = ()) -> None:
        self.trial_context = trial_context
        self.keys = keys
        self._as_read = rows
        self._rows = clocks.own_times(trial_context, rows)
        self._by_kind = _runs(rows["kind"])
        codes = np.unique(rows["slice"])
        self.slices: Ints = codes.astype(np.int64)
        self.size = len(codes)
        self.incarnations = _incarnations(trial_context)
        self._derived: dict[Callable[[Batch], Any], Any] = {}

    def of(self, *kinds: Kind) -> Table:
        """Returns the rows of some kinds, in no particular order, with the columns of their family (`families.py`).

        Of several families: with those columns that they have in common. `slice` is numbered from 0 inside this batch.
        """
        parts = [self._of(family, [kind for kind in kinds if kind in family.kinds]) for family in families_of(kinds)]
        return parts[0] if len(parts) == 1 else in_common(parts)

    def _of(self, family: Family, kinds: Sequence[Kind]) -> FamilyTable:
        order, spans = self._by_kind
        parts = [order[slice(*spans[kind])] for kind in kinds if kind in spans]
        chosen = np.concatenate(parts) if parts else np.empty(0, np.int64)
        rows = family.read(self._rows.only(*family.carriers).take(chosen))
        return rows.having(slice=np.searchsorted(self.slices, rows["slice"]).astype(np.int64))

    @cached_property
    def records(self) -> Table:
        """The control read: slice, offset, id hash (of its id), key (-1: none), appended_ns, source, seq; sorted.

        One row an offset.
        """
        records = self.of(Kind.RECORD).sorted_by("slice", "offset")
        distinct = records.take(_firsts(records["slice"], records["offset"]))
        return distinct.only("slice", "offset", "id_hash", "key", "source", "seq").having(
            appended_ns=self.monotonic(distinct["append_wall_ns"], distinct["time_ns"])
        )

    @cached_property
    def ends(self) -> Ints:
        """The position after the last readable record of each slice; NONE where it has no record."""
        ends = np.full(self.size, NONE, np.int64)
        ends[self.records["slice"]] = self.records["offset"] + 1  # sorted: the last one stays
        return ends

    @cached_property
    def log_starts(self) -> Ints:
        """The lowest position of each slice: what the observer read, else its first record, else 0."""
        starts = np.zeros(self.size, np.int64)
        first = first_of(self.records["slice"])
        starts[self.records["slice"][first]] = self.records["offset"][first]
        read = self.of(Kind.LOG_START)
        starts[read["slice"]] = read["position"]
        np.minimum.at(starts, read["slice"], read["position"])
        return starts

    @cached_property
    def arrived(self) -> Table:
        """The effects, sorted by (slice, id hash of their id, time)."""
        return self.of(Kind.ARRIVED).sorted_by("slice", "id_hash", "time_ns", "source", "seq")

    def listed(self, lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
        """Returns (which list, which slice) for each slice of this batch that lists of slices of the trial hold."""
        which = np.repeat(np.arange(len(lists)), np.array([len(one) for one in lists], np.int64))
        given = np.array([number for one in lists for number in one], np.int64)
        place = np.searchsorted(self.slices, given).clip(0, max(self.size - 1, 0))
        here = self.slices[place] == given if self.size else np.zeros(len(given), np.bool_)
        return which[here], place[here].astype(np.int64)

    def is_compacted(self, slices: Ints) -> Bools:
        """Returns which slices of this batch are of topics that were compacted at any time."""
        told = [self.trial_context.is_compacted(number) for number in self.slices.tolist()]
        return np.array(told, np.bool_)[slices]

    def derived(self, derive: Callable[[Batch], T]) -> T:
        """Returns what a function makes of this batch; it is asked once."""
        if derive not in self._derived:
            self._derived[derive] = derive(self)
        found: T = self._derived[derive]
        return found

    @cached_property
    def without_harness_stalls(self) -> Self:
        """The same rows, as if the harness had read everything when it was said."""
        return self.under(replace(self.trial_context, harness_stalls=()))

    @cached_property
    def with_certain_aborts(self) -> Self:
        """The same rows, as if nothing had been given up of which that is not certain (`aborts.py`)."""
        return self.under(replace(self.trial_context, only_certain_aborts=True))

    def under(self, trial_context: TrialContext) -> Self:
        """Returns the same rows in another trial context."""
        return type(self)(self._as_read, trial_context, self.keys)

    def earliest(self, read_ns: Ints) -> Ints:
        """See `clocks.earliest`."""
        return clocks.earliest(self.trial_context, read_ns)

    def written_ns(self, sources: Array, read_ns: Ints) -> Ints:
        """Returns the earliest time at which each line can have been written; NEVER and NONE stay as they are."""
        known = (read_ns != NEVER) & (read_ns != NONE)
        return np.where(known, self.earliest(read_ns) - self.uncertainty(sources, read_ns), read_ns)

    def uncertainty(self, sources: Array, time_ns: Ints) -> Ints:
        """See `clocks.uncertainty`."""
        return clocks.uncertainty(self.trial_context, sources, time_ns)

    def untimed(self, sources: Array) -> Bools:
        """See `clocks.untimed`."""
        return clocks.untimed(self.trial_context, sources)

    def monotonic(self, wall_ns: Array, otherwise_ns: Array) -> Ints:
        """See `wall_clock.monotonic`."""
        return wall_clock.monotonic(self.trial_context, wall_ns, otherwise_ns)


def index(derive: Callable[[Batch], T]) -> Callable[[Batch], T]:
    """Makes a function of a batch one that is computed once for each batch."""

    @wraps(derive)
    def kept(batch: Batch) -> T:
        return batch.derived(derive)

    return kept


def _runs(kinds: Array) -> tuple[Ints, dict[int, tuple[int, int]]]:
    order = ordered(kinds)
    firsts = first_of(kinds[order])
    ends = np.append(firsts[1:], len(kinds))[: len(firsts)]
    return order, {int(kinds[order[first]]): (int(first), int(end)) for first, end in zip(firsts, ends, strict=True)}


def _firsts(group: Array, value: Array) -> Ints:
    fresh = np.ones(len(group), np.bool_)
    fresh[1:] = (group[1:] != group[:-1]) | (value[1:] != value[:-1])
    return np.flatnonzero(fresh)


def _incarnations(trial_context: TrialContext) -> Table:
    """Returns the incarnations as columns, sorted by (member, start)."""
    incarnations = sorted(
        trial_context.incarnations,
        key=lambda incarnation: (incarnation.member, incarnation.started_ns, incarnation.source),
    )
    names = (
        "source",
        "member",
        "started_ns",
        "closed_seq",
        "closed_ns",
        "exited_seq",
        "exited_ns",
        "worked_ns",
        "in_hand",
    )
    columns = {
        name: np.array(
            [NONE if (value := getattr(incarnation, name)) is None else value for incarnation in incarnations], np.int64
        )
        for name in names
    }
    columns["killed"] = np.array([incarnation.killed for incarnation in incarnations], np.bool_)
    columns["crashed"] = np.array([incarnation.crashed for incarnation in incarnations], np.bool_)
    for name in ("invokes", "assigns", "delivers", "completes"):
        columns[name] = np.array([getattr(incarnation, name) for incarnation in incarnations], np.bool_)
    return Table(columns)

"""Failed batches: what a client of a member was handed out at once, of several partitions, and a record of it failed.

A poll may return records of several partitions, and a listener that takes batches is handed all of them as one. Slices
know one partition each: of a batch in which a record is said to have failed, every one of its partitions gets a row. (A
record without an end tells nothing of other partitions: its own may have been revoked.) A batch is what a file says was
delivered, to one client, before anything else is said of records.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Ints,
    first_of,
    in_ranges,
    joined,
    last_true,
    next_in,
    ordered,
    per_group,
    picked,
    previous_in,
)
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table, stacked, table

WORK = (Kind.DELIVERED, Kind.PROCESSED, Kind.FAILED)
COLUMNS = ("client", "slice", "offset", "seq", "time_ns", "kind")
ROW = ("slice", "seq", "time_ns", "failed_seq", "failed_slice")


class FailedBatches:
    """Gathers those of one file; of its lines it keeps those of batches of which more is to come."""

    def __init__(self) -> None:
        self._open = _no_rows(*COLUMNS, "batch")
        self._last = self._open  # the last line of each client
        self._failed = [_no_rows(*ROW)]
        self._begun = 0

    def take(self, lines: Table) -> None:
        """Takes the lines about records of the next block: those of COLUMNS."""
        if len(lines):
            self._settle(stacked(self._open, self._in_batches(lines)), at_end=False)

    def rows(self) -> dict[str, Array]:
        """Returns slice, seq and time_ns of the first delivery of each partition of each failed batch, once for each
        partition in which a record of it failed: `failed_slice`, and the first line that told of it, `failed_seq`; once
        the file is read."""
        self._settle(self._open, at_end=True)
        return dict(stacked(*self._failed).columns)

    def _in_batches(self, lines: Table) -> Table:
        """Returns lines with the number of the batch that was the last one to be delivered to their client."""
        lines = stacked(self._last, lines.having(batch=np.full(len(lines), -1)))
        lines = lines.take(ordered(lines["client"]))
        new, delivered = lines["batch"] < 0, lines["kind"] == Kind.DELIVERED
        begins = new & delivered & (picked(lines["kind"], previous_in(lines["client"]), 0) != Kind.DELIVERED)
        number = np.where(begins, self._begun + np.cumsum(begins), lines["batch"])
        self._begun += int(begins.sum())
        lines = lines.having(batch=picked(number, last_true(lines["client"], begins | ~new), 0))
        self._last = lines.take(next_in(lines["client"]) < 0)
        return lines.take(new)

    def _settle(self, lines: Table, *, at_end: bool) -> None:
        """Tells of the batches of which nothing more is to come, and keeps the lines of the others."""
        lines = lines.take(ordered(lines["client"], lines["slice"], lines["offset"], lines["seq"]))
        record = joined(lines["client"], lines["slice"], lines["offset"])
        delivery = last_true(record, lines["kind"] == Kind.DELIVERED)
        begun = np.flatnonzero(lines["kind"] == Kind.DELIVERED)
        given = lines.take(begun).having(failed_seq=_failed_seq(lines, delivery)[begun])
        batches, number = np.unique(given["batch"], return_inverse=True)
        several = _of_each(number, given["slice"], "max") > _of_each(number, given["slice"], "min")
        waits = _of_each(number, (next_in(record)[begun] < 0).astype(np.int64), "max") == 1
        open_ = np.isin(batches, self._last["batch"]) | (several & waits)
        self._failed.append(_with_failures(given.take((several & (at_end | ~open_))[number])))
        self._open = lines.take(np.isin(picked(lines["batch"], delivery, -1), batches[open_]))


def _failed_seq(lines: Table, delivery: Ints) -> Ints:
    """Returns of each delivery the first line by which its record failed; NEVER of one that is not said to have.
    `delivery`: the one that each line is of."""
    failed = (delivery >= 0) & (lines["kind"] == Kind.FAILED)
    return per_group(delivery[failed], lines["seq"][failed], len(lines), how="min", start=NEVER)


def _of_each(number: Array, values: Array, how: str) -> Ints:
    """Returns the least or greatest value of each batch."""
    return per_group(number, values, int(number.max(initial=-1)) + 1, how=how, start=NEVER if how == "min" else NONE)


def _with_failures(given: Table) -> Table:
    """Returns the first delivery of each partition of each batch, with each partition of that in which one failed."""
    first, failures = _firsts(given, "seq"), given.take(given["failed_seq"] != NEVER)
    failures = _firsts(failures, "failed_seq")
    low, high = (np.searchsorted(failures["batch"], first["batch"], side=side) for side in ("left", "right"))
    which, row = in_ranges(low, high)
    told = first.take(which).having(failed_seq=failures["failed_seq"][row], failed_slice=failures["slice"][row])
    return told.only(*ROW)


def _firsts(given: Table, by: str) -> Table:
    """Returns the first delivery of each partition of each batch, in the order of a column."""
    given = given.take(ordered(given["batch"], given["slice"], given[by]))
    return given.take(first_of(given["batch"], given["slice"]))


def _no_rows(*names: str) -> Table:
    return table(**{name: np.empty(0, np.int64) for name in names})

"""Occupied intervals: when a member's process had a record in hand, or waited for an answer to anything but a fetch.

Computed across all partitions of a group: a process that works on one partition, or waits for the end of a transaction,
is not idle with regard to the others. A fetch is left out, for a broker keeps one of empty partitions until there is
something, and so is a heartbeat, for nobody waits for it (`judge/blocking_requests.py` has the whole list).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from kafka_trial.model.clients import incarnation_at, members_of
from kafka_trial.model.handlers import records_begun
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Ints,
    between,
    joined,
    next_in,
    picked,
    previous_in,
    running_max,
    starts_of,
)
from kafka_trial.model.ownership_epochs import ownership_epochs
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table, stacked, table

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch

OCCUPIED_INTERVALS: Final = ("slice", "source", "since_ns", "until_ns")
# COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS: asked again soon.
RETRIABLE_ERRORS: Final = (14, 15, 16, 51)
MERGE_GAP_NS: Final = 10_000_000


def occupied_intervals(batch: Batch) -> Table:
    """Returns slice (as in the trial context), source, since_ns and until_ns of each: a record of that slice in
    hand, or, in the slice of no partition, an answer awaited. Those of one slice and source are sorted and disjoint:
    gaps below `MERGE_GAP_NS` are closed."""
    both = stacked(_records_in_hand(batch), _waits_for_answers(batch))
    both = both.take(both["until_ns"] > both["since_ns"]).sorted_by("slice", "source", "since_ns")
    key, since_ns, until_ns = joined(both["slice"], both["source"]), both["since_ns"], both["until_ns"]
    latest_ns = until_ns[running_max(key, until_ns)] if len(both) else until_ns
    before = previous_in(key)
    begins = np.flatnonzero((before < 0) | (since_ns - MERGE_GAP_NS > picked(latest_ns, before, NONE)))
    last = np.append(begins[1:], len(both))[: len(begins)] - 1
    return table(
        slice=batch.slices[both["slice"][begins]],
        source=both["source"][begins],
        since_ns=since_ns[begins],
        until_ns=latest_ns[last],
    )


def occupied_ns(intervals: Table, sources: Array, since_ns: Array, until_ns: Array) -> Ints:
    """Returns of each window (`since_ns` to `until_ns`) for how long in all its process was occupied; where intervals
    overlap, that counts once."""
    held = intervals.sorted_by("source", "since_ns")
    source, begun_ns = held["source"], held["since_ns"]
    latest_ns = held["until_ns"][running_max(source, held["until_ns"])] if len(held) else held["until_ns"]
    earlier_ns = np.where(starts_of(source), NONE, np.append(NONE, latest_ns[:-1])[: len(held)])
    begun_ns = np.maximum(begun_ns, earlier_ns)
    disjoint = held.having(since_ns=begun_ns).take(latest_ns > begun_ns)
    return _occupied_until(disjoint, sources, until_ns) - _occupied_until(disjoint, sources, since_ns)


def _occupied_until(disjoint: Table, sources: Array, at_ns: Array) -> Ints:
    """Returns how long a process has been occupied by each point of time; `disjoint` by (source, since_ns)."""
    sums = np.cumsum(np.append(0, disjoint["until_ns"] - disjoint["since_ns"]))
    first, end = between(disjoint["source"], disjoint["since_ns"], sources, np.full(len(at_ns), NONE), at_ns)
    ended_ns = picked(disjoint["until_ns"], np.where(end > first, end - 1, -1), NONE)
    return sums[end] - sums[first] - np.where(ended_ns > at_ns, ended_ns - at_ns, 0)


def _records_in_hand(batch: Batch) -> Table:
    """Returns from when to when a member had each record in hand: to its end, or, where that is earlier, that of its
    ownership epoch."""
    begun = records_begun(batch)
    begun = begun.take((begun["ownership_epoch"] >= 0) & ~batch.untimed(begun["source"]))
    closed_ns = picked(ownership_epochs(batch)["close_ns"], begun["ownership_epoch"], NEVER)
    return table(
        slice=begun["slice"],
        source=begun["source"].astype(np.int64),
        since_ns=begun["time_ns"],
        until_ns=np.minimum(begun["ended_ns"], closed_ns),
    )


def _waits_for_answers(batch: Batch) -> Table:
    """Returns each wait of a process for a broker, from request to answer; after a retriable error, to its next
    request."""
    asks = batch.of(Kind.BLOCKING_REQUEST)
    answered_ns = batch.monotonic(asks["answered_wall_ns"], asks["time_ns"])
    begun_ns = answered_ns - asks["duration_ns"]
    row = incarnation_at(batch, members_of(batch, asks["lane"], otherwise=-1), begun_ns)
    asks = asks.having(source=picked(batch.incarnations["source"], row, -1), begun_ns=begun_ns, answered_ns=answered_ns)
    asks = asks.take(row >= 0).sorted_by("slice", "source", "begun_ns")
    again_ns = picked(asks["begun_ns"], next_in(joined(asks["slice"], asks["source"])), NONE)
    later_ns = np.where(np.isin(asks["error_code"], RETRIABLE_ERRORS), np.maximum(again_ns, asks["answered_ns"]), NONE)
    return table(
        slice=asks["slice"],
        source=asks["source"],
        since_ns=asks["begun_ns"],
        until_ns=np.maximum(asks["answered_ns"], later_ns),
    )

"""Occupation: when a member's process had a record in hand, or waited for a broker to answer something but a fetch.

Judged of all slices together: who waits for the end of a transaction, or works on one partition, is not idle for
another. A fetch is none of it, for a broker keeps one of empty partitions until there is something; a heartbeat is none
either, for nobody waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from kafka_trial.invariants.clients import incarnation_at, members_of
from kafka_trial.invariants.handlers import records_begun
from kafka_trial.invariants.kernels import (
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
from kafka_trial.invariants.ownership_epochs import ownership_epochs
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.table import Table, stacked, table

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch

OCCUPIED: Final = ("slice", "source", "since_ns", "until_ns")
# COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS: asked again soon.
NOT_YET: Final = (14, 15, 16, 51)
APART_NS: Final = 10_000_000  # stretches that are closer are one


def occupied(batch: Batch) -> Table:
    """Returns slice (as in the trial context), source, since_ns and until_ns of each stretch: a record of that slice in
    hand, or, in the slice of no partition, an answer awaited. Those of one slice and source lie apart, in order."""
    both = stacked(_records_in_hand(batch), _answers_awaited(batch))
    both = both.take(both["until_ns"] > both["since_ns"]).sorted_by("slice", "source", "since_ns")
    whose, since_ns, until_ns = joined(both["slice"], both["source"]), both["since_ns"], both["until_ns"]
    latest_ns = until_ns[running_max(whose, until_ns)] if len(both) else until_ns
    before = previous_in(whose)
    begins = np.flatnonzero((before < 0) | (since_ns - APART_NS > picked(latest_ns, before, NONE)))
    last = np.append(begins[1:], len(both))[: len(begins)] - 1
    return table(
        slice=batch.slices[both["slice"][begins]],
        source=both["source"][begins],
        since_ns=since_ns[begins],
        until_ns=latest_ns[last],
    )


def occupied_ns(stretches: Table, sources: Array, since_ns: Array, until_ns: Array) -> Ints:
    """Returns for how long of each stretch of time a process was occupied: where several things were at once, once."""
    held = stretches.sorted_by("source", "since_ns")
    source, begun_ns = held["source"], held["since_ns"]
    latest_ns = held["until_ns"][running_max(source, held["until_ns"])] if len(held) else held["until_ns"]
    earlier_ns = np.where(starts_of(source), NONE, np.append(NONE, latest_ns[:-1])[: len(held)])
    begun_ns = np.maximum(begun_ns, earlier_ns)
    alone = held.having(since_ns=begun_ns).take(latest_ns > begun_ns)
    return _before(alone, sources, until_ns) - _before(alone, sources, since_ns)


def _before(alone: Table, sources: Array, at_ns: Array) -> Ints:
    """Returns how long stretches that lie apart, by (source, since_ns), have lasted by each point of time."""
    sums = np.cumsum(np.append(0, alone["until_ns"] - alone["since_ns"]))
    first, end = between(alone["source"], alone["since_ns"], sources, np.full(len(at_ns), NONE), at_ns)
    ended_ns = picked(alone["until_ns"], np.where(end > first, end - 1, -1), NONE)
    return sums[end] - sums[first] - np.where(ended_ns > at_ns, ended_ns - at_ns, 0)


def _records_in_hand(batch: Batch) -> Table:
    """Returns from when to when a member had each record in hand: to its end, or that of the ownership epoch."""
    begun = records_begun(batch)
    begun = begun.take((begun["ownership_epoch"] >= 0) & ~batch.vague(begun["source"]))
    closed_ns = picked(ownership_epochs(batch)["close_ns"], begun["ownership_epoch"], NEVER)
    return table(
        slice=begun["slice"],
        source=begun["source"].astype(np.int64),
        since_ns=begun["time_ns"],
        until_ns=np.minimum(begun["ended_ns"], closed_ns),
    )


def _answers_awaited(batch: Batch) -> Table:
    """Returns from when to when a broker was asked something by a process; where its answer was that it cannot tell
    yet, to when the process asked the next thing."""
    asks = batch.of(Kind.AWAITED)
    answered_ns = batch.monotonic(asks["answered_wall_ns"], asks["time_ns"])
    begun_ns = answered_ns - asks["duration_ns"]
    row = incarnation_at(batch, members_of(batch, asks["lane"], otherwise=-1), begun_ns)
    asks = asks.having(source=picked(batch.incarnations["source"], row, -1), begun_ns=begun_ns, answered_ns=answered_ns)
    asks = asks.take(row >= 0).sorted_by("slice", "source", "begun_ns")
    again_ns = picked(asks["begun_ns"], next_in(joined(asks["slice"], asks["source"])), NONE)
    later_ns = np.where(np.isin(asks["error_code"], NOT_YET), np.maximum(again_ns, asks["answered_ns"]), NONE)
    return table(
        slice=asks["slice"],
        source=asks["source"],
        since_ns=asks["begun_ns"],
        until_ns=np.maximum(asks["answered_ns"], later_ns),
    )

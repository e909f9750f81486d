"""Rebalances: how many ownership epochs one of them ended, and how many of these may have had a record in hand then.

What a consumer does with a record in hand when its partition goes is tried only where there was one. In doubt there
was: a record that may have been fetched counts as one until it was handled.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.model.batch import Batch
from kafka_trial.model.handlers import first_handled_of_records, records_begun
from kafka_trial.model.inferred_ownership_epochs import fetches
from kafka_trial.model.instants import at_earliest
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    at_or_before,
    between,
    counts,
    greatest_in,
    min_after,
    picked,
)
from kafka_trial.model.ownership_epochs import BY_EXIT, STILL_OPEN, ownership_epochs
from kafka_trial.model.table import Table


def ended_by_rebalances(batch: Batch, at_ns: int) -> tuple[Ints, Ints]:
    """Returns how many ownership epochs of each slice a rebalance ended until then, and how many of them may have had a
    record in hand."""
    held = ownership_epochs(batch)
    ended = ~np.isin(held["closed_by"], (STILL_OPEN, BY_EXIT)) & (held["close_ns"] <= at_ns)
    number = np.flatnonzero(ended)
    met = _in_handlers(batch, number) | _fetched(batch, held.take(number), at_ns)
    slices = held["slice"][number]
    return counts(slices, batch.size), counts(slices[met], batch.size)


def _in_handlers(batch: Batch, epochs: Ints) -> Bools:
    """Returns in which of these ownership epochs a record was delivered, and not completed before the end."""
    begun = records_begun(batch)
    close_ns = picked(ownership_epochs(batch)["close_ns"], begun["ownership_epoch"], 0)
    unfinished = (begun["ownership_epoch"] >= 0) & (begun["ended_ns"] >= close_ns)  # lines read at once are of one time
    found: Bools = np.isin(epochs, begun["ownership_epoch"][unfinished])
    return found


def _fetched(batch: Batch, ended: Table, at_ns: int) -> Bools:
    """Returns in which ownership epochs a fetch may have brought a record that nobody had handled by the end, or whose
    fetches the request log does not tell."""
    asked = fetches(batch)
    untold = ~np.isin(ended["source"], asked["source"])
    brought = asked.take(asked["answered_bytes"] > 0)
    size = len(batch.trial_context.sources) + 1
    file, wanted = (rows["slice"] * size + rows["source"] for rows in (brought, ended))
    first, end = between(file, brought["at_ns"], wanted, at_earliest(ended["open_ns"]), ended["close_ns"] + 1)
    lowest = picked(brought["fetch_position"], greatest_in(-brought["fetch_position"], first, end), NEVER)
    until_ns = picked(brought["at_ns"], np.where(end > first, end - 1, -1), NONE)
    return untold | (_unhandled_ns(batch, ended["slice"], lowest, until_ns, at_ns) >= ended["close_ns"])


def _unhandled_ns(batch: Batch, slices: Ints, lowest: Ints, until_ns: Ints, at_ns: int) -> Ints:
    """Returns when the last was handled of the records from an offset on that lay in each slice by a time; NONE where
    there is no such record."""
    records, handled_ns = batch.records, first_handled_of_records(batch).time_ns
    # Without its append time a record has that of the control read: it may have lain there all the while.
    appended_ns = np.where(records["appended_ns"] > at_ns, NONE, records["appended_ns"])
    later = min_after(records["slice"], appended_ns)
    earliest_ns = np.minimum(appended_ns, picked(appended_ns, later, NEVER))  # of it and of all behind it
    first, _ = between(records["slice"], records["offset"], slices, lowest, np.full(len(slices), NEVER))
    last = at_or_before(records["slice"], earliest_ns, slices, until_ns)
    return picked(handled_ns, greatest_in(handled_ns, first, np.maximum(first, last + 1)), NONE)

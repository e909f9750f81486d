"""Series: the lag of each partition over time, committed and handled, as records and as age, for the pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kafka_trial.model.batch import Batch
from kafka_trial.model.commits_log import commits_in_effect
from kafka_trial.model.handlers import first_handled_of_records
from kafka_trial.model.kernels import NEVER, NONE, Array, Ints, at_or_before, composites
from kafka_trial.model.record_ages import committed_age_ns, handled_age_ns

POINTS = 300
NS_PER_MS = 1_000_000
SPAN_NS_MAX = 10**16  # a clock that was wrong by more than months tells nothing


def series(batch: Batch) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields for each slice the columns of SERIES from time_ns on, at POINTS instants from its first to its last.

    The committed lag counts the records appended by then at or above the committed offset; the handled lag those
    appended by then and not handled. The ages are how long ago the oldest of each was appended.
    """
    records = batch.records
    if not len(records):
        return
    grid = _instants(batch)
    slices = np.repeat(np.arange(batch.size), POINTS)
    times = grid.ravel()
    appended = _up_to(records["slice"], records["appended_ns"], slices, times)
    handled = _up_to(records["slice"], first_handled_of_records(batch).time_ns, slices, times)
    passed = np.minimum(_below(batch, slices, _committed_at(batch, slices, times)), appended)
    for number in np.unique(records["slice"]).tolist():
        span = slice(number * POINTS, (number + 1) * POINTS)
        yield (
            int(batch.slices[number]),
            {
                "time_ns": times[span].tolist(),
                "committed_lag": (appended - passed)[span].tolist(),
                "handled_lag": np.maximum(appended - handled, 0)[span].tolist(),
            }
            | _ages(batch, number, times[span]),
        )


def _ages(batch: Batch, number: int, at_ns: Ints) -> dict[str, list[int]]:
    """Returns how old the oldest record of one slice was that was not committed past, and not handled."""
    here = batch.records["slice"] == number
    records, commits = batch.records.take(here), commits_in_effect(batch)
    committed_ns = committed_age_ns(records, commits.take(commits["slice"] == number), at_ns)
    handled_ns = handled_age_ns(records["appended_ns"], first_handled_of_records(batch).time_ns[here], at_ns)
    return {
        "committed_age_ms": (committed_ns // NS_PER_MS).tolist(),
        "handled_age_ms": (handled_ns // NS_PER_MS).tolist(),
    }


def _instants(batch: Batch) -> Ints:
    records, done = batch.records, first_handled_of_records(batch).time_ns
    known = done[done != NEVER]
    first = int(records["appended_ns"].min())
    last = max(
        int(records["appended_ns"].max()), int(known.max(initial=first)), batch.trial_context.snapshot_ns or first
    )
    steps = np.linspace(0, min(last - first, SPAN_NS_MAX), POINTS).astype(np.int64)
    return np.broadcast_to(first + steps, (batch.size, POINTS))


def _up_to(group: Array, times: Array, slices: Array, at: Array) -> Ints:
    """Returns how many of its slice's times are at or before each instant."""
    keys, wanted, floor = composites((group, times), (slices, at), (slices, np.full(len(slices), NONE + 1)))
    keys = np.sort(keys)
    return np.searchsorted(keys, wanted, side="right") - np.searchsorted(keys, floor, side="left")


def _committed_at(batch: Batch, slices: Array, at: Array) -> Ints:
    log = commits_in_effect(batch).sorted_by("slice", "effect_ns")
    row = at_or_before(log["slice"], log["effect_ns"], slices, at)
    return np.where(row >= 0, log["committed_offset"][row], NONE) if len(log) else np.full(len(at), NONE)


def _below(batch: Batch, slices: Array, positions: Array) -> Ints:
    """Returns how many records lie below each position."""
    records = batch.records
    keys, wanted, floor = composites(
        (records["slice"], records["offset"]), (slices, positions), (slices, np.full(len(slices), NONE))
    )
    return np.searchsorted(keys, wanted, side="left") - np.searchsorted(keys, floor, side="left")

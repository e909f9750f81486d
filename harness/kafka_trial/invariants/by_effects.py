"""By effects: what a sink shows of a consumer that prints nothing of its work: order, and what was done again.

The sink's file is one order of what reached it; of an output topic the order is that of each of its partitions. Where
a possession began is the brokers' word (`inferred_possessions.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.handlers import keys_of
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    at_or_before,
    joined,
    max_before,
    number_in,
    ordered,
    picked,
    previous_in,
)
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.table import Table

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


def effects_in_order(batch: Batch) -> Table:
    """Returns slice, source, seq, offset, time_ns, key, `output` (the partition of an output topic; -1: none) and `at`
    (its place there, else in the sink's file), sorted by slice, offset and time; `number`: how many of its record came
    before.
    """
    effects = batch.of(Kind.EFFECT)
    at = np.where(effects["place"] == NONE, effects["seq"], effects["place"])
    effects = effects.only("slice", "offset", "time_ns", "seq").having(
        source=effects["source"].astype(np.int64), output=effects["who"].astype(np.int64), at=at
    )
    effects = effects.take(ordered(effects["slice"], effects["offset"], effects["time_ns"], effects["seq"]))
    number = number_in(joined(effects["slice"], effects["offset"]))
    return effects.having(key=keys_of(batch, effects), number=number)


def late_effects(batch: Batch, *, same_key: bool) -> tuple[Table, Table]:
    """Returns the first effects that came after one of a later record, and that one of each."""
    first = effects_in_order(batch)
    first = first.take((first["number"] == 0) & (first["key"] >= 0 if same_key else True))
    group = joined(first["slice"], first["source"], first["output"], first["key"] if same_key else first["slice"])
    order = ordered(group, first["at"])
    first, group = first.take(order), group[order]
    highest = max_before(group, first["offset"])
    late: Bools = (highest >= 0) & (first["offset"] < picked(first["offset"], highest, NONE))
    return first.take(late), first.take(highest[late])


def done_again(batch: Batch) -> tuple[Table, Array, Bools]:
    """Returns every further effect of a record; the floor of the possession that it came in (NONE: not known); and
    whether its member, alone with the partition, had begun to fetch below that floor, at the record or before it.
    """
    again = effects_in_order(batch)
    again = again.take(again["number"] > 0)
    numbers = np.lexsort((batch.possessions["open_ns"], batch.possessions["slice"]))
    held = batch.possessions.take(numbers)
    row = at_or_before(held["slice"], held["open_ns"], again["slice"], again["time_ns"])
    floor = picked(batch.floors[numbers], row, NONE)
    begun = picked(held["begun_at"], row, NONE)
    alone = picked(_alone(held).astype(np.int64), row, 0) == 1
    possession = picked(numbers, row, -1)
    below: Bools = alone & (begun != NONE) & (begun <= again["offset"]) & (again["offset"] < floor)
    return again.having(possession=possession), floor, below


def _alone(held: Table) -> Bools:
    """Returns whether everybody else's possession of the slice was over when each one opened (sorted by time)."""
    before = previous_in(held["slice"])
    ended = np.where(held["close_ns"] == NEVER, NEVER - 1, held["close_ns"])
    latest = max_before(held["slice"], ended)
    alone: Bools = (before < 0) | (picked(ended, latest, NONE) <= held["open_ns"])
    return alone

"""How `Redeliveries` and `Retries` are made; what their columns mean stands in `partition.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.batch import index
from kafka_trial.model.handler_retries import handler_starts
from kafka_trial.model.handlers import finished_handlers
from kafka_trial.model.kernels import NEVER, NONE, first_of, joined, ordered, per_group, picked
from kafka_trial.model.ownership_epochs import ownership_epochs
from kafka_trial.model.partition import Redeliveries, Retries
from kafka_trial.model.rows import Kind, Outcome
from kafka_trial.model.sink_effects import done_again
from kafka_trial.model.start_positions import floors
from kafka_trial.model.table import Table, is_among, stacked
from kafka_trial.model.truncations import truncated_below

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch
    from kafka_trial.model.kernels import Array, Bools


@index
def redeliveries(batch: Batch) -> Redeliveries:
    """Returns what was delivered before, and again."""
    starts, floor = _begun_again(batch)
    below = (starts["offset"] < floor) & starts["elsewhere"] & ~truncated_below(batch, starts, floor)
    effects, effects_floor, effects_below = done_again(batch)
    told = starts.having(floor=floor, below_floor=below)
    seen = effects.having(floor=effects_floor, below_floor=effects_below)
    names = ("slice", "offset", "source", "seq", "ownership_epoch", "floor", "below_floor")
    again, held = stacked(told.only(*names), seen.only(*names)), ownership_epochs(batch)
    return Redeliveries(again.columns).having_when_asked(
        opened_source=lambda: picked(held["proof_source"], again["ownership_epoch"], -1),
        opened_seq=lambda: picked(held["proof_seq"], again["ownership_epoch"], -1),
    )


@index
def retries(batch: Batch) -> Retries:
    """Returns the deliveries that were retries."""
    return Retries(handler_starts(batch).take(handler_starts(batch)["retry"]).columns)


def _begun_again(batch: Batch) -> tuple[Table, Array]:
    """Returns when records were begun again that another ownership epoch had too, or the same one, but for the first
    time; and the floors of these ownership epochs. `elsewhere`: another ownership epoch had it. What is tried again is
    none of them.
    """
    deliveries = handler_starts(batch)
    deliveries = deliveries.take(~_set_aside(batch, deliveries))
    record = joined(deliveries["slice"], deliveries["offset"])
    order = ordered(record, deliveries["time_ns"])
    deliveries, record = deliveries.take(order), record[order]
    number = np.cumsum(np.diff(record, prepend=-1) != 0) - 1
    size = int(number.max(initial=-1)) + 1
    held = deliveries["ownership_epoch"] >= 0
    low, high = (
        per_group(number[held], deliveries["ownership_epoch"][held], size, how=how, start=start)
        for how, start in (("min", NEVER), ("max", NONE))
    )
    first = np.zeros(len(deliveries), np.bool_)
    first[first_of(record)] = True
    elsewhere = low[number] != high[number]
    again = held & ~first & (elsewhere | deliveries["repeated"]) & ~deliveries["retry"]
    return deliveries.having(elsewhere=elsewhere).take(again), floors(batch)[deliveries["ownership_epoch"][again]]


def _set_aside(batch: Batch, starts: Table) -> Bools:
    """Returns which rows of `handler_starts` ended in the word that the record was discarded, where progress is not in
    Kafka: a client may be given records before it is told to seek, and its member finds in its own store that they are
    not its own to do."""
    if batch.trial_context.settings.in_offsets_log:
        return np.zeros(len(starts), np.bool_)
    said, handlers, names = batch.of(Kind.PROCESSED), finished_handlers(batch), ("slice", "source", "seq", "offset")
    said = said.take(said["outcome"] == Outcome.DISCARDED)
    ended = handlers.take(is_among(handlers.having(seq=handlers["end_seq"]), said, *names))
    begun: Bools = is_among(starts, ended.having(seq=ended["start_seq"]), *names)
    return begun | ((starts["kind"] == Kind.PROCESSED) & is_among(starts, said, *names))

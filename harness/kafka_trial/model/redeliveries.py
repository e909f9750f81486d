"""How `Redeliveries` and `Retries` are made; what their columns mean stands in `partition.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.batch import index
from kafka_trial.model.handler_retries import handler_starts
from kafka_trial.model.kernels import NEVER, NONE, first_of, joined, ordered, per_group, picked
from kafka_trial.model.ownership_epochs import ownership_epochs
from kafka_trial.model.partition import Redeliveries, Retries
from kafka_trial.model.seeks import LINE, before_seek, is_discarded
from kafka_trial.model.sink_effects import done_again
from kafka_trial.model.start_positions import begun_anywhere, floors
from kafka_trial.model.table import Table, is_among, stacked
from kafka_trial.model.truncations import truncated_below
from kafka_trial.model.undecided import Undecided, undecided_because

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch
    from kafka_trial.model.kernels import Array, Bools


@index
def redeliveries(batch: Batch) -> Redeliveries:
    """Returns what was delivered before, and again."""
    starts, floor = _begun_again(batch)
    anywhere = begun_anywhere(batch)[starts["ownership_epoch"]] & starts["elsewhere"]
    below = (starts["offset"] < floor) & starts["elsewhere"] & ~truncated_below(batch, starts, floor)
    below |= anywhere
    starts = starts.having(anywhere=anywhere)
    told = starts.having(floor=floor, below_floor=below)
    names = ("slice", "offset", "source", "seq", "ownership_epoch", "floor", "below_floor", "left", "whose", "anywhere")
    seen = (_by_effects(batch, rows).only(*names) for rows in done_again(batch))
    again, held = stacked(told.only(*names), *seen), ownership_epochs(batch)
    why = undecided_because(
        (Undecided.LEFT_BEFORE_SEEK, again["left"]),
        (Undecided.WHOSE_EFFECT, again["whose"]),
        (Undecided.BEGUN_ANYWHERE, again["anywhere"]),
    )
    return (
        Redeliveries(again.columns)
        .having(why=why)
        .having_when_asked(
            opened_source=lambda: picked(held["proof_source"], again["ownership_epoch"], -1),
            opened_seq=lambda: picked(held["proof_seq"], again["ownership_epoch"], -1),
        )
    )


def _by_effects(batch: Batch, rows: Table) -> Table:
    held = rows["ownership_epoch"]
    anywhere = picked(begun_anywhere(batch).astype(np.int64), held, 0) == 1
    left, below = np.zeros(len(rows), np.bool_), rows["below_floor"] | anywhere
    return rows.having(left=left, anywhere=anywhere, below_floor=below)


@index
def retries(batch: Batch) -> Retries:
    """Returns the deliveries that were retries."""
    return Retries(handler_starts(batch).take(handler_starts(batch)["retry"]).columns)


def _begun_again(batch: Batch) -> tuple[Table, Array]:
    """Returns when records were begun again that another ownership epoch had too, or the same one, but for the first
    time; and the floors of these ownership epochs. `elsewhere`: another ownership epoch had it; `left`: only if what
    was left before a seek had been begun; `whose`: only if it is not tried again. What is tried again is none of them.
    """
    starts = handler_starts(batch)
    starts = starts.take(~_set_aside(batch, starts))
    left = before_seek(batch, starts, starts["ownership_epoch"])
    stayed = starts.take(~left)
    sure = _again(stayed, stayed["retry"])
    may = stayed if batch.trial_context.has_sink else starts
    again = _again(may, may["retry"] & ~may["doubtful"])
    unsure = ~is_among(again, sure, *LINE)
    again = again.having(left=unsure & ~again["retry"], whose=unsure & again["retry"])
    return again, floors(batch)[again["ownership_epoch"]]


def _again(starts: Table, retry: Bools) -> Table:
    """Returns those of some rows of `handler_starts` that were not the first of their record, with `elsewhere`; but
    for those that `retry`."""
    starts = starts.having(tried=retry)
    record = joined(starts["slice"], starts["offset"])
    order = ordered(record, starts["time_ns"])
    starts, record = starts.take(order), record[order]
    number = np.cumsum(np.diff(record, prepend=-1) != 0) - 1
    size = int(number.max(initial=-1)) + 1
    held = starts["ownership_epoch"] >= 0
    low, high = (
        per_group(number[held], starts["ownership_epoch"][held], size, how=how, start=start)
        for how, start in (("min", NEVER), ("max", NONE))
    )
    first = np.zeros(len(starts), np.bool_)
    first[first_of(record)] = True
    elsewhere = low[number] != high[number]
    again = held & ~first & (elsewhere | starts["repeated"]) & ~starts["tried"]
    return starts.having(elsewhere=elsewhere).take(again)


def _set_aside(batch: Batch, starts: Table) -> Bools:
    """Returns which rows of `handler_starts` ended in the word that the record was discarded, where progress is not in
    Kafka: a client may be given records before it is told to seek, and its member finds in its own store that they are
    not its own to do."""
    if batch.trial_context.settings.in_offsets_log:
        return np.zeros(len(starts), np.bool_)
    return is_discarded(batch, starts)

"""How `Phantoms`, `DuplicateEffects` and `StaleStates` are made; what their columns mean stands in `partition.py`.

Which states end as that of an older record is read out of the sink's file (`judge/row_states.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.batch import index
from kafka_trial.model.commits_log import final_committed_offsets
from kafka_trial.model.kernels import first_of, joined, number_in
from kafka_trial.model.partition import DuplicateEffects, Phantoms, StaleStates
from kafka_trial.model.rows import Kind, Known, LastState
from kafka_trial.model.table import is_among, number_among
from kafka_trial.model.undecided import Undecided, undecided_because

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch
    from kafka_trial.model.kernels import Array


@index
def phantoms(batch: Batch) -> Phantoms:
    """Returns what was delivered, or had its effect, with an id that nobody sent."""
    told = batch.of(Kind.DELIVERED, Kind.ARRIVED)
    told = told.take(told["known"] & Known.UNSENT > 0).sorted_by("slice", "time_ns", "source", "seq")
    return Phantoms(told.columns).having(
        id=_ids(batch, told["unsent_id"]),
        what=np.where(told["kind"] == Kind.ARRIVED, "effected", "delivered").astype(object),
        why=undecided_because((Undecided.FOREIGN_PRODUCER, told["known"] & Known.READ > 0)),
    )


@index
def duplicate_effects(batch: Batch) -> DuplicateEffects:
    """Returns every effect of a record after its first one: beyond as many as its partition holds records of that id,
    whose producer may have sent it again."""
    effects = batch.arrived
    number = number_in(joined(effects["slice"], effects["id_hash"]))
    places = number_among(effects, batch.of(Kind.EFFECT), "slice", "source", "seq")  # an effect has a row for each
    again = number >= np.maximum(places, 1)
    first = effects.take(first_of(joined(effects["slice"], effects["id_hash"]))).take(np.cumsum(number == 0)[again] - 1)
    return DuplicateEffects(effects.take(again).columns).having(
        number=number[again] + 1, first_source=first["source"], first_seq=first["seq"]
    )


def _ids(batch: Batch, codes: Array) -> Array:
    """Returns the ids that stand in `unsent_id`; few, for only what was never sent carries them."""
    names = np.array([*batch.keys, None], dtype=object)
    return names[codes]


@index
def stale_states(batch: Batch) -> StaleStates:
    """Returns the rows of the consumer's table, or keys at its sink, that ended with the state of an older record."""
    rows = batch.of(Kind.ROLLED_BACK).sorted_by("slice", "offset", "older_seq")
    open_ended = rows["offset"] >= final_committed_offsets(batch)[rows["slice"]]
    open_ended &= batch.trial_context.settings.in_offsets_log
    elsewhere = is_among(rows, batch.of(Kind.HANDED_ON), "slice", "offset")  # its position is that of another topic
    partitions = np.array([partition for _, partition in batch.trial_context.slices], np.int64)
    return StaleStates(rows.columns).having(
        older_partition=partitions[rows["older_slice"]],
        same_key=(rows["keyed"] == 1) & (rows["older_slice"] == rows["slice"]),
        why=undecided_because(
            (Undecided.MAY_COME_AGAIN, open_ended | elsewhere),
            (Undecided.UNANSWERED_STATE, rows["last_state"] == LastState.UNANSWERED),
            (Undecided.OUTPUTS_APART, rows["last_state"] == LastState.APART),
            (Undecided.KEY_UNORDERED, rows["last_state"] == LastState.KEY_UNORDERED),
            (Undecided.UNORDERED, rows["last_state"] == LastState.UNORDERED),
        ),
    )

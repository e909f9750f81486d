"""How `Phantoms` and `DuplicateEffects` are made; what their columns mean stands in `partition.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.batch import index
from kafka_trial.model.kernels import first_of, joined, number_in
from kafka_trial.model.partition import DuplicateEffects, Phantoms
from kafka_trial.model.rows import Kind, Known
from kafka_trial.model.table import number_among
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

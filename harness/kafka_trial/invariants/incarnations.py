"""Lives: which incarnation of a member a source of events belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.kernels import Array, Ints

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


def incarnation_of(batch: Batch, sources: Array) -> Ints:
    """Returns the place of each source's life in `batch.lives`, -1 where a source is no member's."""
    places = np.full(len(batch.trial_context.sources) + 1, -1, np.int64)
    places[batch.lives["source"]] = np.arange(len(batch.lives))
    return places[sources]

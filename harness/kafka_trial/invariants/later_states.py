"""Later states: of a table, the state that a later record of its key left stands for all earlier ones of that key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.kernels import NEVER, NONE, exactly, joined, min_after, ordered, picked
from kafka_trial.invariants.table import Table, stacked

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


def by_later_states(batch: Batch, effects: Table) -> Table:
    """Returns for each keyed record the first effect of a later record of its key, in the columns of `effects`.

    Keys are those of the control read; later is in the log of the partition, and first by time.
    """
    records = batch.records
    found = exactly(records["slice"], records["offset"], effects["slice"], effects["offset"])
    states = effects.having(key=picked(records["key"], found, -1))
    blank = {
        name: np.full(len(records), NEVER if name == "time_ns" else NONE) for name in ("kind", "time_ns", "stamped")
    }
    both = stacked(records.only("slice", "offset", "key", "source", "seq").having(**blank), states)
    both = both.take(both["key"] >= 0)
    effect = both["time_ns"] != NEVER
    # Of one offset the effects stand before its record: they are its own, and no later ones.
    both = both.take(ordered(both["slice"], both["key"], both["offset"], ~effect))
    effect = both["time_ns"] != NEVER
    first = min_after(joined(both["slice"], both["key"]), both["time_ns"])
    later = ~effect & (picked(both["time_ns"], first, NEVER) != NEVER)
    states = both.take(first[later]).having(offset=both["offset"][later])
    return states.only(*effects.columns)

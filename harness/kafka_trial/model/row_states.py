"""How `StaleStates` is made; what its columns mean stands in `partition.py`.

Which states end as that of an older record is read out of the sink's file (`judge/row_states.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.batch import index
from kafka_trial.model.commits_log import final_committed_offsets
from kafka_trial.model.partition import StaleStates
from kafka_trial.model.rows import Kind, LastState
from kafka_trial.model.table import is_among
from kafka_trial.model.undecided import Undecided, undecided_because

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch


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

"""Work without a right: what a member handled of a partition that nobody had given it, while the group had given that
to others.

Which ownership epochs are without a right stands in `rights.py`. Work convicts while others have the partition, where
the member itself had fetched the record: what an owner handed over to it may have been fetched by right, and where the
request log cannot tell it is undecided.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.model.batch import Batch
from kafka_trial.model.clients import incarnation_of
from kafka_trial.model.contradicted_lines import is_refuted
from kafka_trial.model.false_assignments import uncorroborated
from kafka_trial.model.handler_retries import handler_starts
from kafka_trial.model.kernels import NONE, picked
from kafka_trial.model.ownership_log import others_hold
from kafka_trial.model.request_logs import brought
from kafka_trial.model.rights import ever_given, without_right
from kafka_trial.model.table import FILE, Table, is_among


def work_without_right(batch: Batch) -> tuple[Table, Table]:
    """Returns what was begun (rows of `handler_starts`) without a right while others had the partition: by a member
    that had fetched the record itself; and by one of which nobody knows whether it had."""
    begun = handler_starts(batch)
    taken = picked(without_right(batch).astype(np.int64), begun["ownership_epoch"], 0) == 1
    exited = picked(batch.incarnations["exited_seq"], incarnation_of(batch, begun["source"]), NONE)
    nowhere = (begun["ownership_epoch"] < 0) & ~begun["revoked"] & ((exited == NONE) | (begun["seq"] < exited))
    begun = begun.take(taken | nowhere)
    elsewhere = ever_given(batch, begun) | is_among(begun, uncorroborated(batch), *FILE)  # `false_assignments.py`
    begun = begun.take((begun["ownership_epoch"] >= 0) | ~elsewhere)
    member = picked(batch.incarnations["member"], incarnation_of(batch, begun["source"]), -1)
    begun = begun.take(others_hold(batch, begun["slice"], member, begun["time_ns"]))
    itself = (begun["ownership_epoch"] >= 0) & brought(batch, begun)
    return begun.take(itself), begun.take(~itself & ~is_refuted(batch, begun))

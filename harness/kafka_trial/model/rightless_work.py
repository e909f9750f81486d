"""Work without a right: what a member handled of a partition that nobody had given it, while the group had given that
to others.

An ownership epoch that its member took by fetching (`inferred_ownership_epochs.py`) is without a right where neither
log ever gave it the partition; so is one that its member alone tells of, where the offsets log, read to its end, gave
the partition to others. Consumers that assign partitions to themselves (`protocol = "none"`) need none. Work convicts
while others have the partition, where the member itself had fetched the record: what an owner handed over to it may
have been fetched by right, and where the request log cannot tell it is undecided.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.model.batch import Batch, index
from kafka_trial.model.clients import file_of, incarnation_of
from kafka_trial.model.contradicted_lines import is_refuted
from kafka_trial.model.false_assignments import uncorroborated
from kafka_trial.model.handler_retries import handler_starts
from kafka_trial.model.inferred_ownership_epochs import given_by_answers
from kafka_trial.model.kernels import NONE, Bools, picked
from kafka_trial.model.ownership_epochs import ownership_epochs
from kafka_trial.model.ownership_log import logged_assignments, never_given, others_hold
from kafka_trial.model.request_logs import brought
from kafka_trial.model.table import FILE, Table, is_among


@index
def without_right(batch: Batch) -> Bools:
    """Returns which ownership epochs nobody had given their member: it took the partition by fetching, or says that it
    was assigned it, while both logs know better."""
    held = ownership_epochs(batch)
    if batch.trial_context.settings.protocol == "none":
        return np.zeros(len(held), np.bool_)
    taken = held["taken"] & ~_ever_given(batch, held) & np.isin(held["slice"], logged_assignments(batch)["slice"])
    answers = given_by_answers(batch)
    claimed = (
        ~held["taken"] & never_given(batch, held["slice"], held["member"]) & np.isin(held["slice"], answers["slice"])
    )
    claimed &= ~is_among(held, answers, *FILE)
    return taken | claimed


def work_without_right(batch: Batch) -> tuple[Table, Table]:
    """Returns what was begun (rows of `handler_starts`) without a right while others had the partition: by a member
    that had fetched the record itself; and by one of which nobody knows whether it had."""
    begun = handler_starts(batch)
    taken = picked(without_right(batch).astype(np.int64), begun["ownership_epoch"], 0) == 1
    exited = picked(batch.incarnations["exited_seq"], incarnation_of(batch, begun["source"]), NONE)
    nowhere = (begun["ownership_epoch"] < 0) & ~begun["revoked"] & ((exited == NONE) | (begun["seq"] < exited))
    begun = begun.take(taken | nowhere)
    elsewhere = _ever_given(batch, begun) | is_among(begun, uncorroborated(batch), *FILE)  # `false_assignments.py`
    begun = begun.take((begun["ownership_epoch"] >= 0) | ~elsewhere)
    member = picked(batch.incarnations["member"], incarnation_of(batch, begun["source"]), -1)
    begun = begun.take(others_hold(batch, begun["slice"], member, begun["time_ns"]))
    itself = (begun["ownership_epoch"] >= 0) & brought(batch, begun)
    return begun.take(itself), begun.take(~itself & ~is_refuted(batch, begun))


def _ever_given(batch: Batch, rows: Table) -> Bools:
    """Returns whether the offsets log gave the partition of each row (slice, source) to its incarnation at any time."""
    given = logged_assignments(batch)
    given = given.only("slice").having(source=file_of(batch, given["member"], given["time_ns"]))
    return is_among(rows, given, *FILE)

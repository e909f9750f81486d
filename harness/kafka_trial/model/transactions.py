"""How `AbortedReads` and `CommitsOutsideTransactions` are made; what their columns mean stands in `partition.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.batch import index
from kafka_trial.model.commits_log import UNKNOWN, commits_in_effect, from_outside
from kafka_trial.model.kernels import NONE, exactly, first_of, ordered, picked, previous_in
from kafka_trial.model.partition import AbortedReads, CommitsOutsideTransactions
from kafka_trial.model.rows import IN_TRANSACTION, Kind, Known
from kafka_trial.model.table import Table, stacked
from kafka_trial.model.undecided import Undecided, undecided_because

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch


@index
def aborted_reads(batch: Batch) -> AbortedReads:
    """Returns the records of aborted transactions that were delivered, or had their effect."""
    gone = batch.of(Kind.ABORTED_RECORD)
    delivered, arrived = batch.of(Kind.DELIVERED), batch.of(Kind.ARRIVED)
    arrived = arrived.take((arrived["known"] & Known.READ == 0) & (arrived["id_hash"] != NONE))
    read = stacked(_hits(gone, delivered, by="offset"), _hits(gone, arrived, by="id_hash"))
    read = read.take(ordered(read["slice"], read["aborted_offset"], read["time_ns"], read["source"], read["seq"]))
    found = read.take(first_of(read["slice"], read["aborted_offset"]))
    what = np.where(found["kind"] == Kind.ARRIVED, "effected", "delivered").astype(object)
    return AbortedReads(found.columns).having(what=what)


@index
def commits_outside_transactions(batch: Batch) -> CommitsOutsideTransactions:
    """Returns the commits that were in no transaction; not certain where it is unknown whose it was, and it changed the
    position."""
    log = commits_in_effect(batch)
    before = previous_in(log["stretch"])
    stood = picked(log["committed_offset"], before, NONE)
    stood = np.where(before < 0, batch.log_starts[log["slice"]], stood)
    outside = log["in_transaction"] != IN_TRANSACTION
    found = log.having(stood=stood, repeats=log["committed_offset"] == stood).take(outside)
    members = np.array([*batch.trial_context.members, None], dtype=object)
    whose = ~found["repeats"] & (found["committer"] == UNKNOWN)
    return CommitsOutsideTransactions(found.columns).having(
        **from_outside(found["committer"]),
        member_name=members[np.where(found["committer"] >= 0, found["committer"], -1)],
        why=undecided_because((Undecided.OUTSIDE_COMMITTER_UNKNOWN, whose)),
    )


def _hits(gone: Table, told: Table, *, by: str) -> Table:
    """Returns the rows that tell of an aborted record, with its offset and its event; `by` offset or
    id_hash."""
    known = gone.sorted_by("slice", by, "offset")
    at = exactly(known["slice"], known[by], told["slice"], told[by])
    hit = told.only("slice", "kind", "time_ns", "source", "seq").take(at >= 0)
    of = {name: known[column][at[at >= 0]] for name, column in _OF_GONE.items()}
    return hit.having(**of)


_OF_GONE = {"aborted_offset": "offset", "aborted_source": "source", "aborted_seq": "seq"}

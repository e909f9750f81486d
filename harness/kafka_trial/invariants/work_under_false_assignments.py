"""Claimed partitions: work of a member on a partition that it says it was assigned, and that nobody had given it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.clients import incarnation_of
from kafka_trial.invariants.false_assignments import false_assigned
from kafka_trial.invariants.handler_retries import handler_starts
from kafka_trial.invariants.kernels import NONE, Array, Bools, Ints, at_or_before, joined, picked
from kafka_trial.invariants.ownership_epochs import own_words
from kafka_trial.invariants.ownership_log import logged_assignments, owned_by
from kafka_trial.invariants.rows import CALLBACKS, Protocol
from kafka_trial.invariants.table import Table
from kafka_trial.invariants.trial_context import TOLERANCE_NS

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


def begun_under_false_assignments(batch: Batch) -> tuple[Table, Table]:
    """Returns what was begun under a false assignment while the offsets log gave the partition to others, and the
    line of that assignment (source, seq) for each."""
    claims, work = false_assigned(batch).sorted_by("slice", "source", "client", "seq"), handler_starts(batch)
    work = work.take(work["ownership_epoch"] < 0)
    file, wanted = _files(claims, work)
    claim = at_or_before(file, claims["seq"], wanted, work["seq"])
    own = (
        own_words(batch)
        .take(np.isin(own_words(batch)["kind"], CALLBACKS))
        .sorted_by("slice", "source", "client", "seq")
    )
    file, wanted = _files(own, work)
    callback = at_or_before(file, own["seq"], wanted, work["seq"])
    since = picked(claims["seq"], claim, NONE)
    closed = picked(batch.lives["closed_seq"], incarnation_of(batch, work["source"]), NONE)
    under = (claim >= 0) & (since > picked(own["seq"], callback, NONE)) & ((closed == NONE) | (work["seq"] < closed))
    under &= _of_others(batch, work)
    return work.take(under), claims.only("source", "seq").take(claim[under])


def _of_others(batch: Batch, work: Table) -> Bools:
    """Returns whether the offsets log gave the partition to others all the time in which each row may have been."""
    assignment_records = (
        logged_assignments(batch)
        .take(logged_assignments(batch)["protocol"] != Protocol.CONSUMER_PENDING)
        .sorted_by("slice", "time_ns")
    )
    member = picked(batch.lives["member"], incarnation_of(batch, work["source"]), -1)
    written_ns = batch.written_ns(work["source"], work["time_ns"])
    others = np.ones(len(work), np.bool_)
    for at_ns in (written_ns, work["time_ns"], work["time_ns"] + TOLERANCE_NS):
        row = at_or_before(assignment_records["slice"], assignment_records["time_ns"], work["slice"], at_ns)
        others &= (row >= 0) & ~owned_by(
            batch, work["slice"], member, picked(assignment_records["log_offset"], row, NONE)
        )
    return others


def _files(rows: Table, wanted: Table) -> tuple[Ints, Array]:
    both = joined(*(np.concatenate([rows[name], wanted[name]]) for name in ("slice", "source", "client")))
    return both[: len(rows)], both[len(rows) :]

"""How `AbortedReads`, `CommitsOutsideTransactions` and `TornTransactions` are made; what their columns mean stands in
`partition.py`.

A transaction is torn if what it wrote into several logs was taken in one of them, and left in another. Judged from the
marker that ended it in each log (the outputs' partitions, and the offsets log's), and from the EndTxn requests that
were granted. Both lie in the slice of no partition, for a transaction spans logs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.batch import index
from kafka_trial.model.commits_log import UNKNOWN, commits_in_effect, from_outside
from kafka_trial.model.instants import at_earliest_in_logs, at_latest_in_logs
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    at_or_after,
    at_or_before,
    between,
    exactly,
    first_of,
    joined,
    next_in,
    ordered,
    per_group,
    picked,
    previous_in,
)
from kafka_trial.model.partition import AbortedReads, CommitsOutsideTransactions, TornTransactions
from kafka_trial.model.rows import IN_TRANSACTION, Kind, Known
from kafka_trial.model.table import Table, stacked
from kafka_trial.model.trial_context import LOG_TOLERANCE_NS
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


@index
def torn_transactions(batch: Batch) -> TornTransactions:
    """Returns the transactions that were committed in one log and aborted in another."""
    ends, asks = _by_transaction(batch)
    own = exactly(asks["key"], asks["key"], ends["key"], ends["key"])
    own = np.where(picked(asks["own_epoch"], own, 0) == 1, own, -1)
    unclear = ends["mixed"] & (own < 0) & ~_asked_for(ends, asks)
    found = np.concatenate([_first_rows(ends, ends["mixed"] & (own >= 0)), _first_rows(ends, unclear)])
    committed, aborted = (ends.take(ends[name][found]) for name in ("commit", "abort"))
    logs = np.array([*batch.trial_context.logs, None], dtype=object)
    return TornTransactions(ends.take(found).columns).having(
        committed_in=logs[committed["log"]],
        committed_source=committed["source"],
        committed_seq=committed["seq"],
        aborted_in=logs[aborted["log"]],
        aborted_source=aborted["source"],
        aborted_seq=aborted["seq"],
        asked_source=picked(asks["source"], own[found], -1),
        asked_seq=picked(asks["seq"], own[found], -1),
        why=undecided_because((Undecided.ONE_EPOCH, own[found] < 0)),
    )


def _first_rows(ends: Table, chosen: Bools) -> Ints:
    """Returns the first of the chosen rows of each key."""
    rows = np.flatnonzero(chosen)
    return rows[first_of(ends["key"][rows])]


def _by_transaction(batch: Batch) -> tuple[Table, Table]:
    """Returns the ends and the requests, sorted by `key` (producer id and epoch) and time.

    Of the ends: `mixed` (its key ended in both ways), `commit` and `abort` (the rows of the key's first end of each
    sort). Of the requests: begun_ns, `asks_commit`, `own_epoch` (1 first within a key).
    """
    ends, asks = batch.of(Kind.ENDED_COMMITTED, Kind.ENDED_ABORTED), batch.of(Kind.ASKED_COMMIT, Kind.ASKED_ABORT)
    names = ("slice", "producer_id", "producer_epoch")
    both = joined(*(np.concatenate([ends[name], asks[name]]) for name in names))
    keys = np.unique(both, return_inverse=True)[1].astype(np.int64)
    ends = ends.having(key=keys[: len(ends)]).sorted_by("key", "time_ns", "source", "seq")
    committed = ends["kind"] == Kind.ENDED_COMMITTED
    commit, abort = (_first_where(ends["key"], mask) for mask in (committed, ~committed))
    asks = asks.having(
        key=keys[len(ends) :],
        begun_ns=asks["answered_wall_ns"] - asks["duration_ns"],
        asks_commit=asks["kind"] == Kind.ASKED_COMMIT,
    )
    ends = ends.having(committed=committed, commit=commit, abort=abort, mixed=(commit >= 0) & (abort >= 0))
    return ends, asks.sorted_by("key", "begun_ns", "source", "seq")


def _first_where(key: Ints, mask: Array) -> Ints:
    """Returns for each row the first row of its key (rows sorted by it) where the mask is True, -1 for none."""
    rows = np.flatnonzero(mask)
    first = per_group(key[rows], rows, int(key.max(initial=-1)) + 1, how="min", start=NEVER)[key]
    return np.where(first == NEVER, -1, first)


def _asked_for(ends: Table, asks: Table) -> Bools:
    """Returns whether a request of the same key asked for each end as it was: the last that had surely begun by then,
    or one that began around it."""
    surely_ns = at_earliest_in_logs(ends["append_wall_ns"])
    last = at_or_before(asks["key"], asks["begun_ns"], ends["key"], surely_ns)
    fits = (last >= 0) & (picked(asks["asks_commit"], last, -1) == ends["committed"])
    first, end = between(
        asks["key"], asks["begun_ns"], ends["key"], surely_ns + 1, at_latest_in_logs(ends["append_wall_ns"]) + 1
    )
    commits = np.concatenate([[0], np.cumsum(asks["asks_commit"])])
    to_commit = commits[end] - commits[first]
    near = np.where(ends["committed"], to_commit, end - first - to_commit) > 0
    return fits | near | _asked_again(ends, asks)


def _asked_again(ends: Table, asks: Table) -> Bools:
    """Returns whether the request after each end asked for it to end as it did, and ended nothing more.

    Where a coordinator dies before it has answered, the one after it ends what it finds decided; its client asks again.
    """
    after = at_or_after(asks["key"], asks["begun_ns"], ends["key"], at_latest_in_logs(ends["append_wall_ns"]) + 1)
    then_ns = picked(picked(asks["begun_ns"], next_in(asks["key"]), NEVER), after, NEVER)
    since_ns = picked(asks["begun_ns"], after, NEVER)
    by_wall = ends.sorted_by("key", "append_wall_ns")
    tolerance = LOG_TOLERANCE_NS
    first, end = between(
        by_wall["key"], by_wall["append_wall_ns"], ends["key"], since_ns - tolerance, then_ns - tolerance
    )
    again: Bools = (after >= 0) & (end <= first) & (picked(asks["asks_commit"], after, -1) == ends["committed"])
    return again

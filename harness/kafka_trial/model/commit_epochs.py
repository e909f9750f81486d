"""Epochs: was every commit that took effect asked for with the epoch (or generation) its member had by then?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.batch import index
from kafka_trial.model.commits_log import commits_in_effect
from kafka_trial.model.instants import at_earliest_in_logs, at_latest_in_logs
from kafka_trial.model.kernels import (
    NONE,
    Array,
    Bools,
    Ints,
    at_or_before,
    between,
    greatest_in,
    joined,
    ordered,
    picked,
)
from kafka_trial.model.partition import StaleCommits
from kafka_trial.model.rows import Kind, Protocol
from kafka_trial.model.table import Table, table
from kafka_trial.model.undecided import Undecided, undecided_because

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch


@index
def stale_commits(batch: Batch) -> StaleCommits:
    """Returns the commits that were accepted with an older epoch than their member had by then."""
    asked = _stored(batch)
    now = _current(batch, asked)
    known = now["log_offset"] != NONE
    older = known & (asked["member_epoch"] < now["epoch"]) & ~_relaxed(batch, asked, now)
    chosen = older | ~known
    stale, by = asked.take(chosen), now.take(chosen)
    return StaleCommits(stale.columns).having(
        log_offset=stale["at"],
        epoch=stale["member_epoch"],
        current_epoch=by["epoch"],
        member_name=_names(batch, stale["member_id"]),
        current_source=by["source"],
        current_seq=by["seq"],
        why=undecided_because((Undecided.MEMBER_EPOCH_UNKNOWN, ~known[chosen])),
    )


def _stored(batch: Batch) -> Table:
    """Returns the accepted commits with the first place in the log (`at`) that may be theirs; others are left out."""
    asked = batch.of(Kind.COMMIT_EPOCH)
    asked = asked.take((asked["answered_wall_ns"] != NONE) & (asked["member_epoch"] != NONE))
    log = commits_in_effect(batch)
    both = joined(*(np.concatenate([log[name], asked[name]]) for name in ("slice", "committed_offset")))
    stored, wanted = both[: len(log)], both[len(log) :]
    order = ordered(stored, log["commit_wall_ns"])
    began = at_earliest_in_logs(asked["answered_wall_ns"] - asked["duration_ns"])
    ended = at_latest_in_logs(asked["answered_wall_ns"]) + 1
    first, end = between(stored[order], log["commit_wall_ns"][order], wanted, began, ended)
    row = _first_place(log["log_offset"], order, first, end)
    asked = asked.having(
        at=picked(log["log_offset"], row, NONE),
        log_source=picked(log["source"], row, -1),
        log_seq=picked(log["seq"], row, -1),
    )
    return asked.take(row >= 0)


def _first_place(places: Array, order: Ints, first: Ints, end: Ints) -> Ints:
    """Returns the row of the least place in each range of `order`, -1 where the range is empty."""
    found = greatest_in(-places[order], first, end)
    return picked(order, found, -1)


def _current(batch: Batch, asked: Table) -> Table:
    """Returns what the last group record before each commit said of its member: epoch, log_offset (NONE: none),
    source, seq.

    A tombstone says that there is no epoch: -1.
    """
    records = batch.trial_context.memberships
    columns = {
        name: np.array([getattr(one, name) for one in records], np.int64)
        for name in ("member_id", "epoch", "source", "seq")
    }
    columns["log_offset"] = np.array([one.place for one in records], np.int64)
    gone = np.array([one.what.endswith("gone") for one in records], np.bool_)
    told = table(**columns | {"epoch": np.where(gone, -1, columns["epoch"])}).sorted_by("member_id", "log_offset")
    own = at_or_before(told["member_id"], told["log_offset"], asked["member_id"], asked["at"])
    of_all = at_or_before(told["member_id"], told["log_offset"], np.full(len(asked), -1), asked["at"])
    later = picked(told["log_offset"], own, NONE) > picked(told["log_offset"], of_all, NONE)
    row = np.where(later, own, of_all)
    return table(**{name: picked(told[name], row, start) for name, start in _MISSING.items()}, own=later)


_MISSING = {"log_offset": NONE, "epoch": -1, "source": -1, "seq": -1}


def _relaxed(batch: Batch, asked: Table, now: Table) -> Bools:
    """Returns whether KIP-1251 lets each commit pass: the partition was assigned, or pending, by its epoch."""
    assignment_records = batch.of(Kind.ASSIGNMENT_RECORD)
    assignment_records = assignment_records.take(assignment_records["protocol"] != Protocol.CLASSIC)
    assignment_records = assignment_records.take(
        ordered(assignment_records["slice"], assignment_records["member_id"], assignment_records["log_offset"])
    )
    both = joined(*(np.concatenate([assignment_records[name], asked[name]]) for name in ("slice", "member_id")))
    group, wanted = both[: len(assignment_records)], both[len(assignment_records) :]
    row = at_or_before(group, assignment_records["log_offset"], wanted, asked["at"])
    holds = picked(assignment_records["until_log_offset"], row, NONE) > asked["at"]
    since = picked(assignment_records["assignment_epoch"], row, NONE)
    allowed: Bools = now["own"] & holds & (since != NONE) & (since <= asked["member_epoch"])
    return allowed


def _names(batch: Batch, ids: Array) -> Array:
    """Returns the member behind each member id; None where it was seen on no lane."""
    names = np.array([*batch.trial_context.members, None], dtype=object)
    owners = np.array([*batch.trial_context.owners, -1], np.int64)
    told: Array = names[owners[ids]]
    return told

"""Epochs: was every commit that took effect asked for with the epoch (or generation) its member had by then?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.anomalies.claim_rule import Rule, fencing_claimed
from kafka_trial.anomalies.invariant import Findings, invariant
from kafka_trial.model.commits_log import commits_in_effect
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
from kafka_trial.model.rows import Kind, Protocol
from kafka_trial.model.table import Table, table
from kafka_trial.model.trial_context import LOG_TOLERANCE_NS
from kafka_trial.model.undecided import Undecided

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch


@invariant(
    "stale-generation",
    family="ownership",
    needs=("offsets log", "requests"),
    level="none",
    progress_in_kafka=True,
    outside_transactions=True,
    severity=230,
    rule=Rule(fencing_claimed),
    message="{committed_offset} was committed on {place} with epoch {epoch}, when its member had {current_epoch}",
)
def stale_generation(batch: Batch) -> Findings:
    """A commit was accepted although it was asked for with an older epoch or generation than its member had by then.

    "The member epoch is stale. The member must retry after receiving its updated member epoch" (Kafka, Protocol, Error
    Codes: STALE_MEMBER_EPOCH, KIP-848; for classic groups ILLEGAL_GENERATION): a broker that accepts it lets a member
    commit what it no longer owns. Legal under KIP-1251 (4.3 and later, shown by the assignment epoch in the record):
    the member still owned or was revoking the partition, and the epoch was at least that of the assignment. Refused
    commits are normal, and so is a commit without an epoch. Of several commits of one position at one time the first in
    the log is taken to be this one, the innocent reading. A request whose line came late is left out: by its order, it
    may belong to a later commit.

    Smallest history: group record of generation 2, OffsetCommit 1 with generation 1 and no error, committed 1.

    Usual cause: The broker took a commit of an older generation.

    Remedy: A broker should refuse it: look at its version; a member should drop its positions when it rejoins.
    """
    asked = _stored(batch)
    now = _current(batch, asked)
    known = now["log_offset"] != NONE
    older = known & (asked["member_epoch"] < now["epoch"]) & ~_relaxed(batch, asked, now)
    stale, by = asked.take(older), now.take(older)
    rows = table(
        slice=stale["slice"],
        order=stale["at"],
        log_offset=stale["at"],
        committed_offset=stale["committed_offset"],
        epoch=stale["member_epoch"],
        current_epoch=by["epoch"],
        member=_names(batch, stale["member_id"]),
    )
    proofs = [("source", "seq"), ("log_source", "log_seq")]
    found = [(by["source"], by["seq"]), *((stale[source], stale[seq]) for source, seq in proofs)]
    return Findings(rows, found, [(Undecided.MEMBER_EPOCH_UNKNOWN, asked["slice"][~known])])


def _stored(batch: Batch) -> Table:
    """Returns the accepted commits with the first place in the log (`at`) that may be theirs; others are left out."""
    asked = batch.of(Kind.COMMIT_EPOCH)
    asked = asked.take((asked["answered_wall_ns"] != NONE) & (asked["member_epoch"] != NONE))
    log = commits_in_effect(batch)
    both = joined(*(np.concatenate([log[name], asked[name]]) for name in ("slice", "committed_offset")))
    stored, wanted = both[: len(log)], both[len(log) :]
    order = ordered(stored, log["commit_wall_ns"])
    began = asked["answered_wall_ns"] - asked["duration_ns"] - LOG_TOLERANCE_NS
    ended = asked["answered_wall_ns"] + LOG_TOLERANCE_NS + 1
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

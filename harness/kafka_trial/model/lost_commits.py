"""Commits that were acknowledged, and are not there: how `LostCommits` is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.batch import index
from kafka_trial.model.clients import incarnation_of, members_of
from kafka_trial.model.commits_log import NOT_TOLD, OPERATOR, UNKNOWN, commits_in_effect
from kafka_trial.model.instants import at_earliest, at_earliest_in_logs, at_latest
from kafka_trial.model.kernels import (
    NONE,
    Array,
    Bools,
    Ints,
    at_or_before,
    between,
    exactly,
    first_of,
    greatest_in,
    joined,
    ordered,
    picked,
)
from kafka_trial.model.ownership_epochs import member_lines
from kafka_trial.model.partition import LostCommits
from kafka_trial.model.request_logs import commit_requests
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table, stacked, table
from kafka_trial.model.undecided import Undecided, undecided_because

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch

NOBODY = -1  # the member of what a broker acknowledged


@index
def lost_commits(batch: Batch) -> LostCommits:
    """Returns the positions that were acknowledged as committed, and are not in the offsets log."""
    acked = _acknowledged(batch)
    log = batch.of(Kind.COMMITTED)
    log = log.having(at_ns=batch.monotonic(log["commit_wall_ns"], log["time_ns"]))
    both = joined(
        np.concatenate([log["slice"], acked["slice"]]),
        np.concatenate([log["committed_offset"], acked["committed_offset"]]),
    )
    stored, wanted = both[: len(log)], both[len(log) :]
    order = ordered(stored, log["at_ns"])
    stored, at_ns = stored[order], log["at_ns"][order]
    first, end = between(stored, at_ns, wanted, acked["since_ns"], acked["until_ns"] + 1)
    there = exactly(stored, stored, wanted, wanted) >= 0
    missing = _weighed(batch, acked.having(target=wanted, there=there).take(end <= first))
    missing = missing.take(ordered(missing["target"], ~missing["lost"], missing["own"], missing["time_ns"]))
    one, said = missing.take(first_of(missing["target"])), missing.take(missing["own"])
    own = said.take(first_of(said["target"]))
    word = exactly(own["target"], own["target"], one["target"], one["target"])
    return LostCommits(one.columns).having(
        acknowledged_by=np.array(["request log", "own word"], dtype=object)[one["own"].astype(np.int64)],
        word_source=picked(own["source"], word, -1),
        word_seq=picked(own["seq"], word, -1),
        why=undecided_because(
            (Undecided.LATER_COMMITTER_UNKNOWN, ~one["lost"] & one["whose"]), (Undecided.ANOTHER_TIME, ~one["lost"])
        ),
    )


def _weighed(batch: Batch, missing: Table) -> Table:
    """Returns the acknowledgements of what was not stored in their time, less those which a later assignment record
    made good.

    Columns besides: `lost` (else it is undecided), `whose` (because a later commit is of nobody knows whom),
    `refused_with` (the error of the refusal, NONE), `refusal_source`, `refusal_seq`.
    """
    refused = _refusals(batch)
    group, wanted = _same(refused, missing, "slice", "committed_offset", "member")
    order = ordered(group, refused["at_ns"])
    refused, group = refused.take(order), group[order]
    row = at_or_before(group, refused["at_ns"], wanted, missing["time_ns"])
    since_ns = picked(refused["at_ns"], row, NONE)
    own, unknown = _stored_beyond(batch, missing, since_ns)
    contradicted = row >= 0
    found = missing.having(
        lost=np.where(contradicted, ~unknown, ~missing["there"]),
        whose=contradicted & unknown,
        refused_with=picked(refused["error"], row, NONE),
        refusal_source=picked(refused["source"], row, -1),
        refusal_seq=picked(refused["seq"], row, -1),
    )
    return found.take(~(contradicted & own))


def _refusals(batch: Batch) -> Table:
    """Returns the commits that brokers refused members: slice, committed_offset, member, at_ns, error, source, seq."""
    asked = commit_requests(batch)
    asked = asked.having(member=members_of(batch, asked["lane"], otherwise=OPERATOR))
    refused = asked.take((asked["error_code"] != 0) & (asked["member"] >= 0))
    at_ns = batch.monotonic(refused["answered_wall_ns"], refused["time_ns"])
    return refused.only("slice", "committed_offset", "member", "source", "seq").having(
        at_ns=at_ns, error=refused["error_code"].astype(np.int64)
    )


def _stored_beyond(batch: Batch, acked: Table, since_ns: Ints) -> tuple[Bools, Bools]:
    """Returns whether the member, and whether nobody knows who, committed such a position or a later one between a
    refusal and its report."""
    log = commits_in_effect(batch)
    committer = np.where(np.isin(log["committer"], NOT_TOLD), UNKNOWN, log["committer"])
    log = log.only("slice", "committed_offset", "effect_ns").having(member=committer)
    own, unknown = (
        _reached(log, acked.having(member=member), since_ns)
        for member in (acked["member"], np.full(len(acked), UNKNOWN))
    )
    return own, unknown & ~own


def _reached(log: Table, acked: Table, since_ns: Ints) -> Bools:
    group, wanted = _same(log, acked, "slice", "member")
    order = ordered(group, log["effect_ns"])
    group, log = group[order], log.take(order)
    first_ns = at_earliest_in_logs(since_ns)
    highest = greatest_in(
        log["committed_offset"], *between(group, log["effect_ns"], wanted, first_ns, acked["until_ns"] + 1)
    )
    reached: Bools = picked(log["committed_offset"], highest, NONE) >= acked["committed_offset"]
    return reached


def _same(rows: Table, others: Table, *names: str) -> tuple[Array, Array]:
    """Returns what the rows of two tables are as numbers that are equal where the named columns are."""
    both = joined(*(np.concatenate([rows[name], others[name]]) for name in names))
    return both[: len(rows)], both[len(rows) :]


def _acknowledged(batch: Batch) -> Table:
    """Returns the acknowledgements until the snapshot: slice, committed_offset, since_ns and until_ns (when it took
    effect), own, and the member whose word it is.

    By the request log a commit took effect while it was answered; by a member's word at any time before. A position
    below 0 is none: clients answer so for partitions of which they had nothing to commit.
    """
    asked = commit_requests(batch)
    member = members_of(batch, asked["lane"], otherwise=OPERATOR)
    asked = asked.take((asked["error_code"] == 0) & (member != OPERATOR))
    answered_ns = batch.monotonic(asked["answered_wall_ns"], asked["time_ns"])
    told = member_lines(batch).take(member_lines(batch)["kind"] == Kind.COMMIT_OK)
    teller = picked(batch.incarnations["member"], incarnation_of(batch, told["source"]), NOBODY)
    since_ns = at_earliest(answered_ns - asked["duration_ns"])
    both = stacked(
        _asked(asked, since_ns, answered_ns, np.full(len(asked), NOBODY), own=False),
        _asked(told, np.full(len(told), NONE), told["time_ns"], teller, own=True),
    )
    snapshot_ns = batch.trial_context.snapshot_ns
    before: Bools = both["time_ns"] <= (NONE if snapshot_ns is None else snapshot_ns)
    return both.take(before & (both["committed_offset"] >= 0))


def _asked(rows: Table, since_ns: Ints, answered_ns: Ints, member: Ints, *, own: bool) -> Table:
    return table(
        slice=rows["slice"],
        committed_offset=rows["committed_offset"],
        since_ns=since_ns,
        until_ns=at_latest(answered_ns),
        own=np.full(len(rows), own),
        member=member,
        time_ns=rows["time_ns"],
        source=rows["source"].astype(np.int64),
        seq=rows["seq"],
    )

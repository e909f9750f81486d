"""Commits that ran ahead of the work: by the members' own word, and by the offsets log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.commits_log import OPERATOR, told_by_members
from kafka_trial.invariants.delivery import KILLED_UNHEARD, killed_unheard
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    between,
    exactly,
    first_of,
    greatest_in,
    joined,
    ordered,
    picked,
    previous_in,
)
from kafka_trial.invariants.rows import IN_TRANSACTION, Kind
from kafka_trial.invariants.table import Table, stacked, table

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


@invariant(
    "commit-ahead", family="commits", needs=("records", "handled", "offsets log"), level="sink", progress_in_kafka=True
)
def commit_ahead(batch: Batch) -> Findings:
    """A position was committed before every record below it had been handled: a crash there loses records.

    "The consumer must process records before committing, so that a crash never loses them" (KafkaConsumer, Manual
    Offset Control). By the member's own word the order is exact; by the offsets log it is so up to the time that lines
    waited to be read. Legal under at-most-once, where it is the point; an operator's are the operator's.

    Smallest history: `delivered` 0, `commit` invoke 1, `processed` 0.
    """
    said, logged, unheard = _ahead_by_own_word(batch), _ahead_by_log(batch), _unheard_ahead(batch)
    both = stacked(said, logged)
    both = both.take(ordered(both["slice"], both["committed_offset"], both["by_log"], both["commit_seq"]))
    ahead = both.take(first_of(joined(both["slice"], both["committed_offset"])))
    rows = table(
        slice=ahead["slice"],
        order=ahead["committed_offset"],
        committed_offset=ahead["committed_offset"],
        offset=ahead["offset"],
        seen_by=np.array(["own word", "offsets log"], dtype=object)[ahead["by_log"].astype(np.int64)],
        by_operator=ahead["by_operator"],
    )
    proofs = [("record_source", "record_seq"), ("commit_source", "commit_seq"), ("done_source", "done_seq")]
    unheard = unheard.take(_absent(unheard, rows))
    return Findings(rows, [(ahead[source], ahead[seq]) for source, seq in proofs], [(KILLED_UNHEARD, unheard["slice"])])


def _ahead_by_own_word(batch: Batch) -> Table:
    """Returns the commits that a member asked for before it had completed what it was delivered below them.

    Looked at is what the same possession was delivered from its previous own commit on. A record that was completed in
    the same file before the commit is handled, though it may have been delivered again since.
    """
    commits = _own_commits(batch)
    previous = previous_in(commits["possession"])
    low = picked(commits["offset"], previous, NONE)
    delivered = _delivered_offsets(batch)
    first, end = between(delivered["possession"], delivered["offset"], commits["possession"], low, commits["offset"])
    latest = greatest_in(delivered["done_seq"], first, end)
    ahead = (latest >= 0) & (picked(delivered["done_seq"], latest, NONE) > commits["seq"])
    commits, record = commits.take(ahead), delivered.take(latest[ahead])
    return table(
        slice=commits["slice"],
        committed_offset=commits["offset"],
        offset=record["offset"],
        by_log=np.zeros(len(commits), np.bool_),
        by_operator=np.zeros(len(commits), np.bool_),
        commit_source=commits["source"].astype(np.int64),
        commit_seq=commits["seq"],
        record_source=record["source"].astype(np.int64),
        record_seq=record["seq"],
        done_source=np.where(record["done_seq"] == NEVER, -1, record["source"]).astype(np.int64),
        done_seq=record["done_seq"],
    )


def _own_commits(batch: Batch) -> Table:
    """Returns the commits members asked for (or, where a file tells only of answers, were granted), by possession."""
    own = batch.own
    invokes = picked(batch.lives["invokes"], _life(batch, own), 0) == 1
    asked = (own["kind"] == Kind.COMMIT_INVOKE) | ((own["kind"] == Kind.COMMIT_OK) & ~invokes)
    return own.take(asked & (own["possession"] >= 0))


def _life(batch: Batch, own: Table) -> Ints:
    return picked(batch.possessions["life"], own["possession"], -1)


def _delivered_offsets(batch: Batch) -> Table:
    """Returns possession, offset, source, seq (its first delivery) and done_seq (first completion in the file)."""
    held = batch.deliveries.take(batch.deliveries["possession"] >= 0)
    held = held.take(ordered(held["possession"], held["offset"]))
    first = held.take(first_of(joined(held["possession"], held["offset"])))
    done = batch.completions.take(ordered(batch.completions["file"], batch.completions["offset"]))
    done = done.take(first_of(joined(done["file"], done["offset"])))
    row = exactly(done["file"], done["offset"], first["file"], first["offset"])
    return first.only("possession", "offset", "source", "seq").having(done_seq=picked(done["seq"], row, NEVER))


def _ahead_by_log(batch: Batch) -> Table:
    """Returns the durable commits that raised the position past a record handled later, or never.

    A member that told of its commit has said in which order it worked, which is exact: then only what was never handled
    counts here, for lines are received late on a busy machine. So it is with a commit in a transaction: what it covers
    takes effect with it, though one log may be told of that before another.
    """
    raising, _ = _raising(batch)
    row = raising["latest"]
    records, first = batch.records, batch.first_handled
    handled_ns = picked(first.said_ns, row, NONE)
    late = (row >= 0) & (handled_ns > raising["effect_ns"]) & ~raising["unheard"]
    inside = raising["flag"] & IN_TRANSACTION > 0
    late &= (handled_ns == NEVER) | ~(told_by_members(batch, raising) | inside)
    commits, row = raising.take(late), row[late]
    done = first.row[row]
    return table(
        slice=commits["slice"],
        committed_offset=commits["value"],
        offset=records["offset"][row],
        by_log=np.ones(len(commits), np.bool_),
        by_operator=commits["committer"] == OPERATOR,
        commit_source=commits["source"].astype(np.int64),
        commit_seq=commits["seq"],
        record_source=records["source"][row].astype(np.int64),
        record_seq=records["seq"][row],
        done_source=picked(batch.handled["source"], done, -1),
        done_seq=picked(batch.handled["seq"], done, -1),
    )


def _unheard_ahead(batch: Batch) -> Table:
    """Returns the commits that cannot be decided: their member was killed before it could say what it had done."""
    raising, _ = _raising(batch)
    found = raising.take(raising["unheard"])
    return table(slice=found["slice"], committed_offset=found["value"])


def _raising(batch: Batch) -> tuple[Table, Ints]:
    """Returns the commits that raised the position, each with the record it passed that was handled last."""
    log, records = batch.commits, batch.records
    numbers = np.flatnonzero(log["value"] > log["peak"])
    raising = log.take(numbers)
    first, end = between(records["slice"], records["offset"], raising["slice"], raising["peak"], raising["value"])
    latest = greatest_in(batch.first_handled.said_ns, first, end)
    never = picked(batch.first_handled.said_ns, latest, NONE) == NEVER
    return raising.having(latest=latest, unheard=never & killed_unheard(batch, numbers)), numbers


def _absent(rows: Table, found: Table) -> Bools:
    """Returns whether each row's (slice, committed offset) is not among those found."""
    found = found.sorted_by("slice", "committed_offset")
    return exactly(found["slice"], found["committed_offset"], rows["slice"], rows["committed_offset"]) < 0

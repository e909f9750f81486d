"""Starvation: partitions that their member passes over, round after round, while it works on its others.

Judged in two steps, as liveness is: inside the pass over the slices, `waits` finds the long stretches in which nothing
happened on a partition although records lay there, and `worked` in which rounds who did something; then all slices are
looked at together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.client_attribution import group_members
from kafka_trial.model.handlers import first_handled_of_records, records_begun
from kafka_trial.model.kernels import (
    NEVER,
    Array,
    Bools,
    Ints,
    at_or_after,
    between,
    covering,
    first_of,
    in_ranges,
    ordered,
    picked,
    running_max,
)
from kafka_trial.model.ownership_epochs import epoch_owners, member_lines, ownership_epochs
from kafka_trial.model.progress import window_ns_of
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table, stacked, table

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch

ROUNDS_MIN = 3
WAITS = (
    *("slice", "source", "member", "since_ns", "until_ns", "offset"),
    *("record_source", "record_seq", "end_source", "end_seq"),
)
WORKED = ("slice", "source", "member", "round")


def worked(batch: Batch) -> Table:
    """Returns slice (as in the trial context), source, member (see `client_attribution.group_members`) and round, once
    for each round in which it finished a record."""
    done = member_lines(batch).take(member_lines(batch)["kind"] == Kind.PROCESSED)
    done = done.take(done["time_ns"] <= snapshot_ns_in(batch))
    number = done["time_ns"] // round_ns(window_ns_of(batch.trial_context))
    member = group_members(batch, done)
    order = ordered(done["slice"], done["source"], member, number)
    done, member, number = done.take(order), member[order], number[order]
    once = first_of(done["slice"], done["source"], member, number)
    return table(
        slice=batch.slices[done["slice"][once]],
        source=done["source"][once].astype(np.int64),
        member=member[once],
        round=number[once],
    )


def waits(batch: Batch) -> Table:
    """Returns the waits of three whole rounds or more: columns WAITS, slices numbered as in the trial context.

    A wait lies inside one ownership epoch, between two moves (a delivery, a completion, an effect, by anybody) or the
    ends of the ownership epoch. It begins when the first of the records that wait had been appended, and is over by the
    snapshot.
    """
    found = _gaps(batch)
    found = found.take(~in_hand(batch, found))
    row = _waiting_record(batch, found)
    found, row = found.take(row >= 0), row[row >= 0]
    records = batch.records.take(row)
    since_ns = np.maximum(found["since_ns"], records["appended_ns"])
    low, high = whole_rounds(since_ns, found["until_ns"], round_ns(window_ns_of(batch.trial_context)))
    long = high - low >= ROUNDS_MIN
    made = found.having(
        slice=batch.slices[found["slice"]],
        since_ns=since_ns,
        offset=records["offset"],
        record_source=records["source"],
        record_seq=records["seq"],
    )
    return made.take(long).only(*WAITS)


def whole_rounds(since_ns: Array, until_ns: Array, round_ns: int) -> tuple[Ints, Ints]:
    """Returns the range [first, end) of the rounds that lie whole inside each stretch of time."""
    first = -(-since_ns // round_ns)
    return first, np.maximum(first, until_ns // round_ns)


def round_ns(window_ns: int) -> int:
    return max(1, window_ns // ROUNDS_MIN)


def _gaps(batch: Batch) -> Table:
    """Returns slice, source, member, since_ns, until_ns, end_source, end_seq of the stretches without a move."""
    snapshot_ns, held = snapshot_ns_in(batch), ownership_epochs(batch)
    moves = batch.of(Kind.DELIVERED, Kind.PROCESSED, Kind.EFFECT).sorted_by("slice", "time_ns", "source", "seq")
    until_ns = np.minimum(held["close_ns"], snapshot_ns)
    first, end = between(moves["slice"], moves["time_ns"], held["slice"], held["open_ns"], until_ns + 1)
    which, row = in_ranges(first, end)
    before = np.where(row > first[which], row - 1, -1)
    ended = np.flatnonzero(held["close_ns"] <= snapshot_ns)
    last = np.where(end > first, end - 1, -1)[ended]
    between_moves = _stretches(batch, moves, which, before).having(
        until_ns=moves["time_ns"][row],
        end_source=moves["source"][row].astype(np.int64),
        end_seq=moves["seq"][row],
    )
    at_the_end = _stretches(batch, moves, ended, last).having(
        until_ns=held["close_ns"][ended],
        end_source=held["source"][ended].astype(np.int64),
        end_seq=held["close_seq"][ended],
    )
    return stacked(between_moves, at_the_end)


def _stretches(batch: Batch, moves: Table, ownership_epoch: Ints, move: Ints) -> Table:
    """Returns whose each stretch is, and since when: the move before it, else (-1) the beginning of its epoch."""
    held = ownership_epochs(batch)
    return table(
        slice=held["slice"][ownership_epoch],
        source=held["source"][ownership_epoch].astype(np.int64),
        member=epoch_owners(batch)[ownership_epoch],
        since_ns=np.where(move >= 0, picked(moves["time_ns"], move, 0), held["open_ns"][ownership_epoch]),
    )


def in_hand(batch: Batch, gaps: Table) -> Bools:
    """Returns where the gap's own member had a record of the partition in its handler all the while."""
    begun = records_begun(batch)
    begun = begun.take(begun["ended_ns"] > begun["time_ns"])
    size = len(batch.trial_context.sources) + 1
    file, wanted = (rows["slice"] * size + rows["source"] for rows in (begun, gaps))
    return covering(file, begun["time_ns"], begun["ended_ns"], wanted, gaps["until_ns"] - 1) > 0


def _waiting_record(batch: Batch, gaps: Table) -> Ints:
    """Returns the row of the record that waited longest: of those first handled at the gap's end or later, the one
    appended first (the lowest of several); -1 where there is none.
    """
    records, handled_ns = batch.records, first_handled_of_records(batch).time_ns
    rows = np.flatnonzero(handled_ns < NEVER)
    rows = rows[ordered(records["appended_ns"][rows], records["offset"][rows])]
    rank = np.arange(len(rows))
    order = ordered(records["slice"][rows], handled_ns[rows])
    rows, rank, slices = rows[order], rank[order], records["slice"][rows][order]
    turned = running_max(slices[::-1].max(initial=0) - slices[::-1], -rank[::-1])
    least = (len(rows) - 1 - turned)[::-1] if len(rows) else rank
    found = at_or_after(slices, handled_ns[rows], gaps["slice"], gaps["until_ns"])
    return picked(rows, picked(least, found, -1), -1)


def snapshot_ns_in(batch: Batch) -> int:
    at_ns = batch.trial_context.snapshot_ns
    return NEVER - 1 if at_ns is None else at_ns

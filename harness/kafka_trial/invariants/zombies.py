"""Zombie windows: when a member worked on after it had lost a partition without being told.

The loss is the offsets log's word that others got the partition while the member still held it by its own. It is told
by the end of the ownership epoch, by an answer that it heard (`fencing.py`), or by its own clock where it goes on
without a word to its group (`silence.py`). What it holds at that end it may finish, and else whatever it had fetched by
then; a record fetched later is never excused, nor is one that it began after it had said itself that the commit which
covers it was refused (`work_after_failed_commit.py`). No plain consumer can prevent the rest: inside the window overlap
and reordering are excused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.client_attribution import alone
from kafka_trial.invariants.fencing import commit_refused_ns, fetched_by, fetches_of, told
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    at_or_after,
    between,
    first_of,
    in_ranges,
    joined,
    per_group,
    picked,
)
from kafka_trial.invariants.ownership_log import owned_by
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.silence import should_know_from_ns
from kafka_trial.invariants.table import Table, table
from kafka_trial.invariants.trial_context import TOLERANCE_NS
from kafka_trial.invariants.work_after_failed_commit import began_despite_failed_commit

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


def windows(batch: Batch) -> Table:
    """Returns for each ownership epoch when it was lost (loss_ns, loss: the assignment record's row) and when its
    member was told.

    Without an untold loss `loss` is -1 and `loss_ns` NEVER. `told_ns`, `told_source`, `told_seq`: the answer that told
    the member while it was open (NEVER, -1 where none did; where its own clock did, the assignment record to others
    proves it); `fetched`: the position up to which it had fetched by then (see `fencing.fetched_by`), `fetches_known`:
    whether the request log holds its fetches. `refused_ns`: when it heard that a commit was refused so. `until_ns`:
    when the ownership epoch was closed, or the handler in hand at that moment ended.
    """
    held = batch.ownership_epochs
    loss = _losses(batch)
    loss_ns = picked(batch.assignment_records["time_ns"], loss, NEVER)
    answer = told(batch, loss_ns)
    silent_ns = should_know_from_ns(batch, loss_ns, *fetches_of(batch))
    by_clock, told_ns = silent_ns < answer["heard_ns"], np.minimum(silent_ns, answer["heard_ns"])
    fetched, known = fetched_by(batch, told_ns)
    return table(
        loss=loss,
        loss_ns=loss_ns,
        told_ns=told_ns,
        told_source=np.where(by_clock, picked(batch.assignment_records["source"], loss, -1), answer["source"]),
        told_seq=np.where(by_clock, picked(batch.assignment_records["seq"], loss, -1), answer["seq"]),
        fetched=fetched,
        fetches_known=known,
        refused_ns=commit_refused_ns(batch, loss_ns),
        until_ns=np.maximum(held["close_ns"], _in_hand(batch, held["close_seq"])),
    )


def excused(batch: Batch, ownership_epochs: Array, offsets: Array, time_ns: Array) -> Bools:
    """Returns whether each handling of a record lies in the zombie window of its ownership epoch (-1: of none)."""
    windows = batch.zombies
    loss_ns, until_ns = (
        picked(windows[name], ownership_epochs, start) for name, start in (("loss_ns", NEVER), ("until_ns", NONE))
    )
    inside: Bools = (loss_ns != NEVER) & (time_ns >= loss_ns - TOLERANCE_NS) & (time_ns <= until_ns)
    _, refused_ns = began_despite_failed_commit(batch, ownership_epochs, offsets)
    knowing = fetched_though_told(batch, ownership_epochs, offsets, time_ns) | (time_ns >= refused_ns)
    return inside & ~knowing


def fetched_though_told(batch: Batch, ownership_epochs: Array, offsets: Array, time_ns: Array) -> Bools:
    """Returns whether each record was fetched after its ownership epoch's member had been told that it was lost."""
    windows = batch.zombies
    fetched, told_ns = (picked(windows[name], ownership_epochs, NEVER) for name in ("fetched", "told_ns"))
    later: Bools = (offsets >= fetched) & (time_ns > told_ns)
    return later


def doubted(batch: Batch, ownership_epochs: Array, time_ns: Array) -> Bools:
    """Returns whether each moment is one at which nobody can tell what the member knew and had fetched.

    It was told, or said itself that a commit of its had failed, and the request log holds no fetches of it.
    """
    windows = batch.zombies
    heard_ns = np.minimum(windows["told_ns"], _said_to_fail_ns(batch, windows["loss_ns"]))
    unknown = ~windows["fetches_known"] & (heard_ns < batch.ownership_epochs["close_ns"])
    after_ns = picked(np.where(unknown, heard_ns, NEVER), ownership_epochs, NEVER)
    doubtful: Bools = batch.earliest(time_ns) > np.minimum(after_ns, NEVER - TOLERANCE_NS) + TOLERANCE_NS
    return doubtful


def _losses(batch: Batch) -> Ints:
    """Returns for each ownership epoch the first assignment record of its partition to others while it was open, -1 if
    there is none.

    Of one that was lost: until its member has the partition again. Whoever is told before others are given the
    partition finishes what it has in hand beside them all the same.
    """
    held = batch.ownership_epochs
    order = np.lexsort((batch.assignment_records["time_ns"], batch.assignment_records["slice"]))
    assignment_records = batch.assignment_records.take(order)
    ends = np.where(held["close_ns"] == NEVER, NEVER, held["close_ns"] + 1)
    following = np.full(len(held), NEVER)
    later = np.flatnonzero(held["before"] >= 0)
    following[held["before"][later]] = held["open_ns"][later]
    ends = np.where(held["closed_by"] == Kind.LOST, np.maximum(ends, following), ends)
    which, rows = in_ranges(
        *between(assignment_records["slice"], assignment_records["time_ns"], held["slice"], held["open_ns"], ends)
    )
    mine = np.where(batch.holders >= 0, batch.holders, held["member"])[which]
    foreign = ~owned_by(batch, assignment_records["slice"][rows], mine, assignment_records["log_offset"][rows])
    which, rows = which[foreign], rows[foreign]
    first = first_of(which)
    losses = np.full(len(held), -1, np.int64)
    losses[which[first]] = order[rows[first]]
    return losses


def _said_to_fail_ns(batch: Batch, after_ns: Ints) -> Ints:
    """Returns the time of the first line after each moment in which the ownership epoch's member, while it held it,
    said that a commit had failed: of the partition, or of nothing in particular; NEVER where there is none."""
    held = batch.ownership_epochs
    own = batch.own.take(batch.own["kind"] == Kind.COMMIT_FAIL)
    of_file = np.array(batch.trial_context.refusals, np.int64).reshape(-1, 3)
    after = np.minimum(after_ns, NEVER - 1) + 1
    by_slice = own.only("slice", "source", "client", "seq", "time_ns")
    by_slice = by_slice.sorted_by("slice", "source", "client", "time_ns")
    group, wanted = _files(by_slice, held)
    first = at_or_after(group, by_slice["time_ns"], wanted, after)
    seq, time = picked(by_slice["seq"], first, NEVER), picked(by_slice["time_ns"], first, NEVER)
    unlisted = of_file[np.lexsort((of_file[:, 2], of_file[:, 0]))]
    general = at_or_after(unlisted[:, 0], unlisted[:, 2], held["source"], after)
    general = np.where(alone(batch, held), general, -1)  # of several clients nobody knows whose it was
    general_seq, general_ns = picked(unlisted[:, 1], general, NEVER), picked(unlisted[:, 2], general, NEVER)
    earlier = general_seq < seq
    seq, time = np.where(earlier, general_seq, seq), np.where(earlier, general_ns, time)
    inside = seq < held["close_seq"]
    return np.where(inside, time, NEVER)


def _files(rows: Table, held: Table) -> tuple[Ints, Ints]:
    both = joined(*(np.concatenate([rows[name], held[name]]) for name in ("slice", "source", "client")))
    return both[: len(rows)], both[len(rows) :]


def _in_hand(batch: Batch, at_seq: Ints) -> Ints:
    """Returns when the handlers that an ownership epoch's member had in hand there ended; NONE where it had none."""
    handlers = batch.handlers
    end = picked(at_seq, handlers["ownership_epoch"], NONE)
    in_hand = (handlers["ownership_epoch"] >= 0) & (handlers["start_seq"] <= end) & (end < handlers["end_seq"])
    held = handlers.take(in_hand)
    return per_group(held["ownership_epoch"], held["end_ns"], len(batch.ownership_epochs), how="max", start=NONE)

"""Zombie windows: when a member worked on after it had lost a partition without being told.

The loss is the offsets log's word that others got the partition while the member still held it by its own. It is told
by the end of the ownership epoch, by an answer that it heard (`fencing.py`), or by its own clock where it goes on
without a word to its group (`silence.py`). What the window excuses stands in `zombie_excuses.py`: not what the member
began after it had said itself, or heard, where at most once is claimed, that the commit which covers it was refused.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.invariants.batch import Batch, index
from kafka_trial.invariants.fencing import commit_refused_ns, fetched_by, fetches_of, told
from kafka_trial.invariants.handlers import finished_handlers
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Ints,
    between,
    first_of,
    in_ranges,
    per_group,
    picked,
)
from kafka_trial.invariants.ownership_epochs import epoch_holders, ownership_epochs
from kafka_trial.invariants.ownership_log import logged_assignments, owned_by
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.silence import should_know_from_ns
from kafka_trial.invariants.table import Table, table


@index
def zombie_windows(batch: Batch) -> Table:
    """Returns for each ownership epoch when it was lost (loss_ns, loss: the assignment record's row) and when its
    member was told.

    Without an untold loss `loss` is -1 and `loss_ns` NEVER. `told_ns`, `told_source`, `told_seq`: the answer that told
    the member while it was open (NEVER, -1 where none did; where its own clock did, the assignment record to others
    proves it); `fetched`: the position up to which it had fetched by then (see `fencing.fetched_by`), `fetches_known`:
    whether the request log holds its fetches. `refused_ns`: when it heard that a commit was refused so. `until_ns`:
    when the ownership epoch was closed, or the handler in hand at that moment ended.
    """
    held = ownership_epochs(batch)
    loss = _losses(batch)
    loss_ns = picked(logged_assignments(batch)["time_ns"], loss, NEVER)
    answer = told(batch, loss_ns)
    silent_ns = should_know_from_ns(batch, loss_ns, *fetches_of(batch))
    by_clock, told_ns = silent_ns < answer["heard_ns"], np.minimum(silent_ns, answer["heard_ns"])
    fetched, known = fetched_by(batch, told_ns)
    return table(
        loss=loss,
        loss_ns=loss_ns,
        told_ns=told_ns,
        told_source=np.where(by_clock, picked(logged_assignments(batch)["source"], loss, -1), answer["source"]),
        told_seq=np.where(by_clock, picked(logged_assignments(batch)["seq"], loss, -1), answer["seq"]),
        fetched=fetched,
        fetches_known=known,
        refused_ns=commit_refused_ns(batch, loss_ns),
        until_ns=np.maximum(held["close_ns"], _in_hand(batch, held["close_seq"])),
    )


def _losses(batch: Batch) -> Ints:
    """Returns for each ownership epoch the first assignment record of its partition to others while it was open, -1 if
    there is none.

    Of one that was lost: until its member has the partition again. Whoever is told before others are given the
    partition finishes what it has in hand beside them all the same.
    """
    held = ownership_epochs(batch)
    order = np.lexsort((logged_assignments(batch)["time_ns"], logged_assignments(batch)["slice"]))
    assignment_records = logged_assignments(batch).take(order)
    ends = np.where(held["close_ns"] == NEVER, NEVER, held["close_ns"] + 1)
    following = np.full(len(held), NEVER)
    later = np.flatnonzero(held["before"] >= 0)
    following[held["before"][later]] = held["open_ns"][later]
    ends = np.where(held["closed_by"] == Kind.LOST, np.maximum(ends, following), ends)
    which, rows = in_ranges(
        *between(assignment_records["slice"], assignment_records["time_ns"], held["slice"], held["open_ns"], ends)
    )
    mine = np.where(epoch_holders(batch) >= 0, epoch_holders(batch), held["member"])[which]
    foreign = ~owned_by(batch, assignment_records["slice"][rows], mine, assignment_records["log_offset"][rows])
    which, rows = which[foreign], rows[foreign]
    first = first_of(which)
    losses = np.full(len(held), -1, np.int64)
    losses[which[first]] = order[rows[first]]
    return losses


def _in_hand(batch: Batch, at_seq: Ints) -> Ints:
    """Returns when the handlers that an ownership epoch's member had in hand there ended; NONE where it had none."""
    handlers = finished_handlers(batch)
    end = picked(at_seq, handlers["ownership_epoch"], NONE)
    in_hand = (handlers["ownership_epoch"] >= 0) & (handlers["start_seq"] <= end) & (end < handlers["end_seq"])
    held = handlers.take(in_hand)
    return per_group(held["ownership_epoch"], held["end_ns"], len(ownership_epochs(batch)), how="max", start=NONE)

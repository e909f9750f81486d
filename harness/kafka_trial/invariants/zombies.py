"""Zombie windows: when a member worked on after it had lost a partition without being told (DESIGN: untold loss).

The loss is the offsets log's word that others got the partition while the member still held it by its own. It is told
by the end of the possession, or by a refused commit of its own. What it holds then it may finish. No plain consumer can
prevent that: inside the window overlap and reordering are excused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.circumstances import TOLERANCE_NS
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
from kafka_trial.invariants.table import Table, table

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


def windows(batch: Batch) -> Table:
    """Returns for each possession: loss_ns, loss (the grant's row), told_seq, told_ns, by_refusal, until_ns.

    Without an untold loss `loss` is -1 and `loss_ns` NEVER. `until_ns` is when the handler in hand at told ended.
    """
    held = batch.possessions
    loss = _losses(batch)
    loss_ns = picked(batch.grants["time_ns"], loss, NEVER)
    refused_seq, refused_ns = _refused(batch, loss_ns)
    by_refusal = (loss >= 0) & (refused_seq < held["close_seq"])
    told_seq = np.where(by_refusal, refused_seq, held["close_seq"])
    told_ns = np.where(by_refusal, refused_ns, held["close_ns"])
    return table(
        loss=loss,
        loss_ns=loss_ns,
        told_seq=told_seq,
        told_ns=told_ns,
        by_refusal=by_refusal,
        until_ns=np.maximum(told_ns, _in_hand(batch, told_seq)),
    )


def excused(batch: Batch, possessions: Array, time_ns: Array) -> Bools:
    """Returns whether each moment lies in the zombie window of its possession (-1: of none)."""
    windows = batch.zombies
    loss_ns, until_ns = (
        picked(windows[name], possessions, start) for name, start in (("loss_ns", NEVER), ("until_ns", NONE))
    )
    inside: Bools = (loss_ns != NEVER) & (time_ns >= loss_ns - TOLERANCE_NS) & (time_ns <= until_ns)
    return inside


def _losses(batch: Batch) -> Ints:
    """Returns for each possession the first grant of its partition to others while it was open, -1 if there is none."""
    held = batch.possessions
    order = np.lexsort((batch.grants["time_ns"], batch.grants["slice"]))
    grants = batch.grants.take(order)
    ends = np.where(held["close_ns"] == NEVER, NEVER, held["close_ns"] + 1)
    which, rows = in_ranges(*between(grants["slice"], grants["time_ns"], held["slice"], held["open_ns"], ends))
    mine = held["member"][which]
    foreign = (grants["member"][rows] != mine) & ~owned_by(batch, grants["slice"][rows], mine, grants["place"][rows])
    which, rows = which[foreign], rows[foreign]
    first = first_of(which)
    losses = np.full(len(held), -1, np.int64)
    losses[which[first]] = order[rows[first]]
    return losses


def _refused(batch: Batch, loss_ns: Ints) -> tuple[Ints, Ints]:
    """Returns seq and time of the member's first refused commit after each loss; NEVER where there is none."""
    held = batch.possessions
    own = batch.own.take(batch.own["kind"] == Kind.COMMIT_FAIL)
    listed = own.only("slice", "source", "seq", "time_ns")
    of_file = np.array(batch.circumstances.refusals, np.int64).reshape(-1, 3)
    after = np.minimum(loss_ns, NEVER - 1) + 1
    by_slice = listed.sorted_by("slice", "source", "time_ns")
    group, wanted = _files(by_slice, held)
    first = at_or_after(group, by_slice["time_ns"], wanted, after)
    seq, time = picked(by_slice["seq"], first, NEVER), picked(by_slice["time_ns"], first, NEVER)
    unlisted = of_file[np.lexsort((of_file[:, 2], of_file[:, 0]))]
    general = at_or_after(unlisted[:, 0], unlisted[:, 2], held["source"], after)
    general_seq, general_ns = picked(unlisted[:, 1], general, NEVER), picked(unlisted[:, 2], general, NEVER)
    earlier = general_seq < seq
    return np.where(earlier, general_seq, seq), np.where(earlier, general_ns, time)


def _files(rows: Table, held: Table) -> tuple[Ints, Ints]:
    both = joined(np.concatenate([rows["slice"], held["slice"]]), np.concatenate([rows["source"], held["source"]]))
    return both[: len(rows)], both[len(rows) :]


def _in_hand(batch: Batch, told_seq: Ints) -> Ints:
    """Returns when the handlers that a possession's member had in hand at told ended; NONE where it had none."""
    handlers = batch.handlers
    told = picked(told_seq, handlers["possession"], NONE)
    in_hand = (handlers["possession"] >= 0) & (handlers["start_seq"] <= told) & (told < handlers["end_seq"])
    held = handlers.take(in_hand)
    return per_group(held["possession"], held["end_ns"], len(batch.possessions), how="max", start=NONE)

"""Commits that a member says itself were refused, and the records that it began although such a commit covers them.

The line may come from a callback of a background commit: whoever handles first and commits afterwards may finish what
it had fetched, as if the line were not there. A record that the refused commit itself covers is another matter: who
commits first, and is refused, must not begin it. What an earlier commit covers is its own, whatever became of this one.

Smallest history: m0 `assigned`, group record gives the partition to m1, m0's `commit` invoke 1 is answered 22, `commit`
fail 1, `delivered` 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.client_attribution import alone
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Array,
    Ints,
    at_or_before,
    between,
    exactly,
    first_of,
    in_ranges,
    joined,
    last_true,
    max_before,
    picked,
)
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.table import Table, stacked, table
from kafka_trial.invariants.trial_context import TOLERANCE_NS

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch

COMMITS = (Kind.COMMIT_INVOKE, Kind.COMMIT_OK, Kind.COMMIT_FAIL)


def failed_commit_seq(batch: Batch) -> Ints:
    """Returns for each row of `batch.begun` the seq of the line by which its member said before that a commit was
    refused which covers the record; NEVER where there is none.

    Only lines after the loss of the partition, and after a broker's refusal that the member heard (`fencing.py`).
    """
    begun, refused = batch.begun, _refused(batch)
    rows = table(
        ownership_epoch=begun["ownership_epoch"],
        seq=begun["seq"],
        position=np.full(len(begun), NONE),
        place=np.arange(len(begun)),
    )
    rows = rows.take(begun["ownership_epoch"] >= 0)
    lines = refused.only("ownership_epoch", "seq", "position").having(place=np.full(len(refused), -1))
    both = stacked(lines, rows).sorted_by("ownership_epoch", "seq")
    highest = max_before(both["ownership_epoch"], both["position"])
    asked = both["place"] >= 0
    place, highest = both["place"][asked], highest[asked]
    covers = picked(both["position"], highest, NONE) > begun["offset"][place]
    covers &= begun["offset"][place] >= _committed_when_lost(batch)[begun["ownership_epoch"][place]]
    found = np.full(len(begun), NEVER, np.int64)
    found[place[covers]] = both["seq"][highest[covers]]
    return found


def began_despite_failed_commit(batch: Batch, ownership_epochs: Array, offsets: Array) -> tuple[Ints, Ints]:
    """Returns the seq and the time from which on each ownership epoch worked on the record although a commit that
    covers it had been refused; NEVER where it did not."""
    begun = batch.begun.take(batch.failed_commit_seq != NEVER).sorted_by("ownership_epoch", "offset", "seq")
    begun = begun.take(first_of(joined(begun["ownership_epoch"], begun["offset"])))
    row = exactly(begun["ownership_epoch"], begun["offset"], ownership_epochs, offsets)
    return picked(begun["seq"], row, NEVER), picked(begun["time_ns"], row, NEVER)


def _refused(batch: Batch) -> Table:
    """Returns ownership epoch, seq and position (NONE: not told) of the lines that tell of a refusal in a zombie
    window."""
    lines, windows = _answers_said(batch), batch.zombies
    since_ns = np.maximum(windows["loss_ns"], windows["refused_ns"] - TOLERANCE_NS)  # NEVER: was not lost, or refused
    told = (lines["kind"] == Kind.COMMIT_FAIL) & (lines["time_ns"] > since_ns[lines["ownership_epoch"]])
    return lines.take(told)


def _answers_said(batch: Batch) -> Table:
    """Returns ownership epoch, seq, kind, time_ns and position of what members said of their commits; sorted by the
    first two.

    A failure that names no position is of the last one that its member asked for before, unless that was granted.
    """
    own = batch.own
    named = own.take(np.isin(own["kind"], COMMITS) & (own["ownership_epoch"] >= 0))
    named = named.only("ownership_epoch", "seq", "kind", "time_ns").having(position=named["offset"])
    said = stacked(named, _of_nothing_in_particular(batch)).sorted_by("ownership_epoch", "seq")
    last = last_true(said["ownership_epoch"], np.isin(said["kind"], (Kind.COMMIT_INVOKE, Kind.COMMIT_OK)))
    last = np.where(picked(said["kind"], last, 0) == Kind.COMMIT_INVOKE, last, -1)
    unnamed = (said["kind"] == Kind.COMMIT_FAIL) & (said["position"] == NONE)
    return said.having(position=np.where(unnamed, picked(said["position"], last, NONE), said["position"]))


def _of_nothing_in_particular(batch: Batch) -> Table:
    """Returns the failed commits without entries, in every ownership epoch of their file that was open then. Of several
    clients in a process nobody knows whose they were."""
    held = batch.ownership_epochs
    whole = np.flatnonzero(alone(batch, held))
    failed = np.array(batch.trial_context.refusals, np.int64).reshape(-1, 3)  # (source, seq, time), sorted
    first, end = between(
        failed[:, 0], failed[:, 1], held["source"][whole], held["open_seq"][whole], held["close_seq"][whole]
    )
    which, row = in_ranges(first, end)
    return table(
        ownership_epoch=whole[which],
        seq=failed[row, 1],
        kind=np.full(len(row), Kind.COMMIT_FAIL, np.int64),
        time_ns=failed[row, 2],
        position=np.full(len(row), NONE),
    )


def _committed_when_lost(batch: Batch) -> Ints:
    """Returns the position that stood when each ownership epoch was lost: what lies below it nobody else was to
    begin."""
    log, held, loss = batch.commits, batch.ownership_epochs, batch.zombies["loss"]
    place = picked(batch.assignment_records["place"], loss, NONE)
    return picked(log["value"], at_or_before(log["slice"], log["place"], held["slice"], place), NONE)

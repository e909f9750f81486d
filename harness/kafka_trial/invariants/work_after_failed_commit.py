"""Commits that were refused, and the records that their member began although such a commit covers them.

By its own line: it may come from a callback of a background commit, and whoever handles first and commits afterwards
may finish what it had fetched, as if the line were not there. A record that the refused commit itself covers is another
matter: who commits first, and is refused, must not begin it. What an earlier commit covers is its own, whatever became
of this one.

By the request log, where at most once is claimed: that claim begins nothing before the commit that covers it was
granted, so its member waits for the answer, whatever it prints of its commits. Under any other claim the answer may
reach a background thread alone.

Smallest histories: m0 `assigned`, group record gives the partition to m1, m0's `commit` invoke 1 is answered 22,
`commit` fail 1, `delivered` 0; the same without m0's lines of the commit, where it claims at most once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.client_attribution import alone
from kafka_trial.invariants.clients import members_at
from kafka_trial.invariants.fencing import FENCING
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
    ordered,
    picked,
)
from kafka_trial.invariants.ownership_epochs import SAID
from kafka_trial.invariants.response_delivery import answers_of, heard_ns
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.table import Table, stacked, table
from kafka_trial.invariants.trial_context import TOLERANCE_NS

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch

COMMITS = (Kind.COMMIT_INVOKE, Kind.COMMIT_OK, Kind.COMMIT_FAIL)


def refusals(batch: Batch) -> Table:
    """Returns for each row of `batch.begun` the event (source, seq) that told its member before that a commit was
    refused which covers the record: its own line, else a broker's answer; source -1 where there is none.

    Only after the loss of the partition; a line only after a broker's refusal that the member heard (`fencing.py`).
    """
    begun = batch.begun
    line, answer = _line_before(batch), _answer_before(batch)
    own = picked(_committed_when_lost(batch), begun["ownership_epoch"], NONE) > begun["offset"]
    by_line, by_answer = (line["source"] >= 0) & ~own, (answer["source"] >= 0) & ~own
    return table(
        source=np.where(by_line, line["source"], np.where(by_answer, answer["source"], -1)),
        seq=np.where(by_line, line["seq"], np.where(by_answer, answer["seq"], -1)),
    )


def began_despite_failed_commit(batch: Batch, ownership_epochs: Array, offsets: Array) -> tuple[Ints, Ints]:
    """Returns the seq and the time from which on each ownership epoch worked on the record although a commit that
    covers it had been refused; NEVER where it did not."""
    begun = batch.begun.take(batch.refusals["source"] >= 0).sorted_by("ownership_epoch", "offset", "seq")
    begun = begun.take(first_of(joined(begun["ownership_epoch"], begun["offset"])))
    row = exactly(begun["ownership_epoch"], begun["offset"], ownership_epochs, offsets)
    return picked(begun["seq"], row, NEVER), picked(begun["time_ns"], row, NEVER)


def _line_before(batch: Batch) -> Table:
    """Returns for each row of `batch.begun` its member's own line before it of the highest commit that was refused, if
    that covers the record."""
    begun, lines = batch.begun, _refused(batch)
    row = _highest_before(lines, begun, lines["seq"], begun["seq"])
    return table(source=np.where(row >= 0, begun["source"], -1), seq=picked(lines["seq"], row, -1))


def _answer_before(batch: Batch) -> Table:
    """Returns for each row of `batch.begun` the broker's answer that its member had heard before, that of the highest
    commit which was refused, if that covers the record and at most once is claimed.

    The effect of a record says nothing of when it was begun.
    """
    begun, answers = batch.begun, _refused_by_brokers(batch)
    row = _highest_before(answers, begun, answers["heard_ns"], batch.written_ns(begun["source"], begun["time_ns"]))
    row = np.where(begun["told_by"] == SAID, row, -1)  # else it tells of its end only
    return table(source=picked(answers["source"], row, -1), seq=picked(answers["seq"], row, -1))


def _highest_before(refused: Table, begun: Table, refused_at: Ints, begun_at: Ints) -> Ints:
    """Returns for each row of `begun` the one of `refused` (ownership_epoch, position) with the highest position of
    those before it, -1 where that does not cover the record."""
    count = len(refused)
    epochs = np.concatenate([refused["ownership_epoch"], begun["ownership_epoch"]])
    is_begun = np.arange(len(epochs)) >= count
    order = ordered(epochs, np.concatenate([refused_at, begun_at]), ~is_begun)  # in one instant: it was not told yet
    positions = np.concatenate([refused["position"], np.full(len(begun), NONE)])[order]
    highest = picked(order, max_before(epochs[order], positions), -1)
    found = np.full(len(begun), -1, np.int64)
    found[order[is_begun[order]] - count] = highest[is_begun[order]]
    covers = (begun["ownership_epoch"] >= 0) & (found < count)
    covers &= picked(refused["position"], np.where(found < count, found, -1), NONE) > begun["offset"]
    return np.where(covers, found, -1)


def _refused_by_brokers(batch: Batch) -> Table:
    """Returns ownership_epoch, position, heard_ns, source and seq of the commits that brokers refused a member after it
    had lost the partition, as it heard; none where another claim than at most once is made."""
    held, asked = batch.ownership_epochs, batch.commit_requests
    if batch.trial_context.settings.delivery != "at-most-once":
        asked = asked.take(np.zeros(len(asked), np.bool_))
    asked = asked.take(np.isin(asked["flag"], FENCING))
    answers = answers_of(batch, asked)
    asked = asked.having(
        member=members_at(batch, asked["who"], asked["connection"], np.full(len(asked), -1)),
        sent_ns=answers["sent_ns"],
        heard_ns=heard_ns(batch.trial_context, answers),
    )
    asked = asked.take((asked["member"] >= 0) & (asked["heard_ns"] != NEVER))
    both = joined(
        *(np.concatenate(pair) for pair in ((asked["slice"], held["slice"]), (asked["member"], batch.holders)))
    )
    order = ordered(both[: len(asked)], asked["sent_ns"])
    asked, group = asked.take(order), both[: len(asked)][order]
    after_ns = np.minimum(batch.zombies["loss_ns"], NEVER - 1) + 1  # NEVER: it was not lost
    which, row = in_ranges(*between(group, asked["sent_ns"], both[len(asked) :], after_ns, held["close_ns"]))
    told = asked.take(row)
    return told.only("heard_ns", "source", "seq").having(ownership_epoch=which, position=told["offset"])


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

"""Retries: a record that an ownership epoch took in hand again, where nothing from there on had been completed.

A member whose handler failed seeks back to the record, or its client hands it out again. That is neither a step back
nor a redelivery: nobody's work is done twice. Completed means by the member's own word, or by the sink's. Of a handler
that takes batches the whole of one that did not end well is tried again, whatever of it had been completed.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.model.attempt_starts import committed_before
from kafka_trial.model.attempts import failed_batches
from kafka_trial.model.batch import Batch, index
from kafka_trial.model.commits_log import commits_in_effect
from kafka_trial.model.handlers import ENDS
from kafka_trial.model.kernels import (
    NONE,
    Bools,
    Ints,
    at_or_after,
    at_or_before,
    first_of,
    joined,
    max_before,
    number_in,
    ordered,
    picked,
    previous_in,
)
from kafka_trial.model.ownership_epochs import member_lines, ownership_epochs
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table, stacked, table
from kafka_trial.model.trial_context import TOLERANCE_NS


@index
def handler_starts(batch: Batch) -> Table:
    """Returns every time that a record was taken in hand: the deliveries, and the completions that no delivery began.

    With the columns of `member_lines`, sorted as it; `repeated`: the same ownership epoch had begun it before (in this
    attempt, unless an earlier one had committed it); `retry`: and nothing at its place or behind it was completed by
    then. A record that failed is tried again whether its attempt ended with it or not.
    """
    begins = _begins(member_lines(batch))
    found = member_lines(batch).take(begins)
    kept = committed_before(batch, found)
    whole, *parts = (
        (_repeated(found, "ownership_epoch", *of), _completed(batch, "ownership_epoch", *of)[begins] < found["offset"])
        for of in ((), ("attempt",), ("attempt_by_commits",))
    )
    repeated, by_commits = (np.where(kept, whole[0], part[0]) for part in parts)
    undone, also_undone = (np.where(kept, whole[1], part[1]) for part in parts)
    again = ((repeated & undone) | (by_commits & also_undone)) & ~_effect_behind(batch, found)
    return found.having(repeated=repeated, retry=again | (repeated & _of_replayed_batch(batch, found)))


def _begins(own: Table) -> Bools:
    work = np.flatnonzero(np.isin(own["kind"], (Kind.DELIVERED, *ENDS)))
    work = work[ordered(own["file"][work], own["offset"][work])]
    before = previous_in(joined(own["file"][work], own["offset"][work]))
    ended = picked(own["kind"][work], before, 0) == Kind.DELIVERED
    begins = np.zeros(len(own), np.bool_)
    kind = own["kind"][work]
    begins[work] = (kind == Kind.DELIVERED) | ((kind == Kind.PROCESSED) & ~ended)
    return begins


@index
def batch_starts(batch: Batch) -> Table:
    """Returns file, seq and `again` of the first delivery of each batch, of handlers that take batches, sorted; none of
    others. `again`: the batch before it did not end well, in this partition or in another one that it had, and it is
    the first record that was not committed past by then, or that of the batch before: it is handed out once more."""
    own = member_lines(batch).take(np.isin(member_lines(batch)["kind"], (Kind.DELIVERED, *ENDS)))
    own = own.take(np.full(len(own), batch.trial_context.settings.handler == "batch"))
    epoch = joined(own["file"], own["ownership_epoch"] + 1)
    before = previous_in(epoch)
    delivered = own["kind"] == Kind.DELIVERED
    begins = delivered & (picked(own["kind"], before, 0) != Kind.DELIVERED)
    first = own.take(begins)
    previous = previous_in(epoch[begins])
    ended_ill = _ended_ill(own, first, np.cumsum(begins) - 1) | failed_batches(batch, first)
    ill = picked(ended_ill.astype(np.int64), previous, 0) == 1
    earlier = picked(first["offset"], previous, NONE)
    log, records = commits_in_effect(batch).sorted_by("slice", "effect_ns"), batch.records
    again = np.zeros(len(first), np.bool_)
    for at_ns in (batch.earliest(first["time_ns"]), first["time_ns"]):
        stood = at_or_before(log["slice"], log["effect_ns"], first["slice"], at_ns)
        committed = np.where(stood >= 0, picked(log["committed_offset"], stood, 0), batch.log_starts[first["slice"]])
        next_row = at_or_after(records["slice"], records["offset"], first["slice"], committed)
        again |= first["offset"] == picked(records["offset"], next_row, NONE)
        again |= (first["offset"] == earlier) & (first["offset"] >= committed)
    return first.only("file", "seq").having(again=again & ill).sorted_by("file", "seq")


def _ended_ill(own: Table, first: Table, number: Ints) -> Bools:
    """Returns of each batch (`number` of each row) whether an attempt in it failed, or a record of it has no end."""
    size = len(first)
    inside = (number >= 0) & (own["file"] == picked(first["file"], number, -1))
    failed = np.bincount(number[inside & (own["kind"] == Kind.FAILED)], minlength=size) > 0
    records = np.zeros((2, size), np.int64)
    for at, kind in enumerate((Kind.DELIVERED, Kind.PROCESSED)):
        rows = np.flatnonzero(inside & (own["kind"] == kind))
        rows = rows[ordered(number[rows], own["offset"][rows])]
        once = rows[first_of(number[rows], own["offset"][rows])]
        records[at] = np.bincount(number[once], minlength=size)
    return failed | (records[1] < records[0])


def latest_replay(batch: Batch, rows: Table) -> Ints:
    """Returns the number of the last batch before each row (file, seq) that may have been handed out once more; -1: of
    none."""
    starts = batch_starts(batch)
    number = np.flatnonzero(starts["again"])
    starts = starts.take(number)
    return picked(number, at_or_before(starts["file"], starts["seq"], rows["file"], rows["seq"]), -1)


def _of_replayed_batch(batch: Batch, begun: Table) -> Bools:
    if batch.trial_context.settings.delivery == "at-most-once":  # that claim takes nothing in hand again that was done
        return np.zeros(len(begun), np.bool_)
    starts = batch_starts(batch)
    row = at_or_before(starts["file"], starts["seq"], begun["file"], begun["seq"])
    again: Bools = (row >= 0) & (row == latest_replay(batch, begun))
    return again


def _repeated(begun: Table, *of: str) -> Bools:
    """Returns which rows were not the first of their record in what the columns `of` name."""
    same = joined(*(begun[name] for name in (*of, "offset")))
    order = ordered(same)
    same = same[order]
    repeated = np.zeros(len(begun), np.bool_)
    repeated[order] = number_in(same) > 0
    return repeated & (begun["ownership_epoch"] >= 0)


def _completed(batch: Batch, *of: str) -> Ints:
    """Returns for each row of `member_lines` the highest offset that had been completed before in what the columns `of`
    name, its ownership epoch or its attempt there."""
    own = member_lines(batch)
    held = np.flatnonzero(own["ownership_epoch"] >= 0)
    offsets = np.where(own["kind"][held] == Kind.PROCESSED, own["offset"][held], NONE)
    highest = np.full(len(own), NONE, np.int64)
    group = joined(*(own[name][held] for name in of))
    highest[held] = picked(offsets, max_before(group, offsets), NONE)
    return highest


def _effect_behind(batch: Batch, begun: Table) -> Bools:
    """Returns whether the sink had heard, since the ownership epoch began, of a record behind the one that was begun.

    Of the record itself it may have heard: the member had no answer, and must try again.
    """
    effects, held = batch.of(Kind.EFFECT), ownership_epochs(batch).sorted_by("slice", "open_ns")
    number = np.lexsort((ownership_epochs(batch)["open_ns"], ownership_epochs(batch)["slice"]))
    row = at_or_before(held["slice"], held["open_ns"], effects["slice"], effects["time_ns"])
    heard = table(ownership_epoch=picked(number, row, -1), time_ns=effects["time_ns"], offset=effects["offset"])
    heard = heard.take(heard["ownership_epoch"] >= 0).having(number=np.full(int((row >= 0).sum()), -1))
    asked = table(
        ownership_epoch=begun["ownership_epoch"],
        time_ns=batch.earliest(begun["time_ns"]) - TOLERANCE_NS,
        offset=np.full(len(begun), NONE),
        number=np.arange(len(begun)),
    )
    both = stacked(asked, heard).sorted_by("ownership_epoch", "time_ns")
    highest = picked(both["offset"], max_before(both["ownership_epoch"], both["offset"]), NONE)
    behind = np.zeros(len(begun), np.bool_)
    mine = both["number"] >= 0
    behind[both["number"][mine]] = highest[mine] > begun["offset"][both["number"][mine]]
    return behind & (begun["ownership_epoch"] >= 0)

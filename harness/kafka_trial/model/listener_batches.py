"""Batches of a listener that takes several records at once (`[evidence] handler = "batch"`): each attempt at one.

An attempt that does not end well is followed by another one: the whole batch is handed out again, by the listener's
container or by a seek, or it is given up, whatever of it had been completed. (Spring Kafka's FallbackBatchErrorHandler
retries the whole batch, and then has every record of it recovered.) A batch may be of several partitions, and all of it
is tried again when a record of one of them failed. After a seek a client may hand it out in parts.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.model.batch import Batch, index
from kafka_trial.model.client_attribution import of_another_client
from kafka_trial.model.commits_log import commits_in_effect
from kafka_trial.model.handlers import ENDS, unbegun_ends
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    at_or_after,
    at_or_before,
    first_of,
    joined,
    last_true,
    next_in,
    ordered,
    per_group,
    picked,
    previous_in,
)
from kafka_trial.model.ownership_epochs import member_lines
from kafka_trial.model.rows import Kind, Outcome
from kafka_trial.model.table import Table, is_among, last_until

GIVEN_UP = (Outcome.DISCARDED, Outcome.DEAD_LETTERED)


@index
def batch_attempts(batch: Batch) -> Table:
    """Returns file, seq and `again` of the first line of each attempt at a batch, sorted; none where handlers take
    records.

    An attempt begins with its first delivery, or with the line that gives up the first record of a batch whose end had
    been told. `again`: the attempt before it did not end well; and the batch is handed out once more, from the first
    record that was not committed past by then, or from its own first one; or all of it is given up. `replay`: the
    number of the attempt with which that began, of this one and of those that go on with it, up to the last record of
    the batch that did not end well; -1 of others. `offset`: of its first line.
    """
    own = _work(batch)
    first, number = own.take(own["begins"]), np.cumsum(own["begins"]) - 1
    previous, committed = previous_in(first["epoch"]), _committed(batch, first)
    ill = picked(_ended_ill(own, first, number).astype(np.int64), previous, 0) == 1
    ill |= picked(_failed_seq(batch, own, number, len(first)), previous, NEVER) < first["seq"]
    handed_out = _comes_again(batch, first, picked(first["offset"], previous, NONE), committed)
    whole = _gives_all_up(own, first, number, previous)
    again = ill & np.where(first["kind"] == Kind.DELIVERED, handed_out, whole)
    goes_on = ~again & (first["kind"] == Kind.DELIVERED) & (first["offset"] >= np.min(committed, axis=0))
    highest = picked(_highest(own, first, number), previous, NEVER)
    goes_on &= first["offset"] > highest
    begun = last_true(first["epoch"], ~goes_on)
    inside = ~goes_on | (first["offset"] <= picked(highest, begun, NONE))
    replay = np.where((picked(again.astype(np.int64), begun, 0) == 1) & inside, begun, -1)
    return first.only("file", "seq", "offset").having(again=again, replay=replay)


def latest_replay(batch: Batch, rows: Table) -> Ints:
    """Returns the number of the last attempt before each row (file, seq) that was one more at its batch; -1: of
    none."""
    attempts = batch_attempts(batch)
    number = np.flatnonzero(attempts["again"])
    attempts = attempts.take(number)
    return picked(number, at_or_before(attempts["file"], attempts["seq"], rows["file"], rows["seq"]), -1)


def is_of_replay(batch: Batch, begun: Table) -> Bools:
    """Returns which rows (file, seq, offset) are of an attempt that was one more at its batch, or of one that goes on
    with it and lie behind where that began."""
    if batch.trial_context.settings.delivery == "at-most-once":  # that claim takes nothing in hand again that was done
        return np.zeros(len(begun), np.bool_)
    attempts = batch_attempts(batch)
    row = at_or_before(attempts["file"], attempts["seq"], begun["file"], begun["seq"])
    replay = picked(attempts["replay"], row, -1)
    forward = (replay == row) | (begun["offset"] >= picked(attempts["offset"], row, NEVER))
    again: Bools = (replay >= 0) & forward
    return again


def _work(batch: Batch) -> Table:
    """Returns the lines about records, as `member_lines` has them, with `epoch` (file and ownership epoch as one),
    `gives_up` (its end, and it was given up) and `begins` (an attempt at a batch)."""
    own = member_lines(batch).take(np.isin(member_lines(batch)["kind"], (Kind.DELIVERED, *ENDS)))
    own = own.take(np.full(len(own), batch.trial_context.settings.handler == "batch"))
    own = own.having(epoch=joined(own["file"], own["ownership_epoch"] + 1), gives_up=_given_up(batch, own))
    before = previous_in(own["epoch"])
    handed_out = (own["kind"] == Kind.DELIVERED) & (picked(own["kind"], before, 0) != Kind.DELIVERED)
    begins = handed_out | (own["gives_up"] & unbegun_ends(own))
    latest = picked(last_true(own["epoch"], begins), before, -1)
    first = picked(handed_out.astype(np.int64), latest, 0) == 1
    begins = handed_out | (begins & first & (own["offset"] == picked(own["offset"], latest, NONE)))
    return _without_parts(own.having(begins=begins))


def _without_parts(own: Table) -> Table:
    """Returns lines of which none begins an attempt that gives up a part of a batch: that stays one with the attempt
    before it, after which the batch may come again (a dead-letter topic did not answer)."""
    first, number = own.take(own["begins"]), np.cumsum(own["begins"]) - 1
    whole = _gives_all_up(own, first, number, previous_in(first["epoch"]))
    begins = own["begins"].copy()
    begins[begins] = (first["kind"] == Kind.DELIVERED) | whole
    return own.having(begins=begins)


def _given_up(batch: Batch, own: Table) -> Bools:
    ends = batch.of(Kind.PROCESSED)
    ends = ends.take(np.isin(ends["outcome"], GIVEN_UP))
    return (own["kind"] == Kind.PROCESSED) & is_among(own, ends, "slice", "source", "seq")


def _ended_ill(own: Table, first: Table, number: Ints) -> Bools:
    """Returns of each attempt (`number` of each row) whether a record failed in it, or has no end."""
    inside = (number >= 0) & (own["file"] == picked(first["file"], number, -1))
    failed = _rows_of(number, inside & (own["kind"] == Kind.FAILED), len(first)) > 0
    begun, ended = (_records_of(own, number, inside & (own["kind"] == kind), first) for kind in _BEGUN_AND_ENDED)
    return failed | (ended < begun)


_BEGUN_AND_ENDED = (Kind.DELIVERED, Kind.PROCESSED)


def _failed_seq(batch: Batch, own: Table, number: Ints, size: int) -> Ints:
    """Returns of each attempt the first line by which a record of its batch failed, in whatever partition; NEVER where
    none did, or no other partition has records of it. Another client of the process was handed another batch."""
    failed = batch.of(Kind.BATCH_FAILED)
    failed = failed.take(~of_another_client(batch, failed, failed["failed_slice"].astype(np.int64)))
    row = last_until(own, failed, "slice", "source", by="seq", until=failed["seq"])
    known = row >= 0
    return per_group(number[row[known]], failed["failed_seq"][known], size, how="min", start=NEVER)


def _highest(own: Table, first: Table, number: Ints) -> Ints:
    """Returns the highest offset that each attempt was handed out; NEVER of one that gives its batch up."""
    given = (number >= 0) & (own["kind"] == Kind.DELIVERED)
    highest = per_group(number[given], own["offset"][given], len(first), how="max", start=NONE)
    return np.where(first["kind"] == Kind.DELIVERED, highest, NEVER)


def _gives_all_up(own: Table, first: Table, number: Ints, previous: Ints) -> Bools:
    """Returns which attempts give up the whole batch of the attempt before, and do nothing else; the last one of an
    ownership epoch may have been cut off."""
    inside = (number >= 0) & (own["epoch"] == picked(first["epoch"], number, -1))
    alone = _rows_of(number, inside & ~own["gives_up"], len(first)) == 0
    whole = _records_of(own, number, inside & own["gives_up"], first) >= picked(
        _records_of(own, number, inside & (own["kind"] == Kind.DELIVERED), first), previous, 0
    )
    return alone & (whole | (next_in(first["epoch"]) < 0))


def _rows_of(number: Ints, chosen: Bools, size: int) -> Ints:
    return np.bincount(number[chosen], minlength=size)


def _records_of(own: Table, number: Ints, chosen: Bools, first: Table) -> Ints:
    """Returns of how many records each attempt has chosen rows."""
    rows = np.flatnonzero(chosen)
    rows = rows[ordered(number[rows], own["offset"][rows])]
    return np.bincount(number[rows[first_of(number[rows], own["offset"][rows])]], minlength=len(first))


def _committed(batch: Batch, first: Table) -> list[Ints]:
    """Returns the position that was committed when each attempt began, at the earliest and at the latest."""
    log = commits_in_effect(batch).sorted_by("slice", "effect_ns")
    stood = [
        at_or_before(log["slice"], log["effect_ns"], first["slice"], at_ns)
        for at_ns in (batch.earliest(first["time_ns"]), first["time_ns"])
    ]
    starts = batch.log_starts[first["slice"]]
    return [np.where(row >= 0, picked(log["committed_offset"], row, 0), starts) for row in stood]


def _comes_again(batch: Batch, first: Table, earlier: Ints, committed: list[Ints]) -> Bools:
    """Returns of which attempts the first record is the first one that was not committed past by then, or again that of
    the attempt before (`earlier`)."""
    records, again = batch.records, np.zeros(len(first), np.bool_)
    for position in committed:
        next_row = at_or_after(records["slice"], records["offset"], first["slice"], position)
        again |= first["offset"] == picked(records["offset"], next_row, NONE)
        again |= (first["offset"] == earlier) & (first["offset"] >= position)
    return again

"""Seeks: where an ownership epoch's member went before it began to work, of a consumer whose progress is not in Kafka.

A client may fetch before it is told to seek: from its group's committed offset, or as `auto.offset.reset` says. Its
member may be handed what that brought, and leave it: it seeks to the position that its own store holds
(`KafkaConsumer`, Storing Offsets Outside Kafka). Work has begun with the first record whose handler ended in any other
way than discarded, or which the sink heard of meanwhile. What was handed out before the last jump until then was left.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.model.batch import Batch, index
from kafka_trial.model.handler_retries import handler_starts
from kafka_trial.model.handlers import finished_handlers
from kafka_trial.model.instants import at_earliest
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    at_or_after,
    between,
    joined,
    next_in,
    ordered,
    per_group,
    picked,
)
from kafka_trial.model.ownership_epochs import ownership_epochs
from kafka_trial.model.rows import Kind, Outcome
from kafka_trial.model.table import Table, is_among, table

LINE = ("slice", "source", "seq", "offset")


@index
def seeks(batch: Batch) -> Table:
    """Returns for each ownership epoch the start of a handler with which it went on after its last jump before it began
    to work: `seq` and `offset`; NONE where it did not jump."""
    starts = handler_starts(batch)
    starts = starts.take((starts["ownership_epoch"] >= 0) & (not batch.trial_context.settings.in_offsets_log))
    epoch, number = starts["ownership_epoch"], np.arange(len(starts))
    size = len(ownership_epochs(batch))
    begun = per_group(epoch, np.where(_works(batch, starts), number, NEVER), size, how="min", start=NEVER)
    after = next_in(epoch)
    jumped = _jumps(batch, starts, after) & (after <= begun[epoch])
    landed = per_group(epoch, np.where(jumped, after, -1), size, how="max", start=-1)
    return table(seq=picked(starts["seq"], landed, NONE), offset=picked(starts["offset"], landed, NONE))


def before_seek(batch: Batch, rows: Table, ownership_epoch: Ints) -> Bools:
    """Returns which lines of ownership epochs (seq) come before the jump of `seeks`."""
    before: Bools = rows["seq"] < picked(seeks(batch)["seq"], ownership_epoch, NONE)
    return before


def above_start(batch: Batch, rows: Table, ownership_epoch: Ints) -> Bools:
    """Returns which of these (seq, offset) are about a record from where that jump went, or behind it."""
    above: Bools = rows["offset"] >= picked(seeks(batch)["offset"], ownership_epoch, NEVER)
    return above & before_seek(batch, rows, ownership_epoch)


def is_discarded(batch: Batch, starts: Table) -> Bools:
    """Returns which rows of `handler_starts` ended in the word that the record was discarded."""
    said, handlers = batch.of(Kind.PROCESSED), finished_handlers(batch)
    said = said.take(said["outcome"] == Outcome.DISCARDED)
    ended = handlers.take(is_among(handlers.having(seq=handlers["end_seq"]), said, *LINE))
    begun: Bools = is_among(starts, ended.having(seq=ended["start_seq"]), *LINE)
    return begun | ((starts["kind"] == Kind.PROCESSED) & is_among(starts, said, *LINE))


def _works(batch: Batch, starts: Table) -> Bools:
    """Returns which rows of `handler_starts` were work."""
    handlers = finished_handlers(batch)
    ended = is_among(starts, handlers.having(seq=handlers["start_seq"]), *LINE) | (starts["kind"] == Kind.PROCESSED)
    return (ended & ~is_discarded(batch, starts)) | _reached_sink(batch, starts)


def _reached_sink(batch: Batch, starts: Table) -> Bools:
    """Returns whether the sink heard of each record before it was surely taken in hand again."""
    order = ordered(*(starts[name] for name in ("slice", "offset", "time_ns")))
    following = np.full(len(starts), -1)
    again = next_in(joined(starts["slice"][order], starts["offset"][order]))
    following[order] = picked(order, again, -1)
    until_ns = at_earliest(batch.earliest(picked(starts["time_ns"], following, NEVER)))
    effects = batch.of(Kind.EFFECT).sorted_by("slice", "offset", "time_ns")
    both = joined(*(np.concatenate([effects[name], starts[name]]) for name in ("slice", "offset")))
    first = at_or_after(both[: len(effects)], effects["time_ns"], both[len(effects) :], starts["time_ns"])
    heard: Bools = (first >= 0) & (picked(effects["time_ns"], first, NEVER) < until_ns)
    return heard


def _jumps(batch: Batch, starts: Table, after: Ints) -> Bools:
    """Returns after which starts the ownership epoch went back, or over a record; `after`: its next start."""
    offset, records = picked(starts["offset"], after, NONE), batch.records
    first, end = between(records["slice"], records["offset"], starts["slice"], starts["offset"] + 1, offset)
    jumps: Bools = (after >= 0) & ((offset < starts["offset"]) | (first < end))
    return jumps

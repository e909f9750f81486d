"""Handlers: what was done with each record, from its delivery to its completion, and when it was first handled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.kernels import NEVER, Ints, exactly, first_of, joined, next_in, ordered, picked
from kafka_trial.invariants.rows import WITHOUT_OUTPUT, Kind
from kafka_trial.invariants.table import Table, table

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


def handlers(batch: Batch) -> Table:
    """Returns slice, source, offset, key, possession, start_seq, start_ns, end_seq, end_ns: one row a finished handler.

    A delivery is finished by the next completion of the same record in the same file, unless the record was delivered
    there again in between: then the first delivery was given up, and has no end. Sorted by (slice, source, start_seq).
    """
    work = batch.own.take(np.isin(batch.own["kind"], (Kind.DELIVERED, Kind.PROCESSED)))
    work = work.take(ordered(work["file"], work["offset"]))
    record = joined(work["file"], work["offset"])
    following = next_in(record)
    delivered = work["kind"] == Kind.DELIVERED
    finished = np.flatnonzero(delivered & (picked(work["kind"], following, 0) == Kind.PROCESSED))
    start, end = work.take(finished), work.take(following[finished])
    found = table(
        slice=start["slice"],
        source=start["source"],
        offset=start["offset"],
        key=keys_of(batch, start),
        possession=start["possession"],
        start_seq=start["seq"],
        start_ns=start["time_ns"],
        end_seq=end["seq"],
        end_ns=end["time_ns"],
    )
    return found.sorted_by("slice", "source", "start_seq")


def completions(batch: Batch) -> Table:
    """Returns the `processed` rows of `own` with `key`, and `begun_in`: the possession that they belong to.

    That is the possession of the delivery they finish, for a handler may end after its partition was revoked, or came
    back; else their own.
    """
    done = batch.own.take(batch.own["kind"] == Kind.PROCESSED)
    by_end = batch.handlers.sorted_by("slice", "source", "end_seq")
    handler = exactly(
        joined_with(by_end["slice"], by_end["source"], len(batch.circumstances.sources)),
        by_end["end_seq"],
        joined_with(done["slice"], done["source"], len(batch.circumstances.sources)),
        done["seq"],
    )
    begun_in = picked(by_end["possession"], handler, -1)
    return done.having(key=keys_of(batch, done), begun_in=np.where(begun_in >= 0, begun_in, done["possession"]))


def joined_with(slices: Ints, numbers: Ints, size: int) -> Ints:
    """Returns (slice, number) as one integer, for numbers below `size`."""
    return slices * (size + 1) + numbers


def keys_of(batch: Batch, rows: Table) -> Ints:
    """Returns the key of each row's record by the control read; -1 where it has none or was not read."""
    records = batch.records
    found = exactly(records["slice"], records["offset"], rows["slice"], rows["offset"])
    return picked(records["key"], found, -1)


def handled(batch: Batch) -> Table:
    """Returns slice, offset, time_ns, source, seq, said_ns of the first handling of each offset: by a completion or an
    effect.

    Where the output goes to a topic, only what is committed there is done; a completion counts if it leaves no output.
    `said_ns`: the earliest time at which any of its handlings can have been written down.
    """
    done = batch.of(Kind.PROCESSED, Kind.EFFECT)
    if batch.circumstances.settings.sink == "topic":
        done = done.take((done["kind"] == Kind.EFFECT) | (done["flag"] == WITHOUT_OUTPUT))
    done = done.take(ordered(done["slice"], done["offset"], done["time_ns"]))
    first = first_of(joined(done["slice"], done["offset"]))
    said_ns = batch.written_ns(done["source"], done["time_ns"])
    earliest_ns = np.minimum.reduceat(said_ns, first) if len(first) else said_ns
    return done.take(first).only("slice", "offset", "time_ns", "source", "seq").having(said_ns=earliest_ns)


def first_handled_of_records(batch: Batch) -> SimpleNamespace:
    """Returns, for each of `batch.records`, `time_ns` and `said_ns` of its first handling (NEVER if none), and `row` of
    `handled`."""
    row = exactly(batch.handled["slice"], batch.handled["offset"], batch.records["slice"], batch.records["offset"])
    time_ns, said_ns = (picked(batch.handled[name], row, NEVER) for name in ("time_ns", "said_ns"))
    return SimpleNamespace(row=row, time_ns=time_ns, said_ns=said_ns)

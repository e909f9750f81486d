"""Possessions: when a member held a partition by its own word (DESIGN: ownership epochs).

A possession opens when `assigned` lists the partition, and closes at the first of: `revoked` or `lost` listing it, a
further `assigned` listing it (which opens the next), `stopped`, `exited`. Inside one file the order is exact, by seq.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.kernels import NEVER, NONE, Array, Ints, joined, last_true, next_in, picked
from kafka_trial.invariants.rows import CALLBACKS, OWN_WORD, Kind
from kafka_trial.invariants.table import Table, table

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch

STILL_OPEN, BY_STOP, BY_EXIT = 0, 100, 101  # how a possession closed, beside the kinds of callback


def possessions(batch: Batch) -> Table:
    """Returns slice, source, client, member, life, open_seq, open_ns, close_seq, close_ns, closed_by, before.

    Sorted by (slice, source, client, open_seq); a row's number is the possession's number. `close_*` of one that was
    never closed is NEVER. `before` is the number of the same file's possession before it, or -1.
    """
    own = batch.own
    opened = own.take(own["opens"])
    closes = _closes(batch)
    file = opened["file"]
    before = np.arange(len(opened)) - 1
    same = (before >= 0) & (file[before] == file) if len(file) else np.zeros(0, np.bool_)
    life = life_of(batch, opened["source"])
    return table(
        slice=opened["slice"],
        source=opened["source"],
        client=opened["client"],
        life=life,
        member=picked(batch.lives["member"], life, -1),
        open_seq=opened["seq"],
        open_ns=opened["time_ns"],
        before=np.where(same, before, -1),
        **closes,
    )


def own_words(batch: Batch) -> Table:
    """Returns what members said themselves, sorted by (slice, source, client, seq), each with the possession it is in.

    Columns: slice, source, seq, kind, time_ns, offset; `client` (which of several in the process says it, -1 where
    there is one), `file` (slice, source and client as one), `opens` (an `assigned`), `possession` (its number, -1 where
    none is open), `revoked` (the latest callback here was revoked or lost) and `attempt`: where progress is in
    transactions, one that failed begins the partition anew where it began.
    """
    own = batch.of(*OWN_WORD)
    client = _told_apart(batch)[own["who"]]
    own = own.only("slice", "source", "seq", "kind", "time_ns", "offset").having(client=client)
    own = own.sorted_by("slice", "source", "client", "seq")
    file = joined(own["slice"], own["source"], own["client"] + 1)
    callback = last_true(file, np.isin(own["kind"], CALLBACKS))
    said = picked(own["kind"], callback, 0)
    opens = own["kind"] == Kind.ASSIGNED
    number = np.cumsum(opens) - 1
    ended = own["seq"] > _closed_seq(batch, own["source"])
    return own.having(
        file=file,
        opens=opens,
        possession=np.where((said == Kind.ASSIGNED) & ~ended, number, -1),
        revoked=np.isin(said, (Kind.REVOKED, Kind.LOST)),
        attempt=np.cumsum((own["kind"] == Kind.COMMIT_FAIL) & (batch.circumstances.settings.progress == "transaction")),
    )


def _told_apart(batch: Batch) -> Ints:
    """Returns the number of each own client whose process has others at the same time, else -1; and -1 at the end.

    Names that come one after the other are one client's, which rejoined or began anew.
    """
    named = batch.circumstances.own_clients
    several = np.full(len(named) + 1, -1, np.int64)
    order = sorted(range(len(named)), key=lambda number: (named[number].source, named[number].first_seq))
    for one, other in pairwise(order):
        if named[one].source == named[other].source and named[other].first_seq < named[one].last_seq:
            of_file = [number for number in order if named[number].source == named[one].source]
            several[of_file] = of_file
    return several


def life_of(batch: Batch, sources: Array) -> Ints:
    """Returns the place of each source's life in `batch.lives`, -1 where a source is no member's."""
    places = np.full(len(batch.circumstances.sources) + 1, -1, np.int64)
    places[batch.lives["source"]] = np.arange(len(batch.lives))
    return places[sources]


def _closes(batch: Batch) -> dict[str, Array]:
    own = batch.own
    callbacks = own.take(np.isin(own["kind"], CALLBACKS))
    following = next_in(callbacks["file"])
    seq, time = (picked(callbacks[name], following, NEVER) for name in ("seq", "time_ns"))
    kind = picked(callbacks["kind"], following, STILL_OPEN)
    opened = callbacks["opens"]
    life = life_of(batch, callbacks["source"][opened])
    end_seq = _closed_seq(batch, callbacks["source"][opened])
    end_ns = picked(batch.lives["closed_ns"], life, NEVER)
    exit_seq = picked(batch.lives["exited_seq"], life, NONE)
    ended = end_seq < seq[opened]
    end_kind = np.where(exit_seq == end_seq, BY_EXIT, BY_STOP)
    return {
        "close_seq": np.where(ended, end_seq, seq[opened]),
        "close_ns": np.where(ended, end_ns, time[opened]),
        "closed_by": np.where(ended, end_kind, kind[opened]),
    }


def _closed_seq(batch: Batch, sources: Array) -> Ints:
    """Returns the seq at which each source's member stopped or exited; NEVER where it did not."""
    closed = picked(batch.lives["closed_seq"], life_of(batch, sources), NONE)
    return np.where(closed == NONE, NEVER, closed)

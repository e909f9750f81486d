"""Truncations: where a log became shorter, and what that explains.

A broker that is elected although it lacks records of the leader before it (`unclean.leader.election.enable`) cuts the
tail off, of which nobody had been promised anything: "unacknowledged messages may be lost" (Kafka, Replication, Unclean
leader election). Whoever had read those records stands, and has committed, beyond the end of the new log; what is
written there afterwards bears the offsets of what he has handled. That is the cluster's doing, never the consumer's.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.model.batch import Batch, index
from kafka_trial.model.commits_log import commits_in_effect, first_covering
from kafka_trial.model.instants import at_earliest, at_latest
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    at_or_after,
    exactly,
    in_ranges,
    max_before,
    per_group,
    picked,
    previous_in,
)
from kafka_trial.model.log_ends import log_ends
from kafka_trial.model.request_logs import timed_fetches
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table, stacked, table
from kafka_trial.model.trial_context import TOLERANCE_NS

OFFSET_OUT_OF_RANGE = 1


@index
def truncations(batch: Batch) -> Table:
    """Returns slice, low (the new end), high (an end that was there before), from_ns (when that was seen), until_ns
    (when the new one was) and lowest (how low a client may have been set back), sorted by slice.

    By two log ends that were read one after the other; by a fetch that brought records from where a log end that was
    asked for later says that there was none; or by the id of a record that was delivered, and in whose place there is
    another now, or the log has not come so far again.
    """
    ends = log_ends(batch)
    before = previous_in(ends["slice"])
    fell = (before >= 0) & (ends["position"] < picked(ends["position"], before, NONE))
    peak = max_before(ends["slice"], ends["position"])
    by_ends = _found(
        ends.take(fell), picked(ends["position"], peak, NONE)[fell], picked(ends["time_ns"], before, 0)[fell]
    )
    asks = timed_fetches(batch)
    asks = asks.take((asks["answered_bytes"] > 0) & (asks["error_code"] == 0))
    later = at_or_after(ends["slice"], ends["time_ns"], asks["slice"], at_latest(asks["answered_ns"]))
    gone = (later >= 0) & (picked(ends["position"], later, NEVER) <= asks["fetch_position"])
    by_fetches = _found(ends.take(later[gone]), asks["fetch_position"][gone] + 1, asks["answered_ns"][gone])
    return stacked(by_ends, by_fetches, _by_ids(batch)).sorted_by("slice", "until_ns")


def _by_ids(batch: Batch) -> Table:
    """Returns a truncation for each line that names a record which was sent, and is nowhere in the log: it had been
    there, for no consumer knows of it otherwise. Not where it had been acknowledged: of what is lost then others tell.
    A hole in the log is none: a log is written anew without holes."""
    told = batch.of(Kind.DELIVERED)
    sent = (told["id_hash"] != NONE) & (told["known"] == 0) & np.bool_(batch.trial_context.sends > 0)
    given_up = batch.of(Kind.ABORTED_RECORD).sorted_by("slice", "offset")
    aborted = exactly(given_up["slice"], given_up["offset"], told["slice"], told["offset"]) >= 0
    whole = np.bool_(batch.trial_context.control_read == "complete") & ~batch.is_compacted(told["slice"])
    read = batch.of(Kind.LOG_START)
    starts = per_group(read["slice"], read["position"], batch.size, how="max", start=0)
    records = batch.records
    ends = per_group(records["slice"], records["offset"], batch.size, how="max", start=NONE)[told["slice"]]
    written = exactly(records["slice"], records["offset"], told["slice"], told["offset"]) >= 0
    gone = (written | (told["offset"] > ends)) & ~np.isin(told["id_hash"], batch.of(Kind.MISSING_SEND)["id_hash"])
    told = told.take(sent & ~aborted & gone & (told["offset"] >= starts[told["slice"]]) & whole)
    return table(
        slice=told["slice"],
        low=told["offset"],
        high=told["offset"] + 1,
        from_ns=batch.written_ns(told["source"], told["time_ns"]),
        until_ns=np.full(len(told), NEVER - 2 * TOLERANCE_NS),
        lowest=np.where(np.isin(told["slice"], _out_of_range(batch)), 0, told["offset"]),
    )


def _out_of_range(batch: Batch) -> Ints:
    """Returns the slices of which a client was told that its position is not there: it starts over where its reset
    policy says."""
    asks = timed_fetches(batch)
    return asks["slice"][asks["error_code"] == OFFSET_OUT_OF_RANGE]


def _found(new: Table, high: Ints, from_ns: Ints) -> Table:
    lowest = np.zeros(len(new), np.int64)
    return table(
        slice=new["slice"], low=new["position"], high=high, from_ns=from_ns, until_ns=new["time_ns"], lowest=lowest
    )


def truncated_away(batch: Batch, slices: Ints, offsets: Ints, time_ns: Ints) -> Bools:
    """Returns which places of a log were there by that time, and were cut off afterwards."""
    cut = truncations(batch)
    which, row = _pairs(cut, slices)
    inside = (offsets[which] >= cut["low"][row]) & (offsets[which] < cut["high"][row])
    inside &= time_ns[which] <= at_latest(cut["until_ns"][row])
    return np.isin(np.arange(len(slices)), which[inside])


def truncated_below(batch: Batch, rows: Table, positions: Ints) -> Bools:
    """Returns whether by the time of each row (slice, offset, time_ns) the log may have been cut off at or below a
    position: then a client steps back to that row, as "truncation detection" or its reset policy say (KIP-320). Where
    an id alone tells, the records below it are as they were: nothing leads back to them."""
    cut = truncations(batch)
    which, row = _pairs(cut, rows["slice"])
    below = (cut["low"][row] <= positions[which]) & (at_earliest(cut["from_ns"][row]) <= rows["time_ns"][which])
    below &= cut["lowest"][row] <= rows["offset"][which]
    return np.isin(np.arange(len(rows)), which[below])


@index
def overwritten(batch: Batch) -> Bools:
    """Returns which of `batch.records` were written where the log had been cut off, below a commit that had taken
    effect before that was seen."""
    cut, records = truncations(batch), batch.records
    which, row = _pairs(cut, records["slice"])
    anew = (records["offset"][which] >= cut["low"][row]) & (records["offset"][which] < cut["high"][row])
    which, row = which[anew], row[anew]
    covered = first_covering(batch, records["slice"][which], records["offset"][which])
    covered_ns = picked(commits_in_effect(batch)["effect_ns"], covered, NEVER)
    anew = records["appended_ns"][which] >= at_earliest(cut["from_ns"][row])
    anew &= covered_ns <= at_latest(cut["until_ns"][row])
    return np.isin(np.arange(len(records)), which[anew])


def _pairs(cut: Table, slices: Ints) -> tuple[Ints, Ints]:
    """Returns (which, row) for every truncation of each slice."""
    return in_ranges(np.searchsorted(cut["slice"], slices, "left"), np.searchsorted(cut["slice"], slices, "right"))

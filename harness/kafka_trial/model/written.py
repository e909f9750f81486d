"""How `LostWrites`, `ExpiredUnread`, `CorruptRecords` and `MisplacedRecords` are made: see `partition.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.absences import expired_while_away
from kafka_trial.model.batch import index
from kafka_trial.model.commits import reporter_killed
from kafka_trial.model.commits_log import (
    OPERATOR,
    STRANGER,
    UNKNOWN,
    commits_in_effect,
    final_committed_offsets,
    first_covering,
    from_outside,
)
from kafka_trial.model.contradicted_lines import is_refuted
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    exactly,
    joined,
    per_group,
    picked,
    starts_of,
    value_at,
)
from kafka_trial.model.ownership_epochs import deliveries, ownership_epochs
from kafka_trial.model.partition import CorruptRecords, ExpiredUnread, LostWrites, MisplacedRecords
from kafka_trial.model.rows import Kind, Known
from kafka_trial.model.table import Table, stacked
from kafka_trial.model.undecided import Undecided, is_certain, undecided_because

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch


@index
def lost_writes(batch: Batch) -> LostWrites:
    """Returns the acknowledged sends that the log does not hold, though nothing removed them."""
    sent = _sent(batch)
    known = sent["offset"] != NONE
    starts = _log_starts(batch)[sent["slice"]]
    gone = known & ((sent["offset"] < starts) | _superseded(batch, sent))
    sent, known, starts = sent.take(~gone), known[~gone], starts[~gone]
    snapshot_ns = batch.trial_context.snapshot_ns
    record = exactly(batch.records["slice"], batch.records["offset"], sent["slice"], sent["offset"])
    why = undecided_because(
        (Undecided.AFTER_SNAPSHOT, sent["time_ns"] >= (NONE if snapshot_ns is None else snapshot_ns)),
        (Undecided.PLACE_UNKNOWN, ~known & ((starts > 0) | batch.is_compacted(sent["slice"]))),
        (Undecided.NO_ID_THERE, picked(batch.records["id_hash"], record, 0) == NONE),
    )
    return LostWrites(sent.columns).having(why=why)


@index
def expired_unread(batch: Batch) -> ExpiredUnread:
    """Returns the records that expired before anybody had read them."""
    expired = _sent(batch)
    expired = expired.take((expired["offset"] != NONE) & (expired["offset"] < _log_starts(batch)[expired["slice"]]))
    past = expired["offset"] < final_committed_offsets(batch)[expired["slice"]]
    unread = ~_read(batch, expired, past)
    covered_by = np.where(past, first_covering(batch, expired["slice"], expired["offset"]), -1)
    committer = picked(commits_in_effect(batch)["committer"], covered_by, UNKNOWN)
    covered_ns = picked(commits_in_effect(batch)["effect_ns"], covered_by, NEVER)
    away, maybe_away = expired_while_away(batch, expired, covered_ns)
    may_have_read = not batch.trial_context.has_sink and bool(batch.incarnations["killed"].any())
    why = undecided_because(
        (Undecided.UNCERTAIN_AFTER_KILL, ~away & value_at(reporter_killed(batch), covered_by, False)),
        (Undecided.EXPIRED_MAYBE_READ, ~away & ~past & may_have_read),
        (Undecided.EXPIRED_MAYBE_AWAY, maybe_away & (committer != OPERATOR)),
    )
    expired = expired.having(committed=past, committer=committer, while_away=away, why=why)
    told = unread & is_certain(why)
    doubtful = expired.take(unread & ~told)
    alone = doubtful.having(
        last_offset=doubtful["offset"],
        records=np.ones(len(doubtful), np.int64),
        last_source=doubtful["source"],
        last_seq=doubtful["seq"],
    )
    ranges = stacked(_ranges(expired, told).only(*alone.columns), alone)
    return ExpiredUnread(ranges.columns).having(**from_outside(ranges["committer"]))


@index
def corrupt_records(batch: Batch) -> CorruptRecords:
    """Returns the records whose content is another one than was sent."""
    records = batch.of(Kind.ALTERED).sorted_by("slice", "offset")
    effects = batch.arrived
    by_cluster = exactly(records["slice"], records["offset"], effects["slice"], effects["offset"]) >= 0
    declared = batch.trial_context.settings.body == "value"
    wrong = effects.take((effects["known"] & Known.OTHER > 0) & ~by_cluster & np.full(len(effects), declared))
    none = np.full(len(wrong), -1)
    found = stacked(
        records.only("slice", "offset", "source", "seq", "send_source", "send_seq"),
        wrong.only("slice", "offset", "source", "seq").having(send_source=none, send_seq=none),
    )
    found_in = np.array(["control read"] * len(records) + ["effect"] * len(wrong), dtype=object)
    return CorruptRecords(found.columns).having(found_in=found_in)


@index
def misplaced_records(batch: Batch) -> MisplacedRecords:
    """Returns what was delivered, or had its effect, under a place where the log holds another record."""
    told = batch.of(Kind.DELIVERED, Kind.CLAIMED)
    told = told.take(told["id_hash"] != NONE).sorted_by("slice", "offset")
    record = exactly(batch.records["slice"], batch.records["offset"], told["slice"], told["offset"])
    there = picked(batch.records["id_hash"], record, NONE)
    other = (there != NONE) & (there != told["id_hash"])
    wrong, record = told.take(other), record[other]
    return MisplacedRecords(wrong.columns).having(
        what=np.where(wrong["kind"] == Kind.CLAIMED, "effected", "delivered").astype(object),
        record_source=picked(batch.records["source"], record, -1),
        record_seq=picked(batch.records["seq"], record, -1),
        why=undecided_because((Undecided.REPLACED, wrong["known"] & (Known.READ | Known.UNSENT) == 0)),
    )


def _sent(batch: Batch) -> Table:
    """Returns the acknowledged sends that the control read does not hold, sorted by (slice, offset)."""
    return batch.of(Kind.MISSING_SEND).sorted_by("slice", "offset", "seq")


def _log_starts(batch: Batch) -> Ints:
    """Returns the log start of each slice at the end, 0 where none was read: log starts only rise."""
    read = batch.of(Kind.LOG_START)
    return per_group(read["slice"], read["position"], batch.size, how="max", start=0)


def _superseded(batch: Batch, sent: Table) -> Bools:
    """Returns which sends compaction may have taken: a later record of the partition has their key."""
    compacted = batch.is_compacted(sent["slice"])
    if not compacted.any():
        return compacted
    group = joined(np.concatenate([sent["slice"], batch.records["slice"]]), _keys(sent, batch.records))
    offsets = np.concatenate([sent["offset"], batch.records["offset"]])
    number = np.unique(group, return_inverse=True)[1]
    last = per_group(number, offsets, len(group), how="max", start=NONE)
    superseded: Bools = (last[number[: len(sent)]] > sent["offset"]) & (sent["key"] >= 0) & compacted
    return superseded


def _keys(*parts: Table) -> Array:
    return np.concatenate([part["key"] for part in parts])


def _read(batch: Batch, sent: Table, past: Bools) -> Bools:
    """Returns whether the record of each send was processed or had its effect, or, where nobody committed `past` it, is
    still in hand: who has it may still do it. A line that a witness refutes tells of neither."""
    lines = [_in_hand_at_snapshot(batch), batch.of(Kind.PROCESSED)]
    delivered, processed = (own.take(~is_refuted(batch, own)).sorted_by("slice", "offset") for own in lines)
    effects = batch.arrived
    begun, told = (
        exactly(own["slice"], own["offset"], sent["slice"], sent["offset"]) >= 0 for own in (delivered, processed)
    )
    seen = exactly(effects["slice"], effects["id_hash"], sent["slice"], sent["id_hash"]) >= 0
    read: Bools = told | seen | (begun & ~past)
    return read


def _in_hand_at_snapshot(batch: Batch) -> Table:
    """Returns the deliveries whose ownership epoch, as far as anybody knows, was open at the end of the drain."""
    own, snapshot_ns = deliveries(batch), batch.trial_context.snapshot_ns
    closed_ns = picked(ownership_epochs(batch)["close_ns"], own["ownership_epoch"], NEVER)
    return own.take(closed_ns >= (NONE if snapshot_ns is None else snapshot_ns))


def _ranges(expired: Table, told: Bools) -> Table:
    """Returns one row a range of expired records that were not read: the first and the last of it, and how many."""
    outside = np.isin(expired["committer"], (OPERATOR, STRANGER))
    alike = joined(
        expired["slice"],
        expired["committed"].astype(np.int64),
        np.where(outside, expired["committer"], UNKNOWN),
        expired["while_away"].astype(np.int64),
        np.cumsum(~told),
    )
    rows, alike = expired.take(told), alike[told]
    first = np.flatnonzero(starts_of(alike))
    last = np.append(first[1:], len(rows)) - 1 if len(rows) else first
    begin, end = rows.take(first), rows.take(last)
    return begin.having(
        order=begin["offset"],
        last_offset=end["offset"],
        records=last - first + 1,
        last_source=end["source"],
        last_seq=end["seq"],
    )

"""Ownership: did one member at a time own a partition, and did it work only while it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    at_or_before,
    covering,
    max_before,
    picked,
)
from kafka_trial.invariants.rows import Kind, Protocol
from kafka_trial.invariants.table import Table, stacked, table

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


@invariant("split-ownership", family="ownership", needs=("offsets log",), level="none")
def split_ownership(batch: Batch) -> Findings:
    """Two members owned a partition at once: by the offsets log, or by their own word although one had been told.

    "Each partition is assigned to exactly one consumer in the group" (KafkaConsumer, Consumer Groups). A member that
    lost the partition without being told is excused (`zombie-work`); one whose commit was refused was told.

    Smallest history: member_assignment of m0 and then of m1 that list the same partition.
    """
    logged, told = _split_by_log(batch), _split_though_told(batch)
    both = stacked(logged, told)
    rows = both.only("slice", "order", "log_offset", "offset", "by")
    return Findings(rows, [(both["source_a"], both["seq_a"]), (both["source_b"], both["seq_b"])])


@invariant("work-after-revoke", family="ownership", needs=("own word",), level="events")
def work_after_revoke(batch: Batch) -> Findings:
    """A member was delivered or completed a record of a partition after its own revoked or lost callback had returned.

    "Once the callback returns, the partition may be given to another consumer" (ConsumerRebalanceListener). Never
    legal: what is in hand is finished, or given up, inside the callback.

    Smallest history: `assigned`, `delivered` 5, `revoked`, `processed` 5.
    """
    own = batch.own
    late = own.take(own["revoked"] & np.isin(own["kind"], (Kind.DELIVERED, Kind.PROCESSED)))
    rows = table(slice=late["slice"], order=late["offset"], offset=late["offset"], what=_what(late))
    callback = _callback_before(batch, late)
    return Findings(rows, [(late["source"], callback), (late["source"], late["seq"])])


@invariant("zombie-work", family="ownership", needs=("own word", "offsets log"), level="events")
def zombie_work(batch: Batch) -> Findings:
    """A member worked on a partition that others had been given, before it was told so.

    No plain consumer can prevent it: it was frozen or cut off, and finishes what it holds when it wakes. Counted; legal
    unless the claim says that effects are fenced.

    Smallest history: m0 `assigned`, group record gives the partition to m1, `delivered` by m0 a second later.
    """
    work = batch.own.take(np.isin(batch.own["kind"], (Kind.DELIVERED, Kind.PROCESSED)))
    windows = batch.zombies
    loss_ns = picked(windows["loss_ns"], work["possession"], NEVER)
    told_seq = picked(windows["told_seq"], work["possession"], NONE)
    said_ns = batch.written_ns(work["source"], work["time_ns"])
    inside = (loss_ns != NEVER) & (said_ns > loss_ns) & (work["seq"] < told_seq)
    work = work.take(inside)
    loss = picked(windows["loss"], work["possession"], -1)
    rows = table(slice=work["slice"], order=work["offset"], offset=work["offset"], what=_what(work))
    grant = (picked(batch.grants["source"], loss, -1), picked(batch.grants["seq"], loss, -1))
    return Findings(rows, [grant, (work["source"], work["seq"])])


def _what(work: Table) -> Array:
    names = np.array(["delivered", "processed"], dtype=object)
    told: Array = names[(work["kind"] == Kind.PROCESSED).astype(np.int64)]
    return told


def _split_by_log(batch: Batch) -> Table:
    """Returns the places of the offsets log from which two member ids own a partition (assigned, not pending)."""
    grants = batch.grants.take(batch.grants["protocol"] != Protocol.CONSUMER_PENDING)
    longest = max_before(grants["slice"], grants["until"])
    split = (longest >= 0) & (picked(grants["until"], longest, NONE) > grants["place"])
    split &= picked(grants["member_id"], longest, -1) != grants["member_id"]
    later, earlier = grants.take(split), grants.take(longest[split])
    reached = np.minimum(later["until"], earlier["until"])
    so_far = max_before(later["slice"], reached)
    # A further record inside the same split is not a further split.
    fresh = (so_far < 0) | (picked(reached, so_far, NONE) < later["place"])
    later, earlier = later.take(fresh), earlier.take(fresh)
    return _found(later, later["place"], later["place"], np.full(len(later), NONE), "log", earlier, later)


def _split_though_told(batch: Batch) -> Table:
    """Returns deliveries to a member that had been told of its loss while another one's possession was open."""
    windows = batch.zombies
    work = batch.deliveries.take(batch.deliveries["possession"] >= 0)
    possession = work["possession"]
    told = picked(windows["by_refusal"], possession, 0) == 1
    said_ns = batch.written_ns(work["source"], work["time_ns"])
    after = (said_ns > picked(windows["told_ns"], possession, NEVER)) & (
        work["time_ns"] > picked(windows["until_ns"], possession, NEVER)
    )
    work = work.take(told & after & _held_by_others(batch, work))
    refusal = work.having(seq=picked(windows["told_seq"], work["possession"], -1))
    return _found(work, work["offset"], np.full(len(work), NONE), work["offset"], "told", refusal, work)


def _held_by_others(batch: Batch, work: Table) -> Bools:
    """Returns whether another member's possession of the partition was open at each moment."""
    held = batch.possessions
    end = np.where(held["close_ns"] == NEVER, NEVER, held["close_ns"] + 1)
    lasting = end > held["open_ns"]
    held, end = held.take(lasting), end[lasting]
    size = len(batch.circumstances.members) + 1
    member = picked(batch.possessions["member"], work["possession"], -1)
    all_open = covering(held["slice"], held["open_ns"], end, work["slice"], work["time_ns"])
    own_open = covering(
        held["slice"] * size + held["member"] + 1,
        held["open_ns"],
        end,
        work["slice"] * size + member + 1,
        work["time_ns"],
    )
    return all_open > own_open


def _found(rows: Table, order: Array, log_offset: Array, offset: Array, by: str, first: Table, second: Table) -> Table:
    return table(
        slice=rows["slice"],
        order=order,
        log_offset=log_offset,
        offset=offset,
        by=np.full(len(rows), by, dtype=object),
        source_a=first["source"],
        seq_a=first["seq"],
        source_b=second["source"],
        seq_b=second["seq"],
    )


def _callback_before(batch: Batch, late: Table) -> Ints:
    """Returns the seq of the revoked or lost callback before each row, in the same file."""
    own = batch.own
    callbacks = own.take(np.isin(own["kind"], (Kind.REVOKED, Kind.LOST)))
    row = at_or_before(callbacks["file"], callbacks["seq"], late["file"], late["seq"])
    return picked(callbacks["seq"], row, -1)

"""Skips: records that a member passed over while it held their partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.claim_rule import Rule, partition_order_claimed
from kafka_trial.invariants.client_attribution import UNATTRIBUTED, unattributed
from kafka_trial.invariants.handlers import first_handled_of_records
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    at_or_after,
    between,
    exactly,
    in_ranges,
    joined,
    max_before,
    ordered,
    per_group,
    picked,
)
from kafka_trial.invariants.ownership_epochs import BY_EXIT, deliveries, own_words, ownership_epochs
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.table import Table, table
from kafka_trial.invariants.trial_context import TOLERANCE_NS

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch

LAST_ACT = "a member that was killed may have taken the record in its last act"
EXPIRED = "the log start overtook the position: the reset policy decided where to go on"


@invariant(
    "poll-skip",
    family="ordering",
    needs=("own word", "ownership epochs", "records"),
    level="events",
    severity=280,
    rule=Rule(partition_order_claimed),
    message="record {offset} of {place} was jumped over, from {previous_offset} to {next_offset}, while held",
)
def poll_skip(batch: Batch) -> Findings:
    """Inside one ownership epoch the deliveries jumped over a readable record, and no later delivery there made it
    good.

    "The position … will be one larger than the highest offset the consumer has seen in that partition. It
    automatically advances every time the consumer receives messages" (KafkaConsumer, Offsets and Consumer Position).
    Offsets are not dense: only what the control read holds can be skipped, so markers, aborted, compacted and deleted
    records are none. Legal where the consumer says that it took the record (`processed`, whatever the outcome) or its
    sink heard of it meanwhile, for one that claims order per key, or none: its handlers begin in another order; and
    where its progress is not in Kafka and somebody had handled the record by then: it looked up how far others had
    come, and went on from there (`seek`). Undecided where a killed member may have taken it in its last act, the log
    start overtook the position, or the lines may be of several clients of one process. A later delivery that fills the
    gap makes it a reordering (`nonmonotonic-poll`).

    Smallest history: records 0 to 2, `assigned`, `delivered` 0, `delivered` 2.

    Usual cause: The consumer sought ahead, or dropped what its client had handed it, often on a rebalance or a resume.

    Remedy: Keep every polled record until it is done or its partition is revoked; never seek beyond the next record.
    """
    skipped = _passed_over(batch)
    killed, expired = _in_last_act(batch, skipped), _overtaken(batch, skipped)
    unsure = unattributed(batch, skipped) & ~killed & ~expired
    found = skipped.take(~killed & ~expired & ~unsure)
    rows = table(
        slice=found["slice"],
        order=found["offset"],
        offset=found["offset"],
        previous_offset=found["previous_offset"],
        next_offset=found["next_offset"],
    )
    proofs = [("before_source", "before_seq"), ("after_source", "after_seq"), ("record_source", "record_seq")]
    undecided = [(EXPIRED, skipped["slice"][expired]), (LAST_ACT, skipped["slice"][killed & ~expired])]
    undecided.append((UNATTRIBUTED, skipped["slice"][unsure]))
    return Findings(rows, [(found[source], found[seq]) for source, seq in proofs], undecided)


def _passed_over(batch: Batch) -> Table:
    """Returns one row for each record that an ownership epoch's deliveries jumped over and never came back to."""
    held = deliveries(batch).take(deliveries(batch)["ownership_epoch"] >= 0)  # sorted by ownership epoch, then seq
    highest = max_before(held["ownership_epoch"], held["offset"])
    jump = (highest >= 0) & (held["offset"] > picked(held["offset"], highest, NEVER))
    before, after = held.take(highest[jump]), held.take(jump)
    records = batch.records
    which, row = in_ranges(
        *between(records["slice"], records["offset"], after["slice"], before["offset"], after["offset"])
    )
    over = records["offset"][row] > before["offset"][which]
    which, row = which[over], row[over]
    skipped = table(
        slice=after["slice"][which],
        offset=records["offset"][row],
        source=after["source"][which],
        client=after["client"][which],
        ownership_epoch=after["ownership_epoch"][which],
        previous_offset=before["offset"][which],
        next_offset=after["offset"][which],
        jumped_ns=after["time_ns"][which],
        handled_ns=first_handled_of_records(batch).time_ns[row],
        before_source=before["source"][which],
        before_seq=before["seq"][which],
        after_source=after["source"][which],
        after_seq=after["seq"][which],
        record_source=records["source"][row],
        record_seq=records["seq"][row],
    )
    legal = _taken(batch, skipped) | _had_its_effect(batch, skipped) | _done_before(batch, skipped)
    return skipped.take(~legal & (skipped["offset"] >= _log_starts_max(batch, skipped)))


def _taken(batch: Batch, skipped: Table) -> Bools:
    """Returns whether the same ownership epoch was delivered each record after all, or says that it handled it."""
    own = own_words(batch).take(
        np.isin(own_words(batch)["kind"], (Kind.DELIVERED, Kind.PROCESSED)) & (own_words(batch)["ownership_epoch"] >= 0)
    )
    own = own.sorted_by("ownership_epoch", "offset")
    return exactly(own["ownership_epoch"], own["offset"], skipped["ownership_epoch"], skipped["offset"]) >= 0


def _had_its_effect(batch: Batch, skipped: Table) -> Bools:
    """Returns whether the sink heard of each record while the ownership epoch lasted: its line was lost."""
    heard, held = batch.of(Kind.EFFECT), ownership_epochs(batch)
    ownership_epoch = skipped["ownership_epoch"]
    record = joined(*(np.concatenate([heard[name], skipped[name]]) for name in ("slice", "offset")))
    order = ordered(record[: len(heard)], heard["time_ns"])
    times, opened_ns = heard["time_ns"][order], batch.earliest(picked(held["open_ns"], ownership_epoch, NEVER))
    first = at_or_after(record[: len(heard)][order], times, record[len(heard) :], opened_ns - TOLERANCE_NS)
    closed_ns = np.minimum(picked(held["close_ns"], ownership_epoch, NONE), NEVER - TOLERANCE_NS)
    return (first >= 0) & (picked(times, first, NEVER) <= closed_ns + TOLERANCE_NS)


def _done_before(batch: Batch, skipped: Table) -> Bools:
    """Returns whether each record had been handled by the time of the jump, where the consumer's own store can tell it.

    A member that was frozen goes on with what it holds; who has its partition finds that done, and goes on behind it.
    """
    if batch.trial_context.settings.in_offsets_log:
        return np.zeros(len(skipped), np.bool_)
    done: Bools = batch.earliest(skipped["handled_ns"]) <= skipped["jumped_ns"] + TOLERANCE_NS
    return done


def _log_starts_max(batch: Batch, skipped: Table) -> Ints:
    """Returns the highest log start that was read: what lies below it may have been deleted before it was polled."""
    read = batch.of(Kind.LOG_START)
    return per_group(read["slice"], read["position"], batch.size, how="max", start=NONE)[skipped["slice"]]


def _overtaken(batch: Batch, skipped: Table) -> Bools:
    overtaken: Bools = _log_starts_max(batch, skipped) - 1 > skipped["previous_offset"]
    return overtaken & (_log_starts_max(batch, skipped) != NONE)


def _in_last_act(batch: Batch, skipped: Table) -> Bools:
    """Returns whether the jump is among the last words of a member that was killed while it held the partition."""
    held = ownership_epochs(batch)
    life = picked(held["life"], skipped["ownership_epoch"], -1)
    killed = picked(batch.lives["killed"], life, 0) == 1
    by_exit = picked(held["closed_by"], skipped["ownership_epoch"], 0) == BY_EXIT
    closed_ns = picked(held["close_ns"], skipped["ownership_epoch"], NEVER)
    last: Bools = killed & by_exit & (skipped["jumped_ns"] >= closed_ns - TOLERANCE_NS)
    return last

"""Ordering: were records of a partition, and of a key, delivered and handled in their order, and none passed over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_trial.anomalies.claim_rule import (
    Rule,
    of_other_keys,
    order_claimed,
    partition_order_claimed,
    sharing_an_event,
)
from kafka_trial.anomalies.invariant import Findings, invariant, proof, split_undecided
from kafka_trial.model.table import table

if TYPE_CHECKING:
    from kafka_trial.model.partition import Partitions


@invariant(
    "nonmonotonic-poll",
    family="ordering",
    needs=("own word", "ownership epochs"),
    level="events",
    severity=270,
    share_of=("deliveries",),
    rule=Rule(partition_order_claimed),
    message="{place} stepped back from record {previous_offset} to {offset} inside one ownership epoch",
)
def nonmonotonic_poll(partitions: Partitions) -> Findings:
    """Inside one ownership epoch a delivery stepped back to a record, or to one before it, that was delivered already.

    "Consumers see records in the order they are stored in the log" (Kafka, Guarantees). Legal if nothing from that
    record on had been completed (a retry: see `retried`), if the consumer claims order per key or none, and if progress
    is in transactions and the member reported that one failed: its work is undone in every partition that it had, and
    starts again there, not below what had been committed before. Where progress is not in Kafka, a member may be handed
    records before it seeks to its start: they do not count if it says nothing of their end, or that it discarded them,
    and the sink did not hear of them. Undecided if the lines may belong to several clients of one process, if it is
    unknown whether the partition was in that transaction, or if another member, which nobody gave the partition, may
    have had the effect that shows that this is no retry.

    Smallest history: `assigned`, `delivered` 5, `processed` 5, `delivered` 5.

    Usual cause: The consumer sought back over records that it had already done.

    Remedy: Seek back only to the record that failed, before anything behind it is done.
    """
    back, undecided = split_undecided(partitions.nonmonotonic_polls)
    rows = table(slice=back.slice, order=back.offset, offset=back.offset, previous_offset=back.highest_offset)
    return Findings(rows, [proof(back, "highest_"), proof(back)], undecided)


@invariant(
    "reordered-key",
    family="ordering",
    needs=("ownership epochs", "records", "work"),
    level="sink",
    severity=250,
    rule=Rule(order_claimed, of_other_keys),
    message="record {offset} of {place} was processed after the later record {later_offset}{of_key}",
    deciding=("same_key",),
    follows={"overlapping-handlers": sharing_an_event, "nonmonotonic-poll": sharing_an_event},
)
def reordered_key(partitions: Partitions) -> Findings:
    """A record was handled after a later one of its key (same_key), or of another key of its partition (not same_key).

    "Kafka guarantees the order of records within a partition" (Kafka, Introduction), and records of a key share one.
    Inside an ownership epoch every completion counts of records delivered there. Across ownership epochs, failed
    transactions, and batches that were handed out again, only first completions count: a rewind to a legal floor is a
    redelivery. Legal between a loss of the partition and the moment that the member learns of it. With a sink, first
    effects count too, in the order of its file (of each partition of an output topic): one finding a record beyond
    those of the lines. Undecided inside an ownership epoch whose lines may belong to several clients of one process.

    Smallest history: records 0 and 1 of one key, `assigned`, `processed` 1, `processed` 0.

    Usual cause: Records of one key were worked on in parallel or retried behind later ones.

    Remedy: Send records of a key to the same worker, and hold a key back while one of its records is being retried.
    """
    late, undecided = split_undecided(partitions.handled_out_of_order)
    rows = table(
        slice=late.slice,
        order=late.offset,
        offset=late.offset,
        later_offset=late.higher_offset,
        key=late.key,
        same_key=late.same_key,
    )
    return Findings(rows, [proof(late, "higher_"), proof(late)], undecided)


@invariant(
    "overlapping-handlers",
    family="ordering",
    needs=("handler starts", "own word", "ownership epochs"),
    level="events",
    severity=260,
    rule=Rule(order_claimed, of_other_keys),
    message="records {offset} and {other_offset} of {place} were in two handlers at once",
    deciding=("same_key",),
    follows={"work-after-revoke": sharing_an_event},
)
def overlapping_handlers(partitions: Partitions) -> Findings:
    """Two records of a partition were in handlers at once (same_key: two of one key).

    When two handlers run side by side, the order in the log is no longer the order of effects: "one consumer per
    partition" (Kafka, Consumer Groups). Legal across keys if order is claimed per key, between a loss of the partition
    and the moment that the member learns of it, and inside one batch if handlers take batches (`handler = "batch"`):
    there completions give the order. Undecided in a file whose lines may belong to several clients.

    Smallest history: `delivered` 0, `delivered` 1, `processed` 0, `processed` 1.

    Usual cause: Two threads worked on one partition, or a member went on while the next owner had begun.

    Remedy: Give each partition (or key) one worker, and wait for it before the partition is given back.
    """
    both, undecided = split_undecided(partitions.overlapping)
    rows = table(
        slice=both.slice,
        order=both.offset,
        offset=both.offset,
        other_offset=both.other_offset,
        same_key=both.same_key,
    )
    begun = [(both.other_source, both.other_start_seq), (both.source, both.start_seq)]
    ended = [(both.other_source, both.other_end_seq), (both.source, both.end_seq)]
    return Findings(rows, [*begun, *ended], undecided)


@invariant(
    "poll-skip",
    family="ordering",
    needs=("own word", "ownership epochs", "records"),
    level="events",
    severity=280,
    share_of=("records",),
    rule=Rule(partition_order_claimed),
    message="within one ownership epoch, deliveries of {place} went from record {previous_offset} to {next_offset} and "
    "left out record {offset}",
)
def poll_skip(partitions: Partitions) -> Findings:
    """Inside one ownership epoch the deliveries jumped over a readable record, and no later delivery there made it
    good.

    "The position … will be one larger than the highest offset the consumer has seen in that partition. It
    automatically advances every time the consumer receives messages" (KafkaConsumer, Offsets and Consumer
    Position). Offsets are not dense: only records that the control read found can be skipped, not markers, nor
    aborted, compacted or deleted records. Legal if the consumer says that it took the record (`processed`, whatever
    the outcome), or if its sink saw an effect of it meanwhile. Legal if order is claimed per key or not at all,
    because handlers may then begin in another order. Legal too if its progress is not in Kafka and the record had
    been handled by then: it looked up how far others had come, and continued there (`seek`); under at-most-once
    what another ownership epoch had begun counts. Undecided if a killed member may have taken the record in its
    last act, the log start overtook the position, or the lines may belong to several clients of one process. If a
    later delivery fills the gap, it is a reordering (`nonmonotonic-poll`).

    Smallest history: records 0 to 2, `assigned`, `delivered` 0, `delivered` 2.

    Usual cause: The consumer sought ahead, or dropped what its client had handed it, often on a rebalance or a resume.

    Remedy: Keep every polled record until it is done or its partition is revoked; never seek beyond the next record.
    """
    found, undecided = split_undecided(partitions.poll_skips)
    rows = table(
        slice=found.slice,
        order=found.offset,
        offset=found.offset,
        previous_offset=found.previous_offset,
        next_offset=found.next_offset,
    )
    return Findings(rows, [proof(found, of) for of in ("previous_", "next_", "record_")], undecided)

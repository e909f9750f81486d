"""Order per key across partitions: of a key that came to another partition, was what was sent before done first?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.anomalies.claim_rule import Rule, order_across_partitions_claimed
from kafka_trial.anomalies.invariant import Findings, invariant
from kafka_trial.model.kernels import (
    NEVER,
    Ints,
    at_or_before,
    joined,
    ordered,
    picked,
    running_max,
)
from kafka_trial.model.table import Table, stacked, table

if TYPE_CHECKING:
    from kafka_trial.model.group import Group


@invariant(
    "reordered-across-partitions",
    family="ordering",
    needs=("sends", "partitions added", "moved keys", "ownership epochs", "work"),
    level="sink",
    of="group",
    severity=252,
    rule=Rule(order_across_partitions_claimed),
    message="record {later_offset} of partition {later_partition} was begun before record {offset} of {place} was "
    "done, an earlier record of the same key",
)
def reordered_across_partitions(group: Group) -> Findings:
    """A key moved to another partition, and a record was begun there before an older one in the former was done.

    "Kafka only provides a total order over records within a partition, not between different partitions in a topic"
    (Kafka, Introduction), so no consumer group keeps this order by itself: another member reads the new partition at
    once, while the former one has a backlog. It is counted, and breaks only the claim `order =
    "key-across-partitions"`. A record is older if it was acknowledged before the other one was sent; sends that overlap
    have no order. Only completed work counts: each record's first completion with its handler, and its first effect,
    ordered by the sink's file (of each partition of an output topic) if lines report the record, else also by its time.
    Legal between a loss of the partition and the moment that the member learns of it. Judged if partitions were added,
    for keys that were sent to several.

    Smallest history: key k is sent to partition 0, and later to partition 1; `delivered` 1, `processed` 1 of partition
    1; `processed` 0 of partition 0.

    Usual cause: Partitions were added to a topic whose keys have an order, while the old ones still held a backlog.

    Remedy: Pause the producers, let the group come to the end of all partitions, and add partitions then; or move to a
    new topic with more of them. Better choose a number at the start that is large enough.
    """
    late, later = _late(group.moves.sorted_by("slice", "offset"))
    partitions = np.array([partition for _, partition in group.trial_context.slices], np.int64)
    rows = table(
        slice=late["slice"],
        order=late["offset"],
        offset=late["offset"],
        later_offset=later["offset"],
        later_partition=partitions[later["slice"]],
    )
    proofs = [
        (late["sent_source"], late["acked_seq"]),
        (later["sent_source"], later["sent_seq"]),
        (later["begun_source"], later["begun_seq"]),
        (late["done_source"], late["done_seq"]),
    ]
    return Findings(rows, proofs)


def _late(moved: Table) -> tuple[Table, Table]:
    """Returns the records that were not done when a later one was begun elsewhere, and the first begun of those."""
    found = [pair for number in np.unique(moved["slice"]) for pair in _late_of(moved, number)]
    nobody = moved.take(np.empty(0, np.int64))
    late, later = (stacked(nobody, *(pair[side] for pair in found)) for side in (0, 1))
    _, once = np.unique(joined(late["slice"], late["offset"]), return_index=True)
    return late.take(once), later.take(once)


def _late_of(moved: Table, number: int) -> Iterator[tuple[Table, Table]]:
    """Yields the late ones of one slice (of dozens): by their place in a file that both share, and by time."""
    mine, others = moved.take(moved["slice"] == number), moved.take(moved["slice"] != number)
    others = others.take(np.isin(others["key_hash"], mine["key_hash"]))
    for same, begun, done in ((("key_hash", "file"), "begun_at", "done_at"), (("key_hash",), "begun_ns", "done_ns")):
        group = joined(*(np.concatenate([others[name], mine[name]]) for name in same))
        row = _first_begun(others, group[: len(others)], begun, group[len(others) :], mine["acked_ns"])
        late = picked(others[begun], row, NEVER) < mine[done]
        yield mine.take(late), others.take(row[late])


def _first_begun(others: Table, group: Ints, begun: str, of_group: Ints, acked_ns: Ints) -> Ints:
    """Returns which of the records of each group that were sent after each acknowledgement was begun first; -1: none
    was sent."""
    order = ordered(group, -others["sent_ns"])  # the last sent first
    group, sent_before = group[order], -others["sent_ns"][order]
    since = at_or_before(group, sent_before, of_group, -acked_ns - 1)
    first = running_max(group, -others[begun][order])
    return picked(order, picked(first, since, -1), -1)

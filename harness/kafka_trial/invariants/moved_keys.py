"""Order per key across partitions: of a key that came to another partition, was what was sent before done first.

Where partitions are added, most keys belong to another partition from then on ("if partitioning is done by
`hash(key) % number_of_partitions` then this partitioning will potentially be shuffled by adding partitions", Kafka,
Basic Operations). Order in the log says nothing then: it is the workload that knows what was sent first. Judged in two
steps: inside the pass over the slices `moves` finds when the records of such keys were sent, begun and done; then all
slices are looked at together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.batch import Batch
from kafka_trial.invariants.claim_rule import Rule, order_across_partitions_claimed
from kafka_trial.invariants.clocks import earliest_append_ns
from kafka_trial.invariants.handlers import completions, finished_handlers
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Ints,
    at_or_before,
    exactly,
    joined,
    ordered,
    picked,
    running_max,
)
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.sink_effects import effects_in_order
from kafka_trial.invariants.table import Table, stacked, table
from kafka_trial.invariants.zombie_excuses import in_untold_loss
from kafka_trial.model.order import first_completions

if TYPE_CHECKING:
    from kafka_trial.invariants.liveness import Group

# `file`, and the places there: where two records share one, their order there is exact.
WORKED = (
    *("slice", "offset", "file", "begun_at", "begun_ns", "begun_source", "begun_seq"),
    *("done_at", "done_ns", "done_source", "done_seq"),
)
MOVES = (*WORKED, "key_hash", "sent_ns", "acked_ns", "sent_source", "sent_seq", "acked_seq")
OUTPUTS_MAX = 2**20  # partitions of an output topic


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


def moves(batch: Batch) -> Table:
    """Returns the records of keys that came to several partitions, as far as they were done: when they were sent, begun
    (at the latest) and done (at the earliest); slices numbered as in the trial context."""
    sends = batch.of(Kind.MOVED).sorted_by("slice", "offset")
    if not len(sends):
        return table(slice=sends["slice"])
    worked = stacked(_by_lines(batch), _by_effects(batch))
    send = exactly(sends["slice"], sends["offset"], worked["slice"], worked["offset"])
    worked, sends = worked.take(send >= 0), sends.take(send[send >= 0])
    return worked.only(*WORKED).having(
        slice=batch.slices[worked["slice"]],
        key_hash=sends["key_hash"],
        sent_ns=sends["sent_ns"],
        acked_ns=sends["time_ns"],
        sent_source=sends["source"].astype(np.int64),
        sent_seq=sends["send_seq"],
        acked_seq=sends["seq"],
    )


def _by_lines(batch: Batch) -> Table:
    """Returns the first completion of each record, and the beginning of the handler that it ended."""
    done, handlers = first_completions(batch), finished_handlers(batch)
    handlers = handlers.sorted_by("slice", "source", "end_seq")
    size = len(batch.trial_context.sources)
    begun = exactly(
        handlers["slice"] * size + handlers["source"],
        handlers["end_seq"],
        done["slice"] * size + done["source"],
        done["seq"],
    )
    begun_ns, begun_seq = (
        np.where(begun >= 0, picked(handlers[start], begun, NEVER), done[end])
        for start, end in (("start_ns", "time_ns"), ("start_seq", "seq"))
    )
    source = done["source"].astype(np.int64)
    return done.only("slice", "offset").having(
        file=source * OUTPUTS_MAX,
        begun_at=begun_seq,
        begun_ns=np.where(batch.vague(source), NEVER, begun_ns),  # out of a buffer: nobody knows when
        begun_source=source,
        begun_seq=begun_seq,
        done_at=done["seq"],
        done_ns=batch.written_ns(source, done["time_ns"]),
        done_source=source,
        done_seq=done["seq"],
    )


def _by_effects(batch: Batch) -> Table:
    """Returns the first effect of each record: those in one partition of an output topic, or in the sink's file, have
    an order there. Where a line completes the record, it tells when that was."""
    first, done = effects_in_order(batch), completions(batch).sorted_by("slice", "offset")
    first = first.take(first["number"] == 0)
    first = first.take(~in_untold_loss(batch, first))
    told = exactly(done["slice"], done["offset"], first["slice"], first["offset"]) >= 0
    written_ns = batch.written_ns(first["source"], first["time_ns"])
    stamped_ns = earliest_append_ns(batch.trial_context, first["source"], first["time_ns"])
    return first.only("slice", "offset").having(
        file=first["source"] * OUTPUTS_MAX + first["output"] + 1,
        begun_at=first["at"],
        begun_ns=np.where(told, NEVER, first["time_ns"]),
        begun_source=first["source"],
        begun_seq=first["seq"],
        done_at=first["at"],
        done_ns=np.where(told, NONE, np.where(first["stamped"], stamped_ns, written_ns)),
        done_source=first["source"],
        done_seq=first["seq"],
    )


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

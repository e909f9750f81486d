"""Order per key across partitions: of a key that came to another partition, was what was sent before done first.

Where partitions are added, most keys belong to another partition from then on ("if partitioning is done by
`hash(key) % number_of_partitions` then this partitioning will potentially be shuffled by adding partitions", Kafka,
Basic Operations). Order in the log says nothing then: it is the workload that knows what was sent first. Judged in two
steps: inside the pass over the slices `moves` finds when the records of such keys were sent, begun and done; then all
slices are looked at together.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.model.batch import Batch
from kafka_trial.model.clocks import earliest_append_ns
from kafka_trial.model.handlers import completions, finished_handlers
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    exactly,
    picked,
)
from kafka_trial.model.order import first_completions
from kafka_trial.model.rows import Kind
from kafka_trial.model.sink_effects import effects_in_order
from kafka_trial.model.table import Table, stacked, table
from kafka_trial.model.zombie_excuses import in_untold_loss

# `file`, and the places there: where two records share one, their order there is exact.
WORKED = (
    *("slice", "offset", "file", "begun_at", "begun_ns", "begun_source", "begun_seq"),
    *("done_at", "done_ns", "done_source", "done_seq"),
)
MOVES = (*WORKED, "key_hash", "sent_ns", "acked_ns", "sent_source", "sent_seq", "acked_seq")
OUTPUTS_MAX = 2**20  # partitions of an output topic


def moves(batch: Batch) -> Table:
    """Returns the records of keys that came to several partitions, as far as they were done: when they were sent, begun
    (at the latest) and done (at the earliest); slices numbered as in the trial context."""
    sends = batch.of(Kind.REPARTITIONED).sorted_by("slice", "offset")
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
        begun_ns=np.where(batch.untimed(source), NEVER, begun_ns),  # out of a buffer: nobody knows when
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

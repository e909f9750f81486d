"""Log ends: how far a log reached, as its leader answered it."""

from __future__ import annotations

from kafka_trial.model.batch import Batch, index
from kafka_trial.model.kernels import exactly
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table


@index
def log_ends(batch: Batch) -> Table:
    """Returns the log ends as rows of their family, sorted by slice and when they were asked for.

    Not those that an acknowledged record refutes: a leader answers how far records are committed, as far as it knows,
    and one that was elected a moment ago may know of less than there is (KIP-207).
    """
    ends = batch.of(Kind.LOG_END).sorted_by("slice", "time_ns")
    refuted = batch.of(Kind.REFUTED_END).sorted_by("slice", "seq")
    return ends.take(exactly(refuted["slice"], refuted["seq"], ends["slice"], ends["seq"]) < 0)

"""Log ends that were answered although acknowledged records lay beyond them, and lie there still.

A broker answers how far records are committed (the high watermark). One that was elected a moment ago may know of less
than the one before it (KIP-207 has it refuse to answer then; one of 3.7.2 did answer).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kafka_trial.model.kernels import NONE, Array, at_or_before, picked, running_max
from kafka_trial.model.table import stacked, table


class AnsweredEnds:
    """Gathers the log ends of the observer's file; then tells which of them a file of acknowledgements refutes."""

    def __init__(self) -> None:
        self._ends = table(**dict.fromkeys(("slice", "seq", "asked_ns", "position"), np.empty(0, np.int64)))

    def take(self, *, slices: Array, seq: Array, asked_ns: Array, position: Array) -> None:
        """Takes log ends, as they were answered."""
        self._ends = stacked(self._ends, table(slice=slices, seq=seq, asked_ns=asked_ns, position=position))

    def refuted(self, *, slices: Array, time_ns: Array, offset: Array) -> Mapping[str, Array]:
        """Returns slice, seq, time_ns (when it was asked for) and offset (of a record beyond it) of the log ends that
        these acknowledged records refute: they had been acknowledged before it was asked for."""
        acked = table(slice=slices, time_ns=time_ns, offset=offset).sorted_by("slice", "time_ns")
        furthest = acked["offset"][running_max(acked["slice"], acked["offset"])]
        ends = self._ends
        last = at_or_before(acked["slice"], acked["time_ns"], ends["slice"], ends["asked_ns"] - 1)
        beyond = picked(furthest, last, NONE)
        found = beyond >= ends["position"]
        return {
            "slice": ends["slice"][found],
            "seq": ends["seq"][found],
            "time_ns": ends["asked_ns"][found],
            "offset": beyond[found],
        }

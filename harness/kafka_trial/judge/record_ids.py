"""Record ids: the sink tells what reached the outside world by id; the control read tells where that record lies."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kafka_trial.invariants.kernels import Array


class RecordIds:
    """Where each record id of the control read lies, for joining effects; empty where no sink was used."""

    def __init__(self, *, wanted: bool) -> None:
        self.wanted = wanted
        self._parts: list[pa.Table] = []

    def take(self, ids: pa.Array, slices: Array, offsets: Array) -> None:
        """Takes the records of one block."""
        if self.wanted:
            self._parts.append(pa.table({"id": ids, "slice": slices.astype(np.int64), "offset": offsets}))

    def places(self, ids: pa.Array) -> tuple[Array, Array, Array]:
        """Returns (which id, slice, offset) for every record that has one of the ids."""
        if not self._parts:
            return (np.empty(0, np.int64),) * 3
        wanted = pa.table({"id": ids, "which": np.arange(len(ids))})
        found = wanted.join(pa.concat_tables(self._parts), keys="id", join_type="inner").sort_by("which")
        return tuple(found[name].to_numpy() for name in ("which", "slice", "offset"))

"""Handed on: the records of topics that the group hands on through, as records of those, and as a step of the trial's.

Stands beside `history_reader.py`. The topic's partitions become slices of the group's own: a record there that bears
the id of one of the trial's waits to be handled as that one does. Where the record came from it is done with: in the
trial's topic, and in the topic before that, where it was handed on several times.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_trial.invariants.families import HANDED_ON_RECORDS, RECORDS
from kafka_trial.invariants.kernels import NONE, Array, ordered, picked, previous_in
from kafka_trial.invariants.table import Table, stacked
from kafka_trial.judge.arrow_rows import made_rows
from kafka_trial.judge.columns import Columns
from kafka_trial.judge.history_names import HistoryNames, slices_of
from kafka_trial.judge.record_id_index import IdIndex, RecordIds, id_hashes

COLUMNS = ("slice", "offset", "seq", "time_ns", "asked_ns", "id_hash")


class HandedOn:
    """Gathers the records of one file."""

    def __init__(self, names: HistoryNames, known: IdIndex, ids: RecordIds) -> None:
        self._names = names
        self._known = known
        self._ids = ids
        self._found = Table({name: np.empty(0, np.int64) for name in COLUMNS})

    def take(self, columns: Columns) -> None:
        """Takes the records of a block: those that bear the id of one of the trial's; the others are counted."""
        rows = columns.rows_of("handed_on")
        if not len(rows):
            return
        topics, ids = columns.text("topic", rows), columns.text("id", rows)
        slices = slices_of(self._names, topics, columns["partition"][rows])
        id_hash = id_hashes(ids)
        ours = (slices >= 0) & (self._known.records.has(id_hash) | self._known.acked.has(id_hash))
        numbers = np.maximum(columns["count"][rows], 1)
        for topic, found in self._names.through.items():
            here = pc.fill_null(pc.equal(topics, topic), False).to_numpy(zero_copy_only=False)
            found["records"] += int(ours[here].sum())
            found["nameless"] += int(numbers[here & ~ours].sum())
        own = {"slice": slices[ours], "id_hash": id_hash[ours]}
        own |= {name: columns[name][rows[ours]] for name in ("offset", "seq", "time_ns", "asked_ns")}
        self._ids.take(ids.filter(pa.array(ours)), own["slice"], own["offset"])
        self._found = stacked(self._found, Table({name: own[name] for name in COLUMNS}))

    def rows(self, source: int) -> Iterator[pa.Table]:
        """Yields the records, and from where each was handed on, once the file is read."""
        found = self._found.take(ordered(self._found["id_hash"], self._found["seq"]))
        if not len(found):
            return
        about = {name: found[name] for name in ("slice", "seq", "time_ns", "offset", "id_hash")}
        blank = {"append_wall_ns": np.full(len(found), NONE), "key": pa.nulls(len(found), pa.string())}
        yield made_rows(RECORDS, source, **about, **blank)
        before = previous_in(found["id_hash"])
        home = self._home(found["id_hash"])
        slices, offsets = (np.where(before >= 0, picked(found[name], before, NONE), at) for name, at in home.items())
        known = slices != NONE
        yield made_rows(
            HANDED_ON_RECORDS,
            source,
            slice=slices[known],
            seq=found["seq"][known],
            time_ns=found["time_ns"][known],
            offset=offsets[known],
            absent_ns=found["asked_ns"][known],
        )

    def _home(self, id_hash: Array) -> dict[str, Array]:
        """Returns where in the trial's topic the record of each id lies; NONE where the control read lacks it."""
        row = self._known.records.find(id_hash)
        return {name: self._known.records.get(name, row) for name in ("slice", "offset")}

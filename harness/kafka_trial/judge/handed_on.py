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

from kafka_trial.judge.arrow_rows import made_rows
from kafka_trial.judge.columns import Columns
from kafka_trial.judge.history_names import HistoryNames, slices_of
from kafka_trial.judge.record_id_index import IdIndex, RecordIds, id_hashes
from kafka_trial.model.families import HANDED_ON_RECORDS, RECORDS
from kafka_trial.model.kernels import NONE, Array, Bools, between, in_ranges, ordered, picked, previous_in
from kafka_trial.model.rows import OUTCOMES
from kafka_trial.model.table import Table

COLUMNS = ("partition", "offset", "seq", "time_ns", "asked_ns", "count")


class HandedOn:
    """Gathers the records of one file; which of its topics count, it tells only when the group commits on them."""

    def __init__(self, names: HistoryNames, known: IdIndex, ids: RecordIds) -> None:
        self._names = names
        self._known = known
        self._ids = ids
        self._parts: list[pa.Table] = []

    def take(self, columns: Columns) -> None:
        """Takes the records of a block."""
        rows = columns.rows_of("handed_on")
        if len(rows):
            named = {name: columns.text(name, rows) for name in ("topic", "id")}
            self._parts.append(pa.table(named | {name: columns[name][rows] for name in COLUMNS}))

    def rows(self, source: int) -> Iterator[pa.Table]:
        """Yields the records, and from where each was handed on, once the file is read."""
        if not self._parts:
            return
        told = pa.concat_tables(self._parts)
        told = told.filter(pc.is_in(told["topic"], pa.array([*self._names.through], pa.string()))).combine_chunks()
        ours = self._counted(told)
        ids, topics = (told[name].combine_chunks() for name in ("id", "topic"))
        columns = {name: told[name].to_numpy() for name in COLUMNS}
        slices = slices_of(self._names, topics, columns["partition"])
        found = Table(columns | {"slice": slices, "id_hash": id_hashes(ids)}).take(ours)
        self._ids.take(ids.filter(pa.array(ours)), found["slice"], found["offset"])
        yield from self._made(source, found.take(ordered(found["id_hash"], found["seq"])))

    def _counted(self, told: pa.Table) -> Bools:
        """Returns which records bear the id of one of the trial's, and counts them and the others by topic."""
        id_hash = id_hashes(told["id"].combine_chunks())
        ours: Bools = self._known.records.has(id_hash) | self._known.acked.has(id_hash)
        numbers = np.maximum(told["count"].to_numpy(), 1)
        for topic, found in self._names.through.items():
            here = pc.equal(told["topic"], topic).to_numpy()
            found["records"] += int(ours[here].sum())
            found["nameless"] += int(numbers[here & ~ours].sum())
        return ours

    def _made(self, source: int, found: Table) -> Iterator[pa.Table]:
        """Yields the rows of records, which are sorted by id and then as they were read."""
        about = {name: found[name] for name in ("slice", "seq", "time_ns", "offset", "id_hash")}
        blank = {"append_wall_ns": np.full(len(found), NONE), "key": pa.nulls(len(found), pa.string())}
        yield made_rows(RECORDS, source, **about, **blank)
        before, home = previous_in(found["id_hash"]), self._home(found["id_hash"])
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
            outcome=np.zeros(int(known.sum()), np.int64),
        )
        at_home = home["slice"] != NONE
        order = ordered(home["slice"][at_home], home["offset"][at_home])
        places = {"home_slice": home["slice"], "home_offset": home["offset"]}
        places |= {name: found[name] for name in ("slice", "offset")}
        self._names.copies = Table({name: column[at_home][order] for name, column in places.items()})

    def completed(self, columns: Columns, source: int, time_ns: Array) -> Iterator[pa.Table]:
        """Yields the copies of those records that lines of a member complete where they came from."""
        copies, rows = self._names.copies, columns.rows_of("processed")
        outcomes = columns.codes("outcome", {name: code + 1 for name, code in OUTCOMES.items()})
        rows = rows[outcomes[rows] > 0]
        if not len(rows) or copies is None:
            return
        slices = slices_of(self._names, columns.text("topic", rows), columns["partition"][rows])
        offsets = columns["offset"][rows]
        which, copy = in_ranges(*between(copies["home_slice"], copies["home_offset"], slices, offsets, offsets + 1))
        yield made_rows(
            HANDED_ON_RECORDS,
            source,
            slice=copies["slice"][copy],
            seq=columns["seq"][rows[which]],
            time_ns=time_ns[rows[which]],
            offset=copies["offset"][copy],
            absent_ns=np.full(len(copy), NONE),
            outcome=outcomes[rows[which]],
        )

    def _home(self, id_hash: Array) -> dict[str, Array]:
        """Returns where in the trial's topic the record of each id lies; NONE where the control read lacks it."""
        row = self._known.records.find(id_hash)
        return {name: self._known.records.get(name, row) for name in ("slice", "offset")}

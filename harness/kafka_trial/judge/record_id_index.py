"""The id index: which send, record, delivery and effect are the same, by record id, across files and partitions.

Filled while the files are read, the control read first, then the workload, then everybody else; asked by
`history_reader.py` for what no single slice holds. An id is known by its *id hash*, a number of 63 bits
that equal ids share: different id_hashes are different ids for certain; two ids of one id hash would be missed once in
10^16. The sink tells what reached the outside world by id; the control read tells where that record lies.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_trial.model.kernels import NONE, Array, Bools, Ints, exactly, ordered, picked

_STEP = np.uint64(0x9E3779B97F4A7C15)


def id_hashes(ids: pa.Array) -> Ints:
    """Returns the id hash of each id, NONE where there is no id."""
    if not len(ids) or ids.null_count == len(ids):
        return np.full(len(ids), NONE, np.int64)
    text = pc.fill_null(ids.cast(pa.large_string()), "")
    ends = np.frombuffer(text.buffers()[1], np.int64)[text.offset : text.offset + len(text) + 1]
    data = text.buffers()[2]
    letters = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data is not None else np.empty(0, np.uint8)
    sizes = np.diff(ends)
    within = np.arange(len(letters)) - np.repeat(ends[:-1] - ends[0], sizes)
    weights = _mixed(np.arange(1, int(sizes.max()) + 1, dtype=np.uint64) * _STEP)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum((letters.astype(np.uint64) + 1) * weights[within])])
    whole = sums[ends[1:] - ends[0]] - sums[ends[:-1] - ends[0]]
    found = (_mixed(whole) >> np.uint64(1)).astype(np.int64)
    return np.where(np.asarray(ids.is_null().to_numpy(zero_copy_only=False)), NONE, found)


def _mixed(numbers: Array) -> Array:
    """Returns the numbers scattered over 64 bits, equal ones equally (the finaliser of splitmix64)."""
    mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


class Register:
    """Rows by id hash: grows while a file is read, and is sorted when it is first asked. Of one id hash the first
    counts."""

    def __init__(self, *columns: str) -> None:
        self._columns = columns
        self._parts: list[dict[str, Array]] = []
        self._sorted: Mapping[str, Array] | None = None

    def take(self, *, id_hash: Array, **columns: Array) -> None:
        """Takes rows; those without an id are nothing."""
        known = id_hash != NONE
        if known.any():
            self._parts.append({"id_hash": id_hash[known], **{name: columns[name][known] for name in self._columns}})
            self._sorted = None

    def find(self, id_hash: Array) -> Ints:
        """Returns the row of each id hash, -1 where there is none."""
        held = self._rows()["id_hash"]
        found = np.searchsorted(held, id_hash)
        fits = held[found.clip(0, len(held) - 1)] == id_hash if len(held) else np.zeros(len(id_hash), np.bool_)
        return np.where(fits, found, -1)

    def all_of(self, id_hash: Array) -> tuple[Ints, Ints]:
        """Returns every row of each id hash: which of the id_hashes, and the row."""
        held = self._rows()["id_hash"]
        begins = np.searchsorted(held, id_hash, "left")
        counts = np.searchsorted(held, id_hash, "right") - begins
        which = np.repeat(np.arange(len(id_hash)), counts)
        rows = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts) + begins[which]
        return which, rows

    def has(self, id_hash: Array) -> Bools:
        """Returns whether there is a row of each id hash."""
        there: Bools = self.find(id_hash) >= 0
        return there

    def get(self, name: str, rows: Array) -> Ints:
        """Returns a column of rows that `find` found, NONE for -1."""
        return picked(self._rows()[name], rows, NONE)

    def all(self, *names: str) -> list[Ints]:
        """Returns columns of all rows."""
        return [self._rows()[name] for name in names]

    def _rows(self) -> Mapping[str, Array]:
        if self._sorted is None:
            names = ("id_hash", *self._columns)
            whole = {name: np.concatenate([np.empty(0, np.int64), *(p[name] for p in self._parts)]) for name in names}
            order = np.argsort(whole["id_hash"], kind="stable")
            self._sorted = {name: column[order] for name, column in whole.items()}
            self._parts = [dict(self._sorted)]
        return self._sorted


class IdIndex:
    """What is known of record ids: the control read's `records`, the `aborted` records that a transaction took back,
    the `sends` that were invoked, and those `acked`. Of a send `topic` is the index of its topic among the trial's, -1
    where it is none of these."""

    def __init__(self) -> None:
        self.records = Register(
            *("slice", "offset", "checksum", "json_checksum", "source", "seq", "timestamp_ns", "key_hash")
        )
        self.aborted = Register("slice", "offset")
        self.sends = Register("checksum", "seq", "time_ns", "key_hash", "entity_hash", "topic")
        self.acked = Register("slice", "offset")
        self._sent: list[Ints] | None = None

    def sent_ns(self, slices: Array, offsets: Array) -> Ints:
        """Returns when the record at each place was sent; NONE where nobody knows."""
        if self._sent is None:
            places, row = self.records.all("slice", "offset"), self.sends.find(self.records.all("id_hash")[0])
            order = ordered(*places)
            self._sent = [*(column[order] for column in places), self.sends.get("time_ns", row)[order]]
        known_slices, known_offsets, sent = self._sent
        return picked(sent, exactly(known_slices, known_offsets, slices, offsets), NONE)


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

"""Columns: a block of events, or of their entries, as numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_trial.judge.lines import ENTRIES
from kafka_trial.model.kernels import NONE, Array


class Columns:
    """The columns of a block as numpy arrays, made when asked for; absent numbers are NONE.

    A field that no row has need not be among the columns.
    """

    def __init__(self, events: pa.Table) -> None:
        self._events = events
        self._names = frozenset(events.column_names)
        self._whole: dict[str, pa.Array] = {}
        self._made: dict[Any, Array] = {}
        self._texts: dict[str, tuple[list[str], Array]] = {}

    def __len__(self) -> int:
        return int(self._events.num_rows)

    def __getitem__(self, name: str) -> Array:
        if name not in self._made:
            self._made[name] = self._numbers(name) if self._has(name) else np.full(len(self), NONE)
        return self._made[name]

    def add(self, name: str, values: Array) -> None:
        """Adds a column of numbers that was made elsewhere, one a row."""
        self._made[name] = values

    def reals(self, name: str) -> Array:
        """Returns a column of real numbers; NaN where absent."""
        return np.asarray(self._column(name, pa.float64()).to_numpy(zero_copy_only=False), np.float64)

    def text(self, name: str, rows: Array | None = None) -> pa.Array:
        """Returns a column of text, or some rows of it."""
        if rows is None or not self._has(name):
            return self._column(name, pa.string()) if rows is None else pa.nulls(len(rows), pa.string())
        return self._column(name, pa.string()).take(pa.array(rows))

    def absent(self, name: str) -> Array:
        """Returns where the field is absent."""
        if not self._has(name):
            return np.ones(len(self), np.bool_)
        return np.asarray(self._column(name, pa.null()).is_null().to_numpy(zero_copy_only=False))

    def codes(self, name: str, codes: dict[str, Any], *, fold: bool = False) -> Array:
        """Returns the code of each text, 0 where it has none; `fold`: OFFSET_COMMIT is OffsetCommit."""
        values, places = self.encoded(name)
        names = [value.upper().replace("_", "") if fold else value for value in values]
        table = np.array([*(int(codes.get(value, 0)) for value in names), 0], np.int64)
        found: Array = table[places] if table.any() else np.zeros(len(places), np.int64)
        return found

    def encoded(self, name: str) -> tuple[list[str], Array]:
        """Returns the different texts of a column, and which of them each row has; -1: none."""
        if not self._has(name):
            return [], np.full(len(self), -1)
        if name not in self._texts:
            encoded = self._column(name, pa.string()).dictionary_encode()
            places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            self._texts[name] = encoded.dictionary.to_pylist(), places
        return self._texts[name]

    def codes_of_true(self, name: str) -> Array:
        """Returns where a column of truth values is true."""
        column = pc.fill_null(self._column(name, pa.bool_()), False)
        return np.asarray(column.to_numpy(zero_copy_only=False), np.bool_)

    def is_kind(self, *kinds: str) -> Array:
        """Returns which rows are of some kinds."""
        if kinds not in self._made:
            self._made[kinds] = self.codes("kind", dict.fromkeys(kinds, 1)) == 1
        return self._made[kinds]

    def rows_of(self, *kinds: str) -> Array:
        """Returns the numbers of the rows of some kinds."""
        return np.flatnonzero(self.is_kind(*kinds))

    def entry_counts(self, name: str = "entries") -> Array:
        """Returns how many entries each row lists."""
        lengths = pc.list_value_length(self._column(name, ENTRIES))
        return np.asarray(pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False))

    def entries(self, name: str, mask: Array) -> tuple[Array, Columns]:
        """Returns the row number and the fields of every entry of the masked rows."""
        rows = np.flatnonzero(mask)
        lists = self._column(name, ENTRIES).take(pa.array(rows))
        parents = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False).astype(np.int64)
        fields = pa.Table.from_struct_array(pc.list_flatten(lists))
        return rows[parents], Columns(fields)

    def _has(self, name: str) -> bool:
        """Tells whether any row may have a field."""
        return name in self._names

    def _numbers(self, name: str) -> Array:
        column = self._column(name, pa.int64())
        return (pc.fill_null(column, NONE) if column.null_count else column).to_numpy(zero_copy_only=False)

    def _column(self, name: str, kind: pa.DataType) -> pa.Array:
        """Returns a column in one piece; one of nulls, of this type, where no row has the field."""
        if not self._has(name):
            return pa.nulls(len(self), kind)
        if name not in self._whole:
            self._whole[name] = self._events[name].combine_chunks()
        return self._whole[name]

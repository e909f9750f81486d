"""A table: named numpy columns of one length. What kernels take and return.

Rows that are taken are only noted: a column is made of them when somebody asks for it. Most tables have a dozen
columns, of which two or three are looked at. So an array that has become a column must not be changed any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kafka_trial.invariants.kernels import Array, Ints, ordered


@dataclass(frozen=True)
class Table:
    """Columns by name, all of one length."""

    columns: Mapping[str, Array]

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(_columns_of(self).values())))

    def take(self, rows: Array) -> Table:
        """Returns the rows of a mask or of an array of indices."""
        chosen: dict[_Rows | None, _Rows] = {}
        columns: dict[str, _Column] = {}
        for name, column in _columns_of(self).items():
            whole, before = (column.whole, column.rows) if isinstance(column, _Taken) else (column, None)
            columns[name] = _Taken(whole, chosen.setdefault(before, _Rows(rows, before)))
        return Table(_Columns(columns))

    def sorted_by(self, *names: str) -> Table:
        """Returns the rows in the stable order of the named columns."""
        return self.take(ordered(*(self[name] for name in names)))

    def having(self, **columns: Array) -> Table:
        """Returns the table with further columns, or other values in those it has."""
        return Table(_Columns({**_columns_of(self), **columns}))

    def only(self, *names: str) -> Table:
        """Returns the named columns."""
        columns = _columns_of(self)
        return Table(_Columns({name: columns[name] for name in names}))


class _Rows:
    """Some rows of some rows of a whole column, as indices of that; made out when they are first needed."""

    def __init__(self, rows: Array, of: _Rows | None) -> None:
        self._rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        self._of = of

    def __len__(self) -> int:
        return len(self._rows)

    def indices(self) -> Ints:
        if self._of is not None:
            self._rows, self._of = self._of.indices()[self._rows], None
        return self._rows


@dataclass(frozen=True, slots=True)
class _Taken:
    """A column that is not made yet."""

    whole: Array
    rows: _Rows

    def __len__(self) -> int:
        return len(self.rows)


_Column = Array | _Taken


class _Columns(Mapping[str, Array]):
    """Columns by name; those that were only taken are made when they are asked for."""

    def __init__(self, columns: dict[str, _Column]) -> None:
        self.unmade = columns

    def __getitem__(self, name: str) -> Array:
        column = self.unmade[name]
        if isinstance(column, _Taken):
            column = self.unmade[name] = column.whole[column.rows.indices()]
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self.unmade)

    def __len__(self) -> int:
        return len(self.unmade)

    def __contains__(self, name: object) -> bool:
        return name in self.unmade


def _columns_of(rows: Table) -> Mapping[str, _Column]:
    """Returns the columns of a table as they are, made or not."""
    return rows.columns.unmade if isinstance(rows.columns, _Columns) else rows.columns


def table(**columns: Array) -> Table:
    """Returns a table of columns."""
    return Table(columns)


def of_group(size: int, columns: Mapping[str, Sequence[Any]]) -> Table:
    """Returns rows that are about the whole group, not a slice; a value of None is an attribute that is absent."""
    made = {name: np.array([*values, None], dtype=object)[:-1] for name, values in columns.items()}
    return table(slice=np.full(size, -1), order=np.arange(size), **made)


def stacked(*parts: Table) -> Table:
    """Returns the rows of tables of the same columns, one after the other."""
    return Table({name: np.concatenate([part[name] for part in parts]) for name in parts[0].columns})

"""A table: named numpy columns of one length. What kernels take and return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kafka_trial.invariants.kernels import Array, ordered


@dataclass(frozen=True)
class Table:
    """Columns by name, all of one length."""

    columns: Mapping[str, Array]

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def take(self, rows: Array) -> Table:
        """Returns the rows of a mask or of an array of indices."""
        return Table({name: column[rows] for name, column in self.columns.items()})

    def sorted_by(self, *names: str) -> Table:
        """Returns the rows in the stable order of the named columns."""
        return self.take(ordered(*(self.columns[name] for name in names)))

    def having(self, **columns: Array) -> Table:
        """Returns the table with further columns, or other values in those it has."""
        return Table({**self.columns, **columns})

    def only(self, *names: str) -> Table:
        """Returns the named columns."""
        return Table({name: self.columns[name] for name in names})


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

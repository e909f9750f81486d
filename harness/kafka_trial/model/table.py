"""A table: named numpy columns of one length. What kernels take and return.

Rows that are taken are only noted: a column is made of them when somebody asks for it. Most tables have a dozen
columns, of which two or three are looked at. So an array that has become a column must not be changed any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kafka_trial.model.kernels import (
    Array,
    Bools,
    Ints,
    at_or_after,
    at_or_before,
    in_order,
    joined,
    ordered,
    picked,
)

FILE = ("slice", "source")  # by which rows are of one partition in one file


@dataclass(frozen=True)
class Table:
    """Columns by name, all of one length. A class of its own says which a table has: their names are its attributes."""

    columns: Mapping[str, Array]

    if not TYPE_CHECKING:  # else any name would be one

        def __getattr__(self, name: str) -> Array:
            if name in type(self).__annotations__:
                return self.columns[name]
            raise AttributeError(f"{type(self).__name__} has no column {name!r}")

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(unmade(self).values())))

    def take(self, rows: Array) -> Self:
        """Returns the rows of a mask or of an array of indices."""
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        chosen: dict[_Rows | None, _Rows] = {}
        columns: dict[str, Column] = {}
        for name, column in unmade(self).items():
            whole, before = (column.whole, column.rows) if isinstance(column, _Taken) else (column, None)
            if before not in chosen:
                chosen[before] = _Rows(rows, before)
            columns[name] = _Taken(whole, chosen[before])
        return self._with(columns)

    def sorted_by(self, *names: str) -> Self:
        """Returns the rows in the stable order of the named columns."""
        order = ordered(*(self[name] for name in names))
        return self if in_order(order) else self.take(order)

    def having(self, **columns: Array) -> Self:
        """Returns the table with further columns, or other values in those it has."""
        return self._with({**unmade(self), **columns})

    def having_when_asked(self, **columns: Callable[[], Array]) -> Self:
        """Returns the table with further columns, each of which is made when somebody asks for it."""
        made = {name: _Awaited(make, len(self)) for name, make in columns.items()}
        return self._with({**unmade(self), **made})

    def only(self, *names: str) -> Self:
        """Returns the named columns."""
        columns = unmade(self)
        return self._with({name: columns[name] if name in columns else self[name] for name in names})

    def _with(self, columns: Mapping[str, Column]) -> Self:
        return replace(self, columns=Columns(columns))


class _Rows:
    """Some rows of some rows of a whole column, as indices of that; made out when they are first needed."""

    def __init__(self, rows: Array, of: _Rows | None) -> None:
        self._rows = rows
        self._of = of

    def __len__(self) -> int:
        return len(self._rows)

    def indices(self) -> Ints:
        if self._of is not None:
            self._rows, self._of = self._of.indices()[self._rows], None
        return self._rows


class _Awaited:
    """A column that nobody has asked for yet, nor for any rows of it."""

    def __init__(self, make: Callable[[], Array], size: int) -> None:
        self._make = make
        self._size = size
        self._made: Array | None = None

    def __len__(self) -> int:
        return self._size

    def made(self) -> Array:
        if self._made is None:
            self._made = self._make()
        return self._made


@dataclass(frozen=True, slots=True)
class _Taken:
    """Some rows of a column that are not made yet."""

    whole: Array | _Awaited
    rows: _Rows

    def __len__(self) -> int:
        return len(self.rows)

    def made(self) -> Array:
        whole = self.whole.made() if isinstance(self.whole, _Awaited) else self.whole
        made: Array = whole[self.rows.indices()]
        return made


Column = Array | _Awaited | _Taken


class Columns(Mapping[str, Array]):
    """Columns by name; those that are not made are made when they are asked for."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self.unmade = dict(columns)

    def __getitem__(self, name: str) -> Array:
        column = self.unmade[name]
        if isinstance(column, _Taken | _Awaited):
            column = self.unmade[name] = column.made()
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self.unmade)

    def __len__(self) -> int:
        return len(self.unmade)

    def __contains__(self, name: object) -> bool:
        return name in self.unmade


def unmade(rows: Table) -> Mapping[str, Column]:
    """Returns the columns of a table as they are, made or not."""
    return rows.columns.unmade if isinstance(rows.columns, Columns) else rows.columns


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


def is_among(rows: Table, others: Table, *names: str) -> Bools:
    """Returns which rows are equal in the named columns to any of the others."""
    return np.isin(*_numbered(rows, others, names))


def number_among(rows: Table, others: Table, *names: str) -> Ints:
    """Returns for each row how many of the others are equal to it in the named columns."""
    mine, theirs = _numbered(rows, others, names)
    theirs = np.sort(theirs)
    return np.searchsorted(theirs, mine, side="right") - np.searchsorted(theirs, mine, side="left")


def last_until(rows: Table, wanted: Table, *names: str, by: str, until: Array) -> Ints:
    """Returns for each wanted row the last one of `rows` that is equal in the named columns and whose column `by` is no
    greater than `until`; -1 where there is none."""
    mine, theirs = _numbered(rows, wanted, names)
    order = ordered(mine, rows[by])
    return picked(order, at_or_before(mine[order], rows[by][order], theirs, until), -1)


def first_since(rows: Table, wanted: Table, *names: str, by: str, since: Array) -> Ints:
    """Returns for each wanted row the first one of `rows` that is equal in the named columns and whose column `by` is
    no less than `since`; -1 where there is none."""
    mine, theirs = _numbered(rows, wanted, names)
    order = ordered(mine, rows[by])
    return picked(order, at_or_after(mine[order], rows[by][order], theirs, since), -1)


def _numbered(rows: Table, others: Table, names: Sequence[str]) -> tuple[Ints, Ints]:
    """Returns the named columns of both as numbers that are equal where all of these are."""
    both = joined(*(np.concatenate([rows[name], others[name]]) for name in names))
    return both[: len(rows)], both[len(rows) :]

"""Files of rows: one JSON object a line, appended by campaigns that may be ended at any time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from kafka_trial.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")


def rows_in(file: Path, of_table: Callable[[dict[str, Any]], T]) -> list[T]:
    """Returns the rows of a file, the oldest first; none where there is no file. A torn last line is left out.

    Raises:
        InputError: another line is no row.
    """
    rows = []
    for number, line in enumerate(file.read_bytes().split(b"\n")[:-1] if file.exists() else (), start=1):
        try:
            rows.append(of_table(orjson.loads(line)))
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(f"{file}:{number}", f"expected a row of `make cases`, seen {line[:80]!r}") from error
    return rows


def append_row(file: Path, row: DataclassInstance) -> None:
    """Adds one row."""
    with file.open("ab") as out:
        out.write(orjson.dumps(asdict(row), option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE))

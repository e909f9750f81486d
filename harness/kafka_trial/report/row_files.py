"""Rows in JSON Lines of what is resumed: a matrix of cuts, a campaign. It may be killed while it writes a row."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import orjson

from kafka_trial.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")


def rows_in(file: Path, from_table: Callable[[dict[str, Any]], T]) -> list[T]:
    """Returns the rows of a file, the oldest first; none where there is no file. A torn last line is left out.

    Raises:
        InputError: any line but a torn last one is no row.
    """
    rows = []
    for number, line in enumerate(file.read_bytes().split(b"\n")[:-1] if file.exists() else (), start=1):
        try:
            rows.append(from_table(orjson.loads(line)))
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(
                f"{file}:{number}", f"expected one of the rows of this file, seen {line[:80]!r}"
            ) from error
    return rows


def append_row(file: Path, row: DataclassInstance) -> None:
    """Adds one row, in the place of a last one that was torn."""
    with file.open("ab+") as out:
        fcntl.flock(out, fcntl.LOCK_EX)  # another campaign may be about to add one
        out.truncate(_whole_bytes(out))
        out.write(orjson.dumps(asdict(row), option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE))


def _whole_bytes(file: IO[bytes]) -> int:
    file.seek(0)
    return file.read().rfind(b"\n") + 1

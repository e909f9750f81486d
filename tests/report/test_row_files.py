"""Rows of campaigns: what a kill leaves of a row is no row, and the next one does not hang on to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from kafka_trial.errors import InputError
from kafka_trial.report.row_files import append_row, rows_in


@dataclass(frozen=True)
class Pair:
    """A row of two figures."""

    one: int
    two: int


def of(table: dict[str, int]) -> Pair:
    return Pair(**table)


def test_a_row_stands_in_the_place_of_a_torn_one(tmp_path: Path) -> None:
    """A campaign that was killed while it wrote goes on."""
    file = tmp_path / "rows.jsonl"
    append_row(file, Pair(1, 2))
    with file.open("ab") as torn:
        torn.write(b'{"one":3,"t')
    assert rows_in(file, of) == [Pair(1, 2)]
    append_row(file, Pair(5, 6))
    assert rows_in(file, of) == [Pair(1, 2), Pair(5, 6)]


def test_what_is_no_row_is_refused_by_its_line(tmp_path: Path) -> None:
    """Only a last line can be torn."""
    file = tmp_path / "rows.jsonl"
    file.write_text('{"one":1,"two":2}\n{"one":3}\n{"one":5,"two":6}\n')
    with pytest.raises(InputError, match=r"rows\.jsonl:2: expected one of the rows of this file"):
        rows_in(file, of)


def test_there_may_be_no_file_yet(tmp_path: Path) -> None:
    """Before the first campaign."""
    assert rows_in(tmp_path / "rows.jsonl", of) == []

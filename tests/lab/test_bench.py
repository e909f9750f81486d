"""The measurements' rows and their page; what is measured is in `make bench`, never a test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kafka_trial.errors import InputError
from kafka_trial.report.row_files import append_row
from lab.bench.figures import PAGE_NAME, ROWS_NAME, Figure, Row, page, page_of, ratios, read_rows
from lab.bench.measurements import MEASUREMENTS
from lab.repository import reports_folder

ROW = Row("check", Figure("check of 1e+05 events, warm", "s", (0.5, 0.4, 0.9), "0.5"), "2 cores", "abc")


def test_the_committed_page_is_made_of_the_committed_rows() -> None:
    """Byte for byte; every measurement has been taken."""
    rows = read_rows(reports_folder() / ROWS_NAME)
    assert {row.measurement for row in rows} == set(MEASUREMENTS)
    assert (reports_folder() / PAGE_NAME).read_text() == page_of(reports_folder())


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    """A damaged line is named."""
    file = tmp_path / "rows.jsonl"
    rows = [ROW, replace(ROW, figure=ratios("a ÷ b", [1.0, 3.0], [2.0, 2.0]))]
    for row in rows:
        append_row(file, row)
    assert (read_rows(file), rows[1].figure.values) == (rows, (0.5, 1.5))
    file.write_bytes(b"{}\n")
    with pytest.raises(InputError, match="expected one of the rows"):
        read_rows(file)


def test_the_page_shows_the_newest_of_each_figure() -> None:
    """With its aim, and where it was measured."""
    old = replace(ROW, commit="old", figure=replace(ROW.figure, values=(9.0,)))
    text = page([old, replace(old, figure=replace(ROW.figure, name="no longer measured")), ROW])
    assert "| check of 1e+05 events, warm | 0.40 | 0.50 | 0.90 | s | 3 | 0.5 |" in text
    assert ("Measured at abc on 2 cores." in text, "9.00" in text, "no longer" in text) == (True, False, False)

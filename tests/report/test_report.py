"""The files of the report."""

from __future__ import annotations

import orjson

from kafka_trial.history.store import RunFolder
from kafka_trial.report.html import write_reports


def test_three_pages_are_written(folder: RunFolder) -> None:
    """Text, HTML and JSON lie beside the verdict, and nothing half-written is left."""
    before = {path.name for path in folder.path.iterdir()}
    write_reports(folder)
    made = {path.name for path in folder.path.iterdir()} - before
    assert made == {"report.txt", "report.html", "report.json"}
    assert orjson.loads((folder.path / "report.json").read_bytes())["headline"] == "FAIL: commit-regression"


def test_the_same_folder_gives_the_same_pages(folder: RunFolder) -> None:
    """A report written twice has the same bytes."""
    pages = []
    for _ in range(2):
        write_reports(folder)
        pages.append([(folder.path / name).read_bytes() for name in ("report.txt", "report.html", "report.json")])
    assert pages[0] == pages[1]

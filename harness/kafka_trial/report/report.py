"""The reports of one judged run, written beside the verdict: text, HTML and JSON show the same plain data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from kafka_trial.history.store import RunFolder
from kafka_trial.report.html import html_of
from kafka_trial.report.reading import read_report
from kafka_trial.report.text import text_of


def write_reports(folder: RunFolder) -> None:
    """Writes report.txt, report.html and report.json into a judged run folder, each whole or not at all.

    Raises:
        InputError: the run has not been judged yet.
    """
    report = read_report(folder)
    _write(folder.path / "report.txt", text_of(report) + "\n")
    _write(folder.path / "report.html", html_of(report) + "\n")
    folder.write_json("report.json", asdict(report))


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)

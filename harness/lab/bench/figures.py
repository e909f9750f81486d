"""The figures of `make bench` as values: their rows in `reports/bench.jsonl`, and the page.

The page is made of these rows and of the samples of the scale campaign (`scale/`), and of nothing else.

Absolute figures of a shared machine wander: the page gives minimum, median and maximum with the machine and its load
at that moment, and ratios only of what was measured in turn within one run.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from kafka_trial.report.row_files import rows_in
from lab.scale.page import scale_lines
from lab.scale.samples import SAMPLES_NAME, Sample, read_samples

ROWS_NAME = "bench.jsonl"
PAGE_NAME = "bench.md"


@dataclass(frozen=True)
class Figure:
    """One measured quantity: its values in the order they were taken, and what it ought to be, where we aim at it."""

    name: str
    unit: str
    values: tuple[float, ...]
    aim: str = ""

    def line(self) -> str:
        """Returns it as one line: minimum, median, maximum."""
        low, middle, high = min(self.values), median(self.values), max(self.values)
        return f"{self.name:56} {low:11.2f} {middle:11.2f} {high:11.2f} {self.unit:4} {self.aim}"


@dataclass(frozen=True)
class Row:
    """A figure with where and when it was measured; a line of the rows file. `commit` ends in + for a changed tree."""

    measurement: str
    figure: Figure
    machine: str
    commit: str


def ratios(name: str, of: Sequence[float], to: Sequence[float], *, aim: str = "") -> Figure:
    """Returns the ratios of pairs that were measured in turn."""
    return Figure(name, "×", tuple(one / other for one, other in zip(of, to, strict=True)), aim)


def machine() -> str:
    """Returns the machine in a line, with its load of the last minute."""
    memory_gb = psutil.virtual_memory().total / 1e9
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} cores, {memory_gb:.0f} GB, {platform.system()} {platform.release()}, load {load:.1f}"


def read_rows(path: Path) -> list[Row]:
    """Returns every row, oldest first; none when there is no file.

    Raises:
        InputError: a line is no row.
    """
    return rows_in(path, _row)


def page_of(reports: Path) -> str:
    """Returns the page of what was measured, as its folder says.

    Raises:
        InputError: a line is no row, or no sample.
    """
    return page(read_rows(reports / ROWS_NAME), read_samples(reports / SAMPLES_NAME))


def page(rows: Sequence[Row], samples: Sequence[Sample] = ()) -> str:
    """Returns the page as Markdown: of each measurement what its newest commit measured, of each figure the newest."""
    commits = {row.measurement: row.commit for row in rows}
    newest = {row.figure.name: row for row in rows if row.commit == commits[row.measurement]}
    lines = [
        "# Measurements",
        "",
        f"The newest of each measurement in `{ROWS_NAME}`, by `make bench`. Minimum, median, maximum.",
    ]
    for measurement in dict.fromkeys(row.measurement for row in newest.values()):
        own = [row for row in newest.values() if row.measurement == measurement]
        lines += ["", f"## {measurement}", ""]
        lines += [f"Measured at {at}." for at in dict.fromkeys(f"{row.commit} on {row.machine}" for row in own)]
        lines += ["", "| figure | min | median | max | unit | runs | aim |", "|" + " --- |" * 7]
        lines += [_line(row.figure) for row in own]
    return "\n".join([*lines, *scale_lines(samples), ""])


def _line(figure: Figure) -> str:
    low, middle, high = min(figure.values), median(figure.values), max(figure.values)
    cells = [
        figure.name,
        *(f"{value:.2f}" for value in (low, middle, high)),
        figure.unit,
        len(figure.values),
        figure.aim,
    ]
    return f"| {' | '.join(map(str, cells))} |"


def _row(table: dict) -> Row:  # type: ignore[type-arg]
    figure = Figure(**(table["figure"] | {"values": tuple(table["figure"]["values"])}))
    return Row(table["measurement"], figure, table["machine"], table["commit"])

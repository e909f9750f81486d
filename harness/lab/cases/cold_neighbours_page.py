"""The page of case 3, `docs/cases/3.md`: the stories, and tables made of the rows and of nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

from kafka_trial.comparison.interval import paired_interval
from kafka_trial.errors import PASS
from lab.cases import fail_overs, fail_overs_page
from lab.cases.cold_neighbours import CASE, FIGURES, ROWS_NAME, ColdNeighbourRow, control_pairs, read_rows
from lab.repository import reports_folder

HEAD: Final = Path(__file__).with_name("cold_neighbours.md")
LEAST: Final = 0.1  # of a figure: below its resolution a ratio says nothing

Pairs = Sequence[tuple[ColdNeighbourRow, ColdNeighbourRow]]


def write_page() -> int:
    """Writes the page of the rows there are."""
    reports = reports_folder()
    moves = fail_overs.read_rows(reports / fail_overs.ROWS_NAME)
    text = page(read_rows(reports / ROWS_NAME), moves)
    (reports.parent / "docs" / "cases" / f"{CASE}.md").write_text(text)
    return PASS


def page(rows: Sequence[ColdNeighbourRow], moves: Sequence[fail_overs.FailOverRow]) -> str:
    """Returns the page: the neighbours, then the fail-overs."""
    found = control_pairs(rows)
    table = ["| figure | without | with | ratio | between |", "| --- | --- | --- | --- | --- |"]
    table += [_figure(name, said, found) for name, said in FIGURES.items()] if found else []
    neighbours = [HEAD.read_text(), *table, "", _verdicts(found), "", _measured(found), ""]
    return "\n".join([*neighbours, fail_overs_page.part(moves)])


def _figure(name: str, said: str, found: Pairs) -> str:
    unit = "ms" if name.endswith("_ms") else "records"
    without, beside = ([row.figures[name] for row in side] for side in zip(*found, strict=True))
    changes = [math.log(max(b, LEAST) / max(a, LEAST)) for a, b in zip(without, beside, strict=True)]
    interval = paired_interval(changes, comparisons=len(FIGURES))
    ratio = "-" if interval is None else f"{interval.ratio:.2f}"
    between = "fewer than 5 pairs" if interval is None else f"{interval.low:.2f} to {interval.high:.2f}"
    cells = [f"{said} ({unit})", f"{median(without):.1f}", f"{median(beside):.1f}", ratio, between]
    return f"| {' | '.join(cells)} |"


def _verdicts(found: Pairs) -> str:
    told = [sum(row.verdict == "pass" for row in side) for side in zip(*found, strict=True)] if found else [0, 0]
    evidence = f" Of the first pair: *{found[0][1].told}*." if found else ""
    return (
        f"The claim (`lag_age_max_s = 3`) held in {told[0]} of {len(found)} trials without the neighbour, and in "
        f"{told[1]} of {len(found)} with it.{evidence}"
    )


def _measured(found: Pairs) -> str:
    rows = [row for pair in found for row in pair]
    commits = ", ".join(dict.fromkeys(row.commit for row in rows)) or "no commit yet"
    versions = ", ".join(sorted({row.kafka for row in rows})) or "none"
    return (
        f"{len(found)} pairs on Kafka {versions}, measured at {commits}. Made by `make cases` of the rows in "
        f"`reports/{ROWS_NAME}`, and of nothing else."
    )

"""The second part of the page of case 3: a table of the fail-overs, made of the rows and of nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

from lab.cases.fail_overs import ROWS_NAME, FailOverRow, cells, newest

HEAD: Final = Path(__file__).with_name("fail_overs.md")
FIGURES: Final = {  # of a row, and what its column is called
    "lost": "lost",
    "again": "done again",
    "back": "told to do again",
    "bound": "explained",
    "ahead": "told to leave out",
}


def part(rows: Sequence[FailOverRow]) -> str:
    """Returns the part."""
    found = list(newest(rows))
    head = ["way", "policy", "situation", "trials", "verdicts", *FIGURES.values()]
    table = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    table += [_line(kind, found) for kind in dict.fromkeys((way, policy, of) for way, policy, of, _ in cells())]
    return "\n".join([HEAD.read_text(), *table, "", _measured(found), ""])


def _line(kind: tuple[str, str, str], found: Sequence[FailOverRow]) -> str:
    way, policy, situation = kind
    own = [row for row in found if (row.way, row.policy, row.situation) == kind]
    verdicts = Counter(", ".join([row.verdict, *row.violations]) for row in own)
    told = "; ".join(f"{count} × {words}" for words, count in verdicts.items()) or "-"
    figures = [_median([row.figures.get(name) for row in own]) for name in FIGURES]
    columns = [way, policy, situation or "-", str(len(own)), told, *figures]
    return f"| {' | '.join(columns)} |"


def _median(values: Sequence[int | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{median(known):.0f}" if known else "-"


def _measured(found: Sequence[FailOverRow]) -> str:
    commits = ", ".join(dict.fromkeys(row.commit for row in found)) or "no commit yet"
    versions = ", ".join(sorted({row.kafka for row in found if row.kafka})) or "none"
    return (
        f"{len(found)} trials on Kafka {versions}, measured at {commits}. Made by `make cases` of the rows in "
        f"`reports/{ROWS_NAME}`, and of nothing else."
    )

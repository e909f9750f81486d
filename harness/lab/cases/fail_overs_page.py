"""The second part of the page of case 3: a table of the fail-overs, made of the rows and of nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

from kafka_trial.scenario import MIRROR_POLICIES
from lab.cases.fail_overs import ROWS_NAME, WAYS, FailOverRow, newest

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
    head = ["way", "policy", "trials", "verdicts", *FIGURES.values()]
    table = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    table += [_line(way, policy, found) for way in WAYS for policy in MIRROR_POLICIES]
    return "\n".join([HEAD.read_text(), *table, "", _measured(found), ""])


def _line(way: str, policy: str, found: Sequence[FailOverRow]) -> str:
    own = [row for row in found if (row.way, row.policy) == (way, policy)]
    verdicts = Counter(", ".join([row.verdict, *row.violations]) for row in own)
    told = "; ".join(f"{count} × {words}" for words, count in verdicts.items()) or "-"
    values = [[row.figures[name] for row in own if row.figures.get(name) is not None] for name in FIGURES]
    cells = [way, policy, str(len(own)), told, *(f"{median(of):.0f}" if of else "-" for of in values)]  # type: ignore[type-var]
    return f"| {' | '.join(cells)} |"


def _measured(found: Sequence[FailOverRow]) -> str:
    commits = ", ".join(dict.fromkeys(row.commit for row in found)) or "no commit yet"
    versions = ", ".join(sorted({row.kafka for row in found if row.kafka})) or "none"
    return (
        f"{len(found)} trials on Kafka {versions}, measured at {commits}. Made by `make cases` of the rows in "
        f"`reports/{ROWS_NAME}`, and of nothing else."
    )

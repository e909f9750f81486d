"""The references' matrices of cuts: rows in `reports/cuts.jsonl`, and the page that is made of them alone.

A row counts for the harness that made and judged it, and for its consumer; a change of either asks for new trials, but
where it could only have made a failure of something else (`ALIKE`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from kafka_trial import registry
from kafka_trial.errors import FAIL, PASS
from kafka_trial.nemesis.cut_scenarios import Cell, cells_of
from kafka_trial.report.cut_page import CutRow, Matrix, matrix_text, read_rows
from kafka_trial.trial.console import Console
from kafka_trial.trial.cut_matrix import MatrixRun, counts_for, lanes_for, walk
from kafka_trial.trial.session import Session
from lab.calibration.attempts import ROWS_NAME as CALIBRATION_NAME
from lab.calibration.attempts import read_rows as read_calibration
from lab.calibration.source_digests import judging_digest, making_digest
from lab.cuts.sins import INSTANTS_NAME, sins_section, try_suites
from lab.repository import git_revision, reports_folder

ROWS_NAME, PAGE_NAME = "cuts.jsonl", "cuts.md"
RUNS = Path("trial-runs") / "cuts"
ALIKE = (
    # Held against a group that was late what it waited for a processor on a machine that had got busier.
    "5f4c6ef002638d54-5be2d152ff926f34",
    # Knew no images, no databases and no payloads of teams; the sink had another parser.
    "aa91ce620823b429-998090c0111c69aa",
    # Knew no faults of handlers and of the topic; a look at the group that was not answered counted against it.
    "c860398b2093338c-7ab5e9e878311d52",
    # Looked at the end of a cut before its connection had let go.
    "adda8457f90bbda2-5cedd668bf74b4e8",
)
REFERENCES = (  # librdkafka, kafka-python, aiokafka and Java; classic, KIP-848, transactions
    "python-at-least-once",
    "python-at-least-once/consumer-protocol",
    "python-transactional",
    "kafka-python-at-least-once",
    "aiokafka-long-orders",
    "kafka-verifiable-consumer",
)
HEAD = """# Cuts of the references

Each cell is one trial: a member is cut at its first request of that API, at that place (docs/cuts.md). Made by
`make cuts` of the rows in cuts.jsonl, and of nothing else. `-` was not reached, `.` was not tried.
"""


def try_all(names: Sequence[str], *, minutes: float | None, side_by_side: int | None) -> int:
    """Tries what is missing of each consumer's matrix, one consumer after the other, then writes the page.

    Raises:
        InputError: there is no such consumer, or this is no checkout.
    """
    rows = reports_folder() / ROWS_NAME
    until_s = None if minutes is None else time.monotonic() + minutes * 60
    with Console() as console:
        for name in names:
            left = None if until_s is None else (until_s - time.monotonic()) / 60
            if left is not None and left <= 0:
                console.say(f"time is up before {name}")
                break
            asked = MatrixRun(
                registry.find_consumer(name),
                RUNS / name.replace("/", "-"),
                rows=rows,
                source_digest=f"{making_digest()}-{judging_digest()}",
                alike=ALIKE,
                commit=git_revision(),
                minutes=left,
                side_by_side=side_by_side,
                retry_unknown=1,
            )
            console.say(f"== {name}")
            with Session(lanes=lanes_for(asked)) as session:
                walk(session, asked, say=console.say)
    return write_page()


def try_sins(*, minutes: float | None, side_by_side: int | None) -> int:
    """Tries the sins that only cuts find on every suite, then writes the page."""
    with Console() as console:
        try_suites(
            until_s=None if minutes is None else time.monotonic() + minutes * 60,
            side_by_side=side_by_side,
            say=console.say,
        )
    return write_page()


def write_page() -> int:
    """Writes the page of the newest row of each cell of the newest harness; 1 where one of them failed."""
    folder = reports_folder()
    rows = read_rows(folder / ROWS_NAME)
    (folder / PAGE_NAME).write_text(page_of_folder(folder))
    return FAIL if any(row.verdict == "fail" for row in _newest(rows)) else PASS


def page_of_folder(folder: Path) -> str:
    """Returns the page of all rows in a folder."""
    sins = sins_section(read_calibration(folder / CALIBRATION_NAME), read_calibration(folder / INSTANTS_NAME))
    return "\n".join([page_of(read_rows(folder / ROWS_NAME)), *sins])


def page_of(rows: Sequence[CutRow]) -> str:
    """Returns the part of the page on the references: the matrix of each."""
    counting = _newest(rows)
    commits = ", ".join(dict.fromkeys(row.commit for row in counting if row.commit))
    lines = [HEAD, f"{len(counting)} trials, measured at {commits or 'no commit'}; {_counted(counting)}.", ""]
    if len(rows) > len(counting):
        lines += [
            f"{len(rows) - len(counting)} older rows are set aside: of another harness, or of an earlier try.",
            "",
        ]
    for consumer, version in dict.fromkeys((row.consumer, row.kafka_version) for row in counting):
        own = {row.cell: row for row in counting if (row.consumer, row.kafka_version) == (consumer, version)}
        apis = {row.api for row in own.values()}
        cells = [(cell.api, cell.where, cell.action) for cell in cells_of(apis)]
        text = matrix_text(Matrix(consumer, version, cells, own))
        lines += [f"## {consumer}", "", "```text", text.rstrip(), "```", ""]
    return "\n".join(lines)


def _counted(rows: Sequence[CutRow]) -> str:
    counts = Counter(row.verdict for row in rows)
    return ", ".join(f"{counts[word]} {word}" for word in sorted(counts)) or "none"


def _newest(rows: Sequence[CutRow]) -> list[CutRow]:
    """Returns the newest row of each cell, of the harness of the last row or one that is like it."""
    harness = rows[-1].source_digest if rows else ""
    consumers = {row.consumer: row.consumer_digest for row in rows}  # the newest of each
    newest = {
        (row.consumer, row.kafka_version, Cell(*row.cell)): row
        for row in rows
        if row.consumer_digest == consumers[row.consumer] and counts_for(row, harness, ALIKE)
    }
    return list(newest.values())

"""The matrix of cuts as rows, as text, and as a page: what became of a consumer at each place where it was cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kafka_trial.errors import FAIL, PASS, UNKNOWN
from kafka_trial.history.output_names import CUT_CONSUMERS, CUT_PAGE, CUT_ROWS, CUT_TEXT
from kafka_trial.report.certificate import duration_in_words, times_in_words
from kafka_trial.report.html import page_of
from kafka_trial.report.row_files import rows_in
from kafka_trial.verdict.verdict_input import NOT_REACHED

NOT_TRIED = "not tried"
ROWS, PAGE, TEXT, CONSUMERS = CUT_ROWS, CUT_PAGE, CUT_TEXT, CUT_CONSUMERS
MARKS: Mapping[str, str] = {"pass": "pass", "fail": "FAIL", "unknown": "unknown", NOT_REACHED: "-", NOT_TRIED: "."}


@dataclass(frozen=True)
class CutRow:
    """One cell that was tried. `verdict` may be `not reached`; `told` is the fault's evidence, or what left it open.

    `run`: where its run folder is, relative to the rows; empty where it passed, for then it is not kept. `began` (UTC,
    ISO 8601; "" unknown) and `lasted_s` are of its trial.
    """

    api: str
    where: str
    action: str
    verdict: str
    anomalies: tuple[str, ...]
    told: str
    run: str
    consumer: str
    consumer_digest: str
    source_digest: str
    kafka_version: str
    seed: int
    versions: Mapping[str, str] = field(default_factory=dict)
    commit: str = ""
    began: str = ""
    lasted_s: float | None = None

    @property
    def cell(self) -> tuple[str, str, str]:
        """What it is a row of."""
        return self.api, self.where, self.action


def read_rows(file: Path) -> list[CutRow]:
    """Returns the rows of a matrix, oldest first; none where there is no file. A torn last line is left out.

    Raises:
        InputError: another line is none of its rows.
    """
    return rows_in(file, lambda table: CutRow(**{**table, "anomalies": tuple(table["anomalies"])}))


@dataclass(frozen=True)
class Matrix:
    """The cells of one consumer, and the newest row of each that was tried."""

    consumer: str
    kafka_version: str
    cells: Sequence[tuple[str, str, str]]
    rows: Mapping[tuple[str, str, str], CutRow]

    def word(self, cell: tuple[str, str, str]) -> str:
        """Returns what stands in a cell."""
        return self.rows[cell].verdict if cell in self.rows else NOT_TRIED

    def count(self, word: str) -> int:
        """Returns in how many cells a word stands."""
        return sum(self.word(cell) == word for cell in self.cells)

    @property
    def exit_status(self) -> int:
        """The worst of its cells; one that was not reached says nothing, and where all are so nothing is known."""
        if self.count("fail"):
            return FAIL
        return UNKNOWN if self.count("unknown") or self.count(NOT_TRIED) or not self.count("pass") else PASS

    @property
    def when(self) -> str:
        """Says from when to when it was tried, and how long its trials took; "" where nothing tells it."""
        return times_in_words([(row.began, row.lasted_s) for row in self._shown])

    @property
    def seeds(self) -> list[int]:
        """The seeds of what was tried."""
        return sorted({row.seed for row in self._shown})

    @property
    def harness(self) -> list[str]:
        """The versions of kafka-trial that tried it."""
        return sorted({version for row in self._shown if (version := row.versions.get("kafka_trial"))})

    @property
    def not_tried(self) -> list[tuple[str, str, str]]:
        """Its cells that nobody has tried yet."""
        return [cell for cell in self.cells if cell not in self.rows]

    @property
    def _shown(self) -> list[CutRow]:
        return [self.rows[cell] for cell in self.cells if cell in self.rows]

    @property
    def table(self) -> list[tuple[str, str, list[tuple[str, CutRow | None]]]]:
        """Its lines: API, place, and for each action the word and the row."""
        lines = []
        for api, where in dict.fromkeys((api, where) for api, where, _ in self.cells):
            cells = [(api, where, action) for action in self.actions]
            lines.append((api, where, [(self.word(cell), self.rows.get(cell)) for cell in cells]))
        return lines

    @property
    def actions(self) -> list[str]:
        """Its columns."""
        return list(dict.fromkeys(action for _, _, action in self.cells))

    @property
    def in_words(self) -> str:
        """Counts its cells in one sentence."""
        words = ("fail", "unknown", "pass", NOT_REACHED, NOT_TRIED)
        counted = ", ".join(f"{self.count(word)} {word}" for word in words if self.count(word))
        return f"{self.consumer} on Kafka {self.kafka_version}: {len(self.cells)} cuts: {counted or 'none'}"


def matrix_text(matrix: Matrix) -> str:
    """Returns the matrix for a terminal, then every cell that did not pass with what was found there."""
    lines = [matrix.in_words, *([f"tried {matrix.when}"] if matrix.when else []), ""]
    lines.append(f"{'':24}{'':10}" + "".join(f"{action:>9}" for action in matrix.actions))
    before = ""
    for api, where, words in matrix.table:
        lines.append(f"{api if api != before else '':24}{where:10}" + "".join(f"{MARKS[word]:>9}" for word, _ in words))
        before = api
    lines += ["", *_legend(matrix)]
    for cell in matrix.cells:
        row = matrix.rows.get(cell)
        if row is not None and row.verdict != "pass":
            found = ", ".join(row.anomalies) or row.told
            lines.append(f"{row.verdict}: {' '.join(cell)}: {found}" + (f"  ({row.run})" if row.run else ""))
    return "\n".join(lines).rstrip() + "\n"


def _legend(matrix: Matrix) -> list[str]:
    """Returns what the marks in its table mean, as far as they are there."""
    marks = [f"{MARKS[word]} {word}" for word in (NOT_REACHED, NOT_TRIED) if matrix.count(word)]
    return [", ".join(marks), ""] if marks else []


def write_matrix(matrix: Matrix, folder: Path) -> None:
    """Writes the page and the text beside the rows."""
    (folder / TEXT).write_text(matrix_text(matrix))
    (folder / PAGE).write_text(page_of("cuts.html.j2", matrix=matrix, duration=duration_in_words))

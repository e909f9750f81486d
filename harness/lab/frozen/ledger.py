"""The ledger: every finding on a frozen history that changed, and why the new one is right, in Kafka's words."""

from __future__ import annotations

import lzma
import multiprocessing
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import orjson

from kafka_trial.report.row_files import append_row, rows_in
from lab.frozen.answers import Difference, Judged, answer_of, differences
from lab.frozen.histories import FrozenHistory

ANSWERS_NAME: Final = "frozen_findings.jsonl.xz"
LEDGER_NAME: Final = "frozen_ledger.jsonl"
AT_ONCE: Final = 16  # histories handed to a process, some three seconds of work


@dataclass(frozen=True)
class AcceptedDifference:
    """A difference that was accepted: why the new verdict is right, on which day and at which commit."""

    difference: Difference
    why: str
    date: str
    commit: str


def read_answers(file: Path) -> dict[str, Judged]:
    """Returns what was said of each history, by its name; nothing where there is no file."""
    if not file.exists():
        return {}
    with lzma.open(file, "rb") as lines:
        return {row.pop("history"): Judged(**row) for row in map(orjson.loads, lines)}


def write_answers(answers: Mapping[str, Judged], file: Path) -> None:
    """Keeps what is said of each history."""
    with lzma.open(file, "wb", preset=9) as out:
        for name, answer in sorted(answers.items()):
            out.write(orjson.dumps({"history": name} | asdict(answer), option=orjson.OPT_APPEND_NEWLINE))


def all_answers(histories: Iterable[FrozenHistory], *, processes: int | None = None) -> dict[str, Judged]:
    """Returns what this judge says of each history, by its name; `processes`: how many judge (None: one per
    processor).
    """
    kept = [*histories]
    fresh = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(processes or os.cpu_count(), mp_context=fresh) as pool:
        answers = pool.map(answer_of, kept, chunksize=AT_ONCE)
        return {history.name: answer for history, answer in zip(kept, answers, strict=True)}


def all_differences(before: Mapping[str, Judged], after: Mapping[str, Judged]) -> Iterator[Difference]:
    """Yields where this judge says something else of a history that was judged before; a new history has no before."""
    for name in sorted(before.keys() & after.keys()):
        yield from differences(name, before[name], after[name])


def append_to_ledger(found: Iterable[Difference], file: Path, *, why: str, date: str, commit: str) -> None:
    """Writes differences into the ledger."""
    for one in found:
        append_row(file, AcceptedDifference(one, why, date, commit))


def read_ledger(file: Path) -> list[AcceptedDifference]:
    """Returns the ledger, oldest first.

    Raises:
        InputError: a line is no entry.
    """
    return rows_in(file, lambda table: AcceptedDifference(**{**table, "difference": Difference(**table["difference"])}))

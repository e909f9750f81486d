"""The ledger: every finding on a frozen history that changed, and why the new one is right, in Kafka's words."""

from __future__ import annotations

import lzma
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import orjson

from kafka_trial.process.signals import sigterm_as_ctrl_c
from kafka_trial.report.row_files import append_row, rows_in
from lab.frozen.histories import FrozenHistory
from lab.frozen.history_findings import ChangedFinding, HistoryFindings, changes, findings_of

FINDINGS_NAME: Final = "frozen_findings.jsonl.xz"
LEDGER_NAME: Final = "frozen_ledger.jsonl"
EVERY: Final = "every history"
AT_ONCE: Final = 16  # histories handed to a process, some three seconds of work


@dataclass(frozen=True)
class AcceptedChange:
    """A difference that was accepted: why the new verdict is right, on which day and at which commit."""

    difference: ChangedFinding
    why: str
    date: str
    commit: str


def read_findings(file: Path) -> dict[str, HistoryFindings]:
    """Returns what was said of each history, by its name; nothing where there is no file."""
    if not file.exists():
        return {}
    with lzma.open(file, "rb") as lines:
        return {row.pop("history"): HistoryFindings(**row) for row in map(orjson.loads, lines)}


def write_findings(findings: Mapping[str, HistoryFindings], file: Path) -> None:
    """Keeps what is said of each history."""
    with lzma.open(file, "wb", preset=9) as out:
        for name, found in sorted(findings.items()):
            out.write(orjson.dumps({"history": name} | asdict(found), option=orjson.OPT_APPEND_NEWLINE))


def findings_of_all(histories: Iterable[FrozenHistory], *, processes: int | None = None) -> dict[str, HistoryFindings]:
    """Returns what this judge says of each history, by its name; `processes`: how many judge (None: one per
    processor). They end with this one, by Ctrl-C or SIGTERM too.
    """
    kept = [*histories]
    fresh = multiprocessing.get_context("forkserver")
    with sigterm_as_ctrl_c(), ProcessPoolExecutor(processes or os.cpu_count(), mp_context=fresh) as pool:
        found = pool.map(findings_of, kept, chunksize=AT_ONCE)
        try:
            return {history.name: findings for history, findings in zip(kept, found, strict=True)}
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)  # else it waits for all of them
            raise


def all_changes(
    before: Mapping[str, HistoryFindings], after: Mapping[str, HistoryFindings]
) -> Iterator[ChangedFinding]:
    """Yields where this judge says something else of a history that was judged before; a new history has no before."""
    for name in sorted(before.keys() & after.keys()):
        yield from changes(name, before[name], after[name])


def merge_shared_changes(found: Iterable[ChangedFinding], histories: int) -> list[ChangedFinding]:
    """Returns the changes, with those that all histories share (a new anomaly that none of them can show) as one."""
    kept = [*found]
    shared = [one for one, count in Counter(replace(one, history=EVERY) for one in kept).items() if count == histories]
    return [*shared, *(one for one in kept if replace(one, history=EVERY) not in shared)]


def append_to_ledger(found: Iterable[ChangedFinding], file: Path, *, why: str, date: str, commit: str) -> None:
    """Writes changed findings into the ledger."""
    for one in found:
        append_row(file, AcceptedChange(one, why, date, commit))


def read_ledger(file: Path) -> list[AcceptedChange]:
    """Returns the ledger, oldest first.

    Raises:
        InputError: a line is no entry.
    """
    return rows_in(file, lambda table: AcceptedChange(**{**table, "difference": ChangedFinding(**table["difference"])}))

"""Durations: how long every test took, in a file; a plugin of pytest, and what `make test` prints at its end.

pytest … --durations-file=FILE
    adds one JSON line a test: its id, outcome and seconds (set-up, call, both), why it was skipped; and one of what was
    collected
python tests/durations.py summarise FILE WALL_S [BUDGET_S]
    prints the sums, the slowest and, last, why tests were skipped; exit status 1 where a test that was collected has no
    line, or it took too long; KAFKA_TRIAL_BUDGET=told only tells the latter
python tests/durations.py record FILE
    adds a row of the whole run to reports/tests.jsonl
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

SLOWEST = 10
STRICTNESS, TOLD = "KAFKA_TRIAL_BUDGET", "told"
ROOT = Path(__file__).parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that names the file."""
    parser.addoption("--durations-file", type=Path, metavar="FILE", help="add a JSON line for every test that ends")
    parser.addoption("--skip-passed", action="store_true", help="leave out what has passed by the file of durations")


def pytest_configure(config: pytest.Config) -> None:
    """Records only where a file is named."""
    if (file := config.getoption("--durations-file")) is not None:
        config.pluginmanager.register(Collection(file))
        if not hasattr(config, "workerinput"):  # what a worker of xdist reports is reported again by who started it
            config.pluginmanager.register(Recorder(file))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what has passed, where that is asked for."""
    file = config.getoption("--durations-file")
    if not config.getoption("--skip-passed"):
        return
    if file is None:
        raise pytest.UsageError("--skip-passed needs --durations-file FILE: it says what has passed")
    if not file.exists():
        return
    passed = {row["test"] for row in read(file) if row.get("outcome") in ("passed", "skipped")}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in passed])
    items[:] = [item for item in items if item.nodeid not in passed]


class Collection:
    """Adds a line of what is going to run: a test that has no line of its own afterwards was lost."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Notes the tests of this process."""
        _append(self._file, {"collected": [item.nodeid for item in session.items]})


class Recorder:
    """Adds a line to the file when a test has been torn down."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seconds: dict[str, dict[str, float]] = defaultdict(dict)
        self._outcomes: dict[str, str] = {}
        self._reasons: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes what a phase of a test took; the worst outcome of its phases counts."""
        self._seconds[report.nodeid][report.when] = report.duration
        if report.outcome != "passed" or report.nodeid not in self._outcomes:
            self._outcomes[report.nodeid] = report.outcome
        if report.skipped and isinstance(report.longrepr, tuple):
            self._reasons[report.nodeid] = report.longrepr[2].removeprefix("Skipped: ")
        if report.when == "teardown":
            seconds = self._seconds.pop(report.nodeid)
            reason = self._reasons.pop(report.nodeid, None)
            row = {
                "test": report.nodeid,
                "outcome": self._outcomes.pop(report.nodeid),
                "seconds": round(sum(seconds.values()), 3),
                "setup_s": round(seconds.get("setup", 0.0), 3),
            }
            _append(self._file, row if reason is None else {**row, "reason": reason})


def _append(file: Path, row: Mapping[str, Any]) -> None:
    with file.open("a", encoding="utf-8") as opened:  # several processes write, each a whole line
        opened.write(json.dumps(row) + "\n")


def last_of_each(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the last row of every test."""
    return list({row["test"]: row for row in rows if "test" in row}.values())


def run_row(rows: Iterable[Mapping[str, Any]], *, commit: str, date: str) -> dict[str, Any]:
    """Returns the row of a whole run: when and at which commit, its wall clock, and how many tests ended how."""
    rows = list(rows)
    outcomes = Counter(row["outcome"] for row in last_of_each(rows))
    again = {row["test"] for row in rows if row.get("outcome") == "failed"}
    return {
        "commit": commit,
        "date": date,
        "wall_s": round(sum(row.get("wall_s", 0) for row in rows)),
        "tests": outcomes.total(),
        "failed_once": len(again),
        **dict(sorted(outcomes.items())),
    }


def read(file: Path) -> list[dict[str, Any]]:
    """Returns the rows of a file of durations."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def summary(rows: Iterable[Mapping[str, Any]], *, wall_s: float) -> list[str]:
    """Returns lines for people: how many tests there were, how long they took, which took longest, and why some were
    skipped."""
    rows = sorted(last_of_each(rows), key=lambda row: -row["seconds"])
    outcomes = Counter(row["outcome"] for row in rows)
    counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    took = sum(row["seconds"] for row in rows)
    head = (
        f"{len(rows)} tests ({counted}) in {_clock(wall_s)} of wall clock, {_clock(took)} one after the other; slowest:"
    )
    slowest = (f"{row['seconds']:8.1f} s  {row['test']}" for row in rows[:SLOWEST])
    skipped = Counter(row.get("reason", "no reason was given") for row in rows if row["outcome"] == "skipped")
    return [head, *slowest, *(f"skipped: {count} × {reason}" for reason, count in sorted(skipped.items()))]


def problems(rows: Iterable[Mapping[str, Any]], *, wall_s: float, budget_s: float | None) -> list[str]:
    """Returns what makes a run no good although its tests passed: tests that left no line, and a budget overrun."""
    rows = list(rows)
    ended = {row["test"] for row in rows if "test" in row}
    lost = sorted({test for row in rows for test in row.get("collected", ())} - ended)
    found = [f"{len(lost)} tests were collected and never ended: {', '.join(lost[:SLOWEST])}"] if lost else []
    if budget_s is not None and wall_s > budget_s:
        over = f"took {_clock(wall_s)}, {_clock(wall_s - budget_s)} more than its budget of {_clock(budget_s)}"
        found.append(f"{over}: make the slowest faster, or let them rotate (tests/tiers.py)")
    return found


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def main(verb: str, file: Path, *given_s: str) -> int:
    """Summarises a file of durations, or records what became of all its tests; returns the exit status."""
    if verb == "summarise":
        wall_s, budget_s = float(given_s[0]), float(given_s[1]) if len(given_s) > 1 else None
        lost = problems(read(file), wall_s=wall_s, budget_s=None)
        told = problems(read(file), wall_s=wall_s, budget_s=budget_s)
        wrong = lost if os.environ.get(STRICTNESS) == TOLD else told
        print("\n".join([*summary(read(file), wall_s=wall_s), *told]))
        with file.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"wall_s": wall_s}) + "\n")
        return 1 if wrong else 0
    if verb == "record":
        asked = ["git", "-C", str(ROOT), "describe", "--always", "--exclude=*", "--dirty=+"]
        commit = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        row = run_row(read(file), commit=commit, date=datetime.now(UTC).date().isoformat())
        line, rows = json.dumps(row) + "\n", ROOT / "reports" / "tests.jsonl"
        if not rows.exists() or line not in rows.read_text(encoding="utf-8"):
            with rows.open("a", encoding="utf-8") as out:
                out.write(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]))

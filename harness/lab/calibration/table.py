"""The figures of a calibration that the wheel ships: `kafka_trial/report/calibration.json`, counted as the page counts.

For each anomaly: how many trials were to show it, how many did, on which suites; and how the sound trials ended, those
of sins that are switched off included. `commits` are those of the rows, in order; `date` is the day of the last one.
For each suite: what a trial of it takes in seconds, and which anomalies it found in which share of the trials that were
to show them there. `timed` says how many trials tell the seconds, of which day the last is, and what the first of a
session takes besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from lab.bench.figures import ROWS_NAME as BENCH_NAME
from lab.bench.figures import Row as BenchRow
from lab.bench.figures import read_rows as read_bench
from lab.calibration.attempts import ROWS_NAME, Row, newest, read_rows
from lab.calibration.page import verdicts
from lab.calibration.suite_seconds import SECONDS_NAME, TimedTrial, first_seconds, read_seconds, typical_seconds
from lab.repository import commit_date


def calibration_table(
    rows: Sequence[Row], *, date: str, trials: Sequence[TimedTrial] = (), bench: Sequence[BenchRow] = ()
) -> dict[str, Any]:
    """Returns the table of the newest rows; `date` is the day of the last one's commit, empty if nobody knows it.

    `trials` and `bench` tell the seconds; without them no suite is in it.
    """
    latest = newest(rows)
    measured = {row.commit: number for number, row in enumerate(rows)}
    names = sorted({name for row in latest for name in row.expected})
    sound = [row for row in latest if not row.attempt.sin]
    return {
        "anomalies": {name: _line(name, [row for row in latest if name in row.expected]) for name in names},
        "commits": sorted({row.commit for row in latest}, key=measured.__getitem__),
        "date": date,
        "sound": dict(zip(("pass", "fail", "unknown"), verdicts(sound), strict=True)),
        "suites": {
            suite: {"seconds": seconds, "finds": _finds([row for row in latest if row.attempt.scenario == suite])}
            for suite, seconds in typical_seconds(trials, bench).items()
        },
        "timed": {
            "trials": len(trials),
            "date": max((trial.began[:10] for trial in trials), default=""),
            "first_s": first_seconds(bench),
        },
    }


def committed_table(folder: Path, *, date: str | None = None) -> dict[str, Any]:
    """Returns the table of the rows in a folder of reports; `date` as above, looked up where it is not given.

    Raises:
        InputError: a line is no row.
    """
    rows = read_rows(folder / ROWS_NAME)
    looked_up = commit_date(rows[-1].commit) if rows else ""
    return calibration_table(
        rows,
        date=looked_up if date is None else date,
        trials=read_seconds(folder / SECONDS_NAME),
        bench=read_bench(folder / BENCH_NAME),
    )


def table_bytes(table: dict[str, Any]) -> bytes:
    """Returns a table as its file holds it: a change of one figure is one line of a diff."""
    return orjson.dumps(table, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _line(anomaly: str, rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "found": sum(anomaly in row.violations for row in rows),
        "trials": len(rows),
        "suites": sorted({row.attempt.scenario for row in rows}),
    }


def _finds(rows: Sequence[Row]) -> dict[str, float]:
    names = sorted({name for row in rows for name in row.expected})
    lines = {name: _line(name, [row for row in rows if name in row.expected]) for name in names}
    return {name: round(line["found"] / line["trials"], 3) for name, line in lines.items() if line["found"]}

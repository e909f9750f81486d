"""The figures of a calibration that the wheel ships: `kafka_trial/report/calibration.json`, counted as the page counts.

For each anomaly: how many trials were to show it, how many did, on which suites; and how the sound trials ended, those
of sins that are switched off included. `commits` are those of the rows, in order; `date` is the day of the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from lab.calibration.attempts import Row, newest
from lab.calibration.page import verdicts


def calibration_table(rows: Sequence[Row], *, date: str) -> dict[str, Any]:
    """Returns the table of the newest rows; `date` is the day of the last one's commit, empty if nobody knows it."""
    latest = newest(rows)
    measured = {row.commit: number for number, row in enumerate(rows)}
    names = sorted({name for row in latest for name in row.expected})
    sound = [row for row in latest if not row.attempt.sin]
    return {
        "anomalies": {name: _line(name, [row for row in latest if name in row.expected]) for name in names},
        "commits": sorted({row.commit for row in latest}, key=measured.__getitem__),
        "date": date,
        "sound": dict(zip(("pass", "fail", "unknown"), verdicts(sound), strict=True)),
    }


def table_bytes(table: dict[str, Any]) -> bytes:
    """Returns a table as its file holds it: a change of one figure is one line of a diff."""
    return orjson.dumps(table, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _line(anomaly: str, rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "found": sum(anomaly in row.violations for row in rows),
        "trials": len(rows),
        "suites": sorted({row.attempt.scenario for row in rows}),
    }

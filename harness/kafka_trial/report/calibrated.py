"""How far an anomaly has been calibrated, in one line: how often the judge found it where it was to be found.

The figures stand in `calibration.json` beside this file, so that a wheel has them too. In a checkout `python -m
lab.calibration --page` makes it of the rows in `reports/`, with the page: the newest rows, as the page counts them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

TABLE = Path(__file__).with_name("calibration.json")
NOT_CALIBRATED = "not calibrated"


def calibrated(anomaly: str, table: dict[str, Any] | None = None) -> str:
    """Returns the line on an anomaly; that it is not calibrated where no trial was to show it.

    Sound trials are those of consumers with nothing to be found: they are the same for every anomaly.
    """
    if table is None:
        table = orjson.loads(TABLE.read_bytes())
    if (row := table["anomalies"].get(anomaly)) is None:
        return NOT_CALIBRATED
    shown = f"{row['found']} of {row['trials']} trials of consumers that commit it"
    sound = table["sound"]
    total = sum(sound.values())
    failed = f"{sound['fail']} of {total} sound trials failed" if total else "sound ones were not tried since"
    return f"calibrated: found in {shown} ({failed}), measured at {_measured(table)}"


def _measured(table: dict[str, Any]) -> str:
    on = f" of {table['date']}" if table["date"] else ""
    if (others := len(table["commits"]) - 1) == 0:
        return f"{table['commits'][0]}{on}"
    return f"{others + 1} commits, the last {table['commits'][-1]}{on}"

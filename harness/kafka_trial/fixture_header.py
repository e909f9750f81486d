"""The header of a faulty fixture: its sin, the suite that shows it, and exactly the anomalies it must cause.

Read by tests and calibration only. The judge never sees a fixture's file, name or header.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from kafka_trial.errors import InputError


@dataclass(frozen=True)
class FixtureHeader:
    """What the docstring of a faulty `main.py` promises."""

    sin: str
    suite: str
    anomalies: tuple[str, ...]


def fixture_header(main: Path) -> FixtureHeader:
    """Returns the header of a faulty fixture's `main.py`: lines `Sin:`, `Suite:`, `Anomalies:` of its docstring.

    Raises:
        InputError: the file has no such header.
    """
    text = ast.get_docstring(ast.parse(main.read_text())) or ""
    found = {name.lower(): value for name, value in re.findall(r"^(Sin|Suite|Anomalies):\s*(.+)$", text, re.MULTILINE)}
    missing = [name for name in ("sin", "suite", "anomalies") if name not in found]
    if missing:
        raise InputError(
            str(main), f"its docstring lacks the lines {', '.join(name.title() + ':' for name in missing)}"
        )
    anomalies = tuple(name.strip() for name in found["anomalies"].rstrip(".").split(",") if name.strip())
    return FixtureHeader(found["sin"].strip(), found["suite"].strip(), anomalies)

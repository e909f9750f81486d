"""The header of a fixture of the zoo: its sin, the suite that shows it, and exactly the anomalies it must cause.

A twin looks like a sin and is sound: its header names the sin, and promises no anomaly.

Read by tests and calibration only. The judge never sees a fixture's file, name or header.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from kafka_trial.consumers.patched_consumer import PROGRAM, program_source
from kafka_trial.errors import InputError


@dataclass(frozen=True)
class FixtureHeader:
    """What the docstring of a `main.py` promises; of a twin `sin` is the name of the fixture it is the twin of.

    `quiet`: what must be found where it says nothing of what it does, if that is not just what can be seen so of
    `anomalies`; empty where nothing can. `at_times`: what comes besides where a fault happens to hit at such a moment.
    """

    sin: str
    suite: str
    anomalies: tuple[str, ...]
    quiet: tuple[str, ...] | None = None
    at_times: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        return not self.anomalies


def fixture_header(folder: Path) -> FixtureHeader:
    """Returns the header of a fixture: of its `main.py`'s docstring the lines `Sin:`, `Suite:`, `Anomalies:`; of a twin
    `Twin of:`, `Suite:`. Where it is stored as a patch, these are lines that the patch adds.

    A line `Quiet:` names anomalies too, or says `nothing`; there may be none, and none `At times:`.

    Raises:
        InputError: the program has no such header.
    """
    text = ast.get_docstring(ast.parse(program_source(folder))) or ""
    lines = re.findall(r"^(Sin|Suite|Anomalies|At times|Quiet|Twin of):\s*(.+)$", text, re.MULTILINE)
    found = {name.lower(): value.strip() for name, value in lines}
    if "twin of" in found and "suite" in found:
        return FixtureHeader(found["twin of"], found["suite"], ())
    missing = [name for name in ("sin", "suite", "anomalies") if name not in found]
    if missing:
        raise InputError(
            str(folder / PROGRAM), f"its docstring lacks the lines {', '.join(name.title() + ':' for name in missing)}"
        )
    quiet = found.get("quiet")
    return FixtureHeader(
        found["sin"],
        found["suite"],
        _names(found["anomalies"]),
        None if quiet is None else () if quiet == "nothing" else _names(quiet),
        _names(found.get("at times", "")),
    )


def _names(listed: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in listed.rstrip(".").split(",") if name.strip())

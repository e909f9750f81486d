"""Tiers: what `make test` runs each time, and what takes turns; a plugin of pytest.

    pytest --tier everyday   leaves out, of what is marked `rotates`, what has its turn another time
    pytest                   runs all of it, as `make test-all` does

Tests of one function that are marked `rotates` (those with the same arguments of the marker) take turns: every one runs
within `TURNS` rotations, and some of them in each. Whole files whose tests are marked `rotates(together="a name")` take
turns with each other: what they set up is dear, and serves all of their tests. Which rotation it is follows from the
number of commits, so that the next commit has the next one; `ROTATION=n` chooses it.
"""

from __future__ import annotations

import os
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

TURNS = 5
EVERYDAY, ALL = "everyday", "all"
ROOT = Path(__file__).parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that names the tier."""
    parser.addoption("--tier", choices=(EVERYDAY, ALL), default=ALL, help="everyday: what rotates takes turns")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Says which rotation this is, and how to repeat it."""
    if config.getoption("--tier") == ALL:
        return None
    repeats = f"ROTATION={rotation()} repeats it, make test-all runs all"
    return f"tier: everyday, rotation {rotation()} of 0 to {TURNS - 1} ({repeats})"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what has its turn in another rotation."""
    if config.getoption("--tier") == ALL:
        return
    rests = {
        id(item)
        for group in _groups(items)
        for number, unit in enumerate(group)
        if number not in selected(len(group))
        for item in unit
    }
    config.hook.pytest_deselected(items=[item for item in items if id(item) in rests])
    items[:] = [item for item in items if id(item) not in rests]


def selected(size: int) -> range:
    """Returns which of so many tests have their turn in this rotation: at least one, and every one within `TURNS`."""
    number = min(size, TURNS)
    return range(rotation() % number, size, number)


def in_turn(names: Sequence[str]) -> str:
    """Returns the one of some names whose turn it is in a file that takes turns itself: each time the next one."""
    return names[_number() // TURNS % len(names)]


def rotation() -> int:
    """Returns the number of this rotation: `ROTATION`, else what follows from the commit."""
    return _number() % TURNS


def _number() -> int:
    given = os.environ.get("ROTATION", "")
    return int(given) if given.isdecimal() else _commits()


@cache
def _commits() -> int:
    """Returns how many commits lead here, so that each one has the next turn; 0 outside a checkout."""
    asked = ["git", "-C", str(ROOT), "rev-list", "--count", "HEAD"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else 0


def _groups(items: list[pytest.Item]) -> list[list[list[pytest.Item]]]:
    """Returns what takes turns with each other, in the order of names: single tests, or the tests of whole files."""
    groups: dict[tuple[object, ...], dict[str, list[pytest.Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        if (marker := item.get_closest_marker("rotates")) is not None:
            together = marker.kwargs.get("together")
            group = (together,) if together else (item.nodeid.partition("[")[0], *marker.args)
            groups[group][item.nodeid.partition("::")[0] if together else item.nodeid].append(item)
    return [[units[name] for name in sorted(units)] for units in groups.values()]

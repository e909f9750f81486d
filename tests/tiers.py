"""Tiers: what `make test` runs each time, and what takes turns; a plugin of pytest.

    pytest --tier everyday   leaves out, of what is marked `rotates`, what has its turn another time
    pytest                   runs all of it, as `make test-all` does

Tests of one function that are marked `rotates` (those with the same arguments of the marker) take turns: every one runs
within `TURNS` rotations, and some of them in each. Whole files whose tests are marked `rotates(together="a name")` take
turns with each other: what they set up is dear, and serves all of their tests. Where `rotations.toml` knows what the
files of a name take, it says too whose turn comes when, so that all rotations take about as long. Which rotation it is
follows from the number of commits, so that the next commit has the next one; `ROTATION=n` chooses it.

    .venv/bin/python tests/tiers.py    prints what the files of each rotation take

Where `-m` asks for a marker only the files that name it are read: to read all takes a quarter of a minute.
"""

from __future__ import annotations

import os
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

TURNS = 5
EVERYDAY, ALL = "everyday", "all"
ROOT = Path(__file__).parent.parent
TABLE = Path(__file__).with_name("rotations.toml")
# A name of `rotates(together=…)` → a file → what its tests of that name take, in seconds.
TAKES: Mapping[str, Mapping[str, int]] = tomllib.loads(TABLE.read_text(encoding="utf-8"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that names the tier."""
    parser.addoption("--tier", choices=(EVERYDAY, ALL), default=ALL, help="everyday: what rotates takes turns")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Says which rotation this is, and how to repeat it."""
    if config.getoption("--tier") == ALL:
        return None
    repeats = f"ROTATION={rotation()} repeats it, make test-all runs all"
    return f"tier: everyday, rotation {rotation()} of 0 to {TURNS - 1} ({repeats})"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves a file unread that names no marker which `-m` asks for."""
    if not collection_path.name.startswith("test_") or "(" in config.option.markexpr:
        return None
    text = collection_path.read_text(encoding="utf-8")
    named = [
        all(word.startswith("not ") or f"mark.{word}" in text for word in part.split(" and ") if word)
        for part in config.option.markexpr.split(" or ")
    ]
    return None if any(named) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what has its turn in another rotation."""
    if config.getoption("--tier") == ALL:
        return
    rests = {id(item) for item in _resting(items)}
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


def turns(takes: Mapping[str, int]) -> dict[str, int]:
    """Returns the rotation in which each file has its turn, by what it takes: the dearest first, each in the rotation
    that has least until then."""
    whole, found = [0] * TURNS, dict[str, int]()
    for file in sorted(takes, key=lambda file: (-takes[file], file)):
        found[file] = min(range(TURNS), key=lambda turn: whole[turn])
        whole[found[file]] += takes[file]
    return found


def _resting(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """Yields what has its turn in another rotation."""
    for name, units in _groups(items).items():
        if (takes := TAKES.get(name)) is None:
            ours = {sorted(units)[number] for number in selected(len(units))}
        else:
            ours = {file for file, turn in turns(takes).items() if turn == rotation()}
            if strange := units.keys() - takes.keys():
                raise pytest.UsageError(f"what {', '.join(sorted(strange))} take together is not in {TABLE}: add it")
        for unit in units.keys() - ours:
            yield from units[unit]


def _groups(items: Sequence[pytest.Item]) -> dict[Hashable, dict[str, list[pytest.Item]]]:
    """Returns what takes turns with each other, by name: single tests, or the tests of whole files."""
    groups: dict[Hashable, dict[str, list[pytest.Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        if (marker := item.get_closest_marker("rotates")) is not None:
            together = marker.kwargs.get("together")
            group = together or (item.nodeid.partition("[")[0], *marker.args)
            groups[group][item.nodeid.partition("::")[0] if together else item.nodeid].append(item)
    return groups


def main() -> None:
    """Prints what the files of each rotation take, the dearest first."""
    for name, takes in TAKES.items():
        whose = turns(takes)
        for turn in range(TURNS):
            ours = sorted((file for file in takes if whose[file] == turn), key=lambda file: -takes[file])
            told = ", ".join(f"{file} {takes[file]}" for file in ours)
            print(f"{name}, rotation {turn}: {sum(takes[file] for file in ours)} s: {told}")


if __name__ == "__main__":
    main()

"""Tiers: what `make test` runs each time, and what takes turns; a plugin of pytest.

    pytest --tier everyday   leaves out, of what is marked `rotates`, what has its turn another time
    pytest                   runs all of it, as `make test-all` does

A test that is marked `rotates` runs in one of `TURNS` rotations, or with `rotates(every=n)` in one of n; those of one
function are spread evenly. Whole files whose tests are marked
`rotates(together="a name")` take turns with each other: their set-up is expensive, and serves all of their tests. For
the files of a name, `rotations.toml` says how long they take, so that all rotations can be about equally long. The
number of commits decides which rotation it is, so the next commit has the next one; `ROTATION=n` chooses it.

    .venv/bin/python tests/tiers.py    prints what the files of each rotation take

Where `-m` asks for a marker only the files that name it are read: to read all takes a quarter of a minute.
"""

from __future__ import annotations

import os
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest

TURNS = 20
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


def turns(takes: Mapping[str, int], rotations: int = TURNS) -> dict[str, int]:
    """Returns the rotation in which each file has its turn, by what it takes: the longest first, each in the rotation
    that has least until then."""
    whole, found = [0] * rotations, dict[str, int]()
    for file in sorted(takes, key=lambda file: (-takes[file], file)):
        found[file] = min(range(rotations), key=lambda turn: whole[turn])
        whole[found[file]] += takes[file]
    return found


def _resting(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """Yields what has its turn in another rotation."""
    for (function, every), tests in _by_function(items).items():
        for place, test in enumerate(sorted(tests, key=lambda test: test.nodeid)):
            if (place + crc32(function.encode()) - _number()) % every:
                yield test
    for name, files in _by_file(items).items():
        ours = _whose_turn(name, list(files))
        yield from (test for file, tests in files.items() if file not in ours for test in tests)


def _whose_turn(name: str, files: Sequence[str]) -> set[str]:
    """Returns which of the files that take turns under a name have theirs in this rotation."""
    takes = TAKES.get(name)
    if takes is None:
        return set(sorted(files)[rotation() % len(files) :: len(files)])
    if strange := set(files) - takes.keys():
        raise pytest.UsageError(f"what {', '.join(sorted(strange))} take together is not in {TABLE}: add it")
    return {file for file, turn in turns(takes).items() if turn == rotation()}


def _by_function(items: Sequence[pytest.Item]) -> Mapping[tuple[str, int], Sequence[pytest.Item]]:
    """Returns the tests that take turns one by one, by their function and in how many rotations each runs once."""
    found: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        marker = item.get_closest_marker("rotates")
        if marker is not None and "together" not in marker.kwargs:
            found[item.nodeid.partition("[")[0], marker.kwargs.get("every", TURNS)].append(item)
    return found


def _by_file(items: Sequence[pytest.Item]) -> Mapping[str, Mapping[str, Sequence[pytest.Item]]]:
    """Returns the tests of the files that take turns as a whole: by the name they do it under, and by file."""
    found: dict[str, dict[str, list[pytest.Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        marker = item.get_closest_marker("rotates")
        if marker is not None and (name := marker.kwargs.get("together")) is not None:
            found[name][item.nodeid.partition("::")[0]].append(item)
    return found


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

"""`python -m lab.house`: counts what `reports/house.md` counts, and writes those cells of its column *now* again.

What is measured there (seconds, minutes, memory) stays as it is: each such cell names where its figure is from.
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from kafka_trial.errors import PASS, InputError
from kafka_trial.registry import CHECKOUT, PACKAGE
from lab.lines_to_read import lines_by_anomaly
from lab.repository import exit_status, git_revision, reports_folder

PAGE_NAME = "house.md"
TWICE = 6  # so many lines that stand twice ask for one shared piece
SINS = ("faulty", "twins")
CHECKER = ("model", "anomalies", "judge", "verdict")
TOLERANCE = re.compile(r"[-+] *\w*TOLERANCE\w*")


def main(arguments: Sequence[str] | None = None) -> int:
    """Counts, and writes the page."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.house", description="Counts the house, and writes the counted cells of its page again."
    )
    parser.parse_args(arguments)
    return exit_status("house", _write)


def _write() -> int:
    page = reports_folder() / PAGE_NAME
    counted = {name: f"{number:,}" for name, number in (count(PACKAGE, CHECKOUT) | count_checker(PACKAGE)).items()}
    page.write_text(with_counted(page.read_text(), counted, at=git_revision()))
    for name, number in counted.items():
        print(f"{number:>8}  {name}")
    return PASS


def count(package: Path, checkout: Path) -> dict[str, int]:
    """Returns what is counted of a package, and of the fixtures, tests and laboratory beside it, by the page's rows."""
    modules = sorted(package.rglob("*.py"))
    return {
        "lines": _lines(modules),
        "modules besides `__init__`": sum(module.name != "__init__.py" for module in modules),
        "groups of modules that import in a circle, type-only imports included": len(circles(package)),
        "stretches of six lines of code that stand twice": len(duplicated(modules)),
        "lines of faulty consumers and twins": lines_of_sins(checkout / "fixtures"),
        "modules with a single importer": sum(number == 1 for number in importers(package).values()),
        "lines of the laboratory": _lines((checkout / "harness" / "lab").rglob("*.py")),
        "lines of tests": _lines((checkout / "tests").rglob("*.py")),
    }


def count_checker(package: Path) -> dict[str, int]:
    """Returns what is counted of the rooms that judge a history, by the page's rows."""
    to_read = lines_by_anomaly(package).values()
    texts = [module.read_text() for room in CHECKER for module in (package / room).rglob("*.py")]
    return {
        "lines of the checker": sum(len(text.splitlines()) for text in texts),
        "floors of its model and anomalies": floors(package, ("model", "anomalies")),
        "its sites of ± tolerance": sum(len(TOLERANCE.findall(text)) for text in texts),
        "lines to read for the worst anomaly, with what makes its tables": max(to_read),
        "the same, for the median anomaly": round(statistics.median(to_read)),
    }


def importers(package: Path) -> Counter[str]:
    """Returns how many modules of a package import each of its modules."""
    modules = {_name(module, package): module for module in sorted(package.rglob("*.py"))}
    return Counter(one for name, module in modules.items() for one in {*imported(module, modules)} - {name})


def floors(package: Path, rooms: Collection[str]) -> int:
    """Returns how many modules the longest chain of imports among those of some rooms has."""
    modules = {_name(module, package): module for room in rooms for module in sorted((package / room).rglob("*.py"))}
    floor: dict[str, int] = {}
    for name in TopologicalSorter(
        {name: {*imported(module, modules)} for name, module in modules.items()}
    ).static_order():
        floor[name] = 1 + max((floor[one] for one in imported(modules[name], modules)), default=0)
    return max(floor.values(), default=0)


def _lines(modules: Iterable[Path]) -> int:
    return sum(len(module.read_text().splitlines()) for module in modules)


def with_counted(page: str, counted: Mapping[str, str], *, at: str) -> str:
    """Returns the page with each counted number, and the commit, in the third cell of its row.

    Raises:
        InputError: the page has no such row, or two.
    """
    for name, number in counted.items():
        row = rf"^(\| {re.escape(name)} \|[^|]*\|)[^|]*\|"
        page, rows = re.subn(row, rf"\g<1> {number} ({at}) |", page, flags=re.MULTILINE)
        if rows != 1:
            raise InputError(PAGE_NAME, f"has {rows} rows '| {name} | … |', and must have one")
    return page


def lines_of_sins(fixtures: Path) -> int:
    """Returns how many lines all files of the sins and twins have together."""
    files = [file for kind in SINS for file in (fixtures / kind).rglob("*") if "__pycache__" not in file.parts]
    return sum(len(file.read_text().splitlines()) for file in files if file.is_file())


def duplicated(modules: Sequence[Path]) -> list[str]:
    """Returns the places where the same six lines of code begin, as `one.py:12 and other.py:80`.

    Blanks may differ; lines without a word, docstrings, comments and imports do not count. Where seven lines stand
    twice there are two such places.
    """
    places = defaultdict(list)
    for module in modules:
        lines = _code_lines(module)
        for at in range(len(lines) - TWICE + 1):
            places[tuple(line for _, line in lines[at : at + TWICE])].append(f"{module}:{lines[at][0]}")
    return [" and ".join(found) for found in places.values() if len(found) > 1]


def _code_lines(module: Path) -> list[tuple[int, str]]:
    """Returns the lines of a module that count as code, each with its number."""
    text = module.read_text()
    skipped = {number for node in ast.walk(ast.parse(text)) if _is_no_code(node) for number in _numbers(node)}
    lines = ((number, " ".join(line.split())) for number, line in enumerate(text.splitlines(), 1))
    return [(n, line) for n, line in lines if n not in skipped and re.search(r"\w", line) and line[0] != "#"]


def _is_no_code(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):  # a docstring
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return isinstance(node, ast.Import | ast.ImportFrom)


def _numbers(node: Any) -> range:
    return range(node.lineno, node.end_lineno + 1)


def circles(package: Path) -> list[set[str]]:
    """Returns the groups of modules of a package each of which imports all others, directly or not."""
    modules = {_name(module, package): module for module in sorted(package.rglob("*.py"))}
    imports = {name: set(imported(module, modules)) for name, module in modules.items()}
    reached = {name: _reached(name, imports) for name in modules}
    groups = {frozenset(other for other in far if name in reached[other]) for name, far in reached.items()}
    return [set(group) for group in groups if group]


def imported(module: Path, known: Collection[str]) -> Iterator[str]:
    """Yields those of ours that a module imports, as they are known (`judge.lines`); of a package the very modules."""
    for node in ast.walk(ast.parse(module.read_text())):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [alias.name for alias in node.names]
        within = [f"{node.module}.{name}" for name in names] if isinstance(node, ast.ImportFrom) else names
        for name in within:
            inside = name.removeprefix("kafka_trial.")
            if inside not in known:
                inside = inside.rpartition(".")[0]
            if name.startswith(("kafka_trial.", "lab.")) and inside in known:
                yield inside


def _reached(name: str, imports: Mapping[str, set[str]]) -> set[str]:
    waiting, reached = [name], set[str]()
    while waiting:
        new = imports[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached


def _name(module: Path, package: Path) -> str:
    return ".".join(module.relative_to(package).with_suffix("").parts).removesuffix(".__init__")


if __name__ == "__main__":
    sys.exit(main())

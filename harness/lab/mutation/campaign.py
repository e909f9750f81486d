"""A campaign: the mutants that have not been tried yet, in the order of the seed, until time is up.

The order is drawn, so that what has been tried is a sample of all. A row counts as long as its function stays as it is;
a survivor is tried again once the tests have changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kafka_trial.registry import CHECKOUT
from kafka_trial.report.row_files import append_row
from lab.mutation.killers import PACKAGES, SOURCES, TESTS, Judges, named, test_files
from lab.mutation.operators import Mutant, digest_of, function_digests, mutants, planted
from lab.mutation.rows import (
    BROKEN,
    KILLED,
    SEED,
    SURVIVED,
    Module,
    Row,
    contradictions,
    counting,
    page,
    read_equivalents,
    read_rows,
)
from lab.repository import git_revision

ROWS, PAGE = CHECKOUT / "reports" / "mutation.jsonl", CHECKOUT / "reports" / "mutation.md"
LAB = Path(__file__).parent.parent
EQUIVALENTS = LAB / "mutation" / "equivalents.toml"
NAIVE = LAB / "naive"
DRAWN_BY = ("history_strategies.py", "agreement/sample.py", "agreement/sayings.py")
TOLD_EVERY = 20
INVARIANT = re.compile(r'^@invariant\(\s*"([^"]+)"', re.MULTILINE)


def try_all(
    *, minutes: float | None, only: Sequence[str] | None, again: bool, survivors: bool, side_by_side: int | None
) -> None:
    """Tries what has not been tried, `side_by_side` at once (None: as many as cores); begins no further mutant after
    `minutes`. `survivors`: only those that have been tried, and were not noticed."""
    until_s = None if minutes is None else time.monotonic() + minutes * 60
    modules, tests = read_modules(), tests_digest()
    known = counting(read_rows(ROWS), modules)
    wanted = [mutant for mutant in drawn(modules) if not only or mutant.module in only]
    equivalents = read_equivalents(EQUIVALENTS)
    todo = []
    for one in wanted:
        row, listed = known.get(one), any(equivalent.is_about(one) for equivalent in equivalents)
        if not _settled(row, modules[one.module], tests, again=again, listed=listed) and (row or not survivors):
            todo.append(one)
    told: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        judges = _ready(Path(folder)) if todo else None

        def tried(mutant: Mutant) -> Row | None:
            if judges is None or (until_s is not None and time.monotonic() > until_s):
                return None
            return _tried(judges, mutant, modules[mutant.module], tests)

        with ThreadPoolExecutor(side_by_side or os.cpu_count()) as pool:
            for row in filter(None, pool.map(tried, todo)):
                append_row(ROWS, row)
                told[row.result] += 1
                if row.result != KILLED:
                    print(f"{row.result}: line {row.line} of {row.mutant} {row.by}", flush=True)
                if told.total() % TOLD_EVERY == 1:
                    print(f"{told.total()} of {len(todo)}: {dict(told)}", flush=True)
    print(f"{told.total()} mutants tried: {dict(told)}; {len(todo) - told.total()} still to try")


def write_page() -> int:
    """Writes the page from the rows; 1 where a listed equivalent was killed, and so is none."""
    rows, equivalents, modules = read_rows(ROWS), read_equivalents(EQUIVALENTS), read_modules()
    PAGE.write_text(page(rows, equivalents, modules))
    return 1 if contradictions(rows, equivalents, modules) else 0


def read_modules() -> dict[str, Module]:
    """Returns the modules that are mutated, by name."""
    files = [path for package in PACKAGES for path in sorted((SOURCES / package).glob("*.py"))]
    texts = {named(path.parent.name, path.stem): path.read_text() for path in files}
    return {name: Module(name, text, function_digests(text), mutants(name, text)) for name, text in texts.items()}


def drawn(modules: Mapping[str, Module]) -> list[Mutant]:
    """Returns all mutants in the order of the seed; an edit of one module leaves the order of the others'."""
    every = [mutant for module in modules.values() for mutant in module.mutants]
    return sorted(every, key=lambda mutant: _digest(f"{SEED} {mutant} {mutant.number}"))


def tests_digest() -> str:
    """Returns a digest of everything that judges a mutant."""
    files = [*test_files(), *TESTS.glob("*.py"), *NAIVE.glob("*.py"), *(LAB / name for name in DRAWN_BY)]
    return _digest("\0".join(path.read_text() for path in sorted(files)))


def _settled(row: Row | None, module: Module, tests: str, *, again: bool, listed: bool) -> bool:
    """Whether a mutant need not be tried: it was killed, is `listed` as equivalent, or nothing that could kill it has
    changed."""
    if row is None or row.result == BROKEN or row.function_digest != digest_of(row.mutant, module.digests):
        return False
    return row.result == KILLED or (not again and (listed or row.tests_digest == tests))


def _ready(folder: Path) -> Judges:
    judges = Judges(folder)
    unchanged = judges.prepare(test_files())
    if unchanged.result != SURVIVED:
        sys.exit(f"mutation: the tests fail where nothing was planted ({unchanged.by}): mend them first")
    return judges


def _tried(judges: Judges, mutant: Mutant, module: Module, tests: str) -> Row:
    place = module.mutants[mutant]
    outcome = judges.judge(module.name, planted(module.text, place), _order(module), function=mutant.function)
    about = {"function_digest": digest_of(mutant, module.digests), "tests_digest": tests, "commit": git_revision()}
    return Row(mutant, place.line, len(module.mutants), outcome.result, outcome.by, **about)


def _order(module: Module) -> list[Path]:
    """Returns the test files: the module's own, then those that noticed its mutants or name its anomalies."""
    names = INVARIANT.findall(module.text)
    kills = Counter(row.by.partition("::")[0] for row in read_rows(ROWS) if row.mutant.module == module.name)

    def weight(file: Path) -> tuple[bool, int]:
        text = file.read_text()
        known = kills[str(file.relative_to(CHECKOUT))] + sum(text.count(f'"{name}"') for name in names)
        return file.stem != f"test_{module.name.rpartition('.')[2]}", -known

    return sorted(test_files(), key=weight)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]

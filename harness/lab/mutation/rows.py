"""What came out, as values: one row for each attempt, and the page that is made of the rows.

A row is never rewritten. Tried again (the tests have changed since it survived), a mutant has another row, and the last
one counts. A function that has changed has other mutants: only rows of functions as they are now are on the page.
"""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafka_trial.report.row_files import rows_in
from lab.mutation.operators import OPERATORS, Mutant, Place, digest_of

SEED = 20261121
KILLED, SURVIVED, BROKEN = "killed", "survived", "broken"
SHOWN_MAX = 160


@dataclass(frozen=True)
class Module:
    """A module with its text, a digest of each of its functions, and its mutants."""

    name: str
    text: str
    digests: Mapping[str, str]
    mutants: Mapping[Mutant, Place]


@dataclass(frozen=True)
class Row:
    """One attempt. `of` is how many mutants its module had; the digests are of its function, and of the tests.

    Rows before 2026-11-25 have a digest of the module instead (`source_digest`), and do not count any more.
    """

    mutant: Mutant
    line: int
    of: int
    result: str
    by: str
    tests_digest: str
    commit: str
    function_digest: str = ""
    source_digest: str = ""


@dataclass(frozen=True)
class Equivalent:
    """A change that changes nothing a judgement shows, and why."""

    module: str
    function: str
    before: str
    after: str
    reason: str

    def is_about(self, mutant: Mutant) -> bool:
        """Whether this is that mutant, wherever in its function it stands."""
        mine = (self.module, self.function, self.before, self.after)
        return mine == (mutant.module, mutant.function, mutant.before, mutant.after)


def read_rows(place: Path) -> list[Row]:
    """Returns the rows of a file, oldest first."""
    return rows_in(place, lambda table: Row(**(table | {"mutant": Mutant(**table["mutant"])})))


def read_equivalents(place: Path) -> list[Equivalent]:
    """Returns the listed equivalents."""
    return [Equivalent(**table) for table in tomllib.loads(place.read_text()).get("equivalent", [])]


def counting(rows: Iterable[Row], modules: Mapping[str, Module]) -> dict[Mutant, Row]:
    """Returns the row that counts for each mutant: the last one of its function as it is now."""
    return {row.mutant: row for row in rows if row.mutant.module in modules and _is_of(row, modules[row.mutant.module])}


def _is_of(row: Row, module: Module) -> bool:
    return row.mutant in module.mutants and row.function_digest == digest_of(row.mutant, module.digests)


def page(rows: Sequence[Row], equivalents: Sequence[Equivalent], modules: Mapping[str, Module]) -> str:
    """Returns the page as Markdown: made of the rows, the listed equivalents, and which mutants there are now."""
    last = counting(rows, modules)
    reasons = {mutant: told for mutant in last if (told := _reason(mutant, equivalents))}
    commits = ", ".join(sorted({row.commit for row in last.values()})) or "-"
    whole = sum(len(module.mutants) for module in modules.values())
    left = [row for row in last.values() if row.result != KILLED and row.mutant not in reasons]
    lines = [
        "# Mutation",
        "",
        "Bugs planted in `model/` and `anomalies/`, one at a time, and whether the tests noticed: "
        f"{len(last)} of the {whole} mutants that there are, drawn with seed {SEED}, at {commits}. `make mutate` "
        "goes on where it stopped. Judged by those files of `tests/invariants` and `tests/verdict` that call what was "
        "changed, then by the naive checker on histories of every kind that `tests/judge/test_two_judges_agree.py` "
        "draws. Generated from `mutation.jsonl`, which keeps every attempt, and from "
        f"`harness/lab/mutation/equivalents.toml`. {len(rows) - len(last)} attempts are set aside: the mutant was "
        "tried again, or what it changed was changed since.",
        "",
        *_sums("operator", last, reasons, lambda row: row.mutant.operator, OPERATORS),
        "",
        *_sums("module", last, reasons, lambda row: row.mutant.module, {}),
        "",
        "## What killed",
        "",
        *_killers(last),
        "",
        "## Survivors",
        "",
        *(_list(left) or ["None."]),
        "",
        "## Equivalents",
        "",
        "Changes that change nothing a judgement shows; they are not in the share.",
        "",
        *(_list([last[mutant] for mutant in reasons], reasons) or ["None."]),
        *_contradictions(last, reasons),
    ]
    return "\n".join(lines) + "\n"


def contradictions(rows: Iterable[Row], equivalents: Sequence[Equivalent], modules: Mapping[str, Module]) -> list[Row]:
    """Returns the killed ones among the listed equivalents: they are none."""
    return [
        row for row in counting(rows, modules).values() if row.result == KILLED and _reason(row.mutant, equivalents)
    ]


def _reason(mutant: Mutant, equivalents: Sequence[Equivalent]) -> str | None:
    return next((one.reason for one in equivalents if one.is_about(mutant)), None)


def _sums(
    head: str,
    last: Mapping[Mutant, Row],
    reasons: Mapping[Mutant, str],
    kind: Callable[[Row], str],
    summaries: Mapping[str, str],
) -> list[str]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in last.values():
        groups[kind(row)].append(row)
    body = [(f"{name}: {summaries[name]}" if name in summaries else name, groups[name]) for name in sorted(groups)]
    return [
        f"| {head} | tried | killed | equivalent | left | killed of what could be |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_sum(name, group, reasons) for name, group in [*body, ("all", list(last.values()))]),
    ]


def _sum(name: str, rows: Sequence[Row], reasons: Mapping[Mutant, str]) -> str:
    killed = sum(row.result == KILLED for row in rows)
    equivalent = sum(row.result != KILLED and row.mutant in reasons for row in rows)
    could = len(rows) - equivalent
    share = f"{killed / could:.1%}" if could else "-"
    return f"| {name.replace('|', '/')} | {len(rows)} | {killed} | {equivalent} | {could - killed} | {share} |"


def _killers(last: Mapping[Mutant, Row]) -> list[str]:
    files = Counter(row.by.partition("::")[0] for row in last.values() if row.result == KILLED)
    ordered = sorted(files.items(), key=lambda one: (-one[1], one[0]))
    return ["| first to notice | mutants |", "| --- | --- |", *(f"| {name} | {count} |" for name, count in ordered)]


def _list(rows: Sequence[Row], reasons: Mapping[Mutant, str] | None = None) -> list[str]:
    ordered = sorted(rows, key=lambda row: (row.mutant.module, row.line, row.mutant.after, row.mutant.number))
    return [_item(row, (reasons or {}).get(row.mutant, "")) for row in ordered]


def _item(row: Row, reason: str) -> str:
    mutant = row.mutant
    told = reason or ("" if row.result == SURVIVED else f"{row.result}: {row.by}")
    change = f"`{_short(mutant.before)}` → `{_short(mutant.after)}`"
    return f"- {mutant.module}.{mutant.function}, line {row.line}: {change}" + (f": {told}" if told else "")


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"


def _contradictions(last: Mapping[Mutant, Row], reasons: Mapping[Mutant, str]) -> list[str]:
    wrong = [row for row in last.values() if row.result == KILLED and row.mutant in reasons]
    return ["", "## Listed as equivalent, and killed", "", *_list(wrong)] if wrong else []

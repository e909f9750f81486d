"""The page of a calibration, made of its rows and of nothing else.

First the sums, then the confusion matrix of the sins (how often each was found, at which level of cooperation, by which
anomalies; how often acquitted with the sin switched off, and its twin), then every pair of consumer and scenario, then
what was calibrated before.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import comb
from typing import Any

from lab.calibration.attempts import ROWS_NAME, Row, newest, set_aside

SWITCHES: Mapping[bool | None, str] = {None: "", True: " (sin on)", False: " (sin off)"}
COLUMNS: Mapping[str, Callable[[Row], bool]] = {
    "found, telling what it does": lambda row: row.attempt.sin is True and not row.silent,
    "found, silent": lambda row: row.attempt.sin is True and row.silent,
    "switched off": lambda row: row.attempt.sin is False,
    "its twin": lambda row: row.twin_of != "",
}


def page(rows: Sequence[Row]) -> str:
    """Returns the page as Markdown: sums of the newest source, a line per consumer and scenario, older sources."""
    latest = newest(rows)
    lines = [
        "# Calibration",
        "",
        f"{len(latest)} trials of source {latest[-1].made_by if latest else '-'}, {_measured_at(latest)}. "
        f"Generated from `{ROWS_NAME}`, which keeps every attempt.",
        *_judges(latest),
        "",
        *_sums(latest),
        *_matrix(latest),
        "",
        "## Every consumer on every scenario",
        "",
        *_table(
            ["consumer", "scenario", "must be", "pass", "fail", "unknown", "as it must be", "violations", "because"],
            [_line(key, group) for key, group in sorted(_grouped(latest).items())],
        ),
        *_set_aside(rows),
        *_older(rows),
    ]
    return "\n".join([*lines, ""])


def _matrix(rows: Sequence[Row]) -> list[str]:
    """Returns the section of the sins: k of n right, in each way in which each was tried, and by what it was found."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.attempt.sin is not None or row.twin_of:
            groups[row.twin_of or _base(row)].append(row)
    if not groups:
        return []
    lines = [
        [sin, _suites(group), *([_right(part), _found(part)] for part in _parts(group))]
        for sin, group in sorted(groups.items())
    ]
    head = ["sin", "scenario", *COLUMNS]
    return ["", "## Sins", "", *_table(head, [[*line[:2], *map(_cell, line[2:])] for line in lines])]


def _parts(rows: Sequence[Row]) -> list[list[Row]]:
    return [[row for row in rows if belongs(row)] for belongs in COLUMNS.values()]


def _cell(part: Sequence[str]) -> str:
    right, found = part
    return "" if right == "0/0" else f"{right}: {found}" if found else right


def _suites(rows: Sequence[Row]) -> str:
    return ", ".join(sorted({row.attempt.scenario for row in rows}))


def _found(rows: Sequence[Row]) -> str:
    found = Counter(name for row in rows for name in row.violations)
    return ", ".join(f"{name} {count}" for name, count in sorted(found.items()))


def _base(row: Row) -> str:
    """Returns the name of a consumer without that of its variant."""
    return row.attempt.consumer.partition("/")[0]


def _measured_at(rows: Sequence[Row]) -> str:
    return f"measured at {', '.join(sorted({row.commit for row in rows})) or 'no commit yet'}"


def _judges(rows: Sequence[Row]) -> list[str]:
    """Returns how many of the rows were judged by an older judge than the newest, their histories being gone."""
    judges = Counter(row.judging_digest for row in rows)
    older = len(rows) - judges[rows[-1].judging_digest] if rows else 0
    again = sum(row.rejudged for row in rows)
    told = [f"{again} of them were judged again, by a newer judge."] if again else []
    return told + ([f"{older} of them were judged by an older judge; their histories are not kept."] if older else [])


def _set_aside(rows: Sequence[Row]) -> list[str]:
    """Returns the section on rows of the same harness that do not count any more, and why."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in set_aside(rows):
        groups[row.attempt.consumer + SWITCHES[row.attempt.sin], row.attempt.scenario].append(row)
    if not groups:
        return []
    because = "its consumer or scenario was changed since"
    table = [
        [*pair, len(group), _right(group), because, "; ".join(_wrong(row) for row in group if not row.as_expected)]
        for pair, group in sorted(groups.items())
    ]
    head = ["consumer", "scenario", "trials", "as it must be", "because", "not so"]
    return ["", "## Set aside", "", *_table(head, table)]


def _older(rows: Sequence[Row]) -> list[str]:
    """Returns the section on what was calibrated before: how many attempts, and what was not as it had to be."""
    older: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.made_by != rows[-1].made_by:
            older[row.made_by].append(row)
    if not older:
        return []
    table = [
        [digest, _measured_at(group), _right(group), "; ".join(_wrong(row) for row in group if not row.as_expected)]
        for digest, group in older.items()
    ]
    return ["", "## Before", "", *_table(["source", "", "as it must be", "not so"], table)]


def _wrong(row: Row) -> str:
    return f"{row.attempt} seed {row.attempt.seed}: {', '.join([row.verdict, *row.violations, *row.reasons])}"


def _grouped(rows: Sequence[Row]) -> Mapping[tuple[str, str], list[Row]]:
    grouped: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row.attempt.consumer + SWITCHES[row.attempt.sin], row.attempt.scenario].append(row)
    return grouped


def _sums(rows: Sequence[Row]) -> list[str]:
    names = {None: "sound consumers", True: "sins switched on", False: "sins switched off"}
    kinds: dict[str, list[Row]] = {name: [] for name in names.values()}
    for row in rows:
        kinds.setdefault(names[row.attempt.sin] + ", quiet" * row.silent, []).append(row)
    return _table(
        ["", "trials", "with a fault that bit", "pass", "fail", "unknown", "as it must be", "wrong at most (95 %)"],
        [
            [
                name,
                len(group),
                sum(any(row.faults_bit) for row in group),
                *verdicts(group),
                _right(group),
                _bound(group),
            ]
            for name, group in kinds.items()
        ],
    )


def _bound(rows: Sequence[Row]) -> str:
    """Returns how often, at most, a trial of this kind comes out wrong; what is no answer is not wrong."""
    answered = [row for row in rows if row.answered]
    return f"{upper_bound(sum(not row.as_expected for row in answered), len(answered)):.1%}"


def upper_bound(wrong: int, trials: int, *, confidence: float = 0.95) -> float:
    """Returns the greatest rate with which so few wrong ones are not yet unlikely: Clopper and Pearson, one-sided."""
    low, high = wrong / trials if trials else 1.0, 1.0
    while high - low > 1e-6:
        rate = (low + high) / 2
        so_few = sum(comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(wrong + 1))
        low, high = (rate, high) if so_few > 1 - confidence else (low, rate)
    return high


def _line(key: tuple[str, str], rows: Sequence[Row]) -> list[Any]:
    must = {_must(row) for row in rows}
    reasons = Counter(reason for row in rows if not row.answered for reason in row.reasons)
    return [
        *key,
        "; ".join(sorted(must)),
        *verdicts(rows),
        _right(rows),
        _found(rows),
        "; ".join(f"{reason} ({count})" for reason, count in sorted(reasons.items())),
    ]


def _must(row: Row) -> str:
    if row.expected:
        besides = f" (at times {', '.join(sorted(row.at_times))})" if row.at_times else ""
        return "fail: " + ", ".join(sorted(row.expected)) + besides
    return "unknown for its silence alone" if row.silent else "pass"


def verdicts(rows: Sequence[Row]) -> tuple[int, int, int]:
    """Counts pass, fail and everything else."""
    verdicts = Counter(row.verdict for row in rows)
    return verdicts["pass"], verdicts["fail"], len(rows) - verdicts["pass"] - verdicts["fail"]


def _right(rows: Sequence[Row]) -> str:
    return f"{sum(row.as_expected for row in rows)}/{len(rows)}"


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    body = [f"| {' | '.join(str(cell).replace('|', '/') for cell in row)} |" for row in rows]
    return [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *body]

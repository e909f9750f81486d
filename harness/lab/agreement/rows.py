"""What came out, as values: one row for each seed, and the page that is made of the rows.

A row is never rewritten. Only rows of what was asked last count: a harness, a naive checker or a generator of histories
that has changed is another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_trial.report.row_files import rows_in
from lab.agreement.sayings import Sayings


@dataclass(frozen=True)
class Row:
    """One seed: `per_sin` histories of each planted deviation and `clean` ones without, `histories` in all.

    By anomaly: in how many histories it was `found` (by the naive checker), of how many more it was `undecided`, and in
    how many the two `differ`; `shortest` holds the shortest difference of each. The digests are of the harness, and of
    the checker with the generator.
    """

    seed: int
    clean: int
    per_sin: int
    histories: int
    found: Mapping[str, int]
    undecided: Mapping[str, int]
    differ: Mapping[str, int]
    shortest: Mapping[str, str]
    source_digest: str
    checker_digest: str
    commit: str


def row_of(sayings: Sequence[Sayings], **about: Any) -> Row:
    """Returns what both said of the histories of a seed; `about` are a row's other fields."""
    judged = [(name, *said) for one in sayings for name, said in one.naive.items()]
    differ = [(name, one.difference(name)) for one in sayings for name in one.different]
    return Row(
        histories=len(sayings),
        found=_sorted(Counter(name for name, instances, _ in judged if instances)),
        undecided=_sorted(Counter(name for name, instances, left in judged if left and not instances)),
        differ=_sorted(Counter(name for name, _ in differ)),
        shortest={name: min((told for of, told in differ if of == name), key=len) for name, _ in sorted(differ)},
        **about,
    )


def read_rows(place: Path) -> list[Row]:
    """Returns the rows of a file, oldest first."""
    return rows_in(place, lambda table: Row(**table))


def counting(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows of what was asked last."""
    last = rows[-1:]
    return [row for row in rows for one in last if _judges(row) == _judges(one)]


def page(rows: Sequence[Row], anomalies: Sequence[str]) -> str:
    """Returns the page as Markdown: made of the rows and of nothing else; a line for each of the anomalies."""
    latest = counting(rows)
    commits = ", ".join(sorted({row.commit for row in latest})) or "-"
    lines = [
        "# Agreement",
        "",
        f"Two judges, written independently from the same definitions, on {sum(row.histories for row in latest)} "
        f"histories drawn from fresh seeds ({len(latest)} so far), at {commits}. `make calibrate` asks them again each "
        "time. Generated from `agreement.jsonl`, which keeps every seed.",
        "",
        *_differences(latest),
        "",
        "| anomaly | histories with it | left undecided | the two differ |",
        "| --- | --- | --- | --- |",
        *(_line(name, latest) for name in anomalies),
        "",
        "## Seeds",
        "",
        "| seed | histories | of each deviation | clean | the two differ |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| {row.seed} | {row.histories} | {row.per_sin} | {row.clean} | {sum(row.differ.values())} |"
            for row in latest
        ),
    ]
    earlier = [row for row in rows if row not in latest]
    if earlier:
        told = f"{len(earlier)} seeds, the two differed on {sum(bool(row.differ) for row in earlier)} of them."
        lines += ["", f"Of earlier judges: {told}"]
    return "\n".join([*lines, ""])


def _differences(rows: Sequence[Row]) -> list[str]:
    told = [f"- {name}, seed {row.seed}: `{text}`" for row in rows for name, text in row.shortest.items()]
    return ["They differ:", "", *told] if told else ["They say the same of all." if rows else "Nobody was asked."]


def _line(name: str, rows: Sequence[Row]) -> str:
    found, undecided, differ = (
        sum(counts.get(name, 0) for counts in column)
        for column in ([row.found for row in rows], [row.undecided for row in rows], [row.differ for row in rows])
    )
    return f"| {name} | {found} | {undecided} | {differ} |"


def _judges(row: Row) -> tuple[str, str]:
    return row.source_digest, row.checker_digest


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))

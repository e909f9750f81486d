"""What an invariant is: a pure, vectorised function from a batch of whole slices to findings.

Invariants register themselves with `@invariant(...)`. They know neither Spark nor a cluster. A finding names the events
that prove it, so that a stranger can open the history and see it. What needs all slices at once (a bound that follows
from the whole group's backlog) is judged in a second step from the summaries of the slices (`liveness.py`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kafka_trial.invariants.kernels import NEVER, NONE, Array, number_in, ordered
from kafka_trial.invariants.table import Table

FAMILIES = ("delivery", "ordering", "commits", "ownership", "liveness", "transactions", "resources")
MODULES = (
    *FAMILIES,
    "acknowledged",
    "commits_ahead",
    "effects",
    "epochs",
    "false_reports",
    "hanging",
    "orphans",
    "processes",
    "progress",
    "readers",
    "records",
    "handler_retries",
    "skips",
    "starvation",
    "storms",
    "torn",
)  # where invariants register themselves
EXAMPLES_MAX = 1000  # of one anomaly in one slice with the same deciding attributes; beyond it only the count goes on

# Attributes on which a claim's rules depend: of every combination examples are kept.
DECIDING = (
    "by_operator",
    "in_flight_at_crash",
    "same_key",
    "recovered",
    "own",
    "restart_inside",
    "fell",
    "skipped_record",
    "class",
    "found_in",
    "over_limit",
    "repeats",
)


@dataclass(frozen=True)
class Anomaly:
    """One instance of an anomaly, with the events that prove it by name (`source#seq`)."""

    name: str
    topic: str | None
    partition: int | None
    attributes: Mapping[str, Any]
    events: tuple[str, ...]


@dataclass(frozen=True)
class Findings:
    """What one invariant found in a batch.

    `rows` has `slice` and `order` (what instances of a slice are sorted by) and the attributes as columns; an integer
    column's NONE and NEVER mean that the attribute is absent. `proofs` are (source, seq) columns, source -1 for none.
    `undecided` are pairs of a reason and the slices (one entry a case).
    Slices are numbered as in what was judged: inside the batch, or as in the circumstances for a group.
    """

    rows: Table
    proofs: Sequence[tuple[Array, Array]] = ()
    undecided: Sequence[tuple[str, Array]] = ()

    def attributes(self) -> list[str]:
        return [name for name in self.rows.columns if name not in ("slice", "order")]


@dataclass(frozen=True)
class Invariant:
    """One invariant. `needs` names evidence (see `judge/evidence.py`), `level` the least cooperation it is seen at.

    `progress_in_kafka`: it is about positions in the offsets log, be they committed in transactions or, where
    `outside_transactions`, not. `progress_in_transaction`: about those alone that are.
    `settled`: it says what was still to do at the end; nobody is blamed for that while there was time left to do it.
    """

    name: str
    family: str
    needs: frozenset[str]
    level: str
    judge: Callable[[Any], Findings]
    of: str = "slice"  # or "group": judged from the summaries of all slices
    progress_in_kafka: bool = False
    outside_transactions: bool = False
    progress_in_transaction: bool = False
    settled: bool = False
    summary: str = field(default="")


Judge = Callable[[Any], Findings]
_REGISTERED: dict[str, Invariant] = {}


def invariant(
    name: str,
    *,
    family: str,
    needs: Sequence[str],
    level: str,
    of: str = "slice",
    progress_in_kafka: bool = False,
    outside_transactions: bool = False,
    progress_in_transaction: bool = False,
    settled: bool = False,
) -> Callable[[Judge], Judge]:
    """Registers a function as the invariant that finds the anomaly `name`."""

    def register(judge: Judge) -> Judge:
        _REGISTERED[name] = Invariant(
            name=name,
            family=family,
            needs=frozenset(needs),
            level=level,
            judge=judge,
            of=of,
            progress_in_kafka=progress_in_kafka,
            outside_transactions=outside_transactions,
            progress_in_transaction=progress_in_transaction,
            settled=settled,
            summary=_first_sentence(judge.__doc__ or ""),
        )
        return judge

    return register


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.strip().partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].removesuffix(".")


def list_invariants() -> list[Invariant]:
    """Returns every invariant, by family and name."""
    for module in MODULES:
        importlib.import_module(f"kafka_trial.invariants.{module}")
    return sorted(_REGISTERED.values(), key=lambda one: (FAMILIES.index(one.family), one.name))


def find_invariant(name: str) -> Invariant:
    """Returns one invariant by its anomaly's name."""
    return next(one for one in list_invariants() if one.name == name)


def instances(findings: Findings, sources: Sequence[str]) -> Iterator[tuple[int, dict[str, Any], list[str]]]:
    """Yields (slice, attributes, events) of the examples that are kept, in the order of slice and `order`."""
    kept = _kept(findings)
    rows = findings.rows.take(kept)
    columns = {name: rows[name].tolist() for name in findings.attributes()}
    proofs = [(source[kept].tolist(), seq[kept].tolist()) for source, seq in findings.proofs]
    for place, number in enumerate(rows["slice"].tolist()):
        attributes = {name: value for name, values in columns.items() if (value := _plain(values[place])) is not None}
        events = [f"{sources[source[place]]}#{seq[place]}" for source, seq in proofs if source[place] >= 0]
        yield number, attributes, list(dict.fromkeys(events))


def per_slice(slices: Array) -> dict[int, int]:
    """Returns how often each slice occurs."""
    found, counts = np.unique(slices, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _kept(findings: Findings) -> Array:
    """Returns the rows that are kept as examples: the first ones of each slice and deciding combination."""
    rows = findings.rows
    deciding = [rows[name] for name in DECIDING if name in rows.columns]
    codes = [np.unique(column.astype(str), return_inverse=True)[1] for column in deciding]
    order = ordered(rows["slice"], *codes, rows["order"])
    group = rows["slice"][order].astype(np.int64)
    for code in codes:
        group = group * (int(code.max(initial=0)) + 1) + code[order]
    few = order[number_in(group) < EXAMPLES_MAX]
    return few[ordered(rows["slice"][few], rows["order"][few])]


def _plain(value: Any) -> Any:
    return None if isinstance(value, int) and value in (NONE, NEVER) else value

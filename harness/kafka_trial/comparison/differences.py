"""What differs between two sides: verdicts and anomalies, counted by pairs, and figures, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from kafka_trial.comparison.explain import UNEXPLAINED, ConsumerKind, known_changes
from kafka_trial.comparison.figures import FIGURES, Figure
from kafka_trial.comparison.interval import (
    DIFFERS,
    NOT_SHOWN,
    PAIRS_MIN,
    TOO_FEW,
    one_sided,
    paired_interval,
)
from kafka_trial.comparison.pairs import ComparedTrial, Pair

FAIL: Final = "fail"


@dataclass(frozen=True)
class Sides:
    """Two sides with their pairs, by name. `versions`: whether they are two Kafka versions, or else two clients.

    `not_paired`: how many trials of either side have no decided trial on the other one.
    """

    before: str
    after: str
    versions: bool
    pairs: Sequence[Pair]
    not_paired: int = 0


@dataclass(frozen=True)
class FindingDifference:
    """A verdict ("fail") or an anomaly that was found on one side and not on the other, in at least one pair: in how
    many of the pairs on each, and in which suites the sides disagree."""

    name: str
    suites: tuple[str, ...]
    before: int
    after: int
    pairs: int
    outcome: str
    because: tuple[str, ...] = ()


@dataclass(frozen=True)
class FigureDifference:
    """A figure on both sides: its medians over the pairs that have it, the median ratio with its interval (None: too
    few pairs), and `missing`, how many pairs lack it."""

    name: str
    unit: str
    pairs: int
    missing: int
    before: float | None
    after: float | None
    ratio: float | None
    low: float | None
    high: float | None
    outcome: str
    because: tuple[str, ...] = ()


@dataclass(frozen=True)
class Difference:
    """All that was compared between two sides."""

    before: str
    after: str
    versions: bool
    pairs: int
    not_paired: int
    findings: tuple[FindingDifference, ...]
    figures: tuple[FigureDifference, ...]


def compare(all_sides: Sequence[Sides], consumer: ConsumerKind) -> list[Difference]:
    """Returns what differs between each two sides; the intervals of all figures hold together."""
    comparisons = sum(len(_with(figure, sides.pairs)) >= PAIRS_MIN for sides in all_sides for figure in FIGURES)
    return [
        Difference(
            before=sides.before,
            after=sides.after,
            versions=sides.versions,
            pairs=len(sides.pairs),
            not_paired=sides.not_paired,
            findings=tuple(_findings(sides, consumer)),
            figures=tuple(_figure(sides, figure, comparisons, consumer) for figure in FIGURES),
        )
        for sides in all_sides
    ]


def _findings(sides: Sides, consumer: ConsumerKind) -> list[FindingDifference]:
    """Returns the verdicts and anomalies in which any pair disagrees: "fail" first, then by name."""
    kinds = {kind for pair in sides.pairs for kind in pair.before.kinds ^ pair.after.kinds} - {FAIL}
    rows = [_finding(sides, kind, consumer) for kind in (FAIL, *sorted(kinds))]
    return [row for row in rows if row.suites]


def _finding(sides: Sides, kind: str, consumer: ConsumerKind) -> FindingDifference:
    came = [pair for pair in sides.pairs if _has(pair.after, kind) and not _has(pair.before, kind)]
    went = [pair for pair in sides.pairs if _has(pair.before, kind) and not _has(pair.after, kind)]
    shown = one_sided(max(len(came), len(went)), min(len(came), len(went)))
    few = TOO_FEW if len(sides.pairs) < PAIRS_MIN else NOT_SHOWN
    return FindingDifference(
        name=kind,
        suites=tuple(dict.fromkeys(pair.before.scenario for pair in (*came, *went))),
        before=sum(_has(pair.before, kind) for pair in sides.pairs),
        after=sum(_has(pair.after, kind) for pair in sides.pairs),
        pairs=len(sides.pairs),
        outcome=DIFFERS if shown else few,
        because=_because(sides, kind, rises=len(came) >= len(went), consumer=consumer),
    )


def _has(trial: ComparedTrial, kind: str) -> bool:
    return trial.verdict == FAIL if kind == FAIL else kind in trial.kinds


def _figure(sides: Sides, figure: Figure, comparisons: int, consumer: ConsumerKind) -> FigureDifference:
    values = _with(figure, sides.pairs)
    changes = [math.log((after + figure.plus) / (before + figure.plus)) for before, after in values]
    interval = paired_interval(changes, comparisons=comparisons)
    outcome = TOO_FEW if interval is None else interval.outcome
    rises = interval is not None and interval.ratio > 1
    return FigureDifference(
        name=figure.name,
        unit=figure.unit,
        pairs=len(values),
        missing=len(sides.pairs) - len(values),
        before=round(median(before for before, _ in values), 3) if values else None,
        after=round(median(after for _, after in values), 3) if values else None,
        ratio=None if interval is None else round(interval.ratio, 4),
        low=None if interval is None else round(interval.low, 4),
        high=None if interval is None else round(interval.high, 4),
        outcome=outcome,
        because=_because(sides, figure.name, rises=rises, consumer=consumer) if outcome == DIFFERS else (),
    )


def _with(figure: Figure, pairs: Sequence[Pair]) -> list[tuple[float, float]]:
    """Returns the values of a figure on both sides of each pair that has it; what cannot be divided is left out."""
    found = [(pair.before.figures.get(figure.name), pair.after.figures.get(figure.name)) for pair in pairs]
    return [
        (before, after)
        for before, after in found
        if before is not None and after is not None and min(before, after) + figure.plus > 0
    ]


def _because(sides: Sides, name: str, *, rises: bool, consumer: ConsumerKind) -> tuple[str, ...]:
    """Returns what may explain a difference between versions, with its source; of two clients nothing is known."""
    if not sides.versions:
        return ()
    known = known_changes(name, rises=rises, before=sides.before, after=sides.after, consumer=consumer)
    return tuple(f"{one.source} (from {one.since.line} on): {one.means}" for one in known) or (UNEXPLAINED,)

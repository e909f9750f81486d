"""What the pairs of a figure show: an interval of its change that holds for all figures of a certificate together.

A change is the logarithm of a ratio, after / before, one for each pair. The interval is the hull of two, and a figure
differs only where both leave 0 out:

- Student's interval of the mean at the level 1 - ALPHA / comparisons (Bonferroni; Dunn 1961, "Multiple Comparisons
  Among Means"), so that in 95 of 100 certificates no figure at all is said to differ without cause. It rests on changes
  that are about normal. The difference of two logarithms of one distribution is symmetric, and close to that.
- The interval of the median between order statistics (Thompson 1936; Conover, "Practical Nonparametric Statistics",
  3.2) at 95 %, or the highest level that so few pairs can give: 93.75 % with five. It rests on nothing but independent
  pairs, and one stray trial cannot move it.

The effect is the median change. A figure differs by 10 % or more, or that is not said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median, stdev
from typing import Final

PAIRS_MIN: Final = 5
ALPHA: Final = 0.05
EFFECT_MIN: Final = 0.10

DIFFERS, ALIKE, NOT_SHOWN, TOO_FEW = "differs", "alike", "not shown", "too few pairs to say"


@dataclass(frozen=True)
class Interval:
    """The ratio after / before of a figure: its median over all pairs, and between what it lies."""

    ratio: float
    low: float
    high: float

    @property
    def outcome(self) -> str:
        """`differs`, `alike` (by less than 10 %, shown), or `not shown` (neither)."""
        leaves_one_out = self.low > 1 or self.high < 1
        if leaves_one_out and not 1 - EFFECT_MIN < self.ratio < 1 + EFFECT_MIN:
            return DIFFERS
        return ALIKE if self.low > 1 - EFFECT_MIN and self.high < 1 + EFFECT_MIN else NOT_SHOWN


def paired_interval(changes: Sequence[float], *, comparisons: int) -> Interval | None:
    """Returns what these changes (natural logarithms of ratios, one a pair) show; None for fewer than five pairs.

    `comparisons`: how many figures are looked at together with this one, itself included.
    """
    if len(changes) < PAIRS_MIN:
        return None
    student, order = _student_interval(changes, ALPHA / max(1, comparisons)), _median_interval(changes)
    low, high = min(student[0], order[0]), max(student[1], order[1])
    return Interval(math.exp(median(changes)), math.exp(low), math.exp(high))


def one_sided(more: int, fewer: int) -> bool:
    """Tells whether pairs that disagree, `more` one way and `fewer` the other, show a direction: five or more that all
    go one way, or as rare a split by the exact sign test of McNemar's table (two-sided p of at most 1/16)."""
    count, least = more + fewer, min(more, fewer)
    return count >= PAIRS_MIN and 2 * _binomial_up_to(least, count) <= 2 * 0.5**PAIRS_MIN


def _student_interval(changes: Sequence[float], alpha: float) -> tuple[float, float]:
    half = student_quantile(alpha, len(changes) - 1) * stdev(changes) / math.sqrt(len(changes))
    return fmean(changes) - half, fmean(changes) + half


def _median_interval(changes: Sequence[float]) -> tuple[float, float]:
    """Returns the order statistics between which the median lies, as near to each other as the level allows."""
    ordered, place = sorted(changes), 0
    while 2 * _binomial_up_to(place + 1, len(ordered)) <= ALPHA:
        place += 1
    return ordered[place], ordered[-1 - place]


def _binomial_up_to(most: int, count: int) -> float:
    """Returns the probability of at most so many heads in so many throws of a fair coin."""
    return float(sum(math.comb(count, heads) for heads in range(most + 1)) / 2**count)


@cache
def student_quantile(alpha: float, degrees: int) -> float:
    """Returns the t that Student's distribution exceeds in size with the probability alpha, to 1e-9."""
    low, high = 0.0, 1.0
    while student_exceeds(high, degrees) > alpha:
        high *= 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if student_exceeds(middle, degrees) > alpha else (low, middle)
    return high


def student_exceeds(size: float, degrees: int) -> float:
    """Returns the probability that Student's t is larger in size: the finite sums of Abramowitz and Stegun, 26.7.3 (odd
    degrees of freedom) and 26.7.4 (even ones)."""
    angle = math.atan(size / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    term, total = (cosine, cosine) if degrees % 2 else (1.0, 1.0)
    for power in range(3 if degrees % 2 else 2, degrees - 1, 2):
        term *= cosine * cosine * (power - 1) / power
        total += term
    if degrees % 2 == 0:
        return max(0.0, 1 - sine * total)
    inside = angle + (sine * total if degrees > 1 else 0.0)
    return max(0.0, 1 - 2 * inside / math.pi)

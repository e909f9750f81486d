"""What pairs show: how rarely a difference is said where there is none, and that one is found where there is."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from kafka_trial.comparison.interval import (
    ALIKE,
    DIFFERS,
    NOT_SHOWN,
    Interval,
    one_sided,
    paired_interval,
    student_exceeds,
    student_quantile,
)

Noise = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
# How a figure of the same consumer varies from trial to trial: as values, of which a pair takes two.
NOISES: dict[str, Noise] = {
    "log-normal": lambda rng, shape: np.exp(rng.normal(0, 0.3, shape)),
    "uniform": lambda rng, shape: rng.uniform(0.5, 1.5, shape),
    "exponential": lambda rng, shape: rng.exponential(1, shape),
    "stray trials": lambda rng, shape: np.where(rng.random(shape) < 0.1, 10.0, np.exp(rng.normal(0, 0.1, shape))),
    "two values": lambda rng, shape: np.where(rng.random(shape) < 0.5, 3.0, 6.0),
}
FIGURES, CERTIFICATES = 6, 1500


@pytest.mark.parametrize("pairs", [5, 8, 18])
@pytest.mark.parametrize("name", NOISES)
def test_without_a_difference_hardly_any_certificate_says_there_is_one(name: str, pairs: int) -> None:
    """In at most 5 of 100 certificates any of six figures differs, whatever the noise; the margin is three standard
    deviations of the count."""
    rng = np.random.default_rng(7)
    values = np.log(NOISES[name](rng, (2, CERTIFICATES, FIGURES, pairs)))
    wrong = sum(
        any(outcome(changes.tolist(), comparisons=FIGURES) == DIFFERS for changes in certificate)
        for certificate in values[1] - values[0]
    )
    assert wrong <= CERTIFICATES * 0.05 + 3 * math.sqrt(CERTIFICATES * 0.05 * 0.95)


def outcome(changes: list[float], *, comparisons: int = 1) -> str:
    interval = paired_interval(changes, comparisons=comparisons)
    assert interval is not None
    return interval.outcome


@pytest.mark.parametrize("pairs", [5, 18, 30])
@pytest.mark.parametrize("ratio", [1.2, 1 / 1.2])
def test_a_change_by_a_fifth_with_little_noise_is_found(ratio: float, pairs: int) -> None:
    """In at least 95 of 100 certificates of six figures, be there only five pairs; each value varies by 2 %."""
    rng = np.random.default_rng(8)
    changes = math.log(ratio) + np.subtract(*rng.normal(0, 0.02, (2, 400, pairs)))
    assert sum(outcome(one.tolist(), comparisons=FIGURES) == DIFFERS for one in changes) >= 380


def test_four_pairs_say_nothing() -> None:
    """However clear they are; five that are clear say it."""
    changes = [math.log(2)] * 4
    assert (paired_interval(changes, comparisons=1), outcome([*changes, math.log(2)])) == (None, DIFFERS)


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (Interval(1.2, 1.01, 1.4), DIFFERS),
        (Interval(0.8, 0.7, 0.99), DIFFERS),
        (Interval(1.2, 0.99, 1.4), NOT_SHOWN),
        (Interval(1.05, 1.01, 1.09), ALIKE),
        (Interval(1.05, 1.01, 1.15), NOT_SHOWN),
        (Interval(1.0, 0.95, 1.05), ALIKE),
    ],
)
def test_a_difference_needs_an_interval_without_one_and_a_tenth(interval: Interval, expected: str) -> None:
    """That two are alike needs an interval within a tenth; all else is not shown."""
    assert interval.outcome == expected


def test_one_stray_trial_hides_a_difference_and_makes_none() -> None:
    """Seven pairs that agree and one that was ten times slower."""
    same = [0.001, -0.002, 0.003, -0.001, 0.002, -0.003, 0.001]
    assert outcome([*same, math.log(10)]) == NOT_SHOWN
    assert outcome([0.2 + one for one in same] + [-math.log(10)]) == NOT_SHOWN


@pytest.mark.parametrize(
    ("alpha", "degrees", "expected"),
    [(0.05, 1, 12.706), (0.05, 2, 4.303), (0.05, 4, 2.776), (0.01, 5, 4.032), (0.05, 17, 2.110), (0.001, 29, 3.659)],
)
def test_students_quantiles_are_those_of_the_tables(alpha: float, degrees: int, expected: float) -> None:
    """And turn back into their probability."""
    assert student_quantile(alpha, degrees) == pytest.approx(expected, abs=5e-4)
    assert student_exceeds(student_quantile(alpha, degrees), degrees) == pytest.approx(alpha)


def test_pairs_that_disagree_show_a_direction_from_five_on() -> None:
    """All five, or a split that is as rare."""
    shown = [(5, 0), (9, 1), (4, 0), (7, 1), (3, 3)]
    assert [one_sided(*one) for one in shown] == [True, True, False, False, False]

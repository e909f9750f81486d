"""What every verb asks of its options, whatever they are for: numbers within bounds, words that are text.

What only one verb can know (a name, a file, two options that exclude each other) it checks itself.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Iterator

from kafka_trial.errors import InputError

SEED_BITS = 63  # a history's JSON and numpy's generators hold no more
BOUNDS: dict[str, tuple[float, float]] = {
    "seed": (-(2**SEED_BITS), 2**SEED_BITS - 1),
    "repeat": (1, 10_000),
    "retry_unknown": (0, 100),
    "side_by_side": (1, 256),
    "add_partitions": (0, 100),
    "minutes": (0, 1_000_000),
    "partitions": (1, 100_000),
    "around": (0, 1_000_000),
    "max_mib": (0, 1_000_000_000),
    "max_records": (0, 10**15),
    "max_minutes": (0, 1_000_000),
    "readers": (0, 1_000),
}


def check_options(options: Namespace) -> None:
    """Makes sure that no number is out of bounds, and that every word can be written as UTF-8.

    Raises:
        InputError: with the option, what it was, and what it may be.
    """
    for name, value in vars(options).items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, int | float) and (bounds := BOUNDS.get(name)):
            check_number(option, value, bounds)
    for word in given_words(options):
        if not word.isascii() and any("\ud800" <= letter <= "\udfff" for letter in word):
            raise InputError(ascii(word), "holds bytes that are no UTF-8: give it, or the file, another name")


def check_seed(option: str, seed: int) -> None:
    """Makes sure that a seed can be drawn from and written down.

    Raises:
        InputError: it has more than 64 bits.
    """
    check_number(option, seed, BOUNDS["seed"])


def check_number(option: str, value: float, bounds: tuple[float, float]) -> None:
    """Makes sure that a number is within bounds, both of which are allowed.

    Raises:
        InputError: it is not.
    """
    least, most = bounds
    if not (math.isfinite(value) and least <= value <= most):
        raise InputError(option, f"{value} must be between {least} and {most}")


def given_words(options: Namespace) -> Iterator[str]:
    """Yields every word that was given as the value of an option, or in the place of one."""
    for value in vars(options).values():
        yield from (word for word in (value if isinstance(value, list) else [value]) if isinstance(word, str))

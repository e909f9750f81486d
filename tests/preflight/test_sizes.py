"""Sizes and times as people write them."""

from __future__ import annotations

import pytest

from kafka_trial.preflight.sizes import duration_text, parse_duration, parse_size, size_text


@pytest.mark.parametrize(
    ("given", "size_bytes"),
    [
        (1048576, 1048576),
        ("1048576", 1048576),
        ("300MB", 300_000_000),
        ("300 MiB", 314_572_800),
        ("1.5kB", 1500),
        ("2KB", 2000),
        ("2KiB", 2048),
        ("108GB", 108_000_000_000),
        ("1GiB", 2**30),
        ("7B", 7),
    ],
)
def test_mb_is_decimal_and_mib_is_binary(given: object, size_bytes: int) -> None:
    """MB = 10^6, MiB = 2^20, a plain number is bytes."""
    assert parse_size(given) == size_bytes


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("300mb", "unknown unit mb. Did you mean MB?"),
        ("3 parsecs", "unknown unit parsecs. Valid: B, kB, MB"),
        ("-5MB", "write a size like 300MB"),
        ("", "write a size like 300MB"),
        (True, "write a size like 300MB"),
        ("1.5B", "not a whole number of bytes"),
    ],
)
def test_what_is_no_size_is_told(given: object, said: str) -> None:
    """What was written, and what to write."""
    with pytest.raises(ValueError, match=said.replace("?", r"\?")):
        parse_size(given)


def test_times_have_units_too() -> None:
    """A plain number is seconds."""
    assert [parse_duration(given) for given in ("500ms", "10s", "2min", "12h", 3)] == [0.5, 10, 120, 43200, 3]
    with pytest.raises(ValueError, match="unknown unit d"):
        parse_duration("1d")


def test_figures_are_told_with_all_digits() -> None:
    """Bytes to the last, then in decimal units; times in the largest unit that gives 1 or more."""
    assert [size_text(999), size_text(1048576)] == ["999 bytes", "1048576 bytes (1.049 MB)"]
    assert [duration_text(seconds) for seconds in (0.5, 90, 43200)] == ["0.5 s", "1.5 min", "12 h"]

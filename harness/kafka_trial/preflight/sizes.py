"""Sizes and durations as people write them. MB is 10^6 bytes, MiB is 2^20; a plain number is bytes, or seconds."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Final

from kafka_trial.errors import shown

BYTES: Final = {
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("kMGT", 1)},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", 1)},
    "KB": 1000,
}
SECONDS: Final = {"ms": Fraction(1, 1000), "s": Fraction(1), "min": Fraction(60), "h": Fraction(3600)}
NUMBER_AND_UNIT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")
SIZES: Final = "a size like 300MB (10^6), 50MiB (2^20) or a number of bytes"
DURATIONS: Final = "a time like 500ms, 10s, 2min, 12h or a number of seconds"


def parse_size(given: object) -> int:
    """Returns a size in bytes, from a number or from words like "300MB" and "50 MiB".

    Raises:
        ValueError: it is no size, below 0, or not a whole number of bytes.
    """
    number, unit = _number_and_unit(given, SIZES)
    if unit and unit not in BYTES:
        near = next((known for known in BYTES if known.lower() == unit.lower()), "")
        hint = f" Did you mean {near}?" if near else ""
        raise ValueError(f"{given!r} has the unknown unit {unit}.{hint} Valid: {', '.join(BYTES)}")
    size = number * BYTES[unit or "B"]
    if size.denominator != 1:
        raise ValueError(f"{given!r} is not a whole number of bytes")
    return int(size)


def parse_duration(given: object) -> float:
    """Returns a duration in seconds, from a number or from words like "500ms" and "10 s".

    Raises:
        ValueError: it is no duration.
    """
    number, unit = _number_and_unit(given, DURATIONS)
    if unit and unit not in SECONDS:
        raise ValueError(f"{given!r} has the unknown unit {unit}. Valid: {', '.join(SECONDS)}")
    return float(number * SECONDS[unit or "s"])


def size_text(size_bytes: int) -> str:
    """Returns a size with all its digits, and from 1,000 bytes on also in decimal units: `1048576 bytes (1.049 MB)`."""
    unit, factor = "B", 1
    for name in ("kB", "MB", "GB", "TB"):
        if size_bytes >= BYTES[name]:
            unit, factor = name, BYTES[name]
    return f"{size_bytes} bytes" + (f" ({size_bytes / factor:.4g} {unit})" if factor > 1 else "")


def counted(count: int, what: str) -> str:
    """Returns a count with its word, in the plural where it is one."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def duration_text(duration_s: float) -> str:
    """Returns a duration in the largest unit that gives at least 1."""
    for unit, factor in (("h", 3600), ("min", 60)):
        if duration_s >= factor:
            return f"{duration_s / factor:.4g} {unit}"
    return f"{duration_s:.4g} s"


def _number_and_unit(given: object, valid: str) -> tuple[Fraction, str]:
    if isinstance(given, bool):
        raise ValueError(f"{shown(given)} is not valid: write {valid}")
    match = NUMBER_AND_UNIT.fullmatch(str(given).strip())
    if match is None:
        raise ValueError(f"{shown(given)} is not valid: write {valid}")
    return Fraction(Decimal(match[1])), match[2]

"""What the scale campaign measures: sizes, and shapes that must cost what others cost."""

from __future__ import annotations

from dataclasses import dataclass

from lab.scale.shapes import EVENTS_PER_RECORD, Shape

CHECK, DUCKDB, WARM = "check", "duckdb", "warm"
MESSAGES = 1_000_000
SHAPED = 1_000_000


@dataclass(frozen=True)
class Case:
    """A history and what is measured on it; `against`: whose cost this one's is compared with, in the same round."""

    name: str
    shape: Shape
    of: tuple[str, ...] = (CHECK,)
    against: str | None = None


SIZES = (
    Case("10^5 events", Shape(100_000), (CHECK, DUCKDB, WARM)),
    Case("10^6 events", Shape(1_000_000), (CHECK, DUCKDB, WARM)),
    Case("10^7 events", Shape(10_000_000), (CHECK, DUCKDB)),
)
HUGE = Case("10^8 events", Shape(100_000_000), (CHECK, DUCKDB))
OF_MESSAGES = Case("10^6 messages", Shape(round(MESSAGES * EVENTS_PER_RECORD)), (CHECK, DUCKDB))
PLAIN = SIZES[1].name
SHAPES = (
    Case("one hot partition", Shape(SHAPED, hot=0.9), against=PLAIN),
    Case("1000 partitions", Shape(SHAPED, partitions=1000), against=PLAIN),
    Case("10 keys", Shape(SHAPED, keys=10), against=PLAIN),
    Case("10^5 keys", Shape(SHAPED, keys=100_000), against="10 keys"),
    Case("offsets from 10^9", Shape(SHAPED, first_offset=10**9), against=PLAIN),
)


def cases(*, huge: bool = False, events_max: int | None = None) -> tuple[Case, ...]:
    """Returns what is measured, up to so many events; 10^8 only where it is asked for."""
    every = (*SIZES, OF_MESSAGES, *SHAPES, *((HUGE,) if huge else ()))
    return tuple(case for case in every if events_max is None or case.shape.events <= events_max)

"""Compaction seen: which offsets are missing between batches and inside them, and from where the log is whole."""

from __future__ import annotations

import pytest

from kafka_trial.audit.offsets import Gaps
from kafka_trial.kafka_protocol.batches import Batch

MS = 1_000_000


def _batch(base: int, end: int, *, count: int | None = None, at_ms: int = 50, control: bool = False) -> Batch:
    size = end - base if count is None else count
    return Batch(base, end, at_ms, -1, -1, transactional=False, control=control, compression=0, count=size, payload=b"")


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([_batch(0, 4), _batch(4, 9)], (0, -1)),
        ([_batch(0, 4), _batch(7, 9)], (3, 7)),
        ([_batch(0, 4, count=1), _batch(4, 9)], (3, 4)),
        ([_batch(5, 9)], (5, 5)),
        ([_batch(2, 4, at_ms=1), _batch(7, 9, at_ms=2), _batch(9, 12)], (0, -1)),
        ([_batch(0, 1), _batch(1, 2, count=0, control=True)], (0, -1)),
    ],
    ids=["whole", "between", "inside", "at the start", "before the window", "a control batch"],
)
def test_missing_offsets_are_counted_from_the_window_on(batches: list[Batch], expected: tuple[int, int]) -> None:
    """The window begins at 10 ms: what was missing before is as compaction leaves it."""
    holes = Gaps(10 * MS, 0)
    for batch in batches:
        holes.take(batch)
    assert (holes.count, holes.whole_offset) == expected

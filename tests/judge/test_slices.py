"""Slices are whole in every batch, and a worker gets all their rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_trial.errors import UnjudgeableError
from kafka_trial.judge.slices import _batch_rows, batches_of, rows_of

WRITTEN = pa.table({"slice": pa.array([1, 1, 2, 0, 1, 2], pa.int32()), "seq": range(6)})
BY_SLICE = {0: 1, 1: 3, 2: 2}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Rows as the cache has them: two stretches, each in the order of its slices."""
    pq.write_table(WRITTEN, tmp_path / "rows.parquet", row_group_size=3)
    return tmp_path / "rows.parquet"


@given(st.dictionaries(st.integers(0, 9), st.integers(1, 20), max_size=8), st.integers(1, 30))
def test_every_slice_is_in_one_batch(by_slice: dict[int, int], batch_rows: int) -> None:
    """Whole; and a batch of several slices has no more rows than it ought to have."""
    batches = batches_of(by_slice, batch_rows=batch_rows)
    assert sorted(one for batch in batches for one in batch.items()) == sorted(by_slice.items())
    assert all(len(batch) == 1 or sum(batch.values()) <= batch_rows for batch in batches)


@pytest.mark.parametrize(
    ("count", "partitions", "batch_rows"),
    [(900, None, 100_000), (612_000, None, 306_000), (10**6, None, 500_000), (10**8, None, 10**8 // 64), (900, 4, 225)],
)
def test_there_is_work_for_all_cores(count: int, partitions: int | None, batch_rows: int) -> None:
    """On two: what is little is not shared, and what is very much is not cut into hundreds."""
    assert _batch_rows(count, partitions, 2) == batch_rows


def test_slices_of_a_batch_are_neighbours() -> None:
    """Those that fill one by themselves come first, the largest before the others."""
    assert batches_of({0: 3, 1: 9, 2: 2, 3: 8, 4: 4, 5: 3}, batch_rows=7) == [
        {1: 9},
        {3: 8},
        {0: 3, 2: 2},
        {4: 4, 5: 3},
    ]


def test_a_slice_that_no_batch_can_hold_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never a wrong count: the judgement is refused."""
    monkeypatch.setattr("kafka_trial.judge.slices.SLICE_ROWS_MAX", 10)
    with pytest.raises(UnjudgeableError, match="has 50 rows, and a batch holds no more than 10"):
        batches_of({0: 50}, batch_rows=5)


@pytest.mark.parametrize(
    ("batch", "seqs"), [({1: 3}, [0, 1, 4]), ({2: 2, 0: 1}, [3, 2, 5]), (BY_SLICE, [3, 0, 1, 4, 2, 5])]
)
def test_a_batch_is_read_slice_by_slice(batch: dict[int, int], seqs: list[int], place: Path) -> None:
    """The rows of each slice in the order of the history, from wherever in the file they lie."""
    assert rows_of(place, batch)["seq"].to_pylist() == seqs


@pytest.mark.parametrize("batch", [{1: 2}, {1: 3, 3: 1}])
def test_rows_that_are_not_those_that_were_written_are_refused(batch: dict[int, int], place: Path) -> None:
    """Another file lies there: nothing is counted, and it is said what to delete."""
    with pytest.raises(UnjudgeableError, match="are not those that were written; delete"):
        rows_of(place, batch)

"""Slices are whole in every call, however batches are cut."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_trial.errors import UnjudgeableError
from kafka_trial.judge.slices import whole_slices


def _batches(slices: list[int], size: int) -> list[pa.RecordBatch]:
    rows = pa.table({"slice": pa.array(sorted(slices), pa.int32()), "seq": range(len(slices))})
    return rows.to_batches(max_chunksize=size) if slices else []


@given(st.lists(st.integers(0, 6), max_size=60), st.integers(1, 9), st.integers(1, 20))
def test_a_slice_never_straddles_two_calls(slices: list[int], batch: int, call: int) -> None:
    """Every row arrives once, in order, and no slice in two tables."""
    tables = list(whole_slices(iter(_batches(slices, batch)), call_rows=call))
    seen = [set(table["slice"].to_pylist()) for table in tables]
    assert [row for table in tables for row in table["seq"].to_pylist()] == list(range(len(slices)))
    assert sum(map(len, seen)) == len(set(slices))


def test_a_slice_that_no_call_can_hold_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never a wrong count: the judgement is refused."""
    monkeypatch.setattr("kafka_trial.judge.slices.SLICE_ROWS_MAX", 10)
    with pytest.raises(UnjudgeableError, match="more than one call holds"):
        list(whole_slices(iter(_batches([0] * 50, 5)), call_rows=5))

"""Lag series and their paths."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_trial.history.store import RunFolder
from kafka_trial.report.lag_series import POINTS_MAX, path_of, read_lag


def test_a_path_goes_in_steps() -> None:
    """Lag stays until it jumps: across first, then up or down."""
    assert path_of([(0, 0), (1, 10), (2, 5)], length_s=2, peak=10) == "M0.0,120.0H320.0V0.0H640.0V60.0"


def test_no_points_give_no_path() -> None:
    """A partition nobody measured draws nothing."""
    assert path_of([], length_s=0, peak=0) == ""


def test_thinning_keeps_the_peak_and_the_end(folder: RunFolder) -> None:
    """Of thousands of points some hundred remain, the highest and the last among them."""
    rows = [
        {
            "topic": "t",
            "partition": 0,
            "time_ns": n * 10**6,
            "committed_lag": 999 if n == 1234 else 3,
            "handled_lag": None,
        }
        for n in range(5000)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder.path / "series.parquet")
    (lag,) = read_lag(folder, [], start_ns=0)
    assert (len(lag.committed) <= POINTS_MAX + 1, lag.peak, lag.committed[-1][0], lag.handled) == (True, 999, 4.999, ())


def test_a_series_that_cannot_be_read_is_said(folder: RunFolder) -> None:
    """A torn file is a gap of the report, not an error."""
    (folder.path / "series.parquet").write_bytes(b"PAR1")
    gaps: list[str] = []
    assert (read_lag(folder, gaps, start_ns=0), gaps[0].partition(":")[0]) == ((), "series.parquet cannot be read")

"""Lag series and their paths."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_trial.history.store import RunFolder
from kafka_trial.report.lag_series import POINTS_MAX, path_of, read_lag, read_total_lag


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


def series(folder: RunFolder, *rows: tuple[int, int, int, int]) -> None:
    """Writes a series: partition, second, committed and handled lag."""
    names = ("partition", "time_ns", "committed_lag", "handled_lag")
    table = [
        {"topic": "t"} | dict(zip(names, (partition, second * 10**9, committed, handled), strict=True))
        for partition, second, committed, handled in rows
    ]
    pq.write_table(pa.Table.from_pylist(table), folder.path / "series.parquet")


def test_the_lag_of_all_partitions_is_their_sum_at_every_instant(folder: RunFolder) -> None:
    """Each counts from its first instant on, also where they have no instant in common."""
    series(folder, (0, 1, 5, 4), (0, 3, 2, 1), (1, 2, 10, 8), (1, 4, 0, 0))
    committed, handled = read_total_lag(folder, start_ns=10**9)
    assert committed == ((0.0, 5), (1.0, 15), (2.0, 12), (3.0, 2))
    assert handled == ((0.0, 4), (1.0, 12), (2.0, 9), (3.0, 1))


def test_a_committed_offset_that_never_took_effect_has_no_lag(folder: RunFolder) -> None:
    """What is behind it only grows: progress may be kept elsewhere."""
    series(folder, (0, 1, 5, 4), (0, 2, 9, 0))
    assert read_total_lag(folder, start_ns=0) == ((), ((1.0, 4), (2.0, 0)))


def test_no_series_has_no_lag(folder: RunFolder) -> None:
    """It was not judged."""
    (folder.path / "series.parquet").unlink()
    assert read_total_lag(folder, start_ns=0) == ((), ())

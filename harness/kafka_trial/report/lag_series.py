"""The lag of each partition over time, read from series.parquet for the pages, and its shape as an SVG path.

The judge writes the series, at most some thousand points each; here they are thinned to what a page can show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_trial.history.store import RunFolder
from kafka_trial.model.kernels import Ints

POINTS_MAX = 300
PARTITIONS_MAX = 12
WIDTH, HEIGHT = 640, 120
COLUMNS = ("partition", "time_ns", "committed_lag", "handled_lag")

Point = tuple[float, int]


@dataclass(frozen=True)
class Lag:
    """The lag of one partition: records after the committed offset, and records not yet handled; times in seconds since
    the start of the trial."""

    topic: str
    partition: int
    committed: tuple[Point, ...]
    handled: tuple[Point, ...]

    @property
    def peak(self) -> int:
        return max((value for _, value in (*self.committed, *self.handled)), default=0)


@dataclass(frozen=True)
class Series:
    """The lag of one partition as columns: instants in nanoseconds, and how many records were behind."""

    time_ns: Ints
    committed: Ints
    handled: Ints


def read_series(folder: RunFolder) -> dict[tuple[str, int], Series]:
    """Returns the lag series by topic and partition, in the order of time; none where they cannot be read."""
    try:
        table = pq.read_table(folder.path / "series.parquet", columns=["topic", *COLUMNS])
    except (OSError, pa.ArrowInvalid):
        return {}  # `read_lag` says why
    found: dict[tuple[str, int], Series] = {}
    for place in table.select(["topic", "partition"]).group_by(["topic", "partition"]).aggregate([]).to_pylist():
        topic, partition = place["topic"], place["partition"]
        here = table.filter((pc.field("topic") == topic) & (pc.field("partition") == partition)).sort_by("time_ns")
        columns = (here[name].fill_null(0).to_numpy().astype(np.int64) for name in COLUMNS[1:])
        found[str(topic), int(partition)] = Series(*columns)
    return found


def read_lag(folder: RunFolder, gaps: list[str], *, start_ns: int) -> tuple[Lag, ...]:
    """Returns the lag series of the partitions with the highest peaks, over the time since `start_ns`; says in `gaps`
    what cannot be read."""
    path = folder.path / "series.parquet"
    if not path.exists():
        return ()
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        gaps.append(f"series.parquet cannot be read: {error}")
        return ()
    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        gaps.append(f"series.parquet lacks the columns {', '.join(missing)}: written by another version")
        return ()
    lags = sorted(_lags(table.to_pylist(), start_ns), key=lambda lag: (-lag.peak, lag.topic, lag.partition))
    return tuple(sorted(lags[:PARTITIONS_MAX], key=lambda lag: (lag.topic, lag.partition)))


def read_total_lag(folder: RunFolder, *, start_ns: int) -> tuple[tuple[Point, ...], tuple[Point, ...]]:
    """Returns the lag of all partitions together, committed and handled, over the time since `start_ns`; none where
    it cannot be read. A committed offset that never took effect has no lag: progress may be kept elsewhere."""
    every = list(read_series(folder).values())
    if not every:
        return (), ()
    at_ns = np.unique(np.concatenate([one.time_ns for one in every]))
    committed, handled = np.zeros(len(at_ns), np.int64), np.zeros(len(at_ns), np.int64)
    for one in every:
        row = np.searchsorted(one.time_ns, at_ns, side="right") - 1
        committed += np.where(row >= 0, one.committed[row.clip(0)], 0)
        handled += np.where(row >= 0, one.handled[row.clip(0)], 0)
    at_s = ((at_ns - start_ns) / 1e9).round(3).tolist()
    falls = bool((np.diff(committed) < 0).any())
    drawn = _thinned(list(zip(at_s, committed.tolist(), strict=True))) if falls else ()
    return drawn, _thinned(list(zip(at_s, handled.tolist(), strict=True)))


def read_last_ages_ms(folder: RunFolder, *, since_ns: int) -> dict[int, int]:
    """Returns by partition, of a run with one topic, how old the oldest record after its committed offset was when its
    series ended; without series that ended before `since_ns`, and none where they cannot be read."""
    columns = ["partition", "time_ns", "committed_age_ms"]
    try:
        rows = pq.read_table(folder.path / "series.parquet", columns=columns).sort_by("time_ns").to_pylist()
    except (OSError, pa.ArrowInvalid):
        return {}
    last = {int(row["partition"]): row for row in rows}
    return {at: int(row["committed_age_ms"]) for at, row in last.items() if row["time_ns"] >= since_ns}


def path_of(points: Sequence[Point], *, length_s: float, peak: int) -> str:
    """Returns the points as the `d` of an SVG path in a box of WIDTH × HEIGHT: steps, for lag jumps."""
    if not points:
        return ""
    across, up = WIDTH / max(length_s, 0.001), HEIGHT / max(peak, 1)
    places = [(at_s * across, HEIGHT - value * up) for at_s, value in points]
    head = f"M{places[0][0]:.1f},{places[0][1]:.1f}"
    return head + "".join(f"H{x:.1f}V{y:.1f}" for x, y in places[1:])


def _lags(rows: Iterable[Mapping[str, Any]], start_ns: int) -> Iterable[Lag]:
    slices: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        slices.setdefault((str(row.get("topic") or ""), int(row["partition"])), []).append(row)
    for (topic, partition), part in slices.items():
        part.sort(key=lambda row: row["time_ns"])
        committed, handled = (_points(part, name, start_ns) for name in ("committed_lag", "handled_lag"))
        yield Lag(topic, partition, committed, handled)


def _points(rows: Sequence[Mapping[str, Any]], name: str, start_ns: int) -> tuple[Point, ...]:
    points = [(round((row["time_ns"] - start_ns) / 1e9, 3), int(row[name])) for row in rows if row[name] is not None]
    return _thinned(points)


def _thinned(points: list[Point]) -> tuple[Point, ...]:
    """Keeps the highest point of each of POINTS_MAX stretches, and the last of all: no peak is lost."""
    if len(points) <= POINTS_MAX:
        return tuple(points)
    size = -(-len(points) // POINTS_MAX)
    stretches = [points[start : start + size] for start in range(0, len(points), size)]
    kept = [max(stretch, key=lambda point: point[1]) for stretch in stretches]
    return (*kept, points[-1]) if kept[-1] != points[-1] else tuple(kept)

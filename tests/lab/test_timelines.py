"""Timelines of the cases: one partition of a judged run, thinned without losing a peak, kept, read again and drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from kafka_trial.errors import InputError
from kafka_trial.history.store import RunFolder
from kafka_trial.report.partition_timeline import PartitionLag
from lab.cases import plots
from lab.cases.timelines import (
    POINTS_MAX,
    append_timeline,
    draw_timeline,
    newest_timeline,
    thinned,
    timeline_row,
)
from literal_run import anomaly, make_folder


def test_a_run_is_kept_and_read_again(tmp_path: Path) -> None:
    """The row tells owners, commits and lag of its partition; the last row of a cell counts."""
    row = timeline_row(make_folder(tmp_path), case=0, cell="frozen/none", seed=7)
    assert (row.partition, row.verdict, row.committed) == (1, "fail", (0, 40, 1))
    assert row.commits == ((16_000, 12, -1), (18_000, 11, -1))
    assert row.owners == ((-1, 3_000, 23_000),)
    file = tmp_path / "rows.jsonl"
    append_timeline(replace(row, committed=(5, 5, 5)), file)
    append_timeline(row, file)
    assert newest_timeline(0, "frozen/none", file) == row
    assert newest_timeline(0, "frozen/other", file) is None


def test_the_partition_of_the_anomaly_is_the_one_kept(tmp_path: Path) -> None:
    """Of several partitions the row shows the one that the case is about."""
    folder = make_folder(tmp_path)
    with (folder.path / "anomalies.jsonl").open("ab") as file:
        file.write(orjson.dumps({**anomaly(), "anomaly": "false-lag", "partition": 2}) + b"\n")
    shown = [
        timeline_row(folder, case=0, cell="x", seed=1, anomaly=name).partition
        for name in ("commit-regression", "false-lag", "elsewhere")
    ]
    assert shown == [1, 2, 1]


def test_no_peak_is_lost_in_thinning() -> None:
    """One instant in ten thousand is the highest: it stays, and so does the last of all."""
    committed = [0] * 10_000
    committed[4321] = 99
    kept = thinned(PartitionLag(at_ms=range(10_000), committed=committed))
    assert (max(kept["committed"]), kept["at_ms"][kept["committed"].index(99)], kept["at_ms"][-1]) == (99, 4321, 9999)
    assert len(kept["at_ms"]) <= POINTS_MAX + 1
    assert kept["handled"] == ()


def test_the_plot_says_whose_commits_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lag, age and commits stand in one file, whose words can be searched."""
    monkeypatch.setattr(plots, "reports_folder", lambda: tmp_path / "reports")
    row = timeline_row(make_folder(tmp_path), case=0, cell="frozen/none", seed=7)
    draw_timeline(replace(row, members=("m0",), commits=(*row.commits, (19_000, 12, 0))), "drawn")
    drawn = plots.plot_path("drawn").read_text()
    assert ">m0 commits</text>" in drawn
    assert ">nobody knows whose commits</text>" not in drawn
    assert ">commits of nobody known</text>" in drawn
    assert ">lag, records</text>" in drawn


def test_a_run_without_a_history_is_refused(tmp_path: Path) -> None:
    """It says which folder has nothing to draw."""
    (tmp_path / "history").mkdir()
    with pytest.raises(InputError, match=str(tmp_path)):
        timeline_row(RunFolder(tmp_path), case=0, cell="x", seed=1)

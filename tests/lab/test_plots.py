"""Plots of docs/cases: the same rows give the same file, whose words can be searched."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.cases import plots


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where plots go instead of the repository's own folder."""
    monkeypatch.setattr(plots, "reports_folder", lambda: tmp_path / "reports")
    return tmp_path / plots.FOLDER


def test_the_same_points_give_the_same_file_without_a_date(folder: Path) -> None:
    """A page that is made again of the same rows shows no difference."""
    files = []
    for _ in range(2):
        with plots.plot("rate") as axes:
            axes.plot([1, 2], [3, 4], label="records a second")
            axes.legend()
        files.append((folder / "rate.svg").read_bytes())
    assert files[0] == files[1]
    assert b">records a second</text>" in files[0]
    assert b"date>" not in files[0]


def test_another_point_gives_another_file(folder: Path) -> None:
    """The check of sameness can fail."""
    files = []
    for value in (4, 5):
        with plots.plot("rate") as axes:
            axes.plot([1, 2], [3, value])
        files.append((folder / "rate.svg").read_bytes())
    assert files[0] != files[1]


def test_plots_below_one_another_share_their_axis(folder: Path) -> None:
    """Lag above, commits below: one file, one axis of time."""
    with plots.plots("two", rows=2) as (above, below):
        above.plot([0, 10], [1, 1])
        below.plot([2, 3], [1, 1])
    assert above.get_xlim() == below.get_xlim()
    assert (folder / "two.svg").exists()

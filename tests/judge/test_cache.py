"""The cache of a run folder: used while it fits the history, made anew when it does not."""

from __future__ import annotations

import errno
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest

from histories import assigned, committed, exited, fetched, generation, handled, history, oom_kills, sampled
from kafka_trial.history.event import to_line
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.cache import SliceRows, slice_rows


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """Returns a run folder with a small history."""
    folder = RunFolder(tmp_path)
    folder.history.mkdir()
    vitals = [generation(1), sampled("m0", 9), oom_kills(1), oom_kills(2), fetched("m0", 0, complete=True)]
    for event in history([assigned("m0"), handled("m0", 0, 1), committed(2), *vitals, exited("m0", asked="stop")]):
        with (folder.history / f"{event.source}.jsonl").open("ab") as file:
            file.write(to_line(event))
    return folder


def _stamp(rows: SliceRows) -> int:
    return rows.path.stat().st_mtime_ns


def test_it_is_made_once(run: RunFolder) -> None:
    """The second look finds what the first one made."""
    first = slice_rows(run)
    os.utime(first.path, ns=(1, 1))
    again = slice_rows(run)
    assert (again, _stamp(again)) == (first, 1)


def test_a_flipped_byte_makes_it_anew(run: RunFolder) -> None:
    """Same size, other content: the history is the truth."""
    first = slice_rows(run)
    os.utime(first.path, ns=(1, 1))
    offsets = run.history / "offsets.jsonl"
    offsets.write_bytes(offsets.read_bytes().replace(b'"committed_offset":2', b'"committed_offset":1'))
    assert _stamp(slice_rows(run)) != 1


@pytest.mark.parametrize("broken", ["trial_context.json", "rows.parquet"])
def test_a_broken_cache_is_made_anew(run: RunFolder, broken: str) -> None:
    """Cut off, or another program's: it is only a cache."""
    first = slice_rows(run)
    (run.cache / broken).write_bytes(b"{")
    again = slice_rows(run)
    assert (again, pq.read_table(again.path).num_rows) == (first, first.count)


def test_a_deleted_cache_is_made_anew(run: RunFolder) -> None:
    """It can be deleted at any time."""
    first = slice_rows(run)
    for file in run.cache.iterdir():
        file.unlink()
    assert slice_rows(run) == first


def test_rows_are_counted(run: RunFolder) -> None:
    """The Parquet file holds as many rows of each slice as the cache says, slice by slice."""
    rows = slice_rows(run)
    slices = pq.read_table(rows.path)["slice"].to_pylist()
    assert (Counter(slices), slices) == (rows.by_slice, sorted(slices))
    assert rows.count == len(slices) > 1


@pytest.mark.parametrize("error", [PermissionError(errno.EACCES, "denied"), OSError(errno.EROFS, "read-only")])
def test_a_folder_that_cannot_be_written_is_judged_all_the_same(
    error: OSError, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of somebody else, or on a disk that is mounted to be read: the cache lies elsewhere, with the same rows."""
    expected = pq.read_table(slice_rows(run).path)
    make_folder = Path.mkdir

    def refuse(place: Path, *arguments: Any, **options: Any) -> None:
        if place == run.cache:
            raise error
        make_folder(place, *arguments, **options)

    shutil.rmtree(run.cache)
    monkeypatch.setattr(Path, "mkdir", refuse)
    elsewhere = slice_rows(run)
    assert (elsewhere.path.is_relative_to(run.path), pq.read_table(elsewhere.path)) == (False, expected)


def test_a_full_disk_is_no_folder_of_somebody_else(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told, and no cache is made anywhere."""
    monkeypatch.setattr(Path, "mkdir", Mock(side_effect=OSError(errno.ENOSPC, "no space left")))
    with pytest.raises(OSError, match="no space left"):
        slice_rows(run)

"""Reading by Spark tasks: the rows are those of one process, and what goes wrong in any task is told in one line."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_trial.errors import InputError, UnjudgeableError
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.cache import slice_rows
from kafka_trial.judge.slices import find_on_spark, map_in_arrow
from kafka_trial.judge.spark_reader import slice_rows_on
from kafka_trial.judge.spark_session import session, spark_failures_named
from kafka_trial.registry import CHECKOUT

pytestmark = pytest.mark.spark

STORED = CHECKOUT / "fixtures" / "histories" / "member-killed"
OF_THE_FUTURE = b'{"schema":99,"source":"run","seq":0,"time_ns":1,"kind":"phase"}\n'


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A stored run, without outputs."""
    copied = RunFolder(tmp_path / "run")
    shutil.copytree(STORED, copied.path)
    shutil.rmtree(copied.cache, ignore_errors=True)
    return copied


def test_tasks_make_the_rows_that_one_process_makes(folder: RunFolder) -> None:
    """Row by row; and a second time they are taken from the cache, which is not made again."""
    by_tasks = slice_rows_on(session(), folder)
    rows, made_ns = pq.read_table(by_tasks.path), by_tasks.path.stat().st_mtime_ns
    assert slice_rows_on(session(), folder).path.stat().st_mtime_ns == made_ns
    shutil.rmtree(folder.cache)
    here = slice_rows(folder)
    assert rows.equals(pq.read_table(here.path))
    assert (by_tasks.trial_context, by_tasks.by_slice) == (here.trial_context, here.by_slice)


def test_a_line_of_a_newer_version_is_wrong_input(folder: RunFolder) -> None:
    """The task that meets it says so as one process would, and no half a cache is left."""
    with (folder.history / "run.jsonl").open("ab") as file:
        file.write(OF_THE_FUTURE)
    with pytest.raises(InputError) as told:
        slice_rows(folder)
    with pytest.raises(InputError) as told_by_a_task:
        slice_rows_on(session(), folder)
    assert str(told_by_a_task.value) == str(told.value)
    assert not folder.path.joinpath("cache-being-made").exists()


def test_a_file_that_no_task_can_read_makes_the_history_unjudgeable(folder: RunFolder) -> None:
    """The sentence names the error of the executor, and nothing that was begun is left."""
    (folder.history / "unreadable.jsonl").mkdir()
    with pytest.raises(UnjudgeableError, match=r"an executor could not read the history: .*IsADirectoryError"):
        slice_rows_on(session(), folder)
    assert not folder.path.joinpath("cache-being-made").exists()


def test_a_run_folder_that_cannot_be_written_into_is_named(folder: RunFolder) -> None:
    """Something lies where the cache is made: the folder is named, and what executors need."""
    folder.path.joinpath("cache-being-made").write_text("of somebody else")
    with pytest.raises(UnjudgeableError, match=r"was not made: .*do executors see it"):
        slice_rows_on(session(), folder)


def test_slice_rows_that_no_task_can_read_are_named(folder: RunFolder) -> None:
    """Damaged in the middle, where the driver does not look: one sentence with the folder, and no stack."""
    rows = slice_rows(folder)
    whole = rows.path.read_bytes()
    rows.path.write_bytes(b"".join([whole[:4], bytes(len(whole) // 2), whole[4 + len(whole) // 2 :]]))
    with pytest.raises(UnjudgeableError) as told:
        find_on_spark(rows, rows.trial_context, spark=session())
    assert str(told.value).startswith(f"Spark could not judge the slice rows in {folder.cache}: ")
    assert "\n" not in str(told.value)


def test_a_worker_that_is_killed_is_told() -> None:
    """By what Spark says of it, not by the end of a stream that it had."""

    def die(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    with (
        pytest.raises(UnjudgeableError, match=r"^judging: .*Python worker exited unexpectedly"),
        spark_failures_named("judging"),
    ):
        map_in_arrow(session().range(1), die, "id long").toArrow()


def test_a_worker_that_has_no_memory_is_told() -> None:
    """An exception that says nothing but its name is one all the same; the line of source above it is none."""

    def starve(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        raise MemoryError  # no Error: with words of its own

    with pytest.raises(UnjudgeableError, match=r"^judging: MemoryError$"), spark_failures_named("judging"):
        map_in_arrow(session().range(1), starve, "id long").toArrow()

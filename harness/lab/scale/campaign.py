"""The scale campaign: every case in turn, round by round, each measurement a line at once.

A stopped campaign goes on where it stopped, as long as the harness's source is the same; the histories are made again
from their seeds. They lie in one folder that goes with the child processes, however this process ends.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from kafka_trial.errors import StartError, UnjudgeableError
from kafka_trial.history.store import RunFolder
from kafka_trial.process.children import ChildProcesses
from kafka_trial.report.row_files import append_row
from lab.bench.figures import machine
from lab.calibration.campaign import source_digest
from lab.repository import git_revision
from lab.scale.cases import CHECK, DUCKDB, WARM, Case
from lab.scale.cost import cost_of
from lab.scale.history import write_history
from lab.scale.samples import Sample, read_samples

HISTORY_BYTES = 215  # of an event
WORK_BYTES = 200  # of an event while it is judged: the cache, what Spark shuffles, what DuckDB spills
MARGIN_BYTES = 2_000_000_000
WITHIN_S_MIN = 900.0
EVENTS_PER_S_MIN = 10_000
LEGAL = "redelivered"  # what a sound group leaves behind where partitions are handed on


@dataclass(frozen=True)
class Turn:
    """One measurement to be taken."""

    run: int
    case: Case
    of: str


def run_campaign(rows: Path, cases: Sequence[Case], *, runs: int, place: Path | None = None) -> None:
    """Measures what is missing of `runs` rounds over the cases, and appends it to `rows`.

    `place` is where the histories are written, by default the folder for temporary files.

    Raises:
        StartError: the disk has no room for the histories, or DuckDB is not installed.
        UnjudgeableError: a measurement failed; those before it are kept.
    """
    digest = source_digest()
    done = {(sample.run, sample.case, sample.of) for sample in read_samples(rows) if sample.digest == digest}
    every = list(turns(cases, runs))
    todo = [turn for turn in every if (turn.run, turn.case.name, turn.of) not in done]
    needed = list(dict.fromkeys(turn.case for turn in todo))
    print(f"{len(todo)} of {len(every)} measurements still to be taken", flush=True)
    if not todo:
        return
    expect_ready(needed, place or Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix="kafka-trial-scale-", dir=place))
    with ChildProcesses("scale", belongings=[folder]):
        histories = {case: _written(folder, number, case) for number, case in enumerate(needed)}
        smallest = min(needed, key=lambda case: case.shape.events)
        _measured(histories[smallest], CHECK, smallest)  # the first one of a machine makes Spark's archive of classes
        for number, turn in enumerate(todo, 1):
            history = histories[turn.case]
            values = _measured(history, turn.of, turn.case)
            size_bytes = sum(file.stat().st_size for file in history.folder.history_files())
            origin = (machine(), git_revision(), digest)
            append_row(rows, Sample(turn.case.name, turn.of, turn.run, history.events, size_bytes, values, *origin))
            told = ", ".join(f"{name} {value:.2f}" for name, value in values.items() if not name.endswith("_bytes"))
            print(f"{number}/{len(todo)} {turn.case.name}, {turn.of}, round {turn.run}: {told}", flush=True)


def turns(cases: Sequence[Case], runs: int) -> Iterator[Turn]:
    """Yields every measurement, round by round, in changing order."""
    for run in range(runs):
        every = [Turn(run, case, of) for case in cases for of in case.of]
        yield from every if run % 2 == 0 else every[::-1]


def expect_ready(cases: Sequence[Case], place: Path) -> None:
    """Sees that the cases can be measured.

    Raises:
        StartError: the disk has no room for them, or DuckDB is not installed.
    """
    if find_spec("duckdb") is None:
        raise StartError("duckdb is not installed: it is a dependency of development; `make setup`")
    sizes = [case.shape.events for case in cases]
    needed = sum(sizes) * HISTORY_BYTES + max(sizes) * WORK_BYTES + MARGIN_BYTES
    free = shutil.disk_usage(place).free
    if free < needed:
        raise StartError(
            f"the histories of {', '.join(case.name for case in cases)} need {needed / 1e9:.1f} GB in {place}, which "
            f"has {free / 1e9:.1f} GB free; set TMPDIR to another disk, or ask for fewer with --events-max"
        )


@dataclass(frozen=True)
class History:
    """A history on disk."""

    folder: RunFolder
    events: int

    @property
    def scratch(self) -> Path:
        return self.folder.path.parent


def _written(place: Path, number: int, case: Case) -> History:
    print(f"writing the history of {case.name}", flush=True)
    folder = write_history(place / str(number) / "run", case.shape)
    return History(folder, sum(_lines(file) for file in folder.history_files()))


def _lines(file: Path) -> int:
    with file.open("rb") as lines:
        return sum(block.count(b"\n") for block in iter(lambda: lines.read(1 << 20), b""))


def _measured(history: History, of: str, case: Case) -> dict[str, float]:
    """Returns what one measurement gave; a history is judged as if it had never been before."""
    path = history.folder.path
    shutil.rmtree(history.folder.cache, ignore_errors=True)
    argv = {
        CHECK: [sys.executable, "-m", "kafka_trial", "check", str(path)],
        DUCKDB: [sys.executable, "-m", "lab.scale.duck", str(path)],
        WARM: [sys.executable, "-m", "lab.scale.warm", str(path)],
    }[of]
    within_s = max(WITHIN_S_MIN, case.shape.events / EVENTS_PER_S_MIN)
    cost = cost_of(f"{of} of {case.name}", argv, scratch=history.scratch, within_s=within_s)
    if of == WARM:
        return _told(cost.output)
    if of == DUCKDB and (wrong := _told(cost.output).keys() - {LEGAL}):
        raise UnjudgeableError(f"DuckDB found {', '.join(sorted(wrong))} in {case.name}, whose group is sound")
    return {"wall_s": cost.wall_s, "cpu_s": cost.cpu_s, "peak_bytes": cost.peak_bytes}


def _told(output: str) -> dict[str, float]:
    """Returns the last object that a process printed."""
    return dict(json.loads(next(line for line in reversed(output.splitlines()) if line.startswith("{"))))

"""One partition of one trial over time, kept as a row of `reports/case_timelines.jsonl`, and its plot on a case's page.

Lag by count and by age, who owned the partition, and what was committed: what the trial's own page draws, thinned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
from matplotlib.axes import Axes

from kafka_trial.errors import InputError
from kafka_trial.history.store import RunFolder
from kafka_trial.report.partition_timeline import PartitionLag, PartitionTimeline
from kafka_trial.report.row_files import append_row
from kafka_trial.report.timeline import Timeline, read_timeline
from lab.cases.plots import plots
from lab.repository import git_revision, reports_folder

ROWS_NAME: Final = "case_timelines.jsonl"
POINTS_MAX: Final = 300
COLOURS: Final = ("tab:blue", "tab:orange", "tab:green", "tab:purple", "tab:brown", "tab:pink", "tab:olive", "tab:cyan")
MS_PER_S: Final = 1000


@dataclass(frozen=True)
class TimelineRow:
    """One partition of a trial. Times are milliseconds since the faults began; `faults` are (name, begin, end),
    `owners` (member, begin, end), `commits` (instant, committed offset, member or -1), where a member is a place in
    `members`; the columns from `at_ms` on have one entry an instant, as in `PartitionLag`."""

    case: int
    cell: str
    seed: int
    verdict: str
    commit: str
    partition: int
    members: tuple[str, ...]
    faults: tuple[tuple[str, int, int], ...]
    owners: tuple[tuple[int, int, int], ...]
    commits: tuple[tuple[int, int, int], ...]
    at_ms: tuple[int, ...]
    committed: tuple[int, ...]
    handled: tuple[int, ...]
    committed_age_ms: tuple[int, ...]
    handled_age_ms: tuple[int, ...]


def timeline_row(folder: RunFolder, *, case: int, cell: str, seed: int, anomaly: str | None = None) -> TimelineRow:
    """Returns the row of a judged run folder.

    It is that of the partition where `anomaly` was found, else of the one on which most members committed.

    Raises:
        InputError: its history holds nothing that can be drawn.
    """
    verdict = folder.read_json("verdict.json")
    timeline = read_timeline(folder, verdict)
    if timeline is None or not timeline.partitions:
        said = "; ".join(timeline.notes) if timeline else ""
        raise InputError(str(folder.path), f"no partition of it can be drawn {said}".rstrip())
    shown = _partition(folder, timeline, anomaly)
    zero_ms = dict(timeline.phases).get("faults", timeline.begin_ms)
    lag = thinned(shown.lag)
    return TimelineRow(
        case=case,
        cell=cell,
        seed=seed,
        verdict=str(verdict["verdict"]),
        commit=git_revision(),
        partition=shown.partition,
        members=tuple(timeline.members),
        faults=tuple((name, begin - zero_ms, end - zero_ms) for name, _, begin, end in timeline.faults),
        owners=tuple((member, begin - zero_ms, end - zero_ms) for member, begin, end, *_ in shown.owners),
        commits=tuple((at - zero_ms, offset, member) for at, offset, member, *_ in shown.commits),
        **lag | {"at_ms": tuple(at - zero_ms for at in lag["at_ms"])},
    )


def append_timeline(row: TimelineRow, file: Path | None = None) -> None:
    """Adds one row to the file of timelines."""
    append_row(file or reports_folder() / ROWS_NAME, row)


def newest_timeline(case: int, cell: str, file: Path | None = None) -> TimelineRow | None:
    """Returns the last row of a cell; None where there is none."""
    path = file or reports_folder() / ROWS_NAME
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    own = [table for table in map(orjson.loads, lines) if (table["case"], table["cell"]) == (case, cell)]
    return _of_table(own[-1]) if own else None


def draw_timeline(row: TimelineRow, name: str) -> None:
    """Draws one row as docs/cases/plots/`name`.svg: lag by count, by age, and commits over who owned the partition."""
    with plots(name, rows=3, figsize=(7.5, 6.5)) as (count, age, commits):
        at_s = [at / MS_PER_S for at in row.at_ms]
        _steps(count, at_s, row.committed, row.handled, 1)
        count.set_ylabel("lag, records")
        count.legend(loc="upper left")
        _steps(age, at_s, row.committed_age_ms, row.handled_age_ms, MS_PER_S)
        age.set_ylabel("oldest of them, s")
        _owners(commits, row)
        _commits(commits, row)
        commits.set_ylabel("committed offset")
        commits.set_xlabel(f"seconds since the faults began; partition {row.partition}, grey: the fault")
        for axes in (count, age, commits):
            for _, begin, end in row.faults:
                axes.axvspan(begin / MS_PER_S, end / MS_PER_S, color="0.85", zorder=0)


def _of_table(table: dict[str, Any]) -> TimelineRow:
    columns = {name: _tuples(value) for name, value in table.items()}
    return TimelineRow(**columns)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _partition(folder: RunFolder, timeline: Timeline, anomaly: str | None) -> PartitionTimeline:
    path = folder.path / "anomalies.jsonl"
    rows = [orjson.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
    places = {(row.get("topic"), row.get("partition")) for row in rows if row.get("anomaly") == anomaly}
    hit = [one for one in timeline.partitions if (one.topic, one.partition) in places]
    return hit[0] if hit else max(timeline.partitions, key=_hands)


def _hands(partition: PartitionTimeline) -> int:
    """How many members committed on it."""
    return len({member for _, _, member, *_ in partition.commits})


def thinned(lag: PartitionLag) -> dict[str, Any]:
    """Keeps, of each of POINTS_MAX stretches, the instant of the highest committed lag, and the last of all."""
    columns = {name: np.asarray(values) for name, values in asdict(lag).items()}
    size = len(columns["at_ms"])
    stretches = np.array_split(np.arange(size), min(size, POINTS_MAX)) if size else []
    by = columns["committed"] if len(columns["committed"]) else columns["handled"]
    kept = sorted({*(int(one[np.argmax(by[one])]) for one in stretches), *([size - 1] if size else [])})
    return {name: tuple(values[kept].tolist()) if len(values) else () for name, values in columns.items()}


def _steps(axes: Axes, at_s: Sequence[float], committed: Sequence[int], handled: Sequence[int], unit: int) -> None:
    for values, label, style in ((committed, "after the committed offset", "-"), (handled, "not handled yet", "--")):
        if values:
            axes.step(at_s, [value / unit for value in values], style, where="post", label=label, linewidth=1)


def _owners(axes: Axes, row: TimelineRow) -> None:
    """Bands at the foot of the plot, one a member."""
    for member, begin, end in row.owners:
        axes.axvspan(begin / MS_PER_S, end / MS_PER_S, ymax=0.05, color=_colour(member), linewidth=0)


def _commits(axes: Axes, row: TimelineRow) -> None:
    for member in sorted({member for *_, member in row.commits}):
        own = [(at / MS_PER_S, offset) for at, offset, whose in row.commits if whose == member]
        name = f"{row.members[member]} commits" if member >= 0 else "commits of nobody known"
        axes.plot(*zip(*own, strict=True), ".", markersize=3, color=_colour(member), label=name)
    if row.commits:
        axes.legend(loc="lower right", title="band below: owns the partition", title_fontsize="small")


def _colour(member: int) -> str:
    return COLOURS[member % len(COLOURS)] if member >= 0 else "black"

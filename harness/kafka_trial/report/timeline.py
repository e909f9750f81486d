"""The timeline of one judged run as plain data: who owned what, what was handled and committed, lag, faults, anomalies.

Stands after the verdict, before the page (`html.py`), whose script draws it. It is made from the slice rows of the
judge's cache, of the partitions with most to tell, and has a bounded size whatever the history's. The instants are
those that the judge goes by: work when its line says so, a commit when it took effect, a record when it was appended.
Numbers are milliseconds since the start of the trial; members, partitions and names of anomalies are places in their
lists.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_trial.errors import InputError
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.cache import SliceRows, cached_rows, make_cache
from kafka_trial.judge.consumer_settings import settings_of
from kafka_trial.model.batch import Batch
from kafka_trial.model.rows import NOWHERE, NUMBERS
from kafka_trial.model.table import Table
from kafka_trial.model.trial_context import TrialContext
from kafka_trial.report.anomaly_instants import AnomalyInstants, read_anomaly_instants
from kafka_trial.report.event_text import bounded
from kafka_trial.report.lag_series import read_series
from kafka_trial.report.partition_timeline import PartitionTimeline, event_times, partition_timeline
from kafka_trial.report.report_data import in_order
from kafka_trial.report.run_metadata import start_ns
from kafka_trial.report.timeline_clock import TimelineClock

PARTITIONS_MAX = 12
ROWS_MAX = 4_000_000  # slice rows that are read for one page: more partitions are drawn only while they fit


@dataclass(frozen=True)
class Timeline:
    """What the page draws; all instants are milliseconds since the start of the trial (`run_metadata.start_ns`).

    `phases` are (name, begin); `faults` (name, target, begin, end); `incarnations` (member, number, begin, end, how it
    ended), `member` a place in `members`. `age_limit_ms`: how old a record may become, where
    that is claimed. `notes` say what is not drawn, and why.
    """

    begin_ms: int = 0
    end_ms: int = 0
    phases: Sequence[tuple[str, int]] = ()
    faults: Sequence[tuple[str, str, int, int]] = ()
    members: Sequence[str] = ()
    incarnations: Sequence[tuple[int, int, int, int, str]] = ()
    partitions: Sequence[PartitionTimeline] = ()
    anomalies: AnomalyInstants = field(default_factory=AnomalyInstants)
    age_limit_ms: float | None = None
    notes: Sequence[str] = ()


def read_timeline(folder: RunFolder, verdict: Mapping[str, Any]) -> Timeline | None:
    """Returns the timeline of a run folder judged by `verdict`; None where its history holds nothing that can be
    drawn."""
    try:
        with _rows_of(folder) as rows:
            context = replace(rows.trial_context, settings=settings_of(folder.path / "consumer.toml"))
            return _timeline(folder, rows, context, verdict)
    except (InputError, OSError, pa.ArrowInvalid) as error:
        return Timeline(notes=(f"no timeline: {bounded(error, most=400)}",))


@contextmanager
def _rows_of(folder: RunFolder) -> Iterator[SliceRows]:
    """Yields the slice rows, from the cache where it fits the history, else made anew for this alone."""
    if (known := cached_rows(folder)) is not None:
        yield known
        return
    with tempfile.TemporaryDirectory(prefix="kafka-trial-timeline-") as place:
        yield make_cache(Path(place), folder.history_files())


def _timeline(folder: RunFolder, rows: SliceRows, context: TrialContext, verdict: Mapping[str, Any]) -> Timeline | None:
    anomalies = _anomaly_rows(folder)
    shown, notes = _partitions_shown(rows, anomalies)
    batch = _batch(rows, shown, context)
    times = event_times(batch)
    span = _span(context, times["time_ns"])
    if span is None:
        return None
    begin_ns, end_ns = span
    series, clock = read_series(folder), TimelineClock(start_ns(folder), begin_ns, end_ns)
    drawn = [context.slices[code] for code in batch.slices.tolist()]
    partitions = tuple(
        partition_timeline(batch, number, place, clock, series.get(place)) for number, place in enumerate(drawn)
    )
    return Timeline(
        begin_ms=clock.ms(begin_ns),
        end_ms=clock.ms(end_ns),
        phases=tuple((bounded(name, most=40), clock.ms(at_ns)) for name, at_ns in context.phases.items()),
        faults=tuple(
            (
                bounded(window.fault, most=60),
                bounded(window.target, most=60),
                clock.ms(window.begun_ns),
                clock.ms(window.healed_ns or end_ns),
            )
            for window in context.windows
        ),
        members=tuple(bounded(name, most=40) for name in context.members),
        incarnations=tuple(_incarnations(context, clock)),
        partitions=partitions,
        anomalies=read_anomaly_instants(
            folder,
            in_order(anomalies, verdict),
            drawn=drawn,
            members=context.members,
            times=times,
            sources=context.sources,
            clock=clock,
        ),
        age_limit_ms=None if (limit_s := context.settings.lag_age_max_s) is None else 1000 * limit_s,
        notes=tuple(notes),
    )


def _anomaly_rows(folder: RunFolder) -> list[Mapping[str, Any]]:
    path = folder.path / "anomalies.jsonl"
    if not path.exists():
        return []
    with path.open("rb") as file:
        return [row for row in map(orjson.loads, file) if isinstance(row, dict)]


def _partitions_shown(rows: SliceRows, anomalies: Sequence[Mapping[str, Any]]) -> tuple[list[int], list[str]]:
    """Returns the slices to draw, those with violations first, then those with most rows; and what is left out."""
    places, notes = rows.trial_context.slices, []
    weight = Counter((row.get("topic"), row.get("partition")) for row in anomalies if row.get("weight") == "violation")
    wanted = sorted(
        (code for code in rows.by_slice if places[code][1] != NOWHERE),
        key=lambda code: (-weight[places[code]], -rows.by_slice[code], code),
    )
    shown: list[int] = []
    for code in wanted[:PARTITIONS_MAX]:
        if sum(rows.by_slice[one] for one in (*shown, code)) <= ROWS_MAX:
            shown.append(code)
    if len(shown) < len(wanted):
        notes.append(
            f"{len(shown)} of {len(wanted)} partitions are drawn, those with most violations first, {PARTITIONS_MAX} "
            f"and {ROWS_MAX // 10**6} million events at most; anomalies of the others are in the row of all partitions"
        )
    return shown, notes


def _batch(rows: SliceRows, shown: Sequence[int], context: TrialContext) -> Batch:
    table = pq.read_table(rows.path, columns=list(NUMBERS), filters=pc.field("slice").isin(pa.array(shown, pa.int32())))
    table = table.take(np.argsort(table["slice"].to_numpy(), kind="stable"))
    numbers = {name: table[name].to_numpy() for name in NUMBERS}
    return Batch(Table(numbers | {"key": np.full(len(table), -1)}), context)


def _span(context: TrialContext, times_ns: np.ndarray[Any, Any]) -> tuple[int, int] | None:
    """Returns the first and the last instant; None where nothing happened at all."""
    known = [*context.phases.values(), *(incarnation.started_ns for incarnation in context.incarnations)]
    known += [incarnation.exited_ns for incarnation in context.incarnations if incarnation.exited_ns is not None]
    known += [int(edge) for edge in (times_ns.min(), times_ns.max())] if len(times_ns) else []
    if not known:
        return None
    return min(known), max(known)


def _incarnations(context: TrialContext, clock: TimelineClock) -> Iterator[tuple[int, int, int, int, str]]:
    for incarnation in sorted(
        context.incarnations, key=lambda incarnation: (incarnation.member, incarnation.started_ns)
    ):
        how = (
            ""
            if incarnation.exited_ns is None
            else f"signal {incarnation.signal}"
            if incarnation.signal
            else f"status {incarnation.code}"
        )
        end_ns = clock.end_ns if incarnation.exited_ns is None else incarnation.exited_ns
        yield incarnation.member, incarnation.number, clock.ms(incarnation.started_ns), clock.ms(end_ns), how

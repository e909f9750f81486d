"""Findings: one pass of all invariants over a batch of whole slices, as rows that can travel.

What Spark runs in its workers, and what tests run without Spark: slice rows in, one table of anomalies, undecided
cases, counts, summaries and series out. An invariant that crashes is named, and the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from kafka_trial.anomalies.invariant import Invariant, instances, judged, list_invariants, per_slice
from kafka_trial.judge.coverage import coverage
from kafka_trial.judge.lag_series import series
from kafka_trial.model.batch import Batch
from kafka_trial.model.cold_reads import COLD_READS, cold_reads
from kafka_trial.model.commits_ahead import records_ahead
from kafka_trial.model.head_of_line import IDLE_WAITS, LAGS, OWNERSHIP_SPANS, idle_waits, lags, ownership_spans
from kafka_trial.model.makers import MAKERS
from kafka_trial.model.moved_keys import MOVES, moves
from kafka_trial.model.occupied_intervals import OCCUPIED_INTERVALS, occupied_intervals
from kafka_trial.model.partition import Partitions
from kafka_trial.model.rows import NUMBERS
from kafka_trial.model.starvation import WAITS, WORKED, waits, worked
from kafka_trial.model.summaries import summaries
from kafka_trial.model.table import Table
from kafka_trial.model.trial_context import TrialContext

# `what` is anomaly, count, undecided, crashed, ahead, summary, coverage, series or one of GATHERED; `body` is JSON.
FOUND = pa.schema([("slice", pa.int64()), ("what", pa.string()), ("name", pa.string()), ("body", pa.string())])
SLICE_ROWS_MAX = 50_000_000  # a slice must fit into one call: about 5 GB of columns
Row = tuple[int, str, str, bytes]
# What is looked at of all slices at once, beside their summaries: by which invariant, its columns, and how it is made.
GATHERED: Mapping[str, tuple[str, Sequence[str], Callable[[Batch], Table]]] = {
    "waits": ("starved-partition", WAITS, waits),
    "worked": ("starved-partition", WORKED, worked),
    "idle_waits": ("head-of-line-blocking", IDLE_WAITS, idle_waits),
    "lags": ("head-of-line-blocking", LAGS, lags),
    "ownership_spans": ("head-of-line-blocking", OWNERSHIP_SPANS, ownership_spans),
    "occupied": ("head-of-line-blocking", OCCUPIED_INTERVALS, occupied_intervals),
    "moves": ("reordered-across-partitions", MOVES, moves),
    "cold_reads": ("cold-read", COLD_READS, cold_reads),
}


def find(rows: pa.Table, trial_context: TrialContext, *, only: str | None = None) -> pa.Table:
    """Returns what all invariants find in the rows of some whole slices (schema FOUND); or one of them."""
    found = list(_found(batch_of(rows, trial_context), only)) if rows.num_rows else []
    columns = list(zip(*found, strict=True)) or [(), (), (), ()]
    return pa.table([pa.array(column, kind.type) for column, kind in zip(columns, FOUND, strict=True)], schema=FOUND)


def batch_of(rows: pa.Table, trial_context: TrialContext) -> Partitions:
    """Returns slice rows as the partitions that they are of."""
    numbers = {name: rows[name].to_numpy() for name in NUMBERS}
    keys = rows["key"].combine_chunks().dictionary_encode()
    codes = pc.fill_null(keys.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return Partitions(Table(numbers | {"key": codes}), trial_context, keys.dictionary.to_pylist(), MAKERS)


def _found(batch: Partitions, only: str | None) -> Iterator[Row]:
    for invariant in [one for one in list_invariants() if one.of == "slice" and only in (None, one.name)]:
        yield from _guarded(invariant.name, lambda one=invariant: _of_invariant(one, batch))  # type: ignore[misc]
    if any(one.nameless for one in batch.trial_context.through):
        yield from _guarded("commit-ahead", lambda: _rows("ahead", "commit-ahead", records_ahead(batch)))
    yield from _guarded("liveness", lambda: _rows("summary", "liveness", summaries(batch)))
    for what, (name, _, made) in GATHERED.items():
        yield from _guarded(name, lambda what=what, made=made: _columns(what, "liveness", made(batch)))  # type: ignore[misc]
    yield from _guarded(
        "coverage", lambda: ((at, "coverage", "coverage", orjson.dumps(body)) for at, body in coverage(batch))
    )
    yield from _guarded("series", lambda: ((at, "series", "lag", orjson.dumps(body)) for at, body in series(batch)))


def _guarded(name: str, work: Callable[[], Iterable[Row]]) -> list[Row]:
    try:
        return list(work())
    except Exception as error:  # noqa: BLE001 - whatever broke in one invariant makes that one not judged, by name
        return [(-1, "crashed", name, f"{type(error).__name__}: {error}".encode())]


def _of_invariant(invariant: Invariant, batch: Partitions) -> Iterator[Row]:
    findings = judged(invariant, batch)
    slices = batch.slices.tolist()
    for number, attributes, events in instances(findings, batch.trial_context.sources):
        yield slices[number], "anomaly", invariant.name, orjson.dumps({"attributes": attributes, "events": events})
    for number, count in per_slice(findings.rows["slice"]).items():
        yield slices[number], "count", invariant.name, str(count).encode()
    for reason, cases in findings.undecided:
        for number, count in per_slice(cases).items():
            yield slices[number], "undecided", invariant.name, orjson.dumps([reason, count])


def _columns(what: str, name: str, table: Table) -> Iterator[Row]:
    if len(table):
        body = {column: table[column].tolist() for column in table.columns}
        yield int(table["slice"][0]), what, name, orjson.dumps(body)


def _rows(what: str, name: str, table: Table) -> Iterator[Row]:
    names = list(table.columns)
    for row in zip(*(table[column].tolist() for column in names), strict=True):
        body = dict(zip(names, row, strict=True))
        yield int(body["slice"]), what, name, orjson.dumps(body)

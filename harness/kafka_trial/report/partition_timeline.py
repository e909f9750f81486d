"""What happened to one partition over time: its owners, handler runs, commits and lag, down-sampled for the page.

Used by `timeline.py`. What few there are stay as they are; of many, those that fall into one bucket (a part of the
trial about as wide as a pixel) become one, with their count. Commits that fell are always kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kafka_trial.model.batch import Batch, index
from kafka_trial.model.clients import incarnation_of
from kafka_trial.model.commits_log import commits_in_effect
from kafka_trial.model.handlers import finished_handlers, first_handled_of_records
from kafka_trial.model.kernels import Array, Ints, exactly, first_of, joined, picked
from kafka_trial.model.ownership_epochs import member_lines, ownership_epochs
from kafka_trial.model.record_ages import committed_age_ns, handled_age_ns
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table, stacked, table
from kafka_trial.report.event_text import bounded
from kafka_trial.report.lag_series import Series
from kafka_trial.report.timeline_clock import NS_PER_MS, TimelineClock

BUCKETS = 1000


@dataclass(frozen=True)
class PartitionLag:
    """Columns, one entry an instant: records after the committed offset and not yet handled, and the age of the oldest
    of each, in milliseconds; 0 where there is none. A column is empty where nothing is known."""

    at_ms: Sequence[int] = ()
    committed: Sequence[int] = ()
    handled: Sequence[int] = ()
    committed_age_ms: Sequence[int] = ()
    handled_age_ms: Sequence[int] = ()


@dataclass(frozen=True)
class PartitionTimeline:
    """One partition. `owners` are (member, begin, end); `handlers` (member, begin, end, count, lowest and highest
    offset); `commits` (instant, committed offset, member, count), member -1 where nobody knows whose it was."""

    topic: str
    partition: int
    owners: Sequence[tuple[int, ...]]
    handlers: Sequence[tuple[int, ...]]
    commits: Sequence[tuple[int, ...]]
    lag: PartitionLag


def partition_timeline(
    batch: Batch, number: int, place: tuple[str, int], clock: TimelineClock, series: Series | None
) -> PartitionTimeline:
    """Returns the timeline of the slice `number` of a batch; `series` is its lag as the judge counted it, if known."""
    topic, partition = place
    return PartitionTimeline(
        topic=bounded(topic),
        partition=partition,
        owners=_owners(_of(ownership_epochs(batch), number), clock),
        handlers=_handlers(_of(_handler_runs(batch), number), clock),
        commits=_commits(_of(commits_in_effect(batch), number), clock),
        lag=PartitionLag() if series is None else _lag(batch, number, clock, series),
    )


def event_times(batch: Batch) -> Table:
    """Returns source, seq and time_ns of every event of a batch, sorted by source and seq; one row an event.

    A commit has the instant at which it took effect, a record of the control read that of its append.
    """
    every = batch.of(*Kind).only("source", "seq", "time_ns") if batch.size else table(source=_NO, seq=_NO, time_ns=_NO)
    commits = commits_in_effect(batch)
    exact = stacked(
        commits.only("source", "seq").having(time_ns=commits["effect_ns"]),
        batch.records.only("source", "seq").having(time_ns=batch.records["appended_ns"]),
    )
    every = stacked(*(rows.having(source=rows["source"].astype(np.int64)) for rows in (exact, every)))
    every = every.sorted_by("source", "seq")  # stable: the exact instant of an event stands first
    return every.take(first_of(every["source"], every["seq"]))


def _of(rows: Table, number: int) -> Table:
    return rows.take(rows["slice"] == number)


def _owners(epochs: Table, clock: TimelineClock) -> list[tuple[int, ...]]:
    begin, end = (clock.many_ms(epochs[name]) for name in ("open_ns", "close_ns"))
    return sorted(zip(epochs["member"].tolist(), begin, end, strict=True), key=lambda band: band[1:])


@index
def _handler_runs(batch: Batch) -> Table:
    """Returns slice, source, offset, start_ns, end_ns of what was handled: from delivery to completion where both were
    told, else the completion alone; where no completion was told at all, the effects."""
    names = ("slice", "source", "offset", "start_ns", "end_ns")
    runs = finished_handlers(batch)
    done = member_lines(batch).take(member_lines(batch)["kind"] == Kind.PROCESSED)
    if not len(done):
        done = batch.of(Kind.EFFECT)
        member = done["member"]
    else:
        ended = runs.having(source_seq=_event(batch, runs["source"], runs["end_seq"])).sorted_by("slice", "source_seq")
        found = exactly(ended["slice"], ended["source_seq"], done["slice"], _event(batch, done["source"], done["seq"]))
        done = done.take(found < 0)
        member = _member(batch, done["source"])
    alone = done.only("slice", "source", "offset").having(start_ns=done["time_ns"], end_ns=done["time_ns"])
    runs = runs.only(*names).having(member=_member(batch, runs["source"]))
    return stacked(runs, alone.having(member=member.astype(np.int64), source=done["source"].astype(np.int64)))


def _event(batch: Batch, source: Ints, seq: Ints) -> Ints:
    return seq * (len(batch.trial_context.sources) + 1) + source


def _member(batch: Batch, source: Array) -> Ints:
    return picked(batch.incarnations["member"], incarnation_of(batch, source), -1)


def _handlers(runs: Table, clock: TimelineClock) -> list[tuple[int, ...]]:
    runs = runs.sorted_by("member", "start_ns")
    member, start = runs["member"], runs["start_ns"]
    group = joined(member, clock.buckets(start, BUCKETS)) if len(runs) > BUCKETS else np.arange(len(runs))
    first = first_of(group)
    begin, end = (clock.many_ms(values) for values in (start[first], _reduced(np.maximum, runs["end_ns"], first)))
    low, high = (_reduced(how, runs["offset"], first).tolist() for how in (np.minimum, np.maximum))
    return list(zip(member[first].tolist(), begin, end, _counts(first, len(runs)), low, high, strict=True))


def _commits(commits: Table, clock: TimelineClock) -> list[tuple[int, ...]]:
    commits = commits.sorted_by("effect_ns")
    fell = commits["committed_offset"] < commits["peak"]
    bucket = clock.buckets(commits["effect_ns"], BUCKETS) if len(commits) > BUCKETS else np.arange(len(commits))
    group = np.cumsum(np.diff(bucket, prepend=-1).astype(np.bool_) | fell | np.append(False, fell[:-1]))
    first = first_of(group)
    last = np.append(first[1:], len(commits))[: len(first)] - 1
    at = clock.many_ms(commits["effect_ns"][last])
    member = np.maximum(commits["committer"][last], -1).tolist()
    return list(zip(at, commits["committed_offset"][last].tolist(), member, _counts(first, len(commits)), strict=True))


def _reduced(how: Any, values: Ints, first: Ints) -> Ints:
    found: Ints = how.reduceat(values, first) if len(first) else values[:0]
    return found


def _counts(first: Ints, size: int) -> list[int]:
    counts: list[int] = np.diff(first, append=size).tolist() if len(first) else []
    return counts


def _lag(batch: Batch, number: int, clock: TimelineClock, series: Series) -> PartitionLag:
    here = batch.records["slice"] == number
    records, at_ns = batch.records.take(here), series.time_ns
    handled_ns = first_handled_of_records(batch).time_ns[here]
    in_kafka = batch.trial_context.settings.in_offsets_log
    ages = (
        committed_age_ns(records, _of(commits_in_effect(batch), number), at_ns),
        handled_age_ns(records["appended_ns"], handled_ns, at_ns),
    )
    return PartitionLag(
        at_ms=clock.many_ms(at_ns),
        committed=series.committed.tolist() if in_kafka else (),
        handled=series.handled.tolist(),
        committed_age_ms=(ages[0] // NS_PER_MS).tolist() if in_kafka else (),
        handled_age_ms=(ages[1] // NS_PER_MS).tolist(),
    )


_NO = np.zeros(0, np.int64)

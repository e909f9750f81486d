"""Head-of-line blocking: a partition that lags although its member has nothing else to do, and does it slowly.

A consumer that asks its partitions one after the other, and waits at each, hands out what one of them holds only when
the empty ones before it had their time. Judged in two steps, as starvation is: inside the pass over the slices,
`idle_waits` finds records that lay there and were handed out late, to a member that held none of their partition;
`lags` finds when a partition had anything to do, `ownership_spans` who had it, and `occupied_intervals.py` when a
process had something in hand, or waited for a broker. Then all slices are looked at together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.clients import incarnation_of
from kafka_trial.model.handlers import first_handled_of_records
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Ints,
    at_or_after,
    at_or_before,
    first_of,
    picked,
    previous_in,
    running_max,
    starts_of,
)
from kafka_trial.model.ownership_epochs import epoch_owners, member_lines, ownership_epochs
from kafka_trial.model.progress import window_ns_of
from kafka_trial.model.request_logs import fetches
from kafka_trial.model.rows import Kind
from kafka_trial.model.starvation import in_hand, snapshot_ns_in
from kafka_trial.model.table import Table, table

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch

# A fetch of empty partitions stays with its broker for fetch.max.wait.ms, 500 by default, and Java's client sends a
# broker one at a time: what is asked for after it may take as long, and the ways, without anybody's blocking.
WAIT_NS_MIN = 600_000_000
LAG_NS_MIN = 1_000_000_000  # a partition whose records are all done sooner is at lag 0
IDLE_WAITS = (
    *("slice", "source", "member", "since_ns", "until_ns", "asked_ns", "answered_ns", "offset"),
    *("span_since_ns", "span_until_ns", "before_source", "before_seq", "after_source", "after_seq"),
)
LAGS = ("slice", "since_ns", "until_ns")
OWNERSHIP_SPANS = ("slice", "source", "member", "since_ns", "until_ns")


def idle_waits(batch: Batch) -> Table:
    """Returns the waits (columns IDLE_WAITS) of those spans that may be blocked, slices numbered as in the trial
    context.

    A span is a stretch of deliveries of one ownership epoch, one after the other, whose records all lay there when
    the member was done with what it had of the partition before; it lasts for W at least.
    """
    turns = _turns(batch)
    epoch, lagging = turns["ownership_epoch"], turns["readable_ns"] <= turns["since_ns"]
    number = np.cumsum(~lagging | starts_of(epoch))
    turns, number = turns.take(lagging), number[lagging]
    first = first_of(number)
    last = np.append(first[1:], len(number))[: len(first)] - 1
    span = np.cumsum(starts_of(number)) - 1
    spans = turns.having(
        span_since_ns=turns["since_ns"][first][span],
        span_until_ns=turns["until_ns"][last][span],
    )
    long = spans["span_until_ns"] - spans["span_since_ns"] >= window_ns_of(batch.trial_context)
    idle = (spans["until_ns"] - spans["since_ns"] >= WAIT_NS_MIN) & spans["fetches"] & ~in_hand(batch, spans)
    return spans.take(long & idle).having(slice=batch.slices[spans["slice"][long & idle]]).only(*IDLE_WAITS)


def _turns(batch: Batch) -> Table:
    """Returns the deliveries that follow on other work of their ownership epoch: since when (the line before it),
    until when, since when the log end had been read behind the record, and of the last fetch that brought bytes from
    when to when, in that time, it was asked; `fetches`: whether there was one."""
    work = member_lines(batch).take(np.isin(member_lines(batch)["kind"], (Kind.DELIVERED, Kind.PROCESSED)))
    work = work.take((work["ownership_epoch"] >= 0) & (work["time_ns"] <= snapshot_ns_in(batch)))
    previous = previous_in(work["ownership_epoch"])
    took = (work["kind"] == Kind.DELIVERED) & (previous >= 0) & ~batch.untimed(work["source"])
    turns, before = work.take(took), work.take(previous[took])
    found = table(
        slice=turns["slice"],
        source=turns["source"].astype(np.int64),
        member=epoch_owners(batch)[turns["ownership_epoch"]],
        ownership_epoch=turns["ownership_epoch"],
        offset=turns["offset"],
        since_ns=before["time_ns"],
        until_ns=turns["time_ns"],
        before_source=before["source"].astype(np.int64),
        before_seq=before["seq"],
        after_source=turns["source"].astype(np.int64),
        after_seq=turns["seq"],
    )
    return _asked(batch, found.having(readable_ns=_readable_ns(batch, found)))


def _readable_ns(batch: Batch, turns: Table) -> Ints:
    """Returns since when the observer knew that the log reached beyond each record; NEVER where it did not."""
    ends = batch.of(Kind.LOG_END).sorted_by("slice", "position", "time_ns")
    row = at_or_after(ends["slice"], ends["position"], turns["slice"], turns["offset"] + 1)
    return picked(ends["time_ns"], row, NEVER)


def _asked(batch: Batch, turns: Table) -> Table:
    """Returns the turns with what is known of their last fetch that brought bytes: its time is none of the member's."""
    asks = fetches(batch).take(fetches(batch)["got"])
    wanted = turns["slice"] * (len(batch.incarnations) + 1) + incarnation_of(batch, turns["source"])
    row = at_or_before(asks["group"], asks["begun_ns"], wanted, turns["until_ns"])
    asked_ns = np.maximum(picked(asks["begun_ns"], row, NONE), turns["since_ns"])
    answered_ns = np.minimum(picked(asks["answered_ns"], row, NONE), turns["until_ns"])
    return turns.having(fetches=row >= 0, asked_ns=asked_ns, answered_ns=np.maximum(asked_ns, answered_ns))


def lags(batch: Batch) -> Table:
    """Returns slice, since_ns, until_ns of each stretch in which a partition had a record that was not done, for a
    second or longer; apart, and in order."""
    records = batch.records.having(done_ns=first_handled_of_records(batch).time_ns)
    records = records.take(records["done_ns"] > records["appended_ns"]).sorted_by("slice", "appended_ns")
    slices, since_ns, done_ns = (records[name] for name in ("slice", "appended_ns", "done_ns"))
    until_ns = done_ns[running_max(slices, done_ns)] if len(slices) else done_ns
    before = previous_in(slices)
    begins = np.flatnonzero((before < 0) | (since_ns > picked(until_ns, before, NONE)))
    last = np.append(begins[1:], len(slices))[: len(begins)] - 1
    long = until_ns[last] - since_ns[begins] >= LAG_NS_MIN
    return table(
        slice=batch.slices[slices[begins]][long], since_ns=since_ns[begins][long], until_ns=until_ns[last][long]
    )


def ownership_spans(batch: Batch) -> Table:
    """Returns the ownership epochs: slice (as in the trial context), source, member (see
    `client_attribution.group_members`), since_ns, until_ns."""
    held = ownership_epochs(batch)
    return table(
        slice=batch.slices[held["slice"]],
        source=held["source"].astype(np.int64),
        member=epoch_owners(batch),
        since_ns=held["open_ns"],
        until_ns=held["close_ns"],
    )

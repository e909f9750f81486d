"""Contradicted lines: what a member says of a record, and a witness knows better.

A line that says that a record was delivered or processed is refuted where the workload sent the record only later,
where a log end that was read later lay at or below it, and where no fetch can have brought it to that process. Such a
line acquits nobody: it counts for nothing in what was handled (`handlers.first_handlings`), and is a row of
`FalseReports` (`partition.py`), as are the lines `assigned` that no broker stands behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.batch import Batch, index
from kafka_trial.model.false_assignments import false_assigned
from kafka_trial.model.instants import at_latest
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Bools,
    at_or_after,
    exactly,
    joined,
    last_true,
    ordered,
    picked,
)
from kafka_trial.model.log_ends import log_ends
from kafka_trial.model.ownership_epochs import SAID, member_lines
from kafka_trial.model.partition import FalseReports
from kafka_trial.model.request_logs import never_fetched
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table, stacked
from kafka_trial.model.truncations import truncated_away

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch

WITNESSES = ("workload", "observer", "request log")
_ENDS = (Kind.PROCESSED, Kind.FAILED)  # both say `processed`: a handler that failed had its record


@index
def refuted_lines(batch: Batch) -> Table:
    """Returns the rows of `member_lines` that a witness refutes, of the kinds `delivered` and `processed`, be it
    failed; `by`: a place in WITNESSES.

    Sorted by (slice, source, seq). Of several witnesses the first one counts. Lines out of a buffer say nothing of
    when: no time refutes them.
    """
    said = member_lines(batch)["told_by"] == SAID
    lines = member_lines(batch).take(np.isin(member_lines(batch)["kind"], (Kind.DELIVERED, *_ENDS)) & said)
    ways = [_before_sent(batch, lines), _beyond_end(batch, lines), _without_fetch(batch, lines)]
    by = np.select(ways, np.arange(len(ways)), -1)
    return lines.having(by=by).take(by >= 0)


def is_refuted(batch: Batch, rows: Table) -> Bools:
    """Returns which rows (slice, source, seq, time_ns) are refuted lines, or effects of what was sent only later."""
    found, size = refuted_lines(batch), len(batch.trial_context.sources) + 1
    files, of_files = (one["slice"] * size + one["source"] for one in (found, rows))
    there: Bools = exactly(files, found["seq"], of_files, rows["seq"]) >= 0
    return there | _before_sent(batch, rows)


def _before_sent(batch: Batch, lines: Table) -> Bools:
    """Returns which lines were read, or effects seen, before the workload sent the record, by more than the
    tolerance."""
    early = batch.of(Kind.SENT_LATER).sorted_by("slice", "source", "seq")
    size = len(batch.trial_context.sources) + 1
    found = exactly(
        early["slice"] * size + early["source"],
        early["seq"],
        lines["slice"] * size + lines["source"],
        lines["seq"],
    )
    before: Bools = picked(early["sent_ns"], found, NONE) > at_latest(lines["time_ns"])
    before &= ~truncated_away(
        batch, lines["slice"], lines["offset"], lines["time_ns"]
    )  # it may be of the record before it
    return before & ~batch.untimed(lines["source"])


def _beyond_end(batch: Batch, lines: Table) -> Bools:
    """Returns which lines name a place that the log did not hold: a log end that was asked for later lay below it,
    and nothing shows that the log had been longer before."""
    ends = log_ends(batch)
    after = at_or_after(ends["slice"], ends["time_ns"], lines["slice"], lines["time_ns"])
    beyond: Bools = (lines["offset"] >= picked(ends["position"], after, NEVER)) & ~batch.untimed(lines["source"])
    beyond &= ~truncated_away(batch, lines["slice"], lines["offset"], lines["time_ns"])
    return beyond | (lines["offset"] < 0)


def _without_fetch(batch: Batch, lines: Table) -> Bools:
    """Returns which lines name a record that nothing fetched by then can have held.

    What a process held once it may speak of at any time after. Where its progress is not in Kafka, it may read in its
    own store what had been done of a partition that it takes over, and say so (`processed`).
    """
    looked_up = np.isin(lines["kind"], _ENDS) & (not batch.trial_context.settings.in_offsets_log)
    order = ordered(joined(lines["file"], lines["offset"]), lines["seq"])
    held = ~never_fetched(batch, lines.take(order))
    record = joined(lines["file"], lines["offset"])[order]
    refused: Bools = np.empty(len(lines), np.bool_)
    refused[order] = last_true(record, held) < 0
    return refused & ~looked_up


@index
def false_reports(batch: Batch) -> FalseReports:
    """Returns the lines of members that a witness contradicts."""
    lines, claims = refuted_lines(batch), false_assigned(batch)
    claims = claims.only("slice", "source", "seq").having(
        offset=np.full(len(claims), NONE),
        kind=np.full(len(claims), Kind.ASSIGNED),
        by=np.full(len(claims), WITNESSES.index("request log")),
    )
    told = stacked(lines.only("slice", "source", "seq", "offset", "kind", "by"), claims)
    said = [told["kind"] == Kind.DELIVERED, told["kind"] == Kind.ASSIGNED]
    return FalseReports(told.columns).having(
        what=np.select(said, ["delivered", "assigned"], "processed").astype(object),
        by=np.array(WITNESSES, dtype=object)[told["by"]],
    )

"""Commit requests whose line was written late, at the time that their order on the connection gives them.

A broker writes the line of a request after its answer, and stamps it then: on a busy machine half a second later. On
one connection the order of the request log is that of the offsets log, for a broker answers one request after the
other. So an accepted request with no commit of its position around its line is that of the last one before which is
nobody else's, if the commits of the requests before and after it on its connection stand in that order too.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.invariants.batch import Batch, index
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    at_or_before,
    between,
    covering,
    first_of,
    joined,
    max_before,
    min_after,
    ordered,
    picked,
)
from kafka_trial.invariants.rows import IN_TRANSACTION, Kind
from kafka_trial.invariants.table import Table
from kafka_trial.invariants.trial_context import LOG_TOLERANCE_NS

LATE_NS_MAX = 5_000_000_000  # a line that is later than this is left as it is


@index
def commit_requests(batch: Batch) -> Table:
    """Returns the rows COMMIT_REQUEST; a late one was answered when its commit was taken, and took no time."""
    asked, log = batch.of(Kind.COMMIT_REQUEST).sorted_by("slice", "source", "seq"), batch.of(Kind.COMMITTED)
    wanted, stored = _targets(asked, log)
    order = ordered(stored, log["commit_wall_ns"])
    log, stored = log.take(order), stored[order]
    known = (asked["error_code"] == 0) & (asked["answered_wall_ns"] != NONE)
    began_ns = np.where(known, asked["answered_wall_ns"] - asked["duration_ns"] - LOG_TOLERANCE_NS, 0)
    until_ns = np.where(known, asked["answered_wall_ns"] + LOG_TOLERANCE_NS + 1, 1)
    first, end = between(stored, log["commit_wall_ns"], wanted, began_ns, until_ns)
    late = known & (end <= first)
    if not late.any():
        return asked
    own = known & ~late
    free = covering(wanted[own], began_ns[own], until_ns[own], stored, log["commit_wall_ns"]) == 0
    row = at_or_before(stored[free], log["commit_wall_ns"][free], wanted, began_ns)
    row = picked(np.flatnonzero(free), row, -1)
    late &= (row >= 0) & (picked(log["commit_wall_ns"], row, NEVER) >= began_ns - LATE_NS_MAX)
    row_of = np.where(own, end - 1, np.where(late, row, -1))
    place = picked(log["log_offset"], row_of, NONE)
    late &= _in_order(asked, place, own)
    late &= _the_first(row, late)
    return asked.having(
        answered_wall_ns=np.where(late, picked(log["commit_wall_ns"], row, NONE), asked["answered_wall_ns"]),
        duration_ns=np.where(late, 0, asked["duration_ns"]),
    )


def _targets(asked: Table, log: Table) -> tuple[Ints, Ints]:
    """Returns what each request asked for, and what each commit is, as numbers that are equal where these are alike."""
    whole = [rows.having(inside=rows["in_transaction"] == IN_TRANSACTION) for rows in (asked, log)]
    names = ("slice", "committed_offset", "inside")
    target = joined(*(np.concatenate([rows[name] for rows in whole]).astype(np.int64) for name in names))
    return target[: len(asked)], target[len(asked) :]


def _in_order(asked: Table, place: Ints, own: Bools) -> Bools:
    """Returns whether each place lies between those of the requests before and after it on its connection (a member's
    lane to one broker) of which the time told whose they are."""
    order = ordered(asked["slice"], asked["source"], asked["lane"], asked["seq"])
    group = joined(asked["slice"], asked["source"], asked["lane"])[order]
    at = place[order]
    low, high = (np.where(own[order], at, nobody) for nobody in (NONE, NEVER))
    before = picked(low, max_before(group, low), NONE)
    after = picked(high, min_after(group, high), NEVER)
    fits = np.zeros(len(asked), np.bool_)
    fits[order] = (before < at) & (at < after)
    return fits


def _the_first(row: Ints, late: Bools) -> Bools:
    """Returns which of the late requests is the first that fits each commit."""
    chosen = np.flatnonzero(late)
    chosen = chosen[ordered(row[chosen])]
    first = np.zeros(len(row), np.bool_)
    first[chosen[first_of(row[chosen])]] = True
    return first

"""Liveness of commits: what was handled while a member went on, and whether its position was committed in time."""

from __future__ import annotations

import numpy as np

from kafka_trial.invariants import commits_log
from kafka_trial.invariants.batch import Batch
from kafka_trial.invariants.bounds import stall_window_s, timing_in
from kafka_trial.invariants.claim_rule import Rule, never
from kafka_trial.invariants.commits_log import commits_in_effect
from kafka_trial.invariants.expiries import over_ns
from kafka_trial.invariants.handlers import first_handled_of_records, first_handlings
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    at_or_before,
    counts,
    first_of,
    joined,
    next_in,
    picked,
    running_max,
)
from kafka_trial.invariants.ownership_epochs import ownership_epochs
from kafka_trial.invariants.table import Table, table
from kafka_trial.invariants.trial_context import TOLERANCE_NS, TrialContext

SECOND_NS = 1_000_000_000
DELAYED = "the machine stood still for over a quarter of the session timeout"


@invariant(
    "uncommitted-progress",
    family="liveness",
    needs=("records", "own word", "offsets log", "snapshot"),
    level="events",
    progress_in_kafka=True,
    severity=390,
    rule=Rule(never),
    message="{place} had record {offset} processed {lasted_ms} ms before a commit covered it",
)
def uncommitted_progress(batch: Batch) -> Findings:
    """A record and all before it were handled, its member held the partition on, and for W no commit covered it.

    "The committed position is the last offset that has been stored securely. Should the process fail and restart, this
    is the offset that the consumer will recover to" (KafkaConsumer, Javadoc); a team declares how often it is stored. W
    (`bounds.py`) is that interval on top of detection and a rebalance. It differs from `false-lag` in when: that one is
    what stands at the snapshot, after the load (all handled, the position behind, be it never committed); this one is
    progress that lay uncommitted in the middle of the trial, and was committed in the end. What is not covered at the
    snapshot is left to `false-lag`, `stuck-partition` and `late-convergence`: one name for one thing. Legal where the
    partition changed hands meanwhile, and while a fault is in force or was healed less than W before; undecided where
    the machine stood still.

    Smallest history: `processed` 0; eleven seconds later committed 1; phase snapshot.

    Usual cause: Work was done long before its position was committed: a crash would repeat all of it.

    Remedy: Commit more often, also while a partition is quiet.
    """
    snapshot_ns, window_ns = _snapshot_ns(batch.trial_context), window_ns_of(batch.trial_context)
    records, ready_ns = batch.records, _ready_ns(batch)
    covering = commits_log.first_covering(batch, records["slice"], records["offset"])
    covered_ns = picked(commits_in_effect(batch)["effect_ns"], covering, NEVER)
    due_ns = np.where(ready_ns == NEVER, NEVER, ready_ns + window_ns)
    late = (covered_ns - TOLERANCE_NS > due_ns) & (covered_ns <= snapshot_ns) & _held(batch, ready_ns, due_ns)
    late &= ~under_fault(batch.trial_context, ready_ns, due_ns, window_ns)
    rows = np.flatnonzero(late)
    episode = joined(records["slice"][rows], covering[rows])
    first = first_of(episode)
    sizes = counts(np.cumsum(np.isin(np.arange(len(rows)), first)) - 1, len(first))
    rows, delayed = rows[first], stood_still(batch.trial_context, ready_ns[rows[first]], due_ns[rows[first]])
    found, commit = rows[~delayed], covering[rows[~delayed]]
    handled = first_handled_of_records(batch).row[found]
    return Findings(
        table(
            slice=records["slice"][found],
            order=records["offset"][found],
            offset=records["offset"][found],
            records=sizes[~delayed],
            committed_offset=commits_in_effect(batch)["committed_offset"][commit],
            lasted_ms=(covered_ns[found] - ready_ns[found]) // 1_000_000,
        ),
        [
            (first_handlings(batch)["source"][handled], first_handlings(batch)["seq"][handled]),
            (commits_in_effect(batch)["source"][commit], commits_in_effect(batch)["seq"][commit]),
        ],
        [(DELAYED, records["slice"][rows[delayed]])],
    )


def window_ns_of(trial_context: TrialContext) -> int:
    """Returns W in nanoseconds."""
    return int(stall_window_s(timing_in(trial_context)) * SECOND_NS)


def under_fault(trial_context: TrialContext, since_ns: Array, until_ns: Array, window_ns: int) -> Bools:
    """Returns where a fault was in force in a stretch of time, or was not lived down before it."""
    touched = np.zeros(len(since_ns), np.bool_)
    ends_ns = over_ns(trial_context, timing_in(trial_context), window_ns)
    for window in trial_context.windows:
        touched |= (window.injected_ns <= until_ns) & (since_ns <= ends_ns[window.number])
    return touched


def stood_still(trial_context: TrialContext, since_ns: Array, until_ns: Array) -> Bools:
    """Returns where the machine stood still, in a stretch of time, for over a quarter of the session timeout."""
    patience_ns = trial_context.session_timeout_s / 4 * SECOND_NS
    still = np.zeros(len(since_ns), np.bool_)
    for at, delay in trial_context.delays:
        if delay > patience_ns:
            still |= (since_ns <= at) & (at - delay <= until_ns)
    return still


def _ready_ns(batch: Batch) -> Ints:
    """Returns since when each record and all before it had been handled; NEVER where one of them never was, or nobody
    knows when, for it was told out of a buffer."""
    first = first_handled_of_records(batch)
    untold = batch.vague(picked(first_handlings(batch)["source"], first.row, -1))
    slices, handled_ns = batch.records["slice"], np.where(untold, NEVER, first.time_ns)
    return handled_ns[running_max(slices, handled_ns)] if len(slices) else handled_ns


def _held(batch: Batch, since_ns: Ints, until_ns: Ints) -> Bools:
    """Returns where the ownership epoch that was opened last before a stretch of time lasts through it, the only
    one."""
    held: Table = ownership_epochs(batch).sorted_by("slice", "open_ns")
    slices = batch.records["slice"]
    now = at_or_before(held["slice"], held["open_ns"], slices, since_ns)
    following = picked(held["open_ns"], next_in(held["slice"]), NEVER)
    alone = (picked(held["close_ns"], now, NONE) >= until_ns) & (picked(following, now, NONE) >= until_ns)
    return (now >= 0) & alone


def _snapshot_ns(trial_context: TrialContext) -> int:
    return NEVER - 1 if trial_context.snapshot_ns is None else trial_context.snapshot_ns

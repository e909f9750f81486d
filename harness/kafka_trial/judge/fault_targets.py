"""In hand: which partitions the target of a fault had when it was hit. A fault on somebody without any hits nobody."""

from __future__ import annotations

import numpy as np

from kafka_trial.invariants.batch import Batch
from kafka_trial.invariants.kernels import NEVER, Array, Bools, Ints, at_or_after, counts, picked
from kafka_trial.invariants.ownership_epochs import ownership_epochs
from kafka_trial.invariants.ownership_log import logged_assignments
from kafka_trial.invariants.table import Table
from kafka_trial.invariants.trial_context import TOLERANCE_NS, Window

JUST_BEFORE_NS = 10_000_000_000  # without anybody's word on who has what, whoever worked there this shortly before


def in_hand(batch: Batch, window: Window, work: Table) -> Ints:
    """Returns 1 for each slice that the fault's target (no member in particular: anybody) had when it was hit, else 0.

    It had what it possessed by its own word, or owned by the offsets log, at some instant between the beginning of the
    injection and its end; what its process possessed that was started meanwhile does not count. Where nobody says of a
    partition who has it (manual assignment), work just before tells.
    """
    begun_ns = window.injected_ns if window.injecting_ns is None else window.injecting_ns
    wanted = np.array([window.member in (None, name) for name in batch.trial_context.members] + [False], np.bool_)
    possessed, owned = _possessed(batch, window, begun_ns, wanted), _owned(batch, window, begun_ns, wanted)
    told = (counts(ownership_epochs(batch)["slice"], batch.size) > 0) | (
        counts(logged_assignments(batch)["slice"], batch.size) > 0
    )
    before_ns = begun_ns - work["time_ns"]
    recent = wanted[work["member"]] & (work["time_ns"] <= window.injected_ns) & (before_ns <= JUST_BEFORE_NS)
    worked = counts(work["slice"][recent], batch.size) > 0
    return np.where(told, possessed | owned, worked).astype(np.int64)


def _possessed(batch: Batch, window: Window, begun_ns: int, wanted: Array) -> Bools:
    held = ownership_epochs(batch)
    before = picked(batch.lives["started_ns"], held["life"], NEVER) <= begun_ns
    there = (held["open_ns"] <= window.injected_ns) & (held["close_ns"] >= begun_ns - TOLERANCE_NS)
    possessed: Bools = counts(held["slice"][wanted[held["member"]] & before & there], batch.size) > 0
    return possessed


def _owned(batch: Batch, window: Window, begun_ns: int, wanted: Array) -> Bools:
    assignment_records = logged_assignments(batch)  # by (slice, log offset)
    following = at_or_after(
        assignment_records["slice"],
        assignment_records["log_offset"],
        assignment_records["slice"],
        np.minimum(assignment_records["until_log_offset"], NEVER - 1),
    )
    ended_ns = picked(assignment_records["time_ns"], following, NEVER)
    there = (assignment_records["time_ns"] <= window.injected_ns) & (ended_ns >= begun_ns - TOLERANCE_NS)
    owned: Bools = counts(assignment_records["slice"][wanted[assignment_records["member"]] & there], batch.size) > 0
    return owned

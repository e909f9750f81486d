"""How `OwnerlessStretches` is made; what its columns mean stands in `partition.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kafka_trial.model.batch import Batch, index
from kafka_trial.model.kernels import NEVER, NONE, Array, Bools, per_group
from kafka_trial.model.liveness_bounds import stall_window_s, timing_in
from kafka_trial.model.partition import OwnerlessStretches
from kafka_trial.model.progress import machine_stalled
from kafka_trial.model.rows import Kind, Protocol
from kafka_trial.model.table import table
from kafka_trial.model.trial_context import TrialContext
from kafka_trial.model.undecided import Undecided, undecided_because

SECOND_NS = 1_000_000_000
Span = tuple[int, int]


@dataclass(frozen=True)
class StablePeriod:
    """A period in which the group had members, no group record was written, and no fault was in force.

    `log_offset`, `source`, `seq`: of the group record before it. `listing`: the log offset of the last record of the
    classic protocol; None where there is none, or the group was deleted since.
    """

    since_ns: int
    until_ns: int
    log_offset: int
    source: int
    seq: int
    members: int
    listing: int | None


@index
def ownerless_stretches(batch: Batch) -> OwnerlessStretches:
    """Returns where a partition had no owner while its group was at rest."""
    periods = list(_stable_periods(batch))
    alone = [np.flatnonzero(_ownerless(batch, period)) for period in periods]
    which = np.repeat(np.arange(len(periods)), np.array([len(found) for found in alone], np.int64))
    names = ("since_ns", "until_ns", "log_offset", "members", "source", "seq")
    of_each = {name: np.array([getattr(period, name) for period in periods], np.int64)[which] for name in names}
    delayed = machine_stalled(batch.trial_context, of_each["since_ns"], of_each["until_ns"])
    found = table(slice=np.concatenate([np.empty(0, np.int64), *alone]), **of_each)
    return OwnerlessStretches(found.having(why=undecided_because((Undecided.DELAYED, delayed))).columns)


def _ownerless(batch: Batch, period: StablePeriod) -> Bools:
    """Returns which partitions had no owner in a period, for longer than the bound since they existed."""
    lasted_ns = period.until_ns - np.maximum(_existed_ns(batch), period.since_ns).astype(np.float64)
    alone: Bools = ~_owned(batch, period) & (lasted_ns > _bound_ns(batch.trial_context))
    return alone


def _bound_ns(trial_context: TrialContext) -> int:
    timing = timing_in(trial_context)
    return int((stall_window_s(timing) + timing.noticing_s) * SECOND_NS)


def _stable_periods(batch: Batch) -> Iterator[StablePeriod]:
    """Yields the periods at rest that are longer than the bound: a handful, for groups are mostly at rest once."""
    trial_context = batch.trial_context
    records, snapshot_ns = trial_context.memberships, trial_context.snapshot_ns
    if not records or snapshot_ns is None:
        return
    wall_ns = np.array([NONE if one.wall_ns is None else one.wall_ns for one in records], np.int64)
    at_ns = batch.monotonic(wall_ns, np.array([one.time_ns for one in records], np.int64)).tolist()
    present: set[int] = set()
    listing, listed = None, 0
    for number, one in enumerate(records):
        if one.what == "group":
            listing, listed = one.place, one.members or 0
        elif one.what == "group gone":
            listing, listed = None, 0
        else:
            present = present | {one.member_id} if one.what == "member" else present - {one.member_id}
        end_ns = min(at_ns[number + 1] if number + 1 < len(records) else snapshot_ns, snapshot_ns)
        for begin_ns, until_ns in _without_faults(trial_context, (at_ns[number], end_ns)):
            if listed + len(present) and until_ns - begin_ns > _bound_ns(trial_context):
                members = listed + len(present)
                yield StablePeriod(begin_ns, until_ns, one.place, one.source, one.seq, members, listing)


def _without_faults(trial_context: TrialContext, span: Span) -> list[Span]:
    """Returns the parts of a period in which no fault was in force; one that was never healed lasts for ever."""
    parts = [span]
    for window in trial_context.windows:
        end_ns = NEVER if window.healed_ns is None else window.healed_ns
        cut = [((begin, min(until, window.injected_ns)), (max(begin, end_ns), until)) for begin, until in parts]
        parts = [part for both in cut for part in both if part[0] < part[1]]
    return parts


def _owned(batch: Batch, period: StablePeriod) -> Bools:
    """Returns whether each slice belongs to a member by the group records before the period."""
    assignment_records = batch.of(Kind.ASSIGNMENT_RECORD)
    classic = assignment_records["protocol"] == Protocol.CLASSIC
    held = (
        ~classic
        & (assignment_records["log_offset"] <= period.log_offset)
        & (assignment_records["until_log_offset"] > period.log_offset)
    )
    if period.listing is not None:
        held |= classic & (assignment_records["log_offset"] == period.listing)
    owned = np.zeros(batch.size, np.bool_)
    owned[assignment_records["slice"][held]] = True
    return owned


def _existed_ns(batch: Batch) -> Array:
    """Returns since when each slice is known to exist; NEVER for one that only a consumer or a group names.

    Where none came while the group was at work, those that an observer saw existed from the beginning.
    """
    seen = batch.of(Kind.RECORD, Kind.LOG_START, Kind.LOG_END)
    first_ns = per_group(seen["slice"], seen["time_ns"], batch.size, how="min", start=NEVER)
    return first_ns if batch.trial_context.partitions_come else np.where(first_ns == NEVER, NEVER, NONE)

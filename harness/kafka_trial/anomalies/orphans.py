"""Orphans: partitions that a settled group with members in it gave to nobody, by the offsets log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.anomalies.claim_rule import Rule, always
from kafka_trial.anomalies.invariant import Findings, invariant
from kafka_trial.model.kernels import NEVER, NONE, Array, Bools, Ints, per_group
from kafka_trial.model.liveness_bounds import stall_window_s, timing_in
from kafka_trial.model.rows import Kind, Protocol
from kafka_trial.model.table import table
from kafka_trial.model.trial_context import TrialContext
from kafka_trial.model.undecided import Undecided

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch

SECOND_NS = 1_000_000_000
Span = tuple[int, int]


@dataclass(frozen=True)
class Calm:
    """A stretch in which the group had members, and neither a group record was written nor a fault in force.

    `place`, `source`, `seq` are those of the group record before it; `listing` is the place of the last classic record,
    None where none counts.
    """

    begin_ns: int
    end_ns: int
    place: int
    source: int
    seq: int
    members: int
    listing: int | None


@invariant(
    "orphan-partition",
    family="ownership",
    needs=("offsets log", "log ends", "snapshot"),
    level="none",
    severity=190,
    rule=Rule(always),
    message="{place} had no owner, though the group had members and was at rest",
)
def orphan_partition(batch: Batch) -> Findings:
    """A partition had no owner, although the group had members and had been at rest for longer than the bound.

    "Each partition is consumed by exactly one consumer within each subscribing consumer group at any given time"
    (Kafka, Design, Consumer Position). A partition is owned if, by the last group records, a member has it assigned or
    still has to give it up. The bound is that of a stuck partition: detection of a lost member, a rebalance, a commit
    (and a metadata refresh if partitions were added). The group is at rest while no group record is written and no
    fault is in force. Legal in a group without members, while it rebalances, and for a partition that did not exist
    yet. Undecided if the machine stood still meanwhile.

    Smallest history: group record with member m0 and no partition; eleven seconds later phase snapshot.

    Usual cause: The group was at rest and a partition had no owner: a custom assignor, or a member that assigned itself
    by hand beside the group.

    Remedy: Use one of Kafka's assignors, and do not mix assign() and subscribe() in one group.
    """
    stretches = list(_calm(batch))
    bound_ns = _bound_ns(batch.trial_context)
    existed_ns = _existed_ns(batch)
    alone = [
        ~_owned(batch, calm) & (calm.end_ns - np.maximum(existed_ns, calm.begin_ns).astype(np.float64) > bound_ns)
        for calm in stretches
    ]
    delayed = [_machine_stalled(batch.trial_context, calm) for calm in stretches]
    slices = [np.flatnonzero(mask) for mask in alone]
    guilty = [(calm, found) for calm, found, still in zip(stretches, slices, delayed, strict=True) if not still]
    undecided = [found for found, still in zip(slices, delayed, strict=True) if still]

    def told(values: Sequence[int]) -> Ints:
        sizes = [len(found) for _, found in guilty]
        return np.repeat(np.array(values, np.int64), np.array(sizes, np.int64))

    rows = table(
        slice=np.concatenate([np.empty(0, np.int64), *(found for _, found in guilty)]),
        order=told([calm.begin_ns for calm, _ in guilty]),
        log_offset=told([calm.place for calm, _ in guilty]),
        members=told([calm.members for calm, _ in guilty]),
        lasted_ms=told([(calm.end_ns - calm.begin_ns) // 1_000_000 for calm, _ in guilty]),
    )
    proof = (told([calm.source for calm, _ in guilty]), told([calm.seq for calm, _ in guilty]))
    return Findings(rows, [proof], [(Undecided.DELAYED, np.concatenate([np.empty(0, np.int64), *undecided]))])


def _bound_ns(trial_context: TrialContext) -> int:
    settings = trial_context.settings
    metadata_s = settings.metadata_age_s if trial_context.partitions_added else 0.0
    return int((stall_window_s(timing_in(trial_context)) + metadata_s) * SECOND_NS)


def _calm(batch: Batch) -> Iterator[Calm]:
    """Yields the stretches at rest that are longer than the bound: a handful, for groups are mostly at rest once."""
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
                yield Calm(begin_ns, until_ns, one.place, one.source, one.seq, members, listing)


def _without_faults(trial_context: TrialContext, span: Span) -> list[Span]:
    """Returns the parts of a stretch in which no fault was in force; one that was never healed lasts for ever."""
    parts = [span]
    for window in trial_context.windows:
        end_ns = NEVER if window.healed_ns is None else window.healed_ns
        cut = [((begin, min(until, window.injected_ns)), (max(begin, end_ns), until)) for begin, until in parts]
        parts = [part for both in cut for part in both if part[0] < part[1]]
    return parts


def _owned(batch: Batch, calm: Calm) -> Bools:
    """Returns whether each slice belongs to a member by the group records before the stretch."""
    assignment_records = batch.of(Kind.ASSIGNMENT_RECORD)
    classic = assignment_records["protocol"] == Protocol.CLASSIC
    held = (
        ~classic
        & (assignment_records["log_offset"] <= calm.place)
        & (assignment_records["until_log_offset"] > calm.place)
    )
    if calm.listing is not None:
        held |= classic & (assignment_records["log_offset"] == calm.listing)
    owned = np.zeros(batch.size, np.bool_)
    owned[assignment_records["slice"][held]] = True
    return owned


def _existed_ns(batch: Batch) -> Array:
    """Returns since when each slice is known to exist; NEVER for one that only a consumer or a group names.

    Where no partition was added, those that an observer saw existed from the beginning.
    """
    seen = batch.of(Kind.RECORD, Kind.LOG_START, Kind.LOG_END)
    first_ns = per_group(seen["slice"], seen["time_ns"], batch.size, how="min", start=NEVER)
    return first_ns if batch.trial_context.partitions_added else np.where(first_ns == NEVER, NEVER, NONE)


def _machine_stalled(trial_context: TrialContext, calm: Calm) -> bool:
    gaps = [delay for at, delay in trial_context.delays if calm.begin_ns <= at and at - delay <= calm.end_ns]
    return max(gaps, default=0) > trial_context.session_timeout_s / 4 * SECOND_NS

"""Liveness: after the faults were healed and the load had stopped, did every partition converge, and in time.

Judged in two steps. `summaries` reduces every slice to one row (inside the pass over the slices). The invariants here
then look at the rows of all slices at once, because the bound B follows from the backlog of the whole group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants import commits_log
from kafka_trial.invariants.circumstances import TOLERANCE_NS, Circumstances, Settings
from kafka_trial.invariants.commits import regressions
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    between,
    counts,
    covering,
    exactly,
    per_group,
    picked,
)
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.table import Table, table

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch

SECOND_NS = 1_000_000_000
BOUND_S_MIN = 10.0
RATE_UNCALIBRATED = 1.0  # records a second, where nothing was measured: the bound grows, and nobody is accused
DELAYED = "the machine stood still for over a quarter of the session timeout"
SHORT = "not converged, but the drain was shorter than {what}"
CLASSES = (
    "unclassified",
    "unassigned",
    "assigned-not-fetched",
    "fetched-not-delivered",
    "delivered-not-committed",
    "committed-not-delivered",
)


@dataclass(frozen=True)
class Timing:
    """What the bounds follow from: settings of the group, and what the trial measured."""

    session_timeout_s: float
    poll_interval_s: float
    commit_interval_s: float
    metadata_age_s: float = 0.0
    protocol: str = "classic"
    longest_handler_s: float = 0.0
    partitions_added: bool = False
    backlog: int = 0
    rate_per_s: float | None = None
    converge_within_s: float | None = None


# The columns of a summary; see `summaries`.
SUMMARY = (
    "slice",
    "records",
    "end",
    "committed",
    "open",
    "lag",
    "all_handled_ns",
    "converged_ns",
    "moved_ns",
    "stall",
    "backlog",
    "longest_ns",
    "open_offset",
    "open_source",
    "open_seq",
    "commit_source",
    "commit_seq",
    "regression_source",
    "regression_seq",
)


def convergence_bound_s(timing: Timing) -> float:
    """Returns B, within which every partition must converge once faults are healed and the load has stopped.

    The claim's own bound, else at least 10 s: detection of a lost member, a rebalance (which waits for every member, up
    to its poll interval), the longest handler, a commit, a metadata refresh where partitions were added, and twice the
    time that the backlog takes at the calibrated rate.
    """
    if timing.converge_within_s is not None:
        return timing.converge_within_s
    rate = max(timing.rate_per_s or RATE_UNCALIBRATED, RATE_UNCALIBRATED)
    rebalance_s = 0.0 if timing.protocol == "none" else timing.poll_interval_s
    terms = (
        timing.session_timeout_s,
        rebalance_s,
        timing.longest_handler_s,
        timing.commit_interval_s,
        timing.metadata_age_s if timing.partitions_added else 0.0,
        2 * timing.backlog / rate,
    )
    return max(BOUND_S_MIN, sum(terms))


def stall_window_s(timing: Timing) -> float:
    """Returns W: a partition with work left that saw nothing for so long is stuck."""
    return max(BOUND_S_MIN, timing.session_timeout_s + timing.poll_interval_s + timing.commit_interval_s)


def timing_of(
    settings: Settings, *, backlog: int = 0, longest_handler_s: float = 0.0, rate: float | None = None
) -> Timing:
    """Returns the timing of a consumer's settings."""
    return Timing(
        session_timeout_s=settings.session_timeout_s,
        poll_interval_s=settings.poll_interval_s,
        commit_interval_s=settings.commit_interval_s,
        metadata_age_s=settings.metadata_age_s,
        protocol=settings.protocol,
        longest_handler_s=longest_handler_s,
        backlog=backlog,
        rate_per_s=rate,
        converge_within_s=settings.converge_within_s,
    )


def summaries(batch: Batch) -> Table:
    """Returns one row a slice (numbered as in the circumstances), in the light of the snapshot.

    records, end, committed (NONE: none), open (records at or above the committed offset not handled), lag (records at
    or above it), all_handled_ns, converged_ns (since when all was handled and committed; NEVER: not), moved_ns (the
    last delivery, completion or commit that advanced), stall (a place in CLASSES), backlog (at the beginning of the
    drain), longest_ns (handler), regression_seq and regression_source (of the backward commit that stands, -1: none).
    """
    at_ns = _snapshot_ns(batch.circumstances)
    committed = _progress(batch, at_ns)
    records = batch.records
    rest = records["offset"] >= committed[records["slice"]]
    undone = rest & (batch.first_handled.time_ns > at_ns)
    done_ns = per_group(records["slice"][rest], batch.first_handled.time_ns[rest], batch.size, how="max", start=NONE)
    regression = _standing_regression(batch)
    return table(
        slice=batch.slices,
        records=counts(records["slice"], batch.size),
        end=batch.ends,
        committed=committed,
        open=counts(records["slice"][undone], batch.size),
        lag=counts(records["slice"][rest], batch.size),
        all_handled_ns=done_ns,
        converged_ns=_converged_ns(batch, committed, np.where(done_ns > at_ns, NEVER, _last_handled_ns(batch, at_ns))),
        moved_ns=_moved_ns(batch, at_ns),
        stall=_stall_class(batch, records.take(undone), at_ns),
        backlog=_backlog(batch),
        longest_ns=per_group(
            batch.handlers["slice"],
            batch.handlers["end_ns"] - batch.handlers["start_ns"],
            batch.size,
            how="max",
            start=0,
        ),
        open_offset=per_group(records["slice"][undone], records["offset"][undone], batch.size, how="min", start=NEVER),
        open_source=_first_undone(batch, records.take(undone), "source"),
        open_seq=_first_undone(batch, records.take(undone), "seq"),
        commit_source=_last_commit(batch, "source"),
        commit_seq=_last_commit(batch, "seq"),
        regression_source=picked(batch.commits["source"], regression, -1),
        regression_seq=picked(batch.commits["seq"], regression, -1),
    )


# ------------------------------------------------------------------------------------------ the slices of one group


@dataclass(frozen=True)
class Group:
    """The summaries of all slices, with the bounds and instants that hold for all of them; times in nanoseconds."""

    slices: Table
    circumstances: Circumstances
    bound_s: float
    window_s: float
    drain_ns: int
    snapshot_ns: int

    @property
    def drained_ns(self) -> int:
        return self.snapshot_ns - self.drain_ns

    @property
    def in_kafka(self) -> bool:
        return self.circumstances.settings.progress == "kafka"

    def stood_still(self, since_ns: int) -> bool:
        """Whether the machine stood still, since then, for over a quarter of the session timeout."""
        delays = self.circumstances.delays
        gaps = [delay for at, delay in delays if since_ns <= at and at - delay <= self.snapshot_ns]
        return max(gaps, default=0) > self.circumstances.settings.session_timeout_s / 4 * SECOND_NS


def group_of(slices: Table, circumstances: Circumstances) -> Group:
    """Returns the group of all slices' summaries."""
    settings = circumstances.settings
    timing = timing_of(
        settings,
        backlog=int(slices["backlog"].sum()),
        longest_handler_s=int(slices["longest_ns"].max(initial=0)) / SECOND_NS,
        rate=circumstances.calibrated_rate,
    )
    snapshot_ns, drain_ns = _snapshot_ns(circumstances), circumstances.drain_ns
    return Group(
        slices=slices,
        circumstances=circumstances,
        bound_s=convergence_bound_s(timing),
        window_s=stall_window_s(timing),
        drain_ns=snapshot_ns if drain_ns is None else drain_ns,
        snapshot_ns=snapshot_ns,
    )


@invariant(
    "false-lag",
    family="liveness",
    needs=("records", "handled", "offsets log", "snapshot"),
    level="sink",
    of="group",
    progress_in_kafka=True,
)
def false_lag(group: Group) -> Findings:
    """All readable records were handled, and yet the committed offset stays behind the end: a lag that is none.

    "Lag is the difference between the log end offset and the committed offset" (Kafka, Monitoring): an operator is
    called although all work is done. Never legal once the drain is over; only where progress lives in Kafka.

    Smallest history: record 0 `processed`, no commit, phase snapshot.
    """
    found = group.slices.take(_is_false_lag(group))
    rows = table(
        slice=found["slice"],
        order=found["end"],
        records=found["lag"],
        committed_offset=found["committed"],
        log_end=found["end"],
        lasted_ms=(group.snapshot_ns - found["all_handled_ns"]) // 1_000_000,
    )
    proofs = [("regression_source", "regression_seq"), ("commit_source", "commit_seq")]
    return Findings(rows, [(found[source], found[seq]) for source, seq in proofs])


@invariant(
    "stuck-partition",
    family="liveness",
    needs=("records", "handled", "offsets log", "snapshot"),
    level="sink",
    of="group",
)
def stuck_partition(group: Group) -> Findings:
    """A partition with records left saw no delivery, no completion and no progress of its commits for a whole window.

    A group must detect a lost member, rebalance and go on (KIP-62): the window is longer than all of that together.
    Legal while a drain is shorter than the window (undecided), or where the machine itself stood still.

    Smallest history: record 0, phase drain; eleven seconds later phase snapshot.
    """
    waiting = _is_waiting(group)
    settled = group.drained_ns >= group.window_s * SECOND_NS
    delayed = group.stood_still(group.snapshot_ns - int(group.window_s * SECOND_NS))
    stuck = waiting & np.full(len(waiting), settled and not delayed)
    found = group.slices.take(stuck)
    rows = table(
        slice=found["slice"],
        order=found["open_offset"],
        offset=found["open_offset"],
        records=found["open"],
        **{"class": np.array(CLASSES, dtype=object)[found["stall"]]},
    )
    proofs = [("open_source", "open_seq"), ("commit_source", "commit_seq")]
    reason = DELAYED if delayed else SHORT.format(what=f"the {group.window_s:g} s after which a partition is stuck")
    return Findings(
        rows,
        [(found[source], found[seq]) for source, seq in proofs],
        [(reason, group.slices["slice"][waiting & ~stuck])],
    )


@invariant(
    "late-convergence",
    family="liveness",
    needs=("records", "handled", "offsets log", "snapshot"),
    level="sink",
    of="group",
)
def late_convergence(group: Group) -> Findings:
    """A partition was not done, or its position not at the end, within B of the healing, and it is neither stuck nor in
    a false lag.

    Whatever broke, a group that is left alone must come back (KIP-62, KIP-848) within a time that follows from its own
    settings. Legal while the drain is shorter than B (undecided), or where the machine itself stood still.

    Smallest history: record 0, phase drain; thirteen seconds later `processed` 0, committed 1, phase snapshot.
    """
    slices = group.slices
    bound_ns = int(group.bound_s * SECOND_NS)
    apart = (slices["records"] > 0) & ~_is_false_lag(group) & ~_is_stuck(group)
    never = apart & (slices["converged_ns"] == NEVER)
    after = apart & ~never & (slices["converged_ns"] > group.drain_ns + bound_ns + TOLERANCE_NS)
    overdue = never & (group.drained_ns >= bound_ns)
    delayed = group.stood_still(group.drain_ns)
    late = (after | overdue) & np.full(len(after), not delayed)
    found = slices.take(late)
    rows = table(
        slice=found["slice"],
        order=found["end"],
        bound_s=np.full(len(found), round(group.bound_s, 3), dtype=object),
        records=found["open"],
        converged_after_s=np.array(
            [
                None if at == NEVER else round((at - group.drain_ns) / SECOND_NS, 3)
                for at in found["converged_ns"].tolist()
            ],
            dtype=object,
        ),
    )
    reason = DELAYED if delayed else SHORT.format(what=f"the {group.bound_s:g} s it may take")
    return Findings(
        rows,
        [(found["open_source"], found["open_seq"]), (found["commit_source"], found["commit_seq"])],
        [(reason, slices["slice"][(never | after) & ~late])],
    )


def _is_false_lag(group: Group) -> Bools:
    slices = group.slices
    lagging: Bools = (slices["open"] == 0) & (slices["lag"] > 0)
    return lagging & np.full(len(slices), group.in_kafka)


def _is_waiting(group: Group) -> Bools:
    """Records are left, and nothing has moved for the length of the window."""
    slices = group.slices
    still: Bools = slices["moved_ns"] < group.snapshot_ns - int(group.window_s * SECOND_NS)
    return still & (slices["open"] > 0)


def _is_stuck(group: Group) -> Bools:
    settled = group.drained_ns >= group.window_s * SECOND_NS
    return _is_waiting(group) & np.full(len(group.slices), settled)


def _snapshot_ns(circumstances: Circumstances) -> int:
    return NEVER - 1 if circumstances.snapshot_ns is None else circumstances.snapshot_ns


def _progress(batch: Batch, at_ns: int) -> Ints:
    """Returns the committed offset of each slice at that time; NONE for all where progress is not in Kafka."""
    if batch.circumstances.settings.progress != "kafka":
        return np.full(batch.size, NONE, np.int64)
    return commits_log.standing(batch, at_ns)


def _converged_ns(batch: Batch, committed: Ints, done_ns: Ints) -> Ints:
    """Returns since when each slice was done and, where progress is in Kafka, committed to its end; NEVER if not."""
    at_ns = _snapshot_ns(batch.circumstances)
    settings = batch.circumstances.settings
    handled_ns = np.full(batch.size, NONE) if settings.delivery == "at-most-once" else done_ns
    if settings.progress != "kafka":
        return np.where(handled_ns > at_ns, NEVER, handled_ns)
    reached_ns = _reached_end_ns(batch, at_ns)
    whole = (committed >= batch.ends) & (handled_ns <= at_ns)
    return np.where(whole, np.maximum(handled_ns, reached_ns), NEVER)


def _last_handled_ns(batch: Batch, at_ns: int) -> Ints:
    """Returns when the last record that was handled at all was so; a record that was skipped does not make it late."""
    done_ns = batch.first_handled.time_ns
    seen = done_ns <= at_ns
    return per_group(batch.records["slice"][seen], done_ns[seen], batch.size, how="max", start=NONE)


def _reached_end_ns(batch: Batch, at_ns: int) -> Ints:
    """Returns when the committed offset of each slice came to its end, to stay there until the snapshot."""
    log = batch.commits.take(batch.commits["effect_ns"] <= at_ns)
    short = log["value"] < batch.ends[log["slice"]]
    last_short = per_group(log["slice"][short], log["place"][short], batch.size, how="max", start=NONE)
    stays = log.take(~short & (log["place"] > last_short[log["slice"]]))
    return per_group(stays["slice"], stays["effect_ns"], batch.size, how="min", start=NEVER)


def _moved_ns(batch: Batch, at_ns: int) -> Ints:
    """Returns when each slice last saw a delivery, a completion, an effect or a commit that advanced."""
    work = batch.of(Kind.DELIVERED, Kind.PROCESSED, Kind.EFFECT)
    work = work.take(work["time_ns"] <= at_ns)
    moved = per_group(work["slice"], work["time_ns"], batch.size, how="max", start=NONE)
    log = batch.commits
    advance = log.take((log["value"] > log["peak"]) & (log["effect_ns"] <= at_ns))
    return np.maximum(moved, per_group(advance["slice"], advance["effect_ns"], batch.size, how="max", start=NONE))


def _stall_class(batch: Batch, undone: Table, at_ns: int) -> Ints:
    """Returns the place in CLASSES of what the witnesses tell of a partition with records left."""
    held = batch.possessions
    end = np.where(held["close_ns"] == NEVER, NEVER, held["close_ns"] + 1)
    lasting = end > held["open_ns"]
    here = np.arange(batch.size)
    owners = covering(held["slice"][lasting], held["open_ns"][lasting], end[lasting], here, np.full(batch.size, at_ns))
    deliveries = batch.deliveries.sorted_by("slice", "offset")
    begun = exactly(deliveries["slice"], deliveries["offset"], undone["slice"], undone["offset"]) >= 0
    in_hand = counts(undone["slice"][begun], batch.size) > 0
    told = counts(held["slice"], batch.size) > 0
    names = np.full(batch.size, CLASSES.index("unclassified"), np.int64)
    names[told & (owners == 0)] = CLASSES.index("unassigned")
    names[in_hand & (owners > 0)] = CLASSES.index("delivered-not-committed")
    return names


def _backlog(batch: Batch) -> Ints:
    """Returns how many records were left when the drain began: not handled, or not committed past; the greater."""
    drain_ns = batch.circumstances.drain_ns
    if drain_ns is None:
        return np.zeros(batch.size, np.int64)
    records = batch.records
    unhandled = counts(records["slice"][batch.first_handled.time_ns > drain_ns], batch.size)
    if batch.circumstances.settings.progress != "kafka":
        return unhandled
    committed = _progress(batch, drain_ns)
    first, end = between(
        records["slice"], records["offset"], np.arange(batch.size), committed, np.full(batch.size, NEVER)
    )
    uncommitted: Ints = end - first
    return np.maximum(unhandled, uncommitted)


def _standing_regression(batch: Batch) -> Ints:
    """Returns the backward commit that no later one has recovered, for each slice; -1 if there is none."""
    episodes = regressions(batch)
    standing = episodes.take(episodes["back"] < 0)
    found = np.full(batch.size, -1, np.int64)
    found[standing["slice"]] = standing["first"]
    return found


def _last_commit(batch: Batch, column: str) -> Ints:
    found = np.full(batch.size, -1, np.int64)
    found[batch.commits["slice"]] = batch.commits[column]
    return found


def _first_undone(batch: Batch, undone: Table, column: str) -> Ints:
    found = np.full(batch.size, -1, np.int64)
    found[undone["slice"][::-1]] = undone[column][::-1]  # sorted: the first one is written last
    return found

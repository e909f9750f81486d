"""Liveness: after the faults were healed and the load had stopped, did every partition converge, and in time.

Judged in two steps. `summaries.py` reduces every slice to one row (inside the pass over the slices). The invariants
here then look at the rows of all slices at once, because the bound B follows from the backlog of the whole group.

A group makes no progress once nothing has got further for W and nothing is in hand. What is left then is judged at
once, whatever B is: the rate of those who are stuck is no measure of the time they need.

B takes the rate at which the group worked before the faults. Where brokers took twice as long for its commits in the
drain as then, or longer, the machine was slower by their own word; where its threads or theirs waited longer for a
processor, it was busier by the kernel's. What was late by no more than that is undecided, as long as the group was
still at work. A bound that the team claims is not stretched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from kafka_trial.invariants.claim_rule import Rule, always, on_the_partition, sharing_an_event
from kafka_trial.invariants.drain_backlog import DrainBacklog, slowest_backlog
from kafka_trial.invariants.group_timeouts import Movements
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import NEVER, NONE, Array, Bools
from kafka_trial.invariants.liveness_bounds import (
    NO_BACKLOG,
    DrainBound,
    Timing,
    bound_in_words,
    convergence_bound_s,
    cpu_wait_excess_s,
    drain_bound,
    stall_window_s,
    timing_of,
    window_in_words,
    with_faults,
)
from kafka_trial.invariants.stuck_classes import CLASSES
from kafka_trial.invariants.summaries import snapshot_ns as snapshot_ns_of
from kafka_trial.invariants.table import Table, table
from kafka_trial.invariants.trial_context import TOLERANCE_NS, TrialContext
from kafka_trial.invariants.undecided import Undecided

__all__ = ["Group", "Timing", "convergence_bound_s", "group_of", "stall_window_s"]

SECOND_NS = 1_000_000_000
SLOWDOWN_MIN = 2.0  # B takes twice the time that the backlog needs: less than that is in it
SLOWER_NS_MIN = 5_000_000  # a commit must take so much longer: of less than that a machine's mood is enough


@dataclass(frozen=True)
class Group:
    """The summaries of all slices, with the bounds and instants that hold for all of them; times in nanoseconds."""

    slices: Table
    trial_context: TrialContext
    timing: Timing
    drain_ns: int
    snapshot_ns: int
    waits: Table
    worked: Table
    idle_waits: Table
    lags: Table
    ownership_spans: Table
    occupied: Table
    moves: Table
    commit_slowdown: float = 1.0  # how many times as long brokers took for a commit in the drain as before the faults
    cpu_wait_s: float = 0.0  # how much longer it waited for a processor in the drain than while its rate was measured

    @property
    def drain_bound(self) -> DrainBound:
        """The bounds of the drain, as the run reckons them too."""
        return drain_bound(self.timing)

    @property
    def bound_s(self) -> float:
        return self.drain_bound.converge_s

    @property
    def window_s(self) -> float:
        return self.drain_bound.stuck_s

    @property
    def patience_s(self) -> float:
        """How long the drain must have been before anybody is blamed for what is left: W where the group makes
        no progress; else B, as far as the rate was measured, and what the machine was slower or busier."""
        rated = self.timing.backlog.rate_per_s is not None
        measured = self.timing if rated else replace(self.timing, backlog=NO_BACKLOG)
        enough_s = max(self.window_s, convergence_bound_s(measured) + self.allowance_s)
        return min(enough_s, self.drain_bound.no_progress_s) if self.makes_no_progress else enough_s

    @property
    def makes_no_progress(self) -> bool:
        """Whether records are left, and nothing will change that: for W no partition has made progress and no fetch has
        come further, and no record is in hand that its member may still finish before it must poll again."""
        going_on = self._since("progressed_ns", self.window_s) or self._since("fetched_ns", self.window_s)
        in_hand = self._since("in_hand_since_ns", self.timing.poll_limit_s)
        return bool(np.any(self.slices["open"] > 0)) and not going_on and not in_hand

    def _since(self, instant: str, seconds: float) -> bool:
        """Returns whether that instant of any partition lies within so many seconds before the snapshot."""
        return bool((self.slices[instant] >= self.snapshot_ns - int(seconds * SECOND_NS)).any())

    @property
    def allowance_s(self) -> float:
        """How much longer than B it may have taken, for the machine was slower or busier than when it was measured.

        Nothing, where no partition moved any more for W: whatever was left then, nobody was working at it.
        """
        unrated, claimed = self.timing.backlog.rate_per_s is None, self.timing.converge_within_s is not None
        if unrated or claimed or not self._since("moved_ns", self.window_s):
            return 0.0
        return (self.commit_slowdown - 1) * self.timing.backlog.allowed_s + self.cpu_wait_s

    @property
    def drained_long_enough(self) -> bool:
        """Whether the drain lasted so long."""
        return self.drained_ns >= int(self.patience_s * SECOND_NS)

    @property
    def drained_ns(self) -> int:
        return self.snapshot_ns - self.drain_ns

    @property
    def in_kafka(self) -> bool:
        return self.trial_context.settings.in_offsets_log

    @property
    def why_end_undecided(self) -> str | None:
        """Why nobody can be blamed for what was still to do at the end; None once there was time enough to do it."""
        if self.machine_stalled(self.drain_ns):
            return Undecided.DELAYED
        return self.short_reason if self.drained_ns < self.overdue_ns else None

    @property
    def short_reason(self) -> str:
        """Why a drain that was shorter than B, with what the machine was slower or busier, decides nothing."""
        if not self.allowance_s:
            return Undecided.DRAIN_SHORT.format(what=bound_in_words(self.timing))
        if self.commit_slowdown < SLOWDOWN_MIN:
            return Undecided.BUSY_MACHINE.format(waited=self.cpu_wait_s, what=bound_in_words(self.timing))
        return Undecided.SLOW_MACHINE.format(
            times=self.commit_slowdown,
            waited=self.cpu_wait_s,
            what=bound_in_words(self.timing),
            more=self.allowance_s,
        )

    @property
    def bound_ns(self) -> int:
        return int(self.bound_s * SECOND_NS)

    @property
    def bound_with_allowance_ns(self) -> int:
        """B, and how much longer it may have taken: who took longer than that was late for certain."""
        return self.bound_ns + int(self.allowance_s * SECOND_NS)

    @property
    def overdue_ns(self) -> int:
        """How long the drain must have been before a partition that has not converged never will: B and more, or less
        where the group makes no progress."""
        if not self.makes_no_progress:
            return self.bound_with_allowance_ns
        return min(self.bound_with_allowance_ns, int(self.drain_bound.no_progress_s * SECOND_NS))

    def machine_stalled(self, since_ns: int) -> bool:
        """Whether the machine stood still, since then, for over a quarter of the session timeout."""
        delays = self.trial_context.delays
        gaps = [delay for at, delay in delays if since_ns <= at and at - delay <= self.snapshot_ns]
        return max(gaps, default=0) > self.trial_context.session_timeout_s / 4 * SECOND_NS


def group_of(slices: Table, trial_context: TrialContext, gathered: Mapping[str, Table]) -> Group:
    """Returns the group of all slices' summaries, with what is gathered beside them (`judge/findings.py`)."""
    timing = timing_of(
        trial_context.settings,
        declared=trial_context.declared_timeouts,
        backlog=_backlog(slices, trial_context),
        longest_handler_s=int(slices["longest_ns"].max(initial=0)) / SECOND_NS,
        partitions_added=trial_context.partitions_added,
        movements=_movements(slices),
    )
    snapshot_ns, drain_ns = snapshot_ns_of(trial_context), trial_context.drain_ns
    return Group(
        slices=slices,
        trial_context=trial_context,
        timing=with_faults(timing, trial_context),
        drain_ns=snapshot_ns if drain_ns is None else drain_ns,
        snapshot_ns=snapshot_ns,
        **gathered,
        commit_slowdown=_commit_slowdown(slices),
        cpu_wait_s=cpu_wait_excess_s(trial_context, snapshot_ns),
    )


def _backlog(slices: Table, trial_context: TrialContext) -> DrainBacklog:
    """Returns what takes longest of what was left when the drain began."""
    about, numbers, left = trial_context, slices["slice"].tolist(), slices["backlog"].tolist()
    partitions = [None if about.is_intermediate(number) else about.slices[number][1] for number in numbers]
    return slowest_backlog(zip(partitions, left, strict=True), about.calibrated_rate, about.opening_burst)


def _movements(slices: Table) -> Movements:
    """Returns what all partitions together showed of their pauses."""
    gap_ns = int(slices["gap_ns"].max(initial=NONE))
    return Movements(None if gap_ns == NONE else gap_ns / SECOND_NS)


def _commit_slowdown(slices: Table) -> float:
    """Returns how many times as long commits took in the drain as before the faults: the (lower) median of the slices
    that tell; 1 where that is in B already, or none does."""
    both = slices.take((slices["commit_took_before_ns"] > 0) & (slices["commit_took_in_drain_ns"] > 0))
    more = both["commit_took_in_drain_ns"] - both["commit_took_before_ns"] >= SLOWER_NS_MIN
    times = np.sort(np.where(more, both["commit_took_in_drain_ns"] / both["commit_took_before_ns"], 1.0))
    median = float(times[(len(times) - 1) // 2]) if len(times) else 1.0
    return median if median >= SLOWDOWN_MIN else 1.0


@invariant(
    "false-lag",
    family="liveness",
    needs=("records", "handled", "offsets log", "snapshot"),
    level="sink",
    of="group",
    progress_in_kafka=True,
    of_the_end=True,
    intermediate_too=True,
    severity=200,
    rule=Rule(always),
    message="{place} ends with a lag of {records} ({committed_offset} of {log_end}), though all {done}{before} "
    "and {within} had passed",
    follows={"commit-regression": sharing_an_event, "commit-lost": on_the_partition},
)
def false_lag(group: Group) -> Findings:
    """All readable records were handled, and yet the committed offset stays behind the end: the lag is false.

    "Lag is the difference between the log end offset and the committed offset" (Kafka, Monitoring): operators are
    alerted although all work is done. Undecided while the drain is shorter than B. Judged only if progress lives in
    Kafka.

    Smallest history: record 0 `processed`, no commit, phase drain; thirteen seconds later phase snapshot.

    Usual cause: All records were done, but the committed position stands below them: the last offset was committed
    instead of the next one, a commit on close was lost, or an old member's commit set it back.

    Remedy: Commit offset + 1; commit on revocation and before close; retry a refused commit while you own the
    partition.
    """
    found = group.slices.take(_is_false_lag(group))
    rows = table(
        slice=found["slice"],
        order=found["end"],
        records=found["lag"],
        committed_offset=found["committed"],
        log_end=found["end"],
        lasted_ms=(group.snapshot_ns - found["all_handled_ns"]) // 1_000_000,
        within=_each(bound_in_words(group.timing), found),
    )
    proofs = [("regression_source", "regression_seq"), ("commit_source", "commit_seq")]
    return Findings(rows, [(found[source], found[seq]) for source, seq in proofs])


@invariant(
    "stuck-partition",
    family="liveness",
    needs=("records", "moves", "offsets log", "snapshot"),
    level="sink",
    of="group",
    intermediate_too=True,
    severity=180,
    rule=Rule(always),
    message="{place} stood still at record {offset} for {within} or longer, with {records} unprocessed "
    "({class}{last_fetch})",
    deciding=("class",),
    follows={"orphan-partition": on_the_partition},
)
def stuck_partition(group: Group) -> Findings:
    """A partition with records left saw no delivery, no completion and no progress of its commits for a whole window.

    A group must detect a lost member, rebalance and go on (KIP-62). The window W is a session, a commit interval and
    the longest pause that any partition made in this trial, or the longest handler, but no more than the poll interval;
    if nothing moved at all, three heartbeats. Giving a record to one owner for the third time is no progress. Undecided
    while the drain is shorter than W. While other partitions progress, or a record is in hand that was given out less
    than a poll interval ago, the drain must have been as long as B too. Legal if the machine itself stood still.

    Smallest history: record 0, phase drain; eleven seconds later phase snapshot.

    Usual cause: A partition stood still with records in it. Its class says where: it had no owner, it was not fetched
    (paused?), its last fetch was refused, what was fetched cannot be decoded, it was not handed out, not worked on, or
    its commits failed.

    Remedy: Follow the class: resume after a rebalance, reset a position that is out of range, catch what the
    deserializer throws and go on behind it, bound the handler, look at refused commits.
    """
    waiting = _is_waiting(group)
    delayed = group.machine_stalled(group.snapshot_ns - int(group.window_s * SECOND_NS))
    stuck = waiting & np.full(len(waiting), group.drained_long_enough and not delayed)
    found = group.slices.take(stuck)
    rows = table(
        slice=found["slice"],
        order=found["open_offset"],
        offset=found["open_offset"],
        records=found["open"],
        within=_each(window_in_words(group.timing), found),
        fetch_error=found["last_fetch_error"],
        fetched_before_s=np.where(
            found["last_fetch_ns"] == NONE, NONE, (group.snapshot_ns - found["last_fetch_ns"]) // SECOND_NS
        ),
        **{"class": np.array(CLASSES, dtype=object)[found["stuck_class"]]},
    )
    proofs = [("open_source", "open_seq"), ("commit_source", "commit_seq")]
    reason = Undecided.DELAYED if delayed else _why_undecided(group)
    return Findings(
        rows,
        [(found[source], found[seq]) for source, seq in proofs],
        [(reason, group.slices["slice"][waiting & ~stuck])],
    )


@invariant(
    "late-convergence",
    family="liveness",
    needs=("records", "moves", "offsets log", "snapshot"),
    level="sink",
    of="group",
    intermediate_too=True,
    severity=210,
    rule=Rule(always),
    message="{place} had not converged within {within}, {convergence}",
    follows={"head-of-line-blocking": on_the_partition},
)
def late_convergence(group: Group) -> Findings:
    """A partition was not done, or its position not at the end, within B of the healing, and it is neither stuck nor in
    a false lag.

    Whatever broke, a group that is left alone must recover (KIP-62, KIP-848) within a time that follows from its own
    settings. Undecided while the drain is shorter than B, or if the machine was slower or busier in it by as much.
    Legal if the machine stood still. If the group goes round in circles (the same records come for the third time or
    more, and nothing else progresses for W), it is late without waiting for B.

    Smallest history: record 0, phase drain; thirteen seconds later `processed` 0, committed 1, phase snapshot.

    Usual cause: After the faults were healed the group took longer than it may: long sessions, long handlers, slow
    restarts.

    Remedy: Shorten session.timeout.ms and max.poll.interval.ms, or claim the time it needs with converge_within_s.
    """
    slices = group.slices
    apart = (slices["records"] > 0) & ~_is_false_lag(group) & ~_is_stuck(group)
    never = apart & (slices["converged_ns"] == NEVER)
    due_ns = group.drain_ns + TOLERANCE_NS
    after = apart & ~never & (slices["converged_ns"] > due_ns + group.bound_ns)
    overdue = after & (slices["converged_ns"] > due_ns + group.bound_with_allowance_ns)
    overdue |= never & (group.drained_ns >= group.overdue_ns)
    delayed = group.machine_stalled(group.drain_ns)
    late = overdue & np.full(len(after), not delayed)
    found = slices.take(late)
    rows = table(
        slice=found["slice"],
        order=found["end"],
        bound_s=np.full(len(found), round(group.bound_s, 3), dtype=object),
        within=_each(bound_in_words(group.timing), found),
        records=found["open"],
        converged_after_s=np.array(
            [
                None if at == NEVER else round((at - group.drain_ns) / SECOND_NS, 3)
                for at in found["converged_ns"].tolist()
            ],
            dtype=object,
        ),
    )
    reason = Undecided.DELAYED if delayed else group.short_reason
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
    return _is_waiting(group) & np.full(len(group.slices), group.drained_long_enough)


def _why_undecided(group: Group) -> str:
    if group.patience_s == group.window_s:
        return Undecided.DRAIN_SHORT.format(what=window_in_words(group.timing))
    return group.short_reason


def _each(text: str, found: Table) -> Array:
    return np.full(len(found), text, dtype=object)

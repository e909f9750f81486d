"""Liveness: after the faults were healed and the load had stopped, did every partition converge, and in time.

Judged in two steps. `summaries.py` reduces every slice to one row (inside the pass over the slices). The anomalies
of a group then look at the rows of all slices at once, because the bound B follows from the backlog of the whole group.

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

from kafka_trial.model.drain_backlog import DrainBacklog, slowest_backlog
from kafka_trial.model.group_timeouts import Movements
from kafka_trial.model.kernels import NONE
from kafka_trial.model.liveness_bounds import (
    NO_BACKLOG,
    DrainBound,
    Timing,
    bound_in_words,
    convergence_bound_s,
    cpu_wait_excess_s,
    drain_bound,
    timing_of,
    with_faults,
)
from kafka_trial.model.summaries import snapshot_ns as snapshot_ns_of
from kafka_trial.model.table import Table
from kafka_trial.model.trial_context import TrialContext
from kafka_trial.model.undecided import Undecided

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
    cold_reads: Table
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
        topics_added=trial_context.topics_added,
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
    left = zip(slices["slice"].tolist(), slices["backlog"].tolist(), strict=True)
    about = trial_context
    return slowest_backlog(left, about.calibrated_rate, about.opening_burst, topic_of=about.topic_of)


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

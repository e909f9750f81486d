"""The two bounds of liveness: within which time a healed group must converge, and when a partition counts as stuck.

The run bounds its drain by them, the judge its findings: both by these same functions. Session, rebalance timeout and
protocol are those that the brokers were told (`fencing.py`); consumer.toml stands where nobody saw them.

Faults cost the group sessions. A member that is killed, frozen or cut off leaves without a word, and the coordinator
finds out when its session expires. In the classic protocol a rebalance waits for it meanwhile, and a member that is
lost in that rebalance has its session counted only from the end of it: faults that follow one another cost one session
after the other, those in force at the same time cost one together. KIP-848 has no such barrier: sessions run side by
side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kafka_trial.history.consequences import Consequence
from kafka_trial.model.drain_backlog import DrainBacklog
from kafka_trial.model.group_timeouts import DeclaredTimeouts, Movements, Pause, pause_of
from kafka_trial.model.kernels import NEVER
from kafka_trial.model.trial_context import TOLERANCE_NS, CpuWait, Settings, TrialContext, Window

BOUND_S_MIN = 10.0
FRESH_MIN = 20  # records on each partition, so that its last assignment had something to show
NOTHING_DECLARED = DeclaredTimeouts()
NO_BACKLOG = DrainBacklog()
ON_ONE = " of one partition"
SHOWN_S_MIN = 0.05
HEARTBEATS_A_SESSION = (
    3  # "must be set lower than session.timeout.ms, but typically … no higher than 1/3 of that value"
)


@dataclass(frozen=True)
class Timing:
    """What the bounds follow from: settings of the group, and what the trial measured.

    `poll_interval_s`: how long a rebalance may wait for the slowest member. `expiries` sessions of lost members end one
    after the other, the last of them, and the rebalance after it, `detection_s` after the drain began; 0: nobody was
    lost that long ago. `unanswered_s`: how long a client may still wait then for an answer that never comes.
    `poll_limit_s`: how long a member may go without a poll before its group expels it. `pause`: for how long a
    partition may show no movement; None: movements were not measured, and `poll_interval_s` stands for it.
    """

    session_timeout_s: float
    poll_interval_s: float
    commit_interval_s: float
    noticing_s: float = 0.0
    protocol: str = "classic"
    longest_handler_s: float = 0.0
    backlog: DrainBacklog = NO_BACKLOG
    converge_within_s: float | None = None
    expiries: int = 1
    detection_s: float = 0.0
    unanswered_s: float = 0.0
    poll_limit_s: float = 0.0
    pause: Pause | None = None


def convergence_bound_s(timing: Timing) -> float:
    """Returns B, within which every partition must converge once faults are healed and the load has stopped.

    The claim's own bound, else at least 10 s: detection of lost members and a rebalance (which waits for every member,
    up to its poll cycle) after each, the longest handler, a commit, the time to notice partitions that came, and twice
    the time that the backlog takes at the calibrated rate, its own partition's where that takes longer
    (`drain_backlog.py`).
    """
    if timing.converge_within_s is not None:
        return timing.converge_within_s
    return max(BOUND_S_MIN, sum(bound_terms(timing).values()))


def bound_terms(timing: Timing) -> Mapping[str, float]:
    """Returns the terms of B in seconds, by what they are for."""
    backlog = timing.backlog
    left = f"{backlog.records}{ON_ONE if backlog.of_one else ''} at {backlog.counted_rate_per_s:.0f}/s"
    return {
        **_detection(timing),
        "the longest handler": timing.longest_handler_s,
        "the commit interval": timing.commit_interval_s,
        "the metadata age": timing.noticing_s,
        "requests never answered": timing.unanswered_s,
        f"twice a backlog of {left}": backlog.allowed_s,
    }


def _detection(timing: Timing) -> Mapping[str, float]:
    """Returns what detecting lost members, and the rebalances after it, still take when the drain begins."""
    rebalance_s, session = _rebalance_s(timing), f"session expiry of {timing.session_timeout_s:g} s"
    if timing.detection_s <= timing.session_timeout_s + rebalance_s:
        return {f"a {session}": timing.session_timeout_s, "a rebalance": rebalance_s}
    if timing.expiries == 1:
        return {f"a {session} and a rebalance, as far as they were left": timing.detection_s}
    many = f"{timing.expiries} session expiries of {timing.session_timeout_s:g} s in series"
    return {f"{many}, each with a rebalance, as far as they were left": timing.detection_s}


def bound_in_words(timing: Timing) -> str:
    """Returns B with its terms, for a report."""
    bound = f"B = {convergence_bound_s(timing):.1f} s"
    if timing.converge_within_s is not None:
        return f"{bound} (as claimed)"
    terms = ", ".join(f"{name}: {value:.1f} s" for name, value in bound_terms(timing).items() if value >= SHOWN_S_MIN)
    return f"{bound} ({terms}; at least {BOUND_S_MIN:g} s)"


def window_in_words(timing: Timing) -> str:
    """Returns W with its terms, for a report."""
    session, *others = window_terms(timing).items()
    parts = (session[0], *(f"{name}: {value:.1f} s" for name, value in others))
    return f"W = {stall_window_s(timing):.1f} s ({', '.join(parts)}; at least {BOUND_S_MIN:g} s)"


def cpu_wait_excess_s(trial_context: TrialContext, until_ns: int) -> float:
    """Returns what members and brokers waited for a processor in the drain, until some instant, beyond the share of the
    time that they waited while the rate was measured; 0 where there are no samples of then.
    """
    about = trial_context
    begun_ns, rated_ns, drain_ns = about.phases.get("steady"), about.calibrated_ns, about.drain_ns
    if begun_ns is None or rated_ns is None or drain_ns is None:
        return 0.0
    waited_ns, sampled_ns = _waited_ns(about.cpu_waits, begun_ns, rated_ns)
    more_ns, drained_ns = _waited_ns(about.cpu_waits, drain_ns, until_ns)
    return max(0.0, more_ns - waited_ns / sampled_ns * drained_ns) / SECOND_NS if sampled_ns else 0.0


def _waited_ns(waits: Sequence[CpuWait], begin_ns: int, end_ns: int) -> tuple[int, int]:
    """Returns how long they waited, and in how long a time, by the samples of some span."""
    inside = [wait for wait in waits if begin_ns < wait.time_ns and wait.time_ns - wait.over_ns < end_ns]
    return sum(wait.waited_ns for wait in inside), sum(wait.over_ns for wait in inside)


def stall_window_s(timing: Timing) -> float:
    """Returns W: a partition with work left that saw no movement for so long is stuck."""
    return max(BOUND_S_MIN, sum(window_terms(timing).values()))


def window_terms(timing: Timing) -> Mapping[str, float]:
    """Returns the terms of W in seconds, by what they are for."""
    return {
        f"a session expiry of {timing.session_timeout_s:g} s": timing.session_timeout_s,
        _pause(timing).name: _pause(timing).seconds,
        "the commit interval": timing.commit_interval_s,
    }


def no_progress_bound_s(timing: Timing) -> float:
    """Returns how long a drain must have lasted before a group that makes no progress is blamed for what is left.

    W; and where faults still cost the group something when the drain begins, the rest of that (sessions that have yet
    to expire, answers that never come, partitions that members have yet to hear of) and a pause and a commit after it.
    The backlog counts for nothing here: nobody is working at it. A bound that the team claims is waited for.
    """
    window_s = stall_window_s(timing)
    if timing.converge_within_s is not None:
        return max(window_s, timing.converge_within_s)
    after_faults_s = timing.detection_s + timing.unanswered_s + _pause(timing).seconds + timing.commit_interval_s
    return max(window_s, after_faults_s) + timing.noticing_s


@dataclass(frozen=True)
class DrainBound:
    """How long a drain may last, in seconds: B, W, and how long a group must
    have made no progress; `words` say what B and W follow from.

    The run ends its drain by it and writes it down, the judge reckons it again from the whole history.
    """

    converge_s: float
    stuck_s: float
    no_progress_s: float
    words: str

    @property
    def longest_s(self) -> float:
        """After that nothing more is waited for."""
        return max(self.converge_s, self.stuck_s)


def drain_bound(timing: Timing) -> DrainBound:
    """Returns the bounds of a drain, for the run and for the judge."""
    return DrainBound(
        converge_s=convergence_bound_s(timing),
        stuck_s=stall_window_s(timing),
        no_progress_s=no_progress_bound_s(timing),
        words=f"all must be done within {bound_in_words(timing)}; "
        f"no partition may stand still for {window_in_words(timing)}",
    )


def _pause(timing: Timing) -> Pause:
    return timing.pause or Pause("a rebalance", timing.poll_interval_s)


def timing_of(
    settings: Settings,
    *,
    declared: DeclaredTimeouts = NOTHING_DECLARED,
    backlog: DrainBacklog = NO_BACKLOG,
    longest_handler_s: float = 0.0,
    partitions_added: bool = False,
    topics_added: bool = False,
    movements: Movements | None = None,
) -> Timing:
    """Returns the timing of a group's settings, and of what was seen of its trial.

    In B a handler that the team declares counts in the place of the longest that was seen; a pause may be as long as
    the longer of both.
    """
    session_s = settings.session_timeout_s if declared.session_timeout_s is None else declared.session_timeout_s
    limit_s = settings.poll_interval_s if declared.rebalance_timeout_s is None else declared.rebalance_timeout_s
    return Timing(
        session_timeout_s=session_s,
        poll_interval_s=_slowest_round_s(settings, declared, session_s),
        commit_interval_s=settings.commit_interval_s,
        noticing_s=_noticing_s(settings, declared, partitions_added=partitions_added, topics_added=topics_added),
        protocol=declared.protocol or settings.protocol,
        longest_handler_s=longest_handler_s if settings.handler_max_s is None else settings.handler_max_s,
        backlog=backlog,
        converge_within_s=settings.converge_within_s,
        poll_limit_s=limit_s,
        pause=None
        if movements is None
        else pause_of(
            movements,
            longest_handler_s=max(longest_handler_s, settings.handler_max_s or 0.0),
            heartbeat_s=heartbeat_s(declared, session_s),
            poll_limit_s=limit_s,
        ),
    )


PATTERN_RESOLVED_S = 20.0


def _noticing_s(settings: Settings, declared: DeclaredTimeouts, *, partitions_added: bool, topics_added: bool) -> float:
    """Returns how long a group may take to notice partitions that came: as long as its clients declare.

    Where a coordinator of KIP-848 resolves the pattern, it does so at a heartbeat, once in ten seconds at most
    (GroupMetadataManager: REGEX_BATCH_REFRESH_MIN_INTERVAL_MS), and members hear of it at another one; a heartbeat
    comes every 5 s by default.
    """
    if not (partitions_added or topics_added):
        return 0.0
    by_coordinator = topics_added and (declared.protocol or settings.protocol) == "consumer"
    return max(settings.metadata_age_s, PATTERN_RESOLVED_S if by_coordinator else 0.0)


def timing_in(trial_context: TrialContext) -> Timing:
    """Returns the timing of a trial's group, for bounds that do not depend on its backlog."""
    return timing_of(
        trial_context.settings,
        declared=trial_context.declared_timeouts,
        partitions_added=trial_context.partitions_added,
        topics_added=trial_context.topics_added,
    )


def heartbeat_s(declared: DeclaredTimeouts, session_s: float) -> float:
    """Returns how long a member may take to hear of a rebalance: its heartbeat interval, as far as it was seen."""
    longest_s = session_s / HEARTBEATS_A_SESSION
    return longest_s if declared.heartbeat_s is None else min(longest_s, declared.heartbeat_s)


def _slowest_round_s(settings: Settings, declared: DeclaredTimeouts, session_s: float) -> float:
    """Returns how long a rebalance may wait for a member: the time it may take by its own word, but no longer than it
    was seen to go round before the faults, and a heartbeat. A default of five minutes is no licence to take them.
    """
    allowed_s = settings.poll_interval_s if declared.rebalance_timeout_s is None else declared.rebalance_timeout_s
    if declared.poll_cycle_s is None:
        return min(allowed_s, settings.poll_interval_s)
    return min(allowed_s, declared.poll_cycle_s + heartbeat_s(declared, session_s))


def _rebalance_s(timing: Timing) -> float:
    return 0.0 if timing.protocol == "none" else timing.poll_interval_s


SECOND_NS = 1_000_000_000
LEFT_WITHIN_NS = SECOND_NS  # a request is read a moment after it was answered
ENDS_PROCESS = (Consequence.KILLS, Consequence.STOPS)
STOPS_HEARTBEATS = (Consequence.CUTS_OFF, Consequence.FREEZES)  # if it lasts for a session, the session is over


@dataclass(frozen=True)
class Expiry:
    """When a fault's lost session, and the rebalance after it, is over; the last of `in_series` that followed on one
    another."""

    end_ns: int
    in_series: int


def expiries(trial_context: TrialContext, timing: Timing) -> Mapping[int, Expiry]:
    """Returns the expiry of each fault, by its number, that cost the group a session."""
    if timing.protocol == "none":
        return {}
    found: dict[int, Expiry] = {}
    each_ns = int((timing.session_timeout_s + timing.poll_interval_s) * SECOND_NS)
    last: Expiry | None = None
    for together in _overlapping(_costly(trial_context, timing)):
        begin_ns, in_series = max(window.injected_ns for window in together), 1
        if last is not None and last.end_ns > begin_ns and timing.protocol != "consumer":
            begin_ns, in_series = last.end_ns, last.in_series + 1
        last = Expiry(begin_ns + each_ns, in_series)
        found |= {window.number: last for window in together}
    return found


def with_faults(timing: Timing, trial_context: TrialContext) -> Timing:
    """Returns the timing with what the faults before the drain still cost when it begins."""
    drain_ns = trial_context.drain_ns
    if drain_ns is None:
        return timing
    lost = expiries(trial_context, timing)
    last = max(lost.values(), key=lambda one: one.end_ns, default=None)
    asked_s = trial_context.settings.request_timeout_s or 0.0
    held = [window for window in trial_context.windows if window.does(Consequence.LEAVES_REQUESTS_OPEN)]
    waits_ns = [asked_s * SECOND_NS + (window.healed_ns or drain_ns) - drain_ns for window in held]
    return replace(
        timing,
        expiries=1 if last is None else last.in_series,
        detection_s=0.0 if last is None else max(0.0, (last.end_ns - drain_ns) / SECOND_NS),
        unanswered_s=max(0.0, *(waits_ns or [0.0])) / SECOND_NS if asked_s else 0.0,
    )


def fault_ends_ns(trial_context: TrialContext, timing: Timing, window_ns: int) -> Mapping[int, int]:
    """Returns until when each fault, by its number, explains what its group does: for W after its healing, and as long
    as the session that it cost has not expired and been lived down; NEVER where it was not healed."""
    lost = expiries(trial_context, timing)
    return {
        window.number: NEVER
        if window.healed_ns is None
        else min(NEVER, max(window.healed_ns + window_ns, lost[window.number].end_ns if window.number in lost else 0))
        for window in trial_context.windows
    }


def _costly(trial_context: TrialContext, timing: Timing) -> list[Window]:
    """Returns the faults that cost a session, in the order of their injection."""
    held_min_s = timing.session_timeout_s - heartbeat_s(trial_context.declared_timeouts, timing.session_timeout_s)
    return sorted(
        (
            window
            for window in trial_context.windows
            if (_ended(trial_context, window) and not _taken_over(trial_context, window, timing.session_timeout_s))
            or (window.does(*STOPS_HEARTBEATS) and _lasted_ns(window) >= held_min_s * SECOND_NS)
        ),
        key=lambda window: (window.injected_ns, window.number),
    )


def _taken_over(trial_context: TrialContext, window: Window, session_s: float) -> bool:
    """Tells whether the next process of the fault's member was admitted under an instance id before the session of the
    last one was over: then no session expires (KIP-345)."""
    until_ns = window.injected_ns + int(session_s * SECOND_NS)
    return _told_of(trial_context, window, trial_context.declared_timeouts.takeovers, until_ns=until_ns)


def _ended(trial_context: TrialContext, window: Window) -> bool:
    """Tells whether the fault ended a process whose client did not say goodbye."""
    return window.does(Consequence.KILLS) or (window.does(Consequence.STOPS) and not _left(trial_context, window))


def _lasted_ns(window: Window) -> int:
    return NEVER if window.healed_ns is None else window.healed_ns - window.injected_ns


def _left(trial_context: TrialContext, window: Window) -> bool:
    """Tells whether the fault's member was heard to leave the group when it was asked to stop."""
    until_ns = NEVER if window.healed_ns is None else window.healed_ns + LEFT_WITHIN_NS
    leaves = trial_context.declared_timeouts.leaves
    return _told_of(trial_context, window, leaves, until_ns=until_ns, early_ns=TOLERANCE_NS)


def _told_of(
    trial_context: TrialContext,
    window: Window,
    moments: Sequence[tuple[int, int]],
    *,
    until_ns: int,
    early_ns: int = 0,
) -> bool:
    """Tells whether one of some moments (lane, time) is of the fault's member, from its injection until then."""
    if window.member not in trial_context.members:
        return False
    number = trial_context.members.index(window.member)
    own_ns = [at_ns for lane, at_ns in moments if trial_context.lanes.get(lane) == number]
    return any(window.injected_ns - early_ns <= at_ns <= until_ns for at_ns in own_ns)


def _overlapping(windows: Sequence[Window]) -> Iterator[list[Window]]:
    """Yields the faults in groups that were in force together."""
    together: list[Window] = []
    for window in windows:
        if together and all((one.healed_ns or NEVER) < window.injected_ns for one in together):
            yield together
            together = []
        together.append(window)
    if together:
        yield together

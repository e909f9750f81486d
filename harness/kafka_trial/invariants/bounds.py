"""The two bounds of liveness: within which time a healed group must converge, and when a partition counts as stuck.

The run bounds its drain by them, the judge its findings: both by these same functions. Session, rebalance timeout and
protocol are those that the brokers were told (`fencing.py`); consumer.toml stands where nobody saw them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_trial.invariants.group_timeouts import DeclaredTimeouts
from kafka_trial.invariants.trial_context import Settings, TrialContext

BOUND_S_MIN = 10.0
FRESH_MIN = 20  # records on each partition, so that its last assignment had something to show
NOTHING_TOLD = DeclaredTimeouts()
SHOWN_S_MIN = 0.05
RATE_UNCALIBRATED = 1.0  # records a second, where nothing was measured: the bound grows, and nobody is accused
HEARTBEATS_A_SESSION = (
    3  # "must be set lower than session.timeout.ms, but typically … no higher than 1/3 of that value"
)


@dataclass(frozen=True)
class Timing:
    """What the bounds follow from: settings of the group, and what the trial measured.

    `poll_interval_s`: how long a rebalance may wait for the slowest member. `expiries` sessions of lost members end one
    after the other, the last of them, and the rebalance after it, `detection_s` after the drain began; 0: nobody was
    lost that long ago. `unanswered_s`: how long a client may still wait then for an answer that never comes.
    """

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
    expiries: int = 1
    detection_s: float = 0.0
    unanswered_s: float = 0.0


def convergence_bound_s(timing: Timing) -> float:
    """Returns B, within which every partition must converge once faults are healed and the load has stopped.

    The claim's own bound, else at least 10 s: detection of lost members and a rebalance (which waits for every member,
    up to its poll cycle) after each, the longest handler, a commit, a metadata refresh where partitions were added, and
    twice the time that the backlog takes at the calibrated rate.
    """
    if timing.converge_within_s is not None:
        return timing.converge_within_s
    return max(BOUND_S_MIN, sum(bound_terms(timing).values()))


def bound_terms(timing: Timing) -> Mapping[str, float]:
    """Returns the terms of B in seconds, by what they are for."""
    rate = max(timing.rate_per_s or RATE_UNCALIBRATED, RATE_UNCALIBRATED)
    return {
        **_detection(timing),
        "the longest handler": timing.longest_handler_s,
        "the commit interval": timing.commit_interval_s,
        "the metadata age": timing.metadata_age_s if timing.partitions_added else 0.0,
        "requests never answered": timing.unanswered_s,
        f"twice a backlog of {timing.backlog} at {rate:.0f}/s": 2 * timing.backlog / rate,
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
    parts = (
        f"a session expiry of {timing.session_timeout_s:g} s",
        f"a rebalance: {timing.poll_interval_s:.1f} s",
        f"the commit interval: {timing.commit_interval_s:.1f} s",
    )
    return f"W = {stall_window_s(timing):.1f} s ({', '.join(parts)}; at least {BOUND_S_MIN:g} s)"


def stall_window_s(timing: Timing) -> float:
    """Returns W: a partition with work left that saw nothing for so long is stuck."""
    return max(BOUND_S_MIN, timing.session_timeout_s + timing.poll_interval_s + timing.commit_interval_s)


def timing_of(
    settings: Settings,
    *,
    told: DeclaredTimeouts = NOTHING_TOLD,
    backlog: int = 0,
    longest_handler_s: float = 0.0,
    rate: float | None = None,
    partitions_added: bool = False,
) -> Timing:
    """Returns the timing of a group's settings, and of what was seen of its trial.

    A handler that the team declares counts in the place of the longest that was seen.
    """
    session_s = settings.session_timeout_s if told.session_timeout_s is None else told.session_timeout_s
    return Timing(
        session_timeout_s=session_s,
        poll_interval_s=_slowest_round_s(settings, told, session_s),
        commit_interval_s=settings.commit_interval_s,
        metadata_age_s=settings.metadata_age_s,
        protocol=told.protocol or settings.protocol,
        longest_handler_s=longest_handler_s if settings.handler_max_s is None else settings.handler_max_s,
        backlog=backlog,
        rate_per_s=rate,
        converge_within_s=settings.converge_within_s,
        partitions_added=partitions_added,
    )


def timing_in(trial_context: TrialContext) -> Timing:
    """Returns the timing of a trial's group, for bounds that do not depend on its backlog."""
    return timing_of(trial_context.settings, told=trial_context.told)


def heartbeat_s(told: DeclaredTimeouts, session_s: float) -> float:
    """Returns how long a member may take to hear of a rebalance: its heartbeat interval, as far as it was seen."""
    longest_s = session_s / HEARTBEATS_A_SESSION
    return longest_s if told.heartbeat_s is None else min(longest_s, told.heartbeat_s)


def _slowest_round_s(settings: Settings, told: DeclaredTimeouts, session_s: float) -> float:
    """Returns how long a rebalance may wait for a member: the time it may take by its own word, but no longer than it
    was seen to go round before the faults, and a heartbeat. A default of five minutes is no licence to take them.
    """
    allowed_s = settings.poll_interval_s if told.rebalance_timeout_s is None else told.rebalance_timeout_s
    if told.poll_cycle_s is None:
        return min(allowed_s, settings.poll_interval_s)
    return min(allowed_s, told.poll_cycle_s + heartbeat_s(told, session_s))


def _rebalance_s(timing: Timing) -> float:
    return 0.0 if timing.protocol == "none" else timing.poll_interval_s

"""The two bounds of liveness: within which time a healed group must converge, and when a partition counts as stuck.

The run bounds its drain by them, the judge its findings: both by these same functions.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_trial.invariants.circumstances import Settings

BOUND_S_MIN = 10.0
RATE_UNCALIBRATED = 1.0  # records a second, where nothing was measured: the bound grows, and nobody is accused


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
    settings: Settings,
    *,
    backlog: int = 0,
    longest_handler_s: float = 0.0,
    rate: float | None = None,
    partitions_added: bool = False,
) -> Timing:
    """Returns the timing of a consumer's settings, and of what was seen of its trial."""
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
        partitions_added=partitions_added,
    )

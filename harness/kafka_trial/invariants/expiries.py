"""Expiries: which faults cost the group a session of one of its members, and when each of them is over.

A member that is killed, frozen or cut off leaves without a word, and the coordinator finds out when its session
expires. In the classic protocol a rebalance waits for it meanwhile, and a member that is lost in that rebalance has its
session counted only from the end of it: faults that follow one another cost one session after the other, those in force
at the same time cost one together. KIP-848 has no such barrier: sessions run side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kafka_trial.invariants.bounds import Timing, heartbeat_s
from kafka_trial.invariants.kernels import NEVER
from kafka_trial.invariants.trial_context import TOLERANCE_NS, TrialContext, Window

SECOND_NS = 1_000_000_000
LEFT_WITHIN_NS = SECOND_NS  # a request is read a moment after it was answered
KILLING = frozenset({"kill", "crash-point"})
STOPPING = frozenset({"terminate", "restart", "leave"})  # the member is asked to, and may say goodbye
HOLDING = frozenset({"pause", "stall", "answers-held", "requests-held", "half-open", "close", "refused"})
UNANSWERED = frozenset(
    {
        *("stall", "answers-held", "requests-held", "half-open"),
        *("broker-kill", "broker-restart", "broker-pause", "rolling-restart"),
    }
)  # faults in which a request may never be answered, although its connection stays


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
    held = [window for window in trial_context.windows if window.fault in UNANSWERED]
    waits_ns = [asked_s * SECOND_NS + (window.healed_ns or drain_ns) - drain_ns for window in held]
    return replace(
        timing,
        expiries=1 if last is None else last.in_series,
        detection_s=0.0 if last is None else max(0.0, (last.end_ns - drain_ns) / SECOND_NS),
        unanswered_s=max(0.0, *(waits_ns or [0.0])) / SECOND_NS if asked_s else 0.0,
    )


def over_ns(trial_context: TrialContext, timing: Timing, window_ns: int) -> Mapping[int, int]:
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
    held_min_s = timing.session_timeout_s - heartbeat_s(trial_context.told, timing.session_timeout_s)
    return sorted(
        (
            window
            for window in trial_context.windows
            if window.fault in KILLING
            or (window.fault in STOPPING and not _left(trial_context, window))
            or (window.fault in HOLDING and _lasted_ns(window) >= held_min_s * SECOND_NS)
        ),
        key=lambda window: (window.injected_ns, window.number),
    )


def _lasted_ns(window: Window) -> int:
    return NEVER if window.healed_ns is None else window.healed_ns - window.injected_ns


def _left(trial_context: TrialContext, window: Window) -> bool:
    """Tells whether the fault's member was heard to leave the group when it was asked to stop."""
    if window.member not in trial_context.members:
        return False
    number = trial_context.members.index(window.member)
    until_ns = NEVER if window.healed_ns is None else window.healed_ns + LEFT_WITHIN_NS
    times_ns = [at_ns for lane, at_ns in trial_context.told.leaves if trial_context.lanes.get(lane) == number]
    return any(window.injected_ns - TOLERANCE_NS <= at_ns <= until_ns for at_ns in times_ns)


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

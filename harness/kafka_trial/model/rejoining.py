"""Rejoining: which members a fault took out of their group, and until when each must be back in it.

A member returns when its next process is started, or when a fault on it, or on all, is healed. Brokers tell whether it
is in its group again (`group_presence.py`), so that this holds for a consumer that prints nothing. Drain and judge ask
the same functions: the drain waits for the members that are `awaited`; `never-rejoined` are those still away then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kafka_trial.history.consequences import Consequence
from kafka_trial.model.group_presence import Presence, presences
from kafka_trial.model.kernels import NEVER
from kafka_trial.model.liveness_bounds import (
    ENDS_PROCESS,
    Timing,
    cpu_wait_excess_s,
    expiries,
    timing_in,
)
from kafka_trial.model.trial_context import Incarnation, TrialContext, Window

SECOND_NS = 1_000_000_000
STARTS_COUNTED = 2  # a machine that is busier than at the start takes longer: twice the slowest of then


@dataclass(frozen=True)
class Return:
    """A member that may be in its group again since `at_ns`: number, its process, and what had happened to it."""

    member: int
    incarnation: Incarnation
    at_ns: int
    how: str


@dataclass(frozen=True)
class Awaited:
    """A member that is not in its group, though it may be: by when it must be, and that bound in words.

    `listed`: the group still had it at the end, for its session had not expired.
    """

    back: Return
    due_ns: int
    within: str
    listed: bool


@dataclass(frozen=True)
class RejoinBound:
    """How long a member may take from its return until its group has it, in seconds, and what that follows from."""

    seconds: float
    words: str


def rejoin_bound(timing: Timing, *, slowest_start_s: float, ready_within_s: float) -> RejoinBound:
    """Returns how long a member may take to rejoin.

    The greater of a session and a rebalance (an earlier process of it may have to expire first) and of twice the
    slowest start of the trial (a JVM, an image), but no longer than its team says that a member may take to be ready.
    """
    lost_s, started_s = timing.session_timeout_s + timing.poll_interval_s, STARTS_COUNTED * slowest_start_s
    told = {
        f"a session of {timing.session_timeout_s:g} s and a rebalance of {timing.poll_interval_s:.1f} s": lost_s,
        f"twice the slowest start of {slowest_start_s:.1f} s": started_s,
    }
    words, seconds = max(told.items(), key=lambda one: one[1])
    if ready_within_s < seconds:
        words, seconds = f"[ready] within_s, which is less than {words}", ready_within_s
    return RejoinBound(seconds, words)


def awaited(trial_context: TrialContext, *, until_ns: int) -> list[Awaited]:
    """Returns the members that were put out of their group and were not seen in it again until then.

    Not among them: a member that had never been in the group, that had left it before it was hit, or whose process has
    ended.
    """
    if trial_context.protocol == "none" or trial_context.settings.protocol == "none":
        return []
    present = presences(trial_context)
    backs = [one for one in returns(trial_context, until_ns=until_ns) if _was_put_out(trial_context, present, one)]
    away = [
        one for one in backs if not any(seen.present_between(one.at_ns, until_ns) for seen in _of(present, one.member))
    ]
    timing = timing_in(trial_context)
    bound = rejoin_bound(
        timing,
        slowest_start_s=_slowest_start_s(trial_context, present),
        ready_within_s=trial_context.settings.ready_within_s,
    )
    held_ns = max((one.end_ns for one in expiries(trial_context, timing).values()), default=0)
    return [
        Awaited(
            one,
            due_ns=max(one.at_ns + int(bound.seconds * SECOND_NS), held_ns),
            within=f"{bound.seconds:.1f} s ({bound.words})",
            listed=any(
                seen.listed_at(until_ns) and seen.asked_since(one.incarnation.started_ns)
                for seen in _of(present, one.member)
            ),
        )
        for one in away
    ]


def overdue_s(trial_context: TrialContext, one: Awaited, *, until_ns: int) -> float:
    """Returns how long before then a member had to be back at the latest, whatever the machine did; below 0: how much
    of that time is left."""
    return (until_ns - one.due_ns) / SECOND_NS - allowance_s(trial_context, one.back, until_ns=until_ns)


def allowance_s(trial_context: TrialContext, back: Return, *, until_ns: int) -> float:
    """Returns how much longer than its bound a member may take: as long as the machine was busier than at the start, or
    stood still, since it returned."""
    since = replace(trial_context, phases={**trial_context.phases, "drain": back.at_ns})
    least_ns = trial_context.session_timeout_s / 4 * SECOND_NS
    stood_ns = [
        min(delay, at - back.at_ns)
        for at, delay in trial_context.delays
        if delay > least_ns and back.at_ns < at <= until_ns
    ]
    return cpu_wait_excess_s(since, until_ns) + sum(stood_ns) / SECOND_NS


def returns(trial_context: TrialContext, *, until_ns: int) -> Iterator[Return]:
    """Yields the last return of each member whose process runs then; none while a fault on it is in force."""
    for number in range(len(trial_context.members)):
        own = [one for one in trial_context.incarnations if one.member == number and one.started_ns <= until_ns]
        last = max(own, key=lambda one: one.started_ns, default=None)
        if last is None or (last.exited_ns is not None and last.exited_ns < until_ns):
            continue
        hit = _on(trial_context, last)
        if any(window.healed_ns is None for window in hit):
            continue
        earlier = max((one for one in own if one is not last), key=lambda one: one.started_ns, default=None)
        moments = [(last.started_ns, _start(earlier, last))] if earlier else []
        moments += [(one.healed_ns or 0, _healing(one)) for one in hit if not one.does(*ENDS_PROCESS)]
        if moments:
            yield Return(number, last, *max(moments))


def _on(trial_context: TrialContext, process: Incarnation) -> list[Window]:
    """Returns the faults that hit a process: on its member or on all, begun before the process would have ended."""
    name = trial_context.members[process.member]
    return [
        window
        for window in trial_context.windows
        if window.member in (None, name)
        and not window.does(Consequence.HARMLESS)
        and (NEVER if window.healed_ns is None else window.healed_ns) >= process.started_ns
    ]


def _start(earlier: Incarnation, last: Incarnation) -> str:
    moved = None not in (earlier.consumer, last.consumer) and earlier.consumer != last.consumer
    return f"was moved from {earlier.consumer} to {last.consumer}" if moved else "was started again"


def _healing(window: Window) -> str:
    if window.does(Consequence.FREEZES):
        return "was resumed"
    cut_off = window.does(Consequence.CUTS_OFF)
    return "was cut off, and healed" if cut_off else f"was hit by {window.fault}, and that was healed"


def _was_put_out(trial_context: TrialContext, present: Sequence[Presence], back: Return) -> bool:
    """Tells whether a member was in the group when a fault hit its process; of a further process: whether ever."""
    own = _of(present, back.member)
    first = min(one.started_ns for one in trial_context.incarnations if one.member == back.member)
    if back.incarnation.started_ns > first and any(one.listed for one in own):
        return True
    hits = [window.injected_ns for window in _on(trial_context, back.incarnation)]
    return any(one.listed_at(at_ns) for one in own for at_ns in hits)


def _slowest_start_s(trial_context: TrialContext, present: Sequence[Presence]) -> float:
    """Returns the longest time from the start of a process until the group had it, of those started before the
    faults."""
    calm_ns = trial_context.undisturbed_until_ns
    starts = [one for one in trial_context.incarnations if calm_ns is None or one.started_ns < calm_ns]
    took_ns = [
        min((begin for seen in _of(present, one.member) for begin, _ in seen.listed), default=one.started_ns)
        - one.started_ns
        for one in starts
        if one.number == 0
    ]
    return max([0, *took_ns]) / SECOND_NS


def _of(present: Sequence[Presence], member: int) -> list[Presence]:
    return [one for one in present if one.member == member]

"""When a member exited by itself: how long after its start, and before, during or after which fault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_trial.invariants.trial_context import Incarnation, TrialContext, Window

NS_PER_S = 1e9


def exit_time(member: str, trial_context: TrialContext, *, planned: bool) -> str:
    """Returns when a member's last exit that nobody had asked for was, in words; "" where its file does not say.

    `planned`: whether the trial has faults at all; one that ended early has played none of them.
    """
    lives = [life for life in trial_context.lives if trial_context.members[life.member] == member]
    ended = [(life.exited_ns, life) for life in lives if life.asked == "no" and life.exited_ns is not None]
    if not ended:
        return ""
    exited_ns, life = max(ended, key=lambda pair: pair[0])
    return (
        f"{_age_s(life, exited_ns):.1f} s after its start, {_place(exited_ns, trial_context.windows, planned=planned)}"
    )


def _age_s(life: Incarnation, exited_ns: int) -> float:
    return (exited_ns - life.started_ns) / NS_PER_S


def _place(at_ns: int, windows: Sequence[Window], *, planned: bool) -> str:
    """Returns where an instant lies among the faults."""
    inside = [window for window in windows if _began_ns(window) <= at_ns and (window.healed_ns or at_ns) >= at_ns]
    if inside:
        return f"during {' and '.join(map(_named, inside))}"
    before = [window for window in windows if _began_ns(window) < at_ns]
    if before:
        return f"after {_named(max(before, key=_began_ns))} was healed"
    return "before the first fault" if planned or windows else "in a trial without faults"


def _began_ns(window: Window) -> int:
    return window.injected_ns if window.injecting_ns is None else window.injecting_ns


def _named(window: Window) -> str:
    return f"fault {window.number} ({window.fault})"

"""Absences: from when to when no member ran, because the trial itself had stopped all of them.

What happens to the topic meanwhile, and the group cannot prevent, is not the consumer's doing. A member that ended by
itself could have run on: it counts as running until it is started again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.history.consequences import Consequence
from kafka_trial.model.kernels import NEVER, NONE, Bools, Ints, at_or_after, at_or_before, picked
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table
from kafka_trial.model.trial_context import Incarnation, TrialContext, Window

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch

Span = tuple[int, int]  # from when to when, in nanoseconds; NEVER: to the end
BY_THE_TRIAL = ("stop", "overdue", "kill")  # how the harness asks a process to end (`Incarnation.asked`)


def absences(trial_context: TrialContext) -> tuple[Span, ...]:
    """Returns when nobody ran and nobody was to run, in order. What was before the first start is not among them."""
    found: list[Span] = []
    gone_ns: int | None = None
    for since_ns, until_ns in sorted(_running(trial_context)):
        if gone_ns is not None and since_ns > gone_ns:
            found.append((gone_ns, since_ns))
        gone_ns = until_ns if gone_ns is None else max(gone_ns, until_ns)
    return (*found, (gone_ns, NEVER)) if gone_ns is not None and gone_ns < NEVER else tuple(found)


def hits_nobody(trial_context: TrialContext, window: Window) -> bool:
    """Tells whether a fault of the topic was played while no member ran: nobody had anything to do for it."""
    begun_ns = window.begun_ns
    away = any(since <= begun_ns and window.injected_ns <= until for since, until in absences(trial_context))
    return away and window.does(Consequence.CHANGES_TOPIC)


def expired_while_away(batch: Batch, expired: Table, covered_ns: Ints) -> tuple[Bools, Bools]:
    """Returns which records expired while no member ran, and which may have, at the beginning or end of that time.

    What was committed past by then (`covered_ns`) was given up before: its expiry took nothing from the group.
    """
    since_ns, until_ns = _expired_between(batch, expired)
    inside, touched = (np.zeros(len(expired), np.bool_) for _ in range(2))
    for gone_ns, back_ns in absences(batch.trial_context):
        inside |= (gone_ns <= since_ns) & (until_ns <= back_ns)
        touched |= (gone_ns < until_ns) & (since_ns < back_ns)
    owed = covered_ns > until_ns
    return inside & owed, touched & ~inside & owed


def _expired_between(batch: Batch, expired: Table) -> tuple[Ints, Ints]:
    """Returns since when at the earliest, and until when at the latest, each record expired.

    It was there when it was acknowledged, and when the observer asked for the log start before the one that is above
    it; within that time, a fault that deleted records says more exactly when.
    """
    starts, ends = batch.of(Kind.LOG_START), batch.of(Kind.LOG_END).sorted_by("slice", "seq")
    starts = starts.sorted_by("slice", "position", "seq")
    above = at_or_after(starts["slice"], starts["position"], expired["slice"], expired["offset"] + 1)
    look = at_or_before(ends["slice"], ends["seq"], expired["slice"], picked(starts["seq"], above, NONE))
    since_ns = np.maximum(expired["time_ns"], picked(ends["time_ns"], look, NONE))
    until_ns = picked(starts["time_ns"], above, NEVER)
    for window in batch.trial_context.windows:
        begun_ns = window.begun_ns
        then = (window.fault == "records-deleted") & (since_ns <= begun_ns) & (begun_ns < until_ns)
        since_ns = np.where(then, begun_ns, since_ns)
        until_ns = np.where(then, np.minimum(until_ns, window.injected_ns), until_ns)
    return since_ns, until_ns


def _running(trial_context: TrialContext) -> Iterator[Span]:
    """Yields from when to when each incarnation ran, or could have run."""
    ones = sorted(trial_context.incarnations, key=lambda one: (one.member, one.started_ns))
    for one, after in pairwise([*ones, None]):
        if one is None:
            continue
        again_ns = after.started_ns if after is not None and after.member == one.member else NEVER
        yield one.started_ns, min(_sent_away_ns(one), again_ns)


def _sent_away_ns(one: Incarnation) -> int:
    """Returns from when on the trial did not want it to run; NEVER where it ended by itself, or did not end."""
    if one.asked not in BY_THE_TRIAL or one.exited_ns is None:
        return NEVER
    return one.exited_ns if one.asked_ns is None else min(one.asked_ns, one.exited_ns)

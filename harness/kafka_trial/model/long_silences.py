"""Long silences: a member that lives on for so long without a word has handled nothing since its last one.

A member that is killed could not say what it did last. But one that prints each line as it writes it, whose handler
takes one record, and that asks for further records and beats all the while, told of whatever it handled: when four
times the longest that it may leave between two polls have passed without a word (`max.poll.interval.ms`, as brokers
were told), nothing was under way any more. Not while it has a record in hand of which it said that it began it, nor
where it declares that a handler may take longer (`handler_max_s`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kafka_trial.model.batch import Batch
from kafka_trial.model.commits_log import commits_in_effect
from kafka_trial.model.kernels import NEVER, NONE, Bools, Ints, between, next_in, picked
from kafka_trial.model.request_logs import fetches
from kafka_trial.model.wall_clock import done_ns

SILENT_POLLS: Final = 4
SECOND_NS: Final = 1_000_000_000


def told_of_all(batch: Batch) -> Bools:
    """Returns whether the member of each commit (of `commits_in_effect`) kept so long a silence after it, until it
    ended, that it had told of all that it had handled."""
    log, incarnations = commits_in_effect(batch), batch.incarnations
    incarnation = log["incarnation"]
    worked_ns, until_ns = (picked(incarnations[name], incarnation, NONE) for name in ("worked_ns", "exited_ns"))
    since_ns = np.maximum(log["effect_ns"], worked_ns)
    poll_ns = _poll_ns(batch)
    told = picked(incarnations["completes"], incarnation, 0) == 1
    told &= (picked(incarnations["in_hand"], incarnation, 1) <= 0) & (until_ns != NONE)
    told &= (since_ns < until_ns) & (until_ns - np.minimum(since_ns, until_ns) >= SILENT_POLLS * poll_ns)
    if not _prints_at_once(batch) or not told.any():
        return np.zeros(len(log), np.bool_)
    asks = log["slice"] * (len(incarnations) + 1) + incarnation
    return (
        told & _fetched_on(batch, asks, since_ns, until_ns, poll_ns) & _beat_on(batch, incarnation, since_ns, until_ns)
    )


def _poll_ns(batch: Batch) -> int:
    told_s = batch.trial_context.declared_timeouts.rebalance_timeout_s or 0.0
    return int(max(told_s, batch.trial_context.settings.poll_interval_s) * SECOND_NS)


def _prints_at_once(batch: Batch) -> bool:
    settings = batch.trial_context.settings
    longer = settings.handler_max_s is not None and settings.handler_max_s * SECOND_NS > SILENT_POLLS * _poll_ns(batch)
    return settings.stdout == "lines" and settings.handler == "record" and not longer


def _fetched_on(batch: Batch, groups: Ints, since_ns: Ints, until_ns: Ints, poll_ns: int) -> Bools:
    """Returns whether each process asked for records of the partition all the time, never pausing for longer than it
    may between two polls."""
    asks = fetches(batch)
    following_ns = picked(asks["begun_ns"], next_in(asks["group"]), NEVER)
    pauses = np.append(0, np.cumsum(following_ns - asks["begun_ns"] > poll_ns))
    first, end = between(asks["group"], asks["begun_ns"], groups, since_ns, until_ns)
    last = np.maximum(end - 1, 0)
    going = (first < end) & (picked(asks["begun_ns"], np.where(first < end, first, -1), NEVER) - poll_ns <= since_ns)
    going &= until_ns - poll_ns <= picked(asks["begun_ns"], np.where(first < end, last, -1), NONE + poll_ns)
    on: Bools = going & (pauses[last] == pauses[np.minimum(first, last)])
    return on


def _beat_on(batch: Batch, incarnation: Ints, since_ns: Ints, until_ns: Ints) -> Bools:
    """Returns whether each process was answered its heartbeats all the time, but for a session at either end."""
    about, beats = batch.trial_context, np.zeros(len(incarnation), np.bool_)
    member = picked(batch.incarnations["member"], incarnation, -1)
    session_ns = int(about.session_timeout_s * SECOND_NS)
    runs = [one for one in about.heartbeat_runs if one.lane in about.lanes]
    first_ns = done_ns(about, [(one.first_wall_ns, one.first_time_ns) for one in runs])
    last_ns = done_ns(about, [(one.last_wall_ns, one.last_time_ns) for one in runs])
    for one, begun_ns, ended_ns in zip(runs, first_ns, last_ns, strict=True):
        covers = (begun_ns - session_ns <= since_ns) & (until_ns - session_ns <= ended_ns)
        beats |= covers & (member == about.lanes[one.lane])
    return beats

"""Silence: members that had lost a partition and asked their group nothing any more, though they went on fetching.

An untold loss is excused until a broker's answer tells the member of it (`fencing.py`); whoever asks nothing is never
answered. But a client knows when it sent its last heartbeat: "if no heartbeats are received by the broker before the
expiration of this session timeout, then the broker will remove this client from the group" (session.timeout.ms: Kafka,
Consumer Configs). A member that fetches when a session has passed without any request of its group, and asks for
nothing for another session after that, is not frozen and not cut off: its heartbeats have stopped (a background thread
that died), and it has been told by its own clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.circumstances import TOLERANCE_NS
from kafka_trial.invariants.clocks import monotonic
from kafka_trial.invariants.kernels import NEVER, NONE, Ints
from kafka_trial.invariants.request_logs import LAST_LINES_NS, read_to_end

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch

SECOND_NS = 1_000_000_000
Span = tuple[int, int]


def knows_by_silence(batch: Batch, loss_ns: Ints, begun_ns: Ints, first: Ints, end: Ints) -> Ints:
    """Returns from when on each possession's member had been silent for two sessions, fetching in the second; NEVER:
    it was not, or nobody can tell.

    `begun_ns[first:end]`: when the fetches of each possession's member from its partition began, in order.
    """
    held, known = batch.possessions, np.full(len(loss_ns), NEVER)
    lost = np.flatnonzero((loss_ns != NEVER) & (end > first))
    if not len(lost) or not read_to_end(batch.circumstances):
        return known
    for member in np.unique(held["member"][lost]).tolist():  # members, and what they lost: some dozens at most
        quiet = list(_silences(batch, member))
        for row in lost[held["member"][lost] == member].tolist():
            fetches = begun_ns[first[row] : end[row]]
            known[row] = _known_from(quiet, int(loss_ns[row]), fetches, _session_ns(batch))
    return np.where(known < held["close_ns"], known, NEVER)


def _known_from(quiet: list[Span], loss_ns: int, fetches: Ints, session_ns: int) -> int:
    for begin_ns, end_ns in quiet:
        due_ns = max(begin_ns + session_ns, loss_ns)
        later = np.searchsorted(fetches, due_ns)
        known_ns = int(fetches[later]) + session_ns if later < len(fetches) else NEVER
        if known_ns <= end_ns - TOLERANCE_NS:
            return known_ns
    return NEVER


def _silences(batch: Batch, member: int) -> Iterator[Span]:
    """Yields the stretches in which a member asked nothing of its group, and no fault was in force that explains it."""
    reached = NONE
    for begin_ns, end_ns in sorted([*_requests(batch, member), *_faults(batch, member)]):
        if reached != NONE and begin_ns > reached:
            yield reached, begin_ns
        reached = max(reached, end_ns)
    if NONE < reached < NEVER:
        yield reached, NEVER


def _requests(batch: Batch, member: int) -> Iterator[Span]:
    """Yields from when to when requests of a member to its group were under way, or heartbeats followed each other."""
    about = batch.circumstances
    answers = [one for one in about.group_answers if one.member == member]
    ends_ns = _monotonic(batch, [(one.wall_ns, one.time_ns) for one in answers])
    yield from ((end_ns - one.duration_ns, end_ns) for one, end_ns in zip(answers, ends_ns, strict=True))
    beats = [one for one in about.beats if about.lanes.get(one.lane) == member]
    firsts_ns = _monotonic(batch, [(one.first_wall_ns, one.first_time_ns) for one in beats])
    lasts_ns = _monotonic(batch, [(one.last_wall_ns, one.last_time_ns) for one in beats])
    yield from zip(firsts_ns, lasts_ns, strict=True)


def _faults(batch: Batch, member: int) -> Iterator[Span]:
    """Yields when faults were in force on a member, or on brokers, whose last lines may be missing."""
    name = batch.circumstances.members[member]
    for window in batch.circumstances.windows:
        if window.member in (None, name):
            begun_ns = window.injected_ns if window.injecting_ns is None else window.injecting_ns
            yield begun_ns - LAST_LINES_NS, NEVER if window.healed_ns is None else window.healed_ns + TOLERANCE_NS


def _monotonic(batch: Batch, moments: list[tuple[int | None, int]]) -> list[int]:
    walls = np.array([NONE if wall is None else wall for wall, _ in moments], np.int64)
    at_ns: Ints = monotonic(batch.circumstances, walls, np.array([time for _, time in moments], np.int64))
    return at_ns.tolist()


def _session_ns(batch: Batch) -> int:
    return int(batch.circumstances.session_timeout_s * SECOND_NS)

"""Silence: members that had lost a partition and asked their group nothing any more, though they went on fetching.

An untold loss is excused until a broker's answer tells the member of it (`fencing.py`); whoever asks nothing is never
answered. But a client knows when it sent its last heartbeat: "if no heartbeats are received by the broker before the
expiration of this session timeout, then the broker will remove this client from the group" (session.timeout.ms: Kafka,
Consumer Configs). A member that fetches when a session has passed without any request of its group, asks for nothing
for another session after that, and never again, is not frozen and not cut off: its heartbeats have stopped for good (a
background thread that died), and it has been told by its own clock.

Requests that were answered later say that it asked; so the silence must last to the end. Where a fault can have left a
request without an answer, silence begins when no client waits for that any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.clocks import monotonic
from kafka_trial.invariants.expiries import UNANSWERED
from kafka_trial.invariants.kernels import NEVER, NONE, Ints
from kafka_trial.invariants.ownership_epochs import ownership_epochs
from kafka_trial.invariants.request_logs import LAST_LINES_NS, read_to_end
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.trial_context import TOLERANCE_NS, Incarnation

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch

SECOND_NS = 1_000_000_000
REQUEST_TIMEOUT_S = 60.0  # what clients wait for an answer at most, where consumer.toml does not say (librdkafka's)
OF_NOBODY = frozenset({"join", "leader-move"})  # faults that hinder no member, though they are on none in particular


def should_know_from_ns(batch: Batch, loss_ns: Ints, begun_ns: Ints, first: Ints, end: Ints) -> Ints:
    """Returns from when on each ownership epoch's member had been silent for two sessions, fetching in the second;
    NEVER: it was not, or nobody can tell.

    `begun_ns[first:end]`: when the fetches of each ownership epoch's member from its partition began, in order.
    """
    held, known = ownership_epochs(batch), np.full(len(loss_ns), NEVER)
    lost = np.flatnonzero((loss_ns != NEVER) & (end > first))
    if not len(lost) or not read_to_end(batch.trial_context):
        return known
    lives = {life.source: life for life in batch.trial_context.lives}
    for row in lost.tolist():  # what was lost untold: some dozens at most
        fetches = begun_ns[first[row] : end[row]]
        fetches = fetches[fetches >= loss_ns[row]]
        life = lives.get(int(held["source"][row]))
        if life is not None:
            known[row] = _should_know_from(batch, life, int(held["slice"][row]), fetches)
    return np.where(known < held["close_ns"], known, NEVER)


def _should_know_from(batch: Batch, life: Incarnation, where: int, fetches: Ints) -> int:
    """Returns when a session had passed after the first fetch that came a session after all that was asked, and after
    all that happened meanwhile and may have kept its member from asking."""
    session_ns = int(batch.trial_context.session_timeout_s * SECOND_NS)
    disturbances = [*_disturbances(batch, life.member)]
    since_ns = max(_answered_at_ns(batch, life, where), default=NEVER // 2)
    while True:
        later = np.searchsorted(fetches, since_ns + session_ns)
        known_ns = int(fetches[later]) + session_ns if later < len(fetches) else NEVER
        meanwhile = [end_ns for begin_ns, end_ns in disturbances if begin_ns <= known_ns + TOLERANCE_NS]
        if known_ns == NEVER or max(meanwhile, default=NONE) <= since_ns:
            return known_ns
        since_ns = max(meanwhile)


def _answered_at_ns(batch: Batch, life: Incarnation, where: int) -> Iterator[int]:
    """Yields when requests of a member to its group were answered, until it was asked to stop, or of another client of
    its process: joins, syncs, heartbeats, what was refused, and what was committed in the slice `where`."""
    about = batch.trial_context
    ends = [at_ns for at_ns in (life.asked_ns, life.exited_ns) if at_ns is not None]
    until_ns = min(ends, default=NEVER)
    lanes = [lane for lane, of in about.lanes.items() if of == life.member]
    answers = [one for one in about.group_answers if one.lane in lanes]
    runs = [one for one in about.heartbeat_runs if one.lane in lanes]
    commits = batch.of(Kind.COMMIT_REQUEST)
    mine = commits.take((commits["slice"] == where) & np.isin(commits["lane"], lanes))
    for at_ns in (
        *_monotonic(batch, [(one.wall_ns, one.time_ns) for one in answers]),
        *_monotonic(batch, [(one.first_wall_ns, one.first_time_ns) for one in runs]),
        *_monotonic(batch, [(one.last_wall_ns, one.last_time_ns) for one in runs]),
        *batch.monotonic(mine["answered_wall_ns"], mine["time_ns"]).tolist(),
    ):
        if at_ns < until_ns:
            yield at_ns


def _disturbances(batch: Batch, member: int) -> Iterator[tuple[int, int]]:
    """Yields from when to when a fault on a member, or on brokers, or a standstill may have kept requests from being
    asked or answered."""
    about = batch.trial_context
    waits_s = REQUEST_TIMEOUT_S if about.settings.request_timeout_s is None else about.settings.request_timeout_s
    for window in about.windows:
        if window.member in (None, about.members[member]) and window.fault not in OF_NOBODY:
            begun_ns = window.injected_ns if window.injecting_ns is None else window.injecting_ns
            waits_ns = int(waits_s * SECOND_NS) if window.fault in UNANSWERED else TOLERANCE_NS
            yield begun_ns - LAST_LINES_NS, NEVER // 2 if window.healed_ns is None else window.healed_ns + waits_ns
    patience_ns = int(about.session_timeout_s * SECOND_NS) // 4
    yield from ((at_ns - delay_ns, at_ns) for at_ns, delay_ns in about.delays if delay_ns > patience_ns)


def _monotonic(batch: Batch, moments: list[tuple[int | None, int]]) -> list[int]:
    walls = np.array([NONE if wall is None else wall for wall, _ in moments], np.int64)
    at_ns: Ints = monotonic(batch.trial_context, walls, np.array([time for _, time in moments], np.int64))
    return at_ns.tolist()

"""Zombie windows: when a member worked on after it had lost a partition without being told.

The loss is the offsets log's word that others got the partition while the member still held it by its own. It is told
by the end of the ownership epoch, by an answer that it received (`fencing.py`), or by its own clock. What the window
excuses stands in `zombie_excuses.py`: not what the member began after it had said itself, or was told, where at most
once is claimed, that the commit which covers it was refused.

Its own clock tells it where it asked its group nothing any more, though it went on fetching. Whoever asks nothing is
never answered, but a client knows when it sent its last heartbeat: "if no heartbeats are received by the broker before
the expiration of this session timeout, then the broker will remove this client from the group" (session.timeout.ms:
Kafka, Consumer Configs). A member that fetches when a session has passed without any request of its group, asks for
nothing for another session after that, and never again, is not frozen and not cut off: its heartbeats have stopped for
good (a background thread that died). Requests that were answered later say that it asked; so the silence must last to
the end. Where a fault can have left a request without an answer, it begins when no client waits for that any more.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kafka_trial.history.consequences import Consequence
from kafka_trial.model.batch import Batch, index
from kafka_trial.model.fencing import commit_refused_ns, fetched_by, fetches_of, told_of_loss
from kafka_trial.model.handlers import finished_handlers
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Ints,
    between,
    first_of,
    in_ranges,
    per_group,
    picked,
)
from kafka_trial.model.ownership_epochs import BY_ANSWER, epoch_owners, ownership_epochs
from kafka_trial.model.ownership_log import logged_assignments, owned_by
from kafka_trial.model.request_logs import LAST_LINES_NS, read_to_end
from kafka_trial.model.rights import without_right
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table, table
from kafka_trial.model.trial_context import TOLERANCE_NS, Incarnation
from kafka_trial.model.wall_clock import monotonic


@index
def zombie_windows(batch: Batch) -> Table:
    """Returns for each ownership epoch when it was lost (loss_ns, loss: the assignment record's row) and when its
    member was told.

    Without an untold loss `loss` is -1 and `loss_ns` NEVER. `told_ns`, `told_source`, `told_seq`: the answer that told
    the member while it was open (NEVER, -1 where none did; where its own clock did, the assignment record to others
    proves it); `fetched`: the position up to which it had fetched by then, `again_ns`: when it went on (see
    `fencing.fetched_by`), `fetches_known`: whether the request log holds its fetches. `refused_ns`: when it received
    the refusal of a commit. `until_ns`: when the ownership epoch was closed, or the handler in hand at that moment
    ended.
    """
    held = ownership_epochs(batch)
    loss = _losses(batch)
    loss_ns = picked(logged_assignments(batch)["time_ns"], loss, NEVER)
    answer = told_of_loss(batch, loss_ns)
    by_clock_ns = should_know_from_ns(batch, loss_ns, *fetches_of(batch))
    by_clock, told_ns = by_clock_ns < answer["received_ns"], np.minimum(by_clock_ns, answer["received_ns"])
    fetched, again_ns, known = fetched_by(batch, told_ns)
    return table(
        loss=loss,
        loss_ns=loss_ns,
        told_ns=told_ns,
        told_source=np.where(by_clock, picked(logged_assignments(batch)["source"], loss, -1), answer["source"]),
        told_seq=np.where(by_clock, picked(logged_assignments(batch)["seq"], loss, -1), answer["seq"]),
        fetched=fetched,
        again_ns=again_ns,
        fetches_known=known,
        refused_ns=commit_refused_ns(batch, loss_ns),
        until_ns=np.maximum(held["close_ns"], _in_hand(batch, held["close_seq"])),
    )


def _losses(batch: Batch) -> Ints:
    """Returns for each ownership epoch the first assignment record of its partition to others while it was open, -1 if
    there is none.

    Of one that was lost, or that a broker's answer alone ended: until its member has the partition again. Whoever is
    told before others are given the partition finishes what it has in hand beside them all the same.
    """
    held = ownership_epochs(batch)
    order = np.lexsort((logged_assignments(batch)["time_ns"], logged_assignments(batch)["slice"]))
    assignment_records = logged_assignments(batch).take(order)
    ends = np.where(held["close_ns"] == NEVER, NEVER, held["close_ns"] + 1)
    following = np.full(len(held), NEVER)
    later = np.flatnonzero(held["before"] >= 0)
    following[held["before"][later]] = held["open_ns"][later]
    goes_on = np.isin(held["closed_by"], (Kind.LOST, BY_ANSWER))
    ends = np.where(goes_on, np.maximum(ends, following), ends)
    which, rows = in_ranges(
        *between(assignment_records["slice"], assignment_records["time_ns"], held["slice"], held["open_ns"], ends)
    )
    mine = np.where(epoch_owners(batch) >= 0, epoch_owners(batch), held["member"])[which]
    foreign = ~owned_by(batch, assignment_records["slice"][rows], mine, assignment_records["log_offset"][rows])
    which, rows = which[foreign], rows[foreign]
    first = first_of(which)
    losses = np.full(len(held), -1, np.int64)
    losses[which[first]] = order[rows[first]]
    return np.where(without_right(batch), -1, losses)  # what nobody gave nobody can lose


def _in_hand(batch: Batch, at_seq: Ints) -> Ints:
    """Returns when the handlers that an ownership epoch's member had in hand there ended; NONE where it had none."""
    handlers = finished_handlers(batch)
    end = picked(at_seq, handlers["ownership_epoch"], NONE)
    in_hand = (handlers["ownership_epoch"] >= 0) & (handlers["start_seq"] <= end) & (end < handlers["end_seq"])
    held = handlers.take(in_hand)
    return per_group(held["ownership_epoch"], held["end_ns"], len(ownership_epochs(batch)), how="max", start=NONE)


SECOND_NS = 1_000_000_000
REQUEST_TIMEOUT_S = 60.0  # what clients wait for an answer at most, where consumer.toml does not say (librdkafka's)


def should_know_from_ns(batch: Batch, loss_ns: Ints, begun_ns: Ints, first: Ints, end: Ints) -> Ints:
    """Returns when each ownership epoch's member must have known that its session expired: a session timeout after its
    first fetch that followed a whole session timeout without an answered request of its group. NEVER: there was no such
    fetch, or nobody can tell.

    `begun_ns[first:end]`: when the fetches of each ownership epoch's member from its partition began, in order.
    """
    held, known = ownership_epochs(batch), np.full(len(loss_ns), NEVER)
    lost = np.flatnonzero((loss_ns != NEVER) & (end > first))
    if not len(lost) or not read_to_end(batch.trial_context):
        return known
    incarnations = {incarnation.source: incarnation for incarnation in batch.trial_context.incarnations}
    for row in lost.tolist():  # what was lost untold: some dozens at most
        fetches = begun_ns[first[row] : end[row]]
        fetches = fetches[fetches >= loss_ns[row]]
        incarnation = incarnations.get(int(held["source"][row]))
        if incarnation is not None:
            known[row] = _should_know_from(batch, incarnation, int(held["slice"][row]), fetches)
    return np.where(known < held["close_ns"], known, NEVER)


def _should_know_from(batch: Batch, incarnation: Incarnation, where: int, fetches: Ints) -> int:
    """Returns when a session had passed after the first fetch that came a session after all that was asked, and after
    all that happened meanwhile and may have kept its member from asking."""
    session_ns = int(batch.trial_context.session_timeout_s * SECOND_NS)
    disturbances = [*_disturbances(batch, incarnation.member)]
    since_ns = max(_answered_at_ns(batch, incarnation, where), default=NEVER // 2)
    while True:
        later = np.searchsorted(fetches, since_ns + session_ns)
        known_ns = int(fetches[later]) + session_ns if later < len(fetches) else NEVER
        meanwhile = [end_ns for begin_ns, end_ns in disturbances if begin_ns <= known_ns + TOLERANCE_NS]
        if known_ns == NEVER or max(meanwhile, default=NONE) <= since_ns:
            return known_ns
        since_ns = max(meanwhile)


def _answered_at_ns(batch: Batch, incarnation: Incarnation, where: int) -> Iterator[int]:
    """Yields when requests of a member to its group were answered, until it was asked to stop: joins, syncs,
    heartbeats, what was refused, and what was committed in the slice `where`. Those of other clients of its process
    count as well.
    """
    about = batch.trial_context
    ends = [at_ns for at_ns in (incarnation.asked_ns, incarnation.exited_ns) if at_ns is not None]
    until_ns = min(ends, default=NEVER)
    lanes = [lane for lane, of in about.lanes.items() if of == incarnation.member]
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
    """Yields from when to when a fault on a member, or on brokers, or a stall of the harness may have kept requests
    from being asked or answered."""
    about = batch.trial_context
    waits_s = REQUEST_TIMEOUT_S if about.settings.request_timeout_s is None else about.settings.request_timeout_s
    for window in about.windows:
        if window.member in (None, about.members[member]) and not window.does(Consequence.HARMLESS):
            begun_ns = window.begun_ns
            waits_ns = int(waits_s * SECOND_NS) if window.does(Consequence.LEAVES_REQUESTS_OPEN) else TOLERANCE_NS
            yield begun_ns - LAST_LINES_NS, NEVER // 2 if window.healed_ns is None else window.healed_ns + waits_ns
    patience_ns = int(about.session_timeout_s * SECOND_NS) // 4
    yield from ((at_ns - delay_ns, at_ns) for at_ns, delay_ns in about.delays if delay_ns > patience_ns)


def _monotonic(batch: Batch, moments: list[tuple[int | None, int]]) -> list[int]:
    walls = np.array([NONE if wall is None else wall for wall, _ in moments], np.int64)
    at_ns: Ints = monotonic(batch.trial_context, walls, np.array([time for _, time in moments], np.int64))
    return at_ns.tolist()

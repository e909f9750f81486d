"""What brokers told members of partitions that they had lost, and what the members fetched before and after it.

A member is told by a fencing error on any request of its group (22 ILLEGAL_GENERATION, 25 UNKNOWN_MEMBER_ID, 82
FENCED_INSTANCE_ID, 110 FENCED_MEMBER_EPOCH), or by its own rejoin: an assignment that lacks the partition. Other errors
(14, 15, 16, 27, 113) are to be retried and say nothing of ownership, and a client's time-out tells nothing. The answer
must have been received (`response_delivery.py`); of a member that asks nothing any more, see `zombies.py`. It often
reaches a background thread: what the member had fetched by then it may finish; a record fetched later it took though it
knew. The member's own word of a commit that was refused so may be a background thread's too: what it convicts of
besides is told in `work_after_failed_commit.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.clients import known_clients, members_at
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    at_or_after,
    between,
    first_of,
    greatest_in,
    in_ranges,
    joined,
    ordered,
    picked,
)
from kafka_trial.invariants.ownership_epochs import epoch_owners, ownership_epochs
from kafka_trial.invariants.request_logs import COMMITS, FENCING, timed_fetches
from kafka_trial.invariants.response_delivery import received_ns
from kafka_trial.invariants.table import Table, table
from kafka_trial.invariants.trial_context import TOLERANCE_NS
from kafka_trial.invariants.wall_clock import monotonic

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


def told_of_loss(batch: Batch, loss_ns: Ints) -> Table:
    """Returns for each ownership epoch the first answer after its loss that told its member: received_ns, source, seq.

    `received_ns` is NEVER, source and seq are -1 where there is none while the ownership epoch is open.
    """
    answers = _answers(batch)
    fenced, assigned = (answers.take(answers[name]) for name in ("fences", "assigns"))
    found = [_first_fencing(batch, fenced, loss_ns), _first_assignment(batch, assigned, loss_ns)]
    by_fencing, by_rejoin = (
        (picked(rows["received_ns"], row, NEVER), picked(rows["source"], row, -1), picked(rows["seq"], row, -1))
        for rows, row in zip((fenced, assigned), found, strict=True)
    )
    earlier = by_fencing[0] <= by_rejoin[0]
    received, source, seq = (np.where(earlier, one, other) for one, other in zip(by_fencing, by_rejoin, strict=True))
    inside = received < ownership_epochs(batch)["close_ns"]
    return table(
        received_ns=np.where(inside, received, NEVER),
        source=np.where(inside, source, -1),
        seq=np.where(inside, seq, -1),
    )


def commit_refused_ns(batch: Batch, loss_ns: Ints) -> Ints:
    """Returns when each ownership epoch's member was first told after its loss that a commit is fenced; else NEVER."""
    answers = _answers(batch)
    refused = answers.take(answers["fences"] & answers["commits"])
    return picked(refused["received_ns"], _first_fencing(batch, refused, loss_ns), NEVER)


def fetched_by(batch: Batch, told_ns: Ints) -> tuple[Ints, Bools]:
    """Returns for each ownership epoch up to which position its member had fetched by `told_ns`, and whether that is
    known.

    A record at that position or above, delivered afterwards, was fetched afterwards. NEVER: nothing was fetched later.
    A fetch that was under way at `told_ns` counts as before it, and so does one that began within the tolerance.
    """
    held = ownership_epochs(batch)
    asked = _fetches(batch)
    group, wanted = _by_member(batch, asked), _by_member(batch, held.having(member=epoch_owners(batch)))
    after_ns = np.minimum(told_ns, NEVER - TOLERANCE_NS - 1) + TOLERANCE_NS + 1
    later = at_or_after(group, asked["begun_ns"], wanted, after_ns)
    later = np.where(picked(asked["begun_ns"], later, NEVER) < held["close_ns"], later, -1)
    first, end = between(group, asked["begun_ns"], wanted, held["open_ns"], after_ns)
    highest = picked(asked["fetch_position"], greatest_in(asked["fetch_position"], first, end), NONE)
    position = np.maximum(picked(asked["fetch_position"], later, NEVER), highest)
    return np.where((told_ns == NEVER) | (later < 0), NEVER, position), np.isin(epoch_owners(batch), _fetching(batch))


def fetches_of(batch: Batch) -> tuple[Ints, Ints, Ints]:
    """Returns when fetches of members began, and for each ownership epoch the range [first, end) of those of its member
    from its partition, while it was open."""
    held, asked = ownership_epochs(batch), _fetches(batch)
    wanted = _by_member(batch, held.having(member=epoch_owners(batch)))
    first, end = between(_by_member(batch, asked), asked["begun_ns"], wanted, held["open_ns"], held["close_ns"])
    return asked["begun_ns"], first, end


def _fetching(batch: Batch) -> list[int]:
    """Returns the group members of which the request log holds fetches, of whatever partition."""
    about, clients = batch.trial_context, known_clients(batch)
    alone = [about.lanes[lane] for lane in about.fetching if lane in about.lanes and lane not in clients.lanes]
    fetches = [number for number, one in enumerate(about.connections) if one.fetches]
    return [*alone, *(client for client in clients.of_connection[fetches].tolist() if client >= 0)]


def _fetches(batch: Batch) -> Table:
    """Returns the fetches of members, sorted by (slice, member, begun)."""
    asked = timed_fetches(batch)
    member = members_at(batch, asked["lane"], asked["connection"], np.full(len(asked), -1))
    asked = asked.having(member=member).take(member >= 0)
    return asked.take(ordered(_by_member(batch, asked), asked["begun_ns"], asked["source"], asked["seq"]))


def _by_member(batch: Batch, rows: Table) -> Ints:
    return rows["slice"] * (known_clients(batch).size + 1) + rows["member"] + 1


def _first_fencing(batch: Batch, fenced: Table, loss_ns: Ints) -> Ints:
    """Returns the first fencing error that was answered to each ownership epoch's member after its loss."""
    after = np.minimum(loss_ns, NEVER - 1) + 1
    return at_or_after(fenced["member"], fenced["sent_ns"], epoch_owners(batch), after)


def _first_assignment(batch: Batch, assigned: Table, loss_ns: Ints) -> Ints:
    """Returns the first assignment answered to each ownership epoch's member after its loss that lacks the
    partition."""
    held = ownership_epochs(batch)
    after = np.minimum(loss_ns, NEVER - 1) + 1
    first, end = between(assigned["member"], assigned["sent_ns"], epoch_owners(batch), after, np.full(len(held), NEVER))
    which, rows = in_ranges(first, np.where(loss_ns == NEVER, first, end))
    listed = batch.trial_context.group_answers
    numbers = enumerate(assigned["number"].tolist())
    given = [(row, place) for row, number in numbers for place in listed[number].assigned or ()]
    pairs = np.array(given, np.int64).reshape(-1, 2)
    both = joined(
        np.concatenate([pairs[:, 0], rows]), np.concatenate([pairs[:, 1], batch.slices[held["slice"][which]]])
    )
    lacking = ~np.isin(both[len(pairs) :], both[: len(pairs)])
    which, rows = which[lacking], rows[lacking]
    found = np.full(len(held), -1, np.int64)
    one = first_of(which)
    found[which[one]] = rows[one]
    return found


def _answers(batch: Batch) -> Table:
    """Returns the answers that group members received: number, member, sent_ns, received_ns, source, seq, and whether
    each `fences`, `assigns` or answers `commits`. Sorted by (member, sent)."""
    trial_context = batch.trial_context
    listed = trial_context.group_answers
    known = {(one.source, one.lane, one.name): number for number, one in enumerate(trial_context.connections)}
    connections = [known.get((one.source, one.lane, one.connection or ""), -1) for one in listed]
    columns = {
        "number": range(len(listed)),
        "connection": connections,
        "wall_ns": [NONE if one.wall_ns is None else one.wall_ns for one in listed],
        **{name: [getattr(one, name) for one in listed] for name in ("member_id", "source", "seq", "lane", "time_ns")},
        **{name: [getattr(one, name) for one in listed] for name in ("duration_ns", "error")},
        "lists": [one.assigned is not None for one in listed],
    }
    rows = Table({name: np.array(values, np.int64) for name, values in columns.items()})
    sent_ns = monotonic(trial_context, rows["wall_ns"], rows["time_ns"])
    rows = rows.having(sent_ns=sent_ns, begun_ns=sent_ns - rows["duration_ns"])
    rows = rows.having(
        member=members_at(batch, rows["lane"], rows["connection"], rows["member_id"]),
        received_ns=received_ns(trial_context, rows),
        fences=np.isin(rows["error"], FENCING),
        commits=np.array([one.api in COMMITS for one in listed], np.bool_),
        assigns=(rows["error"] == 0) & (rows["lists"] == 1),
    )
    rows = rows.take((rows["received_ns"] != NEVER) & (rows["member"] >= 0))
    return rows.take(ordered(rows["member"], rows["sent_ns"], rows["source"], rows["seq"]))

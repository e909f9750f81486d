"""Fetches by incarnation: what the request log says that a member's process can have been handed.

A fetch that brought bytes brought records from the position asked for up to, at most, the position that the process
asked for next: whoever asks again lower down did not get further, or let it go. What nobody asked for after may have
brought anything. Requests count from when they began: an answer is in the log when it has been sent, and a broker that
was frozen writes that late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.incarnations import incarnation_of, members_of
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    at_or_before,
    between,
    greatest_in,
    least_covering,
    next_in,
    picked,
    previous_in,
)
from kafka_trial.invariants.request_logs import complete_until_ns
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.table import Table
from kafka_trial.invariants.trial_context import TOLERANCE_NS, TrialContext

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


def never_fetched(batch: Batch, lines: Table) -> Bools:
    """Returns which lines name a record that no fetch of that process, begun by then, can have brought.

    Only where all request logs were read to the end, the member fetched on a lane of its own, where no two clients
    fetched the partition at once, and nobody unknown did; and not once a broker was stopped, whose last lines may be
    missing.
    """
    asks = fetches(batch)
    life = incarnation_of(batch, lines["source"])
    wanted = lines["slice"] * (len(batch.lives) + 1) + life
    vague = batch.vague(lines["source"])  # out of a buffer: it may have been said at any time
    heard_ns = np.where(vague, NEVER - 1, lines["time_ns"] + TOLERANCE_NS)
    said_ns = np.where(vague, NONE + 1, batch.earliest(lines["time_ns"]) - TOLERANCE_NS)
    brought = _brought(asks, wanted, lines["offset"], heard_ns) | _in_hand(
        asks, wanted, lines["offset"], said_ns, heard_ns
    )
    never: Bools = ~brought & _can_tell(batch, lines, life)
    return never


def fetches(batch: Batch) -> Table:
    """Returns the fetches of members' processes: slice, group (slice and life as one), begun_ns, fetch_position,
    got (bytes), next_position, next_ns (what the same process asked for next, and when; NEVER: nothing).

    Sorted by (group, begun_ns).
    """
    asks = batch.of(Kind.FETCH_ASKED)
    lasted_ns = np.where(asks["duration_ns"] == NONE, 0, asks["duration_ns"])
    begun_ns = batch.monotonic(asks["answered_wall_ns"], asks["time_ns"]) - lasted_ns
    member = members_of(batch, asks["lane"], otherwise=-1)
    life = at_or_before(batch.lives["member"], batch.lives["started_ns"], member, begun_ns)
    asks = asks.having(life=life, begun_ns=begun_ns, group=asks["slice"] * (len(batch.lives) + 1) + life)
    asks = asks.take(life >= 0).sorted_by("group", "begun_ns", "source", "seq")
    following = next_in(asks["group"])
    return asks.only("slice", "group", "begun_ns", "fetch_position").having(
        got=(asks["answered_bytes"] > 0) & (asks["error_code"] == 0),
        next_position=picked(asks["fetch_position"], following, NEVER),
        next_ns=picked(asks["begun_ns"], following, NEVER),
    )


def _brought(asks: Table, wanted: Ints, offsets: Ints, heard_ns: Ints) -> Bools:
    """Returns which records lie between a position that was asked for and the next one, begun by then."""
    got = asks.take(asks["got"] & (asks["next_position"] > asks["fetch_position"]))
    begun_ns = least_covering(
        got["group"], got["fetch_position"], got["next_position"], got["begun_ns"], wanted, offsets, missing=NEVER
    )
    brought: Bools = begun_ns <= heard_ns
    return brought


def _in_hand(asks: Table, wanted: Ints, offsets: Ints, said_ns: Ints, heard_ns: Ints) -> Bools:
    """Returns which records may have been in the answer in hand: the next position had not been asked for yet.

    Whoever seeks back may ask lower down next than the records that it had been given before.
    """
    first, end = between(asks["group"], asks["begun_ns"], wanted, said_ns, heard_ns + 1)
    before = (first - 1).clip(0)
    first = np.where((first > 0) & (picked(asks["group"], before, -1) == wanted), before, first)
    lowest = greatest_in(np.where(asks["got"], -asks["fetch_position"], NONE), first, end)
    in_hand: Bools = (lowest >= 0) & (picked(asks["got"], lowest, 0) == 1)
    return in_hand & (picked(asks["fetch_position"], lowest, NEVER) <= offsets)


def _can_tell(batch: Batch, lines: Table, life: Ints) -> Bools:
    """Returns of which lines the request log knows all that their process fetched."""
    trial_context = batch.trial_context
    alone = np.append(~overlapping(batch) & np.isin(batch.lives["member"], _fetching(trial_context)), False)
    asks = batch.of(Kind.FETCH_ASKED)
    strange = np.zeros(batch.size, np.bool_)
    strange[asks["slice"][members_of(batch, asks["lane"], otherwise=-1) < 0]] = True
    seen: Bools = alone[life] & ~strange[lines["slice"]] & (lines["time_ns"] < complete_until_ns(trial_context))
    return seen


def overlapping(batch: Batch) -> Bools:
    """Returns the lives that another life of the same member overlaps: their fetches cannot be told apart."""
    lives = batch.lives  # by (member, started_ns)
    before = previous_in(lives["member"])
    ended_ns = picked(np.where(lives["exited_ns"] == NONE, NEVER, lives["exited_ns"]), before, NONE)
    late = ended_ns > lives["started_ns"]
    return late | np.append(late[1:], False)[: len(late)]


def _fetching(trial_context: TrialContext) -> Ints:
    """Returns the members with a lane on which something was fetched, and never by two clients at once."""
    lanes = [lane for lane in trial_context.fetching if lane in trial_context.lanes]
    shared = {trial_context.lanes.get(lane) for lane in trial_context.shared_lanes}
    return np.array(sorted({trial_context.lanes[lane] for lane in lanes} - shared), np.int64)

"""Stuck classes: how far the first undone record of a stuck partition came, as far as the witnesses tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.commits_log import commits_in_effect
from kafka_trial.model.instants import at_earliest
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    counts,
    covering,
    exactly,
    per_group,
    picked,
)
from kafka_trial.model.ownership_epochs import deliveries, ownership_epochs
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table, table
from kafka_trial.model.trial_context import TrialContext

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch

CLASSES = (
    "unclassified",
    "unassigned",
    "assigned-not-fetched",
    "fetched-not-delivered",
    "fetched-undecodable",
    "fetch-refused",
    "delivered-not-committed",
    "committed-not-delivered",
)


def stuck_class(batch: Batch, undone: Table, at_ns: int) -> Ints:
    """Returns the place in CLASSES of what the witnesses tell of a partition with records left.

    unassigned: members had it, and none has it then. delivered-not-committed: its owner was given one of the undone
    records by then. committed-not-delivered: the committed offset stood past the first one once, and fell. The others
    are of the owner's own fetches since it was assigned:

    - assigned-not-fetched: there is none, or the last one leaves the partition out
    - fetch-refused: the last one was answered an error (`last_fetches` has it, and when)
    - fetched-undecodable: bytes were answered to one position three times or more, and no other was asked for since
    - fetched-not-delivered: bytes were answered to its very position, or to one before it, and a later one was asked
      for next. A client may drop what it had fetched when a partition is paused: the log does not tell, so a record
      that was fetched before the pause is of this class too.
    """
    held = ownership_epochs(batch)
    end = np.where(held["close_ns"] == NEVER, NEVER, held["close_ns"] + 1)
    lasting = end > held["open_ns"]
    here = np.arange(batch.size)
    owners = covering(held["slice"][lasting], held["open_ns"][lasting], end[lasting], here, np.full(batch.size, at_ns))
    begun_by = (held["open_ns"] <= at_ns) & lasting
    now = begun_by & (held["close_ns"] >= at_ns)
    given = deliveries(batch).take(deliveries(batch)["time_ns"] <= at_ns)
    given = given.take(picked(now.astype(np.int64), given["ownership_epoch"], 0) == 1).sorted_by("slice", "offset")
    begun = exactly(given["slice"], given["offset"], undone["slice"], undone["offset"]) >= 0
    in_hand = counts(undone["slice"][begun], batch.size) > 0
    told = counts(held["slice"][begun_by], batch.size) > 0
    first = per_group(undone["slice"], undone["offset"], batch.size, how="min", start=NEVER)
    names = np.full(batch.size, CLASSES.index("unclassified"), np.int64)
    not_fetched, fetched, again = _fetching(batch, first, at_ns)
    names[fetched] = CLASSES.index("fetched-not-delivered")
    names[again] = CLASSES.index("fetched-undecodable")
    names[last_fetches(batch, at_ns)["error"] > 0] = CLASSES.index("fetch-refused")
    names[not_fetched] = CLASSES.index("assigned-not-fetched")
    names[(owners > 0) & (_highest(batch, at_ns) > first)] = CLASSES.index("committed-not-delivered")
    names[told & (owners == 0)] = CLASSES.index("unassigned")
    names[in_hand] = CLASSES.index("delivered-not-committed")
    return names


def _highest(batch: Batch, at_ns: int) -> Ints:
    """Returns the highest offset that was ever committed until then; NONE where none was, or it means nothing."""
    log = commits_in_effect(batch).take(commits_in_effect(batch)["effect_ns"] <= at_ns)
    if not batch.trial_context.settings.in_offsets_log:
        return np.full(batch.size, NONE, np.int64)
    return per_group(log["slice"], log["committed_offset"], batch.size, how="max", start=NONE)


AGAIN_MIN = 3  # a sound client may ask once more after a reset or a new session


def last_fetches(batch: Batch, at_ns: int) -> Table:
    """Returns for each slice the error that its owner's last fetch since it was assigned was answered, and when that
    was; NONE where it fetched nothing, or leaves the partition out since."""
    asks, _ = _fetches_of_owners(batch, at_ns)
    error, answered_ns = np.full(batch.size, NONE, np.int64), np.full(batch.size, NONE, np.int64)
    asked = asks["kind"] == Kind.FETCH_ASKED
    error[asks["slice"]] = np.where(asked, asks["error_code"], NONE)  # sorted: the last one stays
    answered_ns[asks["slice"]] = np.where(asked, asks["time_ns"], NONE)
    return table(error=error, answered_ns=answered_ns)


def _fetching(batch: Batch, first: Ints, at_ns: int) -> tuple[Bools, Bools, Bools]:
    """Returns where the owner is known not to fetch the partition, where it has fetched its first undone record, and
    where it was answered that, or one before it, again and again."""
    asks, owner = _fetches_of_owners(batch, at_ns)
    last = np.full(batch.size, NONE, np.int64)
    last[asks["slice"]] = asks["kind"]  # sorted: the last one stays
    answered = (asks["answered_bytes"] > 0) & (asks["kind"] == Kind.FETCH_ASKED)
    position, wanted = asks["fetch_position"], first[asks["slice"]]
    exact, begun, past = (
        counts(asks["slice"][rows], batch.size) > 0
        for rows in (answered & (position == wanted), answered & (position < wanted), position > wanted)
    )
    fetched = exact | (begun & past)
    not_fetching = (last != Kind.FETCH_ASKED) & (owner >= 0) & np.isin(owner, _seen_asking(batch.trial_context))
    known = np.full(batch.size, _all_seen(batch.trial_context))
    return not_fetching & known, fetched, _again_and_again(asks, answered & (position <= wanted), batch.size)


def _again_and_again(asks: Table, answered: Bools, size: int) -> Bools:
    """Returns where the last position that was asked for was answered bytes so often, and no other asked for since."""
    last = np.full(size, NONE, np.int64)
    last[asks["slice"]] = asks["fetch_position"]
    same = (asks["fetch_position"] == last[asks["slice"]]) & (asks["kind"] == Kind.FETCH_ASKED)
    row = np.arange(len(asks))
    other = per_group(asks["slice"][~same], row[~same], size, how="max", start=-1)
    often: Bools = counts(asks["slice"][answered & same & (row > other[asks["slice"]])], size) >= AGAIN_MIN
    return often


def _fetches_of_owners(batch: Batch, at_ns: int) -> tuple[Table, Ints]:
    """Returns what the owner of each partition at that time fetched of it since it was assigned, and no longer did, by
    slice and time; and the owners (-1: nobody)."""
    owner, since_ns = _owners(batch, at_ns)
    asks = batch.of(Kind.FETCH_ASKED, Kind.FETCH_DROPPED)
    asks = asks.having(time_ns=batch.monotonic(asks["answered_wall_ns"], asks["time_ns"]))
    by = _members_of(batch.trial_context, asks["lane"])
    here = asks["slice"]
    mine = (by == owner[here]) & (by >= 0) & (asks["time_ns"] >= at_earliest(since_ns[here]))
    return asks.take(mine & (asks["time_ns"] <= at_ns)).sorted_by("slice", "time_ns", "source", "seq"), owner


def _owners(batch: Batch, at_ns: int) -> tuple[Ints, Ints]:
    """Returns the member that has each partition by its own word then, the one that got it last, and since when."""
    held = ownership_epochs(batch).sorted_by("slice", "open_ns")
    now = np.flatnonzero((held["open_ns"] <= at_ns) & (held["close_ns"] >= at_ns))
    row = np.full(batch.size, -1, np.int64)
    row[held["slice"][now]] = now
    return picked(held["member"], row, -1), picked(held["open_ns"], row, 0)


def _members_of(trial_context: TrialContext, lanes: Array) -> Ints:
    """Returns the member of each lane, -1 where it is nobody's."""
    known = np.array(sorted(trial_context.lanes.items()), np.int64).reshape(-1, 2)
    found = exactly(np.zeros(len(known), np.int64), known[:, 0], np.zeros(len(lanes), np.int64), lanes)
    return picked(known[:, 1], found, -1)


def _seen_asking(trial_context: TrialContext) -> Ints:
    """Returns the members that were seen to ask brokers anything at all: what they did not fetch, they never asked
    for."""
    return _members_of(trial_context, np.array([one.lane for one in trial_context.connections], np.int64))


def _all_seen(trial_context: TrialContext) -> bool:
    """Tells whether every broker's request log was read to its end."""
    logs = [name for name in trial_context.counts if name.startswith("requests-")]
    return bool(logs) and all(trial_context.witnesses.get(name) == "complete" for name in logs)

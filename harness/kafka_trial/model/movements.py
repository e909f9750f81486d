"""Movements: when a partition moved and when it got further, how long it paused, and what is in hand at the end.

Derived for the summaries of liveness. A delivery, a completion, an effect and a commit that rises are movements. But
who is handed a record for the third time in one ownership epoch only tries it again, however long it waits in between.
A record that comes for the third time at all gets its partition no further: once may be a redelivery after a rebalance,
but a group that goes on like this moves in circles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.clients import incarnation_of
from kafka_trial.model.commits_log import commits_in_effect
from kafka_trial.model.group_timeouts import TIMES_FURTHER
from kafka_trial.model.handlers import effects_of_deleted
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    exactly,
    joined,
    max_before,
    next_in,
    number_in,
    per_group,
    picked,
    previous_in,
)
from kafka_trial.model.ownership_epochs import SAID, deliveries, member_lines, ownership_epochs
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table, stacked

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch


def movements(batch: Batch, at_ns: int) -> Table:
    """Returns slice and time_ns of each movement until then, sorted."""
    given = deliveries(batch).take(deliveries(batch)["time_ns"] <= at_ns)
    given = given.sorted_by("file", "ownership_epoch", "offset", "seq")
    given = given.take(number_in(joined(given["file"], given["ownership_epoch"] + 1, given["offset"])) < TIMES_FURTHER)
    done = batch.of(Kind.PROCESSED, Kind.EFFECT)
    done = done.take(done["time_ns"] <= at_ns)
    parts = [rows.only("slice", "time_ns") for rows in (given, done, _of_deleted(batch, at_ns))]
    return stacked(*parts, _rises(batch, at_ns)).sorted_by("slice", "time_ns")


def progress(batch: Batch, at_ns: int) -> Table:
    """Returns slice and time_ns of whatever got each slice further until then: of each record the first
    `TIMES_FURTHER` deliveries, completions and effects, and the commits that rose above all before them."""
    work = batch.of(Kind.DELIVERED, Kind.PROCESSED, Kind.EFFECT)
    work = work.take(work["time_ns"] <= at_ns).sorted_by("slice", "kind", "offset", "time_ns")
    work = work.take(number_in(joined(work["slice"], work["kind"], work["offset"])) < TIMES_FURTHER)
    return stacked(work.only("slice", "time_ns"), _of_deleted(batch, at_ns), _rises(batch, at_ns))


def _of_deleted(batch: Batch, at_ns: int) -> Table:
    """Returns slice and time_ns of the effects, until then, of records that have been deleted since: that was work."""
    effects = effects_of_deleted(batch)
    return effects.take(effects["time_ns"] <= at_ns).only("slice", "time_ns")


def _rises(batch: Batch, at_ns: int) -> Table:
    log = commits_in_effect(batch)
    rises = log.take((log["committed_offset"] > log["peak"]) & (log["effect_ns"] <= at_ns))
    return rises.only("slice").having(time_ns=rises["effect_ns"])


def last_ns(batch: Batch, rows: Table) -> Ints:
    """Returns the time of the last row of each slice; NONE where it has none."""
    return per_group(rows["slice"], rows["time_ns"], batch.size, how="max", start=NONE)


def longest_gap_ns(batch: Batch, moved: Table) -> Ints:
    """Returns the longest time between two movements of each slice that followed one another; NONE where it never
    moved, 0 where it moved once."""
    before = previous_in(moved["slice"])
    gap_ns = np.where(before >= 0, moved["time_ns"] - picked(moved["time_ns"], before, 0), 0)
    return per_group(moved["slice"], gap_ns, batch.size, how="max", start=NONE)


def fetched_ns(batch: Batch, at_ns: int) -> Ints:
    """Returns when a member last asked for records of each slice further on than any before it; NONE where none did.

    Whoever fetches is at work, though a client that fetches ahead shows no pause of its handlers by it.
    """
    asks = batch.of(Kind.FETCH_ASKED)
    asks = asks.having(time_ns=batch.monotonic(asks["answered_wall_ns"], asks["time_ns"]))
    ours = np.isin(asks["lane"], list(batch.trial_context.lanes)) & (asks["time_ns"] <= at_ns)
    asks = asks.take(ours).sorted_by("slice", "time_ns")
    highest = picked(asks["fetch_position"], max_before(asks["slice"], asks["fetch_position"]), NONE)
    further = asks.take(asks["fetch_position"] > highest)
    return last_ns(batch, further)


def in_hand_since_ns(batch: Batch, at_ns: int) -> Ints:
    """Returns when the latest record that a member has in hand then was delivered to it; NONE where none is.

    That record has no completion, no effect and no word that it failed; its member lives and has the partition still;
    and it was delivered no more than `TIMES_FURTHER` times: who gets it again and again puts it down in between.
    """
    work = member_lines(batch)
    of_records = np.isin(work["kind"], (Kind.DELIVERED, Kind.PROCESSED, Kind.FAILED)) & (work["told_by"] == SAID)
    work = work.take(of_records & (work["time_ns"] <= at_ns)).sorted_by("file", "offset", "seq")
    begun = work.take((work["kind"] == Kind.DELIVERED) & (next_in(joined(work["file"], work["offset"])) < 0))
    again = exactly(*_again_and_again(work), begun["slice"], begun["offset"]) >= 0
    begun = begun.take(_held(batch, begun, at_ns) & ~again)
    return last_ns(batch, begun.take(~_shown(batch, begun, at_ns)))


def _again_and_again(work: Table) -> tuple[Ints, Ints]:
    """Returns slice and offset of the records that were delivered more than `TIMES_FURTHER` times."""
    given = work.take(work["kind"] == Kind.DELIVERED).sorted_by("slice", "offset")
    more = given.take(number_in(joined(given["slice"], given["offset"])) == TIMES_FURTHER)
    return more["slice"], more["offset"]


def _held(batch: Batch, begun: Table, at_ns: int) -> Bools:
    """Returns whether the member lives then and has the partition, as far as it says."""
    closed_ns = picked(batch.incarnations["closed_ns"], incarnation_of(batch, begun["source"]), NONE)
    lost_ns = picked(ownership_epochs(batch)["close_ns"], begun["ownership_epoch"], NEVER)
    held: Bools = ((closed_ns == NONE) | (closed_ns > at_ns)) & (lost_ns > at_ns)
    return held


def _shown(batch: Batch, begun: Table, at_ns: int) -> Bools:
    """Returns whether the sink had an effect of the record after it was delivered."""
    effects = batch.of(Kind.EFFECT)
    effects = effects.take(effects["time_ns"] <= at_ns).sorted_by("slice", "offset", "time_ns")
    effects = effects.take(next_in(joined(effects["slice"], effects["offset"])) < 0)
    row = exactly(effects["slice"], effects["offset"], begun["slice"], begun["offset"])
    shown: Bools = picked(effects["time_ns"], row, NONE) >= begun["time_ns"]
    return shown

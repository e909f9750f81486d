"""Effects: what reached the outside world, in which order, what was done again there, and what nobody had sent.

The sink's file is one order of what reached it; of an output topic the order is that of each of its partitions. Where
members print nothing, it is the brokers' word where an ownership epoch began (`inferred_ownership_epochs.py`). Where
the effects are states of a table, lines tell of the work if there are any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.clients import incarnation_of
from kafka_trial.model.handler_retries import handler_starts
from kafka_trial.model.handlers import joined_with, keys_of, stamped
from kafka_trial.model.inferred_ownership_epochs import first_fetch_positions
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    at_or_before,
    exactly,
    first_of,
    joined,
    max_before,
    number_in,
    ordered,
    picked,
    previous_in,
)
from kafka_trial.model.ownership_epochs import ownership_epochs
from kafka_trial.model.rights import mere_claims, surely_without_right
from kafka_trial.model.rows import Kind
from kafka_trial.model.start_positions import floors
from kafka_trial.model.table import Table
from kafka_trial.model.zombie_excuses import in_untold_loss

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_trial.model.batch import Batch


def effects_in_order(batch: Batch) -> Table:
    """Returns slice, source, seq, offset, time_ns, acknowledged, key, `member` (-1: not named), `output` (the partition
    of an output topic; -1: none), `at` (its place there, else in the sink's file) and `stamped` (see there), sorted by
    slice, offset and time; `number`: how many of its record came before. None where lines alone tell of the work, and
    none whose id is of several records: of which it was nobody knows.
    """
    effects = batch.of(Kind.EFFECT)
    trial_context = batch.trial_context
    if trial_context.settings.effects == "state" and not trial_context.prints_no_work:
        effects = effects.take(np.zeros(len(effects), np.bool_))
    event = joined(effects["slice"], effects["source"], effects["seq"])
    _, number, times = np.unique(event, return_inverse=True, return_counts=True)
    effects = effects.take(times[number] == 1)
    in_topic = effects["output_offset"] != NONE
    effects = effects.only("slice", "offset", "time_ns", "seq", "acknowledged").having(
        source=effects["source"].astype(np.int64),
        member=effects["member"].astype(np.int64),
        output=effects["output_partition"].astype(np.int64),
        at=np.where(in_topic, effects["output_offset"], effects["seq"]),
        stamped=stamped(batch, effects),
    )
    effects = effects.take(ordered(effects["slice"], effects["offset"], effects["time_ns"], effects["seq"]))
    number = number_in(joined(effects["slice"], effects["offset"]))
    return effects.having(key=keys_of(batch, effects), number=number)


def late_effects(batch: Batch, *, same_key: bool) -> tuple[Table, Table]:
    """Returns the first effects that came after one of a later record, and that one of each.

    Those that a member finished which had lost the partition untold are left out (`zombie_excuses.py`).
    """
    first = effects_in_order(batch)
    first = first.take((first["number"] == 0) & (first["key"] >= 0 if same_key else True))
    first = first.take(~in_untold_loss(batch, first))
    group = joined(first["slice"], first["source"], first["output"], first["key"] if same_key else first["slice"])
    order = ordered(group, first["at"])
    first, group = first.take(order), group[order]
    highest = max_before(group, first["offset"])
    late: Bools = (highest >= 0) & (first["offset"] < picked(first["offset"], highest, NONE))
    return first.take(late), first.take(highest[late])


def done_again(batch: Batch) -> Iterator[Table]:
    """Yields every further effect of a record, beyond what lines tell of its handling: `ownership_epoch` that it came
    in, its `floor` (NONE: not known), and `below_floor`: whether that began below its floor, at the record or before
    it. Then once more those that were so if they were the owner's, and not of a member without a right: `whose`.
    """
    again = effects_in_order(batch)
    silent = batch.trial_context.prints_no_work
    again = again.take(again["number"] > 0 if silent else _untold(batch, again))
    found = _by_floors(batch, again, mere_claims(batch))
    yield found.having(whose=np.zeros(len(found), np.bool_))
    of_owner = _by_floors(batch, again, surely_without_right(batch))
    doubtful = of_owner["below_floor"] & ~found["below_floor"] & (of_owner["member"] < 0)
    yield of_owner.having(whose=doubtful).take(doubtful)


def _by_floors(batch: Batch, again: Table, claims: Bools) -> Table:
    """Returns effects with `ownership_epoch`, `floor` and `below_floor`; the ownership epochs `claims` are nobody's."""
    by_anybody, by_member = _by_anybody(batch, again, claims), _by_member(batch, again)
    ownership_epoch, below = (np.where(again["member"] >= 0, *pair) for pair in zip(by_member, by_anybody, strict=True))
    floor = picked(floors(batch), ownership_epoch, NONE)
    return again.having(ownership_epoch=ownership_epoch, floor=floor, below_floor=below & (again["offset"] < floor))


def _untold(batch: Batch, effects: Table) -> Bools:
    """Returns the effects beyond as many as lines tell of handlings of their record, by the member that is named.

    The first effect of a record is none, and neither is one that its member tries again because nobody told it of the
    one before.
    """
    record = joined(effects["slice"], effects["offset"])
    before = previous_in(record)
    posted = np.flatnonzero((before < 0) | (picked(effects["acknowledged"], before, 1) == 1))
    posts, record = effects.take(posted), record[posted]
    order = ordered(record, posts["member"])
    beyond = np.zeros(len(posts), np.int64)
    of_member = number_in(joined(record[order], posts["member"][order]))
    beyond[order] = of_member >= _told_handlings(batch, posts.take(order))
    begins = first_of(record)
    sizes = np.diff(np.append(begins, len(record)))
    further = np.minimum(np.add.reduceat(beyond, begins), sizes - 1) if len(begins) else sizes
    left = np.repeat(sizes, sizes) - number_in(record)  # from each on, in its record
    untold = np.zeros(len(effects), np.bool_)
    untold[posted[left <= np.repeat(further, sizes)]] = True
    return untold


def _told_handlings(batch: Batch, effects: Table) -> Array:
    """Returns how often lines say that each effect's record was begun: by its member, or by anybody where it names
    none."""
    begun = handler_starts(batch)
    member = picked(batch.incarnations["member"], incarnation_of(batch, begun["source"]), -1)
    by_anybody = np.full(len(begun), -1)
    told = np.concatenate([begun["slice"], begun["slice"], effects["slice"]])
    offsets = np.concatenate([begun["offset"], begun["offset"], effects["offset"]])
    record_of_member = joined(told, offsets, np.concatenate([member, by_anybody, effects["member"]]) + 1)
    _, number = np.unique(record_of_member, return_inverse=True)
    counted = np.bincount(number[: 2 * len(begun)], minlength=len(number))
    return counted[number[2 * len(begun) :]]


def _by_anybody(batch: Batch, again: Table, claims: Bools) -> tuple[Array, Bools]:
    """Returns the latest ownership epoch at each effect, and whether its member, alone with the partition, had begun to
    fetch at the record or before it. The ownership epochs `claims` are none."""
    numbers = np.lexsort((ownership_epochs(batch)["open_ns"], ownership_epochs(batch)["slice"]))
    numbers = numbers[~claims[numbers]]
    held = ownership_epochs(batch).take(numbers)
    row = at_or_before(held["slice"], held["open_ns"], again["slice"], again["time_ns"])
    fetched_from = first_fetch_positions(batch, held.having(open_ns=_assigned_ns(batch, held)))
    first = np.where(held["begun_at"] == NONE, fetched_from, held["begun_at"])
    begun = picked(first, row, NONE)
    alone = picked(_alone(held).astype(np.int64), row, 0) == 1
    return picked(numbers, row, -1), alone & (begun != NONE) & (begun <= again["offset"])


def _assigned_ns(batch: Batch, held: Table) -> Array:
    """Returns when each ownership epoch can have opened at the earliest: its line is read late, but what was fetched
    before the same file's one before was over is of that one."""
    written_ns = batch.written_ns(held["source"], held["open_ns"])
    ended_ns = picked(ownership_epochs(batch)["close_ns"], held["before"], NONE)
    assigned_ns: Array = np.minimum(np.maximum(written_ns, ended_ns), held["open_ns"])
    return assigned_ns


def _by_member(batch: Batch, again: Table) -> tuple[Array, Bools]:
    """Returns the latest ownership epoch of each effect's member, and whether it can have had the record in that one
    only: it had begun to fetch at the record or before it, or never held the partition before."""
    size = len(batch.trial_context.members) + 1
    member = joined_with(ownership_epochs(batch)["slice"], ownership_epochs(batch)["member"] + 1, size)
    numbers = np.lexsort((ownership_epochs(batch)["open_ns"], member))
    held, member = ownership_epochs(batch).take(numbers), member[numbers]
    row = at_or_before(
        member, held["open_ns"], joined_with(again["slice"], again["member"] + 1, size), again["time_ns"]
    )
    begun = picked(held["begun_at"], row, NONE)
    told = (begun == NONE) & (picked(held["proof_source"], row, -1) == picked(held["source"], row, -2))
    handed_on = batch.of(Kind.HANDED_ON).sorted_by("slice", "offset")  # it may come to whoever reads the other topic
    here = exactly(handed_on["slice"], handed_on["offset"], again["slice"], again["offset"]) < 0
    only = told & here & (picked(previous_in(member), row, 0) < 0)
    return picked(numbers, row, -1), only | ((begun != NONE) & (begun <= again["offset"]))


def _alone(held: Table) -> Bools:
    """Returns whether everybody else's ownership epoch of the slice was over when each one opened (sorted by time)."""
    before = previous_in(held["slice"])
    ended = np.where(held["close_ns"] == NEVER, NEVER - 1, held["close_ns"])
    latest = max_before(held["slice"], ended)
    alone: Bools = (before < 0) | (picked(ended, latest, NONE) <= held["open_ns"])
    return alone

"""How `NonmonotonicPolls`, `HandledOutOfOrder` and `OverlappingHandlers` are made: see `partition.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.attempt_starts import began_at, committed_before
from kafka_trial.model.batch import index
from kafka_trial.model.client_attribution import unattributed
from kafka_trial.model.handler_retries import handler_starts
from kafka_trial.model.handlers import completions, finished_handlers, keys_of
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Ints,
    at_or_before,
    first_of,
    joined,
    max_before,
    min_after,
    ordered,
    picked,
    running_max,
    starts_of,
)
from kafka_trial.model.listener_batches import latest_replay
from kafka_trial.model.partition import HandledOutOfOrder, NonmonotonicPolls, OverlappingHandlers
from kafka_trial.model.rows import Kind
from kafka_trial.model.seeks import before_seek
from kafka_trial.model.sink_effects import late_effects
from kafka_trial.model.table import Table, stacked
from kafka_trial.model.truncations import truncated_below
from kafka_trial.model.undecided import Undecided, undecided_because
from kafka_trial.model.zombie_excuses import excused

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_trial.model.batch import Batch


@index
def nonmonotonic_polls(batch: Batch) -> NonmonotonicPolls:
    """Returns deliveries of a record, or of one before it, that had been delivered in their ownership epoch."""
    given = handler_starts(batch).take(handler_starts(batch)["kind"] == Kind.DELIVERED)
    held = given.take(given["ownership_epoch"] >= 0)  # sorted by ownership epoch, then seq
    held = held.take(~before_seek(batch, held, held["ownership_epoch"]))
    inside, whole = joined(held["ownership_epoch"], held["attempt"]), held["ownership_epoch"]
    kept = committed_before(batch, held)
    highest = np.where(kept, max_before(whole, held["offset"]), max_before(inside, held["offset"]))
    furthest = picked(held["offset"], highest, NONE)
    back = (highest >= 0) & (held["offset"] <= furthest) & (~held["retry"] | held["doubtful"])
    back &= ~truncated_below(batch, held, furthest)
    before, after = held.take(highest[back]), held.take(back)
    return NonmonotonicPolls(after.columns).having(
        highest_offset=before["offset"],
        highest_source=before["source"],
        highest_seq=before["seq"],
        why=undecided_because(
            (Undecided.UNATTRIBUTED, unattributed(batch, after)), (Undecided.WHOSE_EFFECT, after["retry"])
        ),
    )


@index
def handled_out_of_order(batch: Batch) -> HandledOutOfOrder:
    """Returns what was handled after a later record: by lines once each, and by effects what these show beyond."""
    lines = _once(_late_ones(batch, _late_by_lines), "source", "seq")
    effects = _once(_late_ones(batch, _late_by_effects), "offset")
    unsure = lines["unattributed"]
    late = stacked(_united(lines.take(~unsure), effects), lines.take(unsure))
    why = undecided_because((Undecided.UNATTRIBUTED, late["unattributed"]))
    return HandledOutOfOrder(late.columns).having(why=why).having_when_asked(key=lambda: _names(batch, late))


@index
def overlapping(batch: Batch) -> OverlappingHandlers:
    """Returns the handlers that began while another one of their partition was at work, each once."""
    handlers = finished_handlers(batch)
    keyed = handlers.take(handlers["key"] >= 0)
    inside = stacked(
        _overlapping_in_file(handlers, joined(handlers["slice"], handlers["source"]), same_key=False),
        _overlapping_in_file(keyed, joined(keyed["slice"], keyed["source"], keyed["key"]), same_key=True),
    )
    across = _overlapping_across_files(batch)
    both = _once(stacked(inside.having(unattributed=unattributed(batch, inside)), across), "source", "start_seq")
    return OverlappingHandlers(both.columns).having(
        why=undecided_because((Undecided.UNATTRIBUTED, both["unattributed"]))
    )


def _once(found: Table, *one: str) -> Table:
    """Returns each `one` of a slice once: that whose member is known, and of one key, where it is so."""
    found = found.take(ordered(*(found[name] for name in ("slice", *one)), found["unattributed"], ~found["same_key"]))
    return found.take(first_of(*(found[name] for name in ("slice", *one))))


def _late_ones(batch: Batch, late: Callable[..., Table]) -> Table:
    """Returns what came after a later record of its key, and what came after any; `late` tells of both."""
    found = [(same_key, late(batch, same_key=same_key)) for same_key in (True, False)]
    return stacked(*(rows.having(same_key=np.full(len(rows), same_key)) for same_key, rows in found))


def _late_by_lines(batch: Batch, *, same_key: bool) -> Table:
    """Returns the completions that came after one of a later record, with that one as `later_*`."""
    return stacked(_late_inside(batch, same_key=same_key), _late_across(batch, same_key=same_key))


def _late_by_effects(batch: Batch, *, same_key: bool) -> Table:
    return _paired(*late_effects(batch, same_key=same_key))


def _united(lines: Table, effects: Table) -> Table:
    """Returns what lines show, and of each record of which they show less what its effect does."""
    both = joined(*(np.concatenate([lines[name], effects[name]]) for name in ("slice", "offset")))
    mine, theirs = both[: len(lines)], both[len(lines) :]
    more = ~np.isin(theirs, mine[lines["same_key"]]) & (effects["same_key"] | ~np.isin(theirs, mine))
    return stacked(lines.take(~np.isin(mine, theirs[more])), effects.take(more))


def _late_inside(batch: Batch, *, same_key: bool) -> Table:
    done = _after_seeks(batch)
    done = done.take(done["begun_in"] >= 0)
    replay = latest_replay(batch, done) + 1
    key = done["key"] if same_key else np.zeros(len(done), np.int64)
    done = done.having(among=joined(key, replay))
    group = joined(done["begun_in"], done["attempt"], replay)
    if same_key:
        done, group = done.take(done["key"] >= 0), group[done["key"] >= 0]
        order = ordered(group, done["key"])
        done, group = done.take(order), joined(group[order], done["key"][order])
    highest = _highest_committed(batch, done, max_before(group, done["offset"]))
    overtaken = (highest >= 0) & (done["offset"] < picked(done["offset"], highest, NONE))
    late, later = done.take(overtaken), done.take(highest[overtaken])
    kept = ~truncated_below(batch, late, later["offset"])
    late, later = late.take(kept), later.take(kept)
    return _paired(late, later).having(unattributed=unattributed(batch, late))


def _highest_committed(batch: Batch, done: Table, highest: Ints) -> Ints:
    """Returns `highest`, the row of the highest offset before each completion in its attempt; where the record itself
    had been committed before the attempt, also among what had been by then, for no abort takes that back."""
    committed = began_at(batch, done)
    again = np.flatnonzero(done["offset"] < committed)
    highest = highest.copy()
    for epoch, position in np.unique(np.stack([done["begun_in"][again], committed[again]]), axis=1).T.tolist():
        rows = np.flatnonzero((done["begun_in"] == epoch) & (done["offset"] < position))
        rows = rows[ordered(done["among"][rows], done["seq"][rows])]
        before = max_before(done["among"][rows], done["offset"][rows])
        mine = np.isin(rows, again) & (committed[rows] == position)
        further = mine & (picked(done["offset"][rows], before, NONE) > picked(done["offset"], highest[rows], NONE))
        highest[rows[further]] = rows[before[further]]
    return highest


def _late_across(batch: Batch, *, same_key: bool) -> Table:
    """Returns the first completions that came after the first completion of a later record, in whatever file."""
    first = first_completions(batch)
    group = first["slice"]
    if same_key:
        first = first.take(first["key"] >= 0)
        order = ordered(first["slice"], first["key"], first["offset"])
        first, group = first.take(order), joined(first["slice"][order], first["key"][order])
    elsewhere = min_after(group, np.where(batch.untimed(first["source"]), NEVER, first["time_ns"]))
    earliest_ns = batch.written_ns(first["source"], first["time_ns"])
    overtaken = (elsewhere >= 0) & (picked(first["time_ns"], elsewhere, NONE) < earliest_ns)
    overtaken &= ~batch.untimed(picked(first["source"], elsewhere, -1))
    order = ordered(group, first["source"], first["offset"])
    in_file = np.full(len(first), -1, np.int64)
    by_file = first.take(order)
    nearest = min_after(joined(group[order], by_file["source"]), by_file["seq"])
    in_file[order] = np.where(nearest >= 0, order[nearest], -1) if len(order) else nearest
    before = (in_file >= 0) & (picked(first["seq"], in_file, NONE) < first["seq"])
    later = np.where(before, in_file, elsewhere)[before | overtaken]
    return _paired(first.take(before | overtaken), first.take(later))


def _paired(late: Table, later: Table) -> Table:
    return late.only("slice", "offset", "source", "seq").having(
        higher_offset=later["offset"],
        higher_source=later["source"],
        higher_seq=later["seq"],
        unattributed=np.zeros(len(late), np.bool_),
    )


def _names(batch: Batch, rows: Table) -> Array:
    """Returns the key of each row's record as text; None where it has none."""
    names = batch.keys
    return np.array([names[code] if code >= 0 else None for code in keys_of(batch, rows).tolist()], dtype=object)


def _overlapping_in_file(handlers: Table, group: Ints, *, same_key: bool) -> Table:
    """Returns the handlers that began while one of an earlier batch of their group was at work; in one file seq is
    exact."""
    order = ordered(group, handlers["start_seq"])
    handlers, group = handlers.take(order), group[order]
    longest = max_before(group, handlers["end_seq"])
    begins = starts_of(group, handlers["batch"])
    longest = longest[np.maximum.accumulate(np.where(begins, np.arange(len(group)), 0))] if len(group) else longest
    inside = (longest >= 0) & (handlers["start_seq"] < picked(handlers["end_seq"], longest, NONE))
    return _pairs(handlers.take(inside), handlers.take(longest[inside]), same_key=same_key)


def _overlapping_across_files(batch: Batch) -> Table:
    """Returns the handlers that ran beside one of another file for certain, however short: each began, at the latest,
    before the other one can have ended."""
    handlers = finished_handlers(batch)
    handlers = handlers.take(~excused(batch, handlers["ownership_epoch"], handlers["offset"], handlers["end_ns"]))
    handlers = handlers.having(end_ns=batch.written_ns(handlers["source"], handlers["end_ns"]))
    keyed = handlers.take(handlers["key"] >= 0)
    found = [
        _overlapping_of_file(rows.take(mine), rows.take(~mine), same_key=rows is keyed)
        for source in np.unique(handlers["source"])  # files, not rows: some dozens at most
        for rows in (handlers, keyed)
        for mine in [rows["source"] == source]
    ]
    nobody = handlers.take(np.zeros(len(handlers), np.bool_))
    return stacked(_pairs(nobody, nobody, same_key=False), *found)


def _overlapping_of_file(mine: Table, others: Table, *, same_key: bool) -> Table:
    """Returns the handlers of one file that began, last of both, while one of the others was at work.

    A short one may have ended, by its line, before it began: the other one must have begun before that.
    """
    names = ("slice", "key") if same_key else ("slice",)
    group = joined(*(np.concatenate([others[name], mine[name]]) for name in names))
    order = ordered(group[: len(others)], others["start_ns"])
    others, theirs, own = others.take(order), group[: len(others)][order], group[len(others) :]
    earlier = at_or_before(theirs, others["start_ns"], own, np.minimum(mine["start_ns"], mine["end_ns"] - 1))
    longest = picked(running_max(theirs, others["end_ns"]), earlier, -1)
    beside = (longest >= 0) & (picked(others["end_ns"], longest, NONE) > mine["start_ns"])
    return _pairs(mine.take(beside), others.take(longest[beside]), same_key=same_key)


def _pairs(later: Table, earlier: Table, *, same_key: bool) -> Table:
    return later.only("slice", "source", "client", "offset", "start_seq", "end_seq").having(
        other_offset=earlier["offset"],
        other_source=earlier["source"],
        other_start_seq=earlier["start_seq"],
        other_end_seq=earlier["end_seq"],
        same_key=np.full(len(later), same_key),
        unattributed=np.zeros(len(later), np.bool_),
    )


@index
def first_completions(batch: Batch) -> Table:
    """Returns the first completion of each offset, sorted by (slice, offset), those of untold losses left out."""
    done = _after_seeks(batch)
    done = done.take(ordered(done["slice"], done["offset"], done["time_ns"]))
    first = done.take(first_of(done["slice"], done["offset"]))
    return first.take(~excused(batch, first["begun_in"], first["offset"], first["time_ns"]))


def _after_seeks(batch: Batch) -> Table:
    """Returns the completions, but for those of records that their member set aside before it sought to its start."""
    done = completions(batch)
    return done.take(~before_seek(batch, done, done["begun_in"]))

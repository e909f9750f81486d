"""Ordering: were records of a partition, and of a key, delivered and handled in their order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kafka_trial.invariants.batch import Batch, index
from kafka_trial.invariants.claim_rule import (
    Rule,
    of_other_keys,
    order_claimed,
    partition_order_claimed,
    sharing_an_event,
)
from kafka_trial.invariants.client_attribution import unattributed
from kafka_trial.invariants.handler_retries import handler_starts, latest_replay
from kafka_trial.invariants.handlers import completions, finished_handlers, keys_of
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import (
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
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.sink_effects import late_effects
from kafka_trial.invariants.table import Table, stacked, table
from kafka_trial.invariants.truncations import truncated_below
from kafka_trial.invariants.undecided import Undecided
from kafka_trial.invariants.zombie_excuses import excused


@invariant(
    "nonmonotonic-poll",
    family="ordering",
    needs=("own word", "ownership epochs"),
    level="events",
    severity=270,
    share_of=("deliveries",),
    rule=Rule(partition_order_claimed),
    message="{place} stepped back from record {previous_offset} to {offset} inside one ownership epoch",
)
def nonmonotonic_poll(batch: Batch) -> Findings:
    """Inside one ownership epoch a delivery stepped back to a record, or to one before it, that was delivered already.

    "Consumers see records in the order they are stored in the log" (Kafka, Guarantees). Legal if nothing from that
    record on had been completed (a retry: see `retried`), if the consumer claims order per key or none, and if progress
    is in transactions and the member reported that one failed: its work is undone and starts again. Undecided if the
    lines may belong to several clients of one process.

    Smallest history: `assigned`, `delivered` 5, `processed` 5, `delivered` 5.

    Usual cause: The consumer sought back over records that it had already done.

    Remedy: Seek back only to the record that failed, before anything behind it is done.
    """
    given = handler_starts(batch).take(handler_starts(batch)["kind"] == Kind.DELIVERED)
    held = given.take(given["ownership_epoch"] >= 0)  # sorted by ownership epoch, then seq
    highest = max_before(joined(held["ownership_epoch"], held["attempt"]), held["offset"])
    furthest = picked(held["offset"], highest, NONE)
    back = (highest >= 0) & (held["offset"] <= furthest) & ~held["retry"]
    back &= ~truncated_below(batch, held, furthest)
    back, unsure = back & ~unattributed(batch, held), back & unattributed(batch, held)
    before, after = held.take(highest[back]), held.take(back)
    rows = table(
        slice=after["slice"],
        order=after["offset"],
        offset=after["offset"],
        previous_offset=before["offset"],
    )
    proofs = [(before["source"], before["seq"]), (after["source"], after["seq"])]
    return Findings(rows, proofs, [(Undecided.UNATTRIBUTED, held["slice"][unsure])])


@invariant(
    "reordered-key",
    family="ordering",
    needs=("ownership epochs", "records", "work"),
    level="sink",
    severity=250,
    rule=Rule(order_claimed, of_other_keys),
    message="record {offset} of {place} was processed after the later record {later_offset}{of_key}",
    deciding=("same_key",),
    follows={"overlapping-handlers": sharing_an_event, "nonmonotonic-poll": sharing_an_event},
)
def reordered_key(batch: Batch) -> Findings:
    """A record was handled after a later one of its key (same_key), or of another key of its partition (not same_key).

    "Kafka guarantees the order of records within a partition" (Kafka, Introduction), and records of a key share one.
    Inside an ownership epoch every completion counts of records delivered there. Across ownership epochs, failed
    transactions, and batches that were handed out again, only first completions count: a rewind to a legal floor is a
    redelivery. Legal between a loss of the partition and the moment that the member learns of it. With a sink, first
    effects count too, in the order of its file (of each partition of an output topic): one finding a record beyond
    those of the lines. Undecided inside an ownership epoch whose lines may belong to several clients of one process.

    Smallest history: records 0 and 1 of one key, `assigned`, `processed` 1, `processed` 0.

    Usual cause: Records of one key were worked on in parallel or retried behind later ones.

    Remedy: Send records of a key to the same worker, and hold a key back while one of its records is being retried.
    """
    lines, unsure = _once(_late_ones(batch, _late_by_lines), "source", "seq")
    effects, _ = _once(_late_ones(batch, _late_by_effects), "offset")
    late = _united(lines, effects)
    rows = table(
        slice=late["slice"],
        order=late["offset"],
        offset=late["offset"],
        later_offset=late["later_offset"],
        key=_names(batch, late),
        same_key=late["same_key"],
    )
    proofs = [(late["later_source"], late["later_seq"]), (late["source"], late["seq"])]
    return Findings(rows, proofs, [(Undecided.UNATTRIBUTED, unsure)])


@invariant(
    "overlapping-handlers",
    family="ordering",
    needs=("handler starts", "own word", "ownership epochs"),
    level="events",
    severity=260,
    rule=Rule(order_claimed, of_other_keys),
    message="records {offset} and {other_offset} of {place} were in two handlers at once",
    deciding=("same_key",),
    follows={"work-after-revoke": sharing_an_event},
)
def overlapping_handlers(batch: Batch) -> Findings:
    """Two records of a partition were in handlers at once (same_key: two of one key).

    When two handlers run side by side, the order in the log is no longer the order of effects: "one consumer per
    partition" (Kafka, Consumer Groups). Legal across keys if order is claimed per key, between a loss of the partition
    and the moment that the member learns of it, and inside one batch if handlers take batches (`handler = "batch"`):
    there completions give the order. Undecided in a file whose lines may belong to several clients.

    Smallest history: `delivered` 0, `delivered` 1, `processed` 0, `processed` 1.

    Usual cause: Two threads worked on one partition, or a member went on while the next owner had begun.

    Remedy: Give each partition (or key) one worker, and wait for it before the partition is given back.
    """
    handlers = finished_handlers(batch)
    keyed = handlers.take(handlers["key"] >= 0)
    inside = stacked(
        _overlapping_in_file(handlers, joined(handlers["slice"], handlers["source"]), same_key=False),
        _overlapping_in_file(keyed, joined(keyed["slice"], keyed["source"], keyed["key"]), same_key=True),
    )
    across = _overlapping_across_files(batch)
    both = stacked(inside.having(unattributed=unattributed(batch, inside)), across)
    later, unsure = _once(both, "source", "start_seq")
    rows = table(
        slice=later["slice"],
        order=later["offset"],
        offset=later["offset"],
        other_offset=later["other_offset"],
        same_key=later["same_key"],
    )
    proofs = [
        ("other_source", "other_start"),
        ("source", "start_seq"),
        ("other_source", "other_end"),
        ("source", "end_seq"),
    ]
    return Findings(rows, [(later[source], later[seq]) for source, seq in proofs], [(Undecided.UNATTRIBUTED, unsure)])


def _once(found: Table, *one: str) -> tuple[Table, Ints]:
    """Returns each `one` of a slice once, of one key where it is so; and the slice of each whose member is not
    known."""
    found = found.take(ordered(*(found[name] for name in ("slice", *one)), found["unattributed"], ~found["same_key"]))
    found = found.take(first_of(*(found[name] for name in ("slice", *one))))
    return found.take(~found["unattributed"]), found["slice"][found["unattributed"]]


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
    done = completions(batch).take(completions(batch)["begun_in"] >= 0)
    group = joined(done["begun_in"], done["attempt"], latest_replay(batch, done) + 1)
    if same_key:
        done, group = done.take(done["key"] >= 0), group[done["key"] >= 0]
        order = ordered(group, done["key"])
        done, group = done.take(order), joined(group[order], done["key"][order])
    highest = max_before(group, done["offset"])
    overtaken = (highest >= 0) & (done["offset"] < picked(done["offset"], highest, NONE))
    late, later = done.take(overtaken), done.take(highest[overtaken])
    kept = ~truncated_below(batch, late, later["offset"])
    late, later = late.take(kept), later.take(kept)
    return _paired(late, later).having(unattributed=unattributed(batch, late))


def _late_across(batch: Batch, *, same_key: bool) -> Table:
    """Returns the first completions that came after the first completion of a later record, in whatever file."""
    first = first_completions(batch)
    group = first["slice"]
    if same_key:
        first = first.take(first["key"] >= 0)
        order = ordered(first["slice"], first["key"], first["offset"])
        first, group = first.take(order), joined(first["slice"][order], first["key"][order])
    elsewhere = min_after(group, np.where(batch.vague(first["source"]), NEVER, first["time_ns"]))
    earliest_ns = batch.written_ns(first["source"], first["time_ns"])
    overtaken = (elsewhere >= 0) & (picked(first["time_ns"], elsewhere, NONE) < earliest_ns)
    overtaken &= ~batch.vague(picked(first["source"], elsewhere, -1))
    order = ordered(group, first["source"], first["offset"])
    in_file = np.full(len(first), -1, np.int64)
    by_file = first.take(order)
    nearest = min_after(joined(group[order], by_file["source"]), by_file["seq"])
    in_file[order] = np.where(nearest >= 0, order[nearest], -1) if len(order) else nearest
    before = (in_file >= 0) & (picked(first["seq"], in_file, NONE) < first["seq"])
    later = np.where(before, in_file, elsewhere)[before | overtaken]
    return _paired(first.take(before | overtaken), first.take(later))


@index
def first_completions(batch: Batch) -> Table:
    """Returns the first completion of each offset, sorted by (slice, offset), those of untold losses left out."""
    done = completions(batch)
    done = done.take(ordered(done["slice"], done["offset"], done["time_ns"]))
    first = done.take(first_of(done["slice"], done["offset"]))
    return first.take(~excused(batch, first["begun_in"], first["offset"], first["time_ns"]))


def _paired(late: Table, later: Table) -> Table:
    return late.only("slice", "offset", "source", "seq").having(
        later_offset=later["offset"],
        later_source=later["source"],
        later_seq=later["seq"],
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
    return _side_by_side(handlers.take(inside), handlers.take(longest[inside]), same_key=same_key)


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
    return stacked(_side_by_side(nobody, nobody, same_key=False), *found)


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
    return _side_by_side(mine.take(beside), others.take(longest[beside]), same_key=same_key)


def _side_by_side(later: Table, earlier: Table, *, same_key: bool) -> Table:
    return later.only("slice", "source", "client", "offset", "start_seq", "end_seq").having(
        other_offset=earlier["offset"],
        other_source=earlier["source"],
        other_start=earlier["start_seq"],
        other_end=earlier["end_seq"],
        same_key=np.full(len(later), same_key),
        unattributed=np.zeros(len(later), np.bool_),
    )

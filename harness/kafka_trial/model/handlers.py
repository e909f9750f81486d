"""Handlers: what was done with each record, from its delivery to its completion, and when it was first handled.

Of a table, the state that a later record of its key left stands for all earlier ones of that key.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from kafka_trial.model import clocks
from kafka_trial.model.batch import Batch, index
from kafka_trial.model.contradicted_lines import is_refuted
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    exactly,
    first_of,
    joined,
    min_after,
    next_in,
    ordered,
    per_group,
    picked,
    previous_in,
)
from kafka_trial.model.ownership_epochs import SAID, member_lines
from kafka_trial.model.rows import OUTCOMES, Kind, Known
from kafka_trial.model.table import Table, stacked, table

ENDS = (Kind.PROCESSED, Kind.FAILED)


@index
def finished_handlers(batch: Batch) -> Table:
    """Returns slice, source, client, offset, key, ownership epoch, batch, start_seq, start_ns, end_seq, end_ns: one row
    a finished handler.

    A delivery is finished by the next completion of the same record in the same file, or by the word that it failed,
    unless the record was delivered there again in between: then the first delivery was given up, and has no end.
    Sorted by (slice, source, start_seq).
    """
    said = member_lines(batch)["told_by"] == SAID
    work = member_lines(batch).take(np.isin(member_lines(batch)["kind"], (Kind.DELIVERED, *ENDS)) & said)
    work = work.having(batch=_batches(batch, work))
    work = work.take(ordered(work["file"], work["offset"]))
    record = joined(work["file"], work["offset"])
    following = next_in(record)
    delivered = work["kind"] == Kind.DELIVERED
    finished = np.flatnonzero(delivered & np.isin(picked(work["kind"], following, 0), ENDS))
    start, end = work.take(finished), work.take(following[finished])
    found = table(
        slice=start["slice"],
        source=start["source"],
        client=start["client"],
        offset=start["offset"],
        key=keys_of(batch, start),
        ownership_epoch=start["ownership_epoch"],
        batch=start["batch"],
        start_seq=start["seq"],
        start_ns=start["time_ns"],
        end_seq=end["seq"],
        end_ns=end["time_ns"],
    )
    return found.sorted_by("slice", "source", "start_seq")


@index
def records_begun(batch: Batch) -> Table:
    """Returns the deliveries of `member_lines`, sorted by (file, offset), with `ended_ns`: until when each record was
    in hand.

    To the next word of it in the same file; where there is none ever, to its last effect after the delivery: a line
    that was left out holds no record for good. NEVER where the sink saw none either.
    """
    work = member_lines(batch).take(np.isin(member_lines(batch)["kind"], (Kind.DELIVERED, Kind.PROCESSED)))
    work = work.take(ordered(work["file"], work["offset"]))
    ended_ns = picked(work["time_ns"], next_in(joined(work["file"], work["offset"])), NEVER)
    begun = work.having(ended_ns=ended_ns).take(work["kind"] == Kind.DELIVERED)
    effects = batch.of(Kind.EFFECT).sorted_by("slice", "offset", "time_ns")
    effects = effects.take(next_in(joined(effects["slice"], effects["offset"])) < 0)
    row = exactly(effects["slice"], effects["offset"], begun["slice"], begun["offset"])
    effect_ns = picked(effects["time_ns"], row, NONE)
    effect_ns = np.where(effect_ns >= begun["time_ns"], effect_ns, NEVER)
    return begun.having(ended_ns=np.where(begun["ended_ns"] == NEVER, effect_ns, begun["ended_ns"]))


def _batches(batch: Batch, work: Table) -> Ints:
    """Returns the number of the batch that each delivery belongs to; rows of `member_lines`, in their order.

    A handler that takes a record is alone. One that takes batches (declared) is handed all that is delivered in one
    ownership epoch before the first completion.
    """
    if batch.trial_context.settings.handler != "batch":
        return np.arange(len(work))
    before = previous_in(joined(work["file"], work["ownership_epoch"] + 1))
    goes_on = (before >= 0) & (picked(work["kind"], before, 0) == Kind.DELIVERED) & (work["kind"] == Kind.DELIVERED)
    return np.cumsum(~goes_on)


@index
def completions(batch: Batch) -> Table:
    """Returns the `processed` rows of `member_lines` with `key`, and `begun_in`: the ownership epoch they belong to.

    That is the ownership epoch of the delivery they finish, for a handler may end after its partition was revoked, or
    came back; else their own.
    """
    done = member_lines(batch).take(member_lines(batch)["kind"] == Kind.PROCESSED)
    by_end = finished_handlers(batch).sorted_by("slice", "source", "end_seq")
    handler = exactly(
        joined_with(by_end["slice"], by_end["source"], len(batch.trial_context.sources)),
        by_end["end_seq"],
        joined_with(done["slice"], done["source"], len(batch.trial_context.sources)),
        done["seq"],
    )
    begun_in = picked(by_end["ownership_epoch"], handler, -1)
    return done.having(key=keys_of(batch, done), begun_in=np.where(begun_in >= 0, begun_in, done["ownership_epoch"]))


def unbegun_ends(own: Table) -> Bools:
    """Returns which lines (file, offset, kind) tell of an end of a record, and no delivery was open that it ended."""
    work = np.flatnonzero(np.isin(own["kind"], (Kind.DELIVERED, *ENDS)))
    work = work[ordered(own["file"][work], own["offset"][work])]
    kind, before = own["kind"][work], previous_in(joined(own["file"][work], own["offset"][work]))
    unbegun = np.zeros(len(own), np.bool_)
    unbegun[work] = (kind != Kind.DELIVERED) & (picked(kind, before, 0) != Kind.DELIVERED)
    return unbegun


def joined_with(slices: Ints, numbers: Ints, size: int) -> Ints:
    """Returns (slice, number) as one integer, for numbers below `size`."""
    return slices * (size + 1) + numbers


def keys_of(batch: Batch, rows: Table) -> Ints:
    """Returns the key of each row's record by the control read; -1 where it has none or was not read."""
    records = batch.records
    found = exactly(records["slice"], records["offset"], rows["slice"], rows["offset"])
    return picked(records["key"], found, -1)


@index
def first_handlings(batch: Batch) -> Table:
    """Returns slice, offset, time_ns, source, seq, said_ns of the first handling of each offset: by a completion or an
    effect.

    A completion that a witness refutes is none. A bad line that names the record may have been one: where no sink knows
    better it counts, and keeps the verdict from being a pass. Where a sink is declared, only what it heard of is done;
    a completion counts if its outcome leaves no effect. Where the effects are states of a table, a later one of its key
    is enough. `said_ns`: the earliest time at which any of its handlings can have been written down.
    """
    settings = batch.trial_context.settings
    done = stacked(_completed(batch), _effects(batch), _unreadable(batch))
    done = done.take(~is_refuted(batch, done))
    if settings.effects == "state":
        done = stacked(done, by_later_states(batch, done.take(done["kind"] == Kind.EFFECT)))
    done = done.take(ordered(done["slice"], done["offset"], done["time_ns"]))
    first = first_of(done["slice"], done["offset"])
    said_ns = np.where(
        done["stamped"] == 1,
        clocks.earliest_append_ns(batch.trial_context, done["source"], done["time_ns"]),
        batch.written_ns(done["source"], done["time_ns"]),
    )
    earliest_ns = np.minimum.reduceat(said_ns, first) if len(first) else said_ns
    return done.take(first).only("slice", "offset", "time_ns", "source", "seq").having(said_ns=earliest_ns)


def _completed(batch: Batch) -> Table:
    """Returns the completions that count by themselves."""
    done = batch.of(Kind.PROCESSED)
    return _as_completions(done.take(_counts_by_itself(batch, done["outcome"])))


def _counts_by_itself(batch: Batch, outcomes: Ints) -> Bools:
    """Returns which outcomes of completions need no effect: some do not have any, and without a sink none do."""
    settings = batch.trial_context.settings
    without_effect = [OUTCOMES[outcome] for outcome in settings.no_effect if outcome in OUTCOMES]
    needless: Bools = np.isin(outcomes, without_effect) | (not settings.has_sink)
    return needless


def _effects(batch: Batch) -> Table:
    """Returns the effects, with `stamped`."""
    effects = batch.of(Kind.EFFECT)
    return _as_completions(effects).having(stamped=stamped(batch, effects).astype(np.int64))


def effects_of_deleted(batch: Batch) -> Table:
    """Returns slice, time_ns, … of the acknowledged effects of records that lay below the log start when the log was
    read: they can no longer be judged, and were work all the same."""
    told = batch.of(Kind.ARRIVED)
    starts = batch.of(Kind.LOG_START)
    start = per_group(starts["slice"], starts["position"], batch.size, how="max", start=NONE)[told["slice"]]
    return told.take((told["known"] & Known.READ == 0) & (told["offset"] != NONE) & (told["offset"] < start))


def stamped(batch: Batch, effects: Table) -> Bools:
    """Returns whether the time of each effect is the broker's own, and it had taken place then."""
    in_time = bool(batch.trial_context.clocks) and batch.trial_context.settings.progress != "transaction"
    own: Bools = (effects["append_wall_ns"] != NONE) & in_time
    return own


def _unreadable(batch: Batch) -> Table:
    """Returns the bad lines that may have been completions; none where a sink knows better."""
    lines = batch.of(Kind.UNREADABLE)
    return _as_completions(lines.take(np.full(len(lines), not batch.trial_context.settings.has_sink)))


def _as_completions(rows: Table) -> Table:
    return rows.only(*_COMPLETION_COLUMNS).having(stamped=np.zeros(len(rows), np.int64))


_COMPLETION_COLUMNS = ("kind", "slice", "offset", "time_ns", "source", "seq")


@index
def first_done(batch: Batch) -> Table:
    """Returns `first_handlings`, those included that are none: of a record that the group handed on first, into a topic
    where it waits to be handled; and of a copy there whose record a line completes where it came from.

    `said_ns` is when that topic did not hold it yet, as far as anybody had asked; `handed_on_by_ns` by when it did for
    certain, where both are known; else NONE.
    """
    handed_on, first = batch.of(Kind.HANDED_ON), first_handlings(batch)
    by_line = handed_on["outcome"] > 0
    handed_on = handed_on.take(~by_line | _counts_by_itself(batch, handed_on["outcome"] - 1))
    by_line, absent_ns = handed_on["outcome"] > 0, handed_on["absent_ns"]
    handed_on = handed_on.only("slice", "offset", "time_ns", "source", "seq").having(
        said_ns=np.where(by_line, batch.written_ns(handed_on["source"], handed_on["time_ns"]), absent_ns),
        handed_on_by_ns=np.where(absent_ns == NONE, NONE, handed_on["time_ns"]),
    )
    done = stacked(first.having(handed_on_by_ns=np.full(len(first), NONE)), handed_on)
    done = done.take(ordered(done["slice"], done["offset"], done["time_ns"]))
    at = first_of(done["slice"], done["offset"])
    said_ns = np.minimum.reduceat(done["said_ns"], at) if len(at) else done["said_ns"]
    return done.take(at).having(said_ns=said_ns)


@index
def first_handled_of_records(batch: Batch) -> SimpleNamespace:
    """Returns, for each of `batch.records`, `time_ns` and `said_ns` of when it was handled first, or handed on (NEVER
    if neither), and `row` of `first_done`."""
    done = first_done(batch)
    row = exactly(done["slice"], done["offset"], batch.records["slice"], batch.records["offset"])
    time_ns, said_ns = (picked(done[name], row, NEVER) for name in ("time_ns", "said_ns"))
    return SimpleNamespace(row=row, time_ns=time_ns, said_ns=said_ns)


def by_later_states(batch: Batch, effects: Table) -> Table:
    """Returns for each keyed record the first effect of a later record of its key, in the columns of `effects`.

    Keys are those of the control read; later is in the log of the partition, and first by time.
    """
    records = batch.records
    found = exactly(records["slice"], records["offset"], effects["slice"], effects["offset"])
    states = effects.having(key=picked(records["key"], found, -1))
    blank = {
        name: np.full(len(records), NEVER if name == "time_ns" else NONE) for name in ("kind", "time_ns", "stamped")
    }
    both = stacked(records.only("slice", "offset", "key", "source", "seq").having(**blank), states)
    both = both.take(both["key"] >= 0)
    effect = both["time_ns"] != NEVER
    # Of one offset the effects stand before its record: they are its own, and no later ones.
    both = both.take(ordered(both["slice"], both["key"], both["offset"], ~effect))
    effect = both["time_ns"] != NEVER
    first = min_after(joined(both["slice"], both["key"]), both["time_ns"])
    later = ~effect & (picked(both["time_ns"], first, NEVER) != NEVER)
    states = both.take(first[later]).having(offset=both["offset"][later])
    return states.only(*effects.columns)

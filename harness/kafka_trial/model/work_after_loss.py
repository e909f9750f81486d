"""How `WorkAfterCallback` and `UninformedWork` are made; what their columns mean stands in `partition.py`.

A `revoked` line may come long after its callback. A client tells its group that it gave a partition back only once the
callback has returned: by a heartbeat that lists less (KIP-848), or by joining again (classic, incremental). Work after
that, and before the line, was done after the callback or by another thread beside it: the place of the line does not
say which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.batch import index
from kafka_trial.model.client_attribution import alone, unattributed
from kafka_trial.model.clients import incarnation_of
from kafka_trial.model.fencing import fetched_since_reassigned, revoke_confirmed_ns, surely_read_ns
from kafka_trial.model.handlers import completions, finished_handlers, joined_with
from kafka_trial.model.instants import at_earliest
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    at_or_before,
    between,
    exactly,
    in_ranges,
    picked,
)
from kafka_trial.model.ownership_epochs import SAID, epoch_owners, member_lines, ownership_epochs
from kafka_trial.model.ownership_log import logged_assignments, others_hold
from kafka_trial.model.partition import UninformedWork, WorkAfterCallback
from kafka_trial.model.rightless_effects import effects_after_revoke
from kafka_trial.model.rows import CALLBACKS, Kind, Outcome
from kafka_trial.model.table import FILE, Table, is_among, last_until, stacked
from kafka_trial.model.undecided import Undecided, is_certain, undecided_because
from kafka_trial.model.work_after_failed_commit import first_start_after_rejected_commit
from kafka_trial.model.zombie_excuses import fetched_though_told
from kafka_trial.model.zombies import zombie_windows

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch
    from kafka_trial.model.table import Table

_TOLD = ("slice", "callback_source", "offset")  # by which an effect is one that lines tell of


@index
def work_after_callback(batch: Batch) -> WorkAfterCallback:
    """Returns the work of a member after its own revoked or lost callback had returned."""
    own = member_lines(batch)
    late = own.take(own["revoked"] & _works(own))
    late = late.take(~_in_hand_when_lost(batch, late) & ~_has_it_again(batch, late))
    told = late.only("slice", "offset", "source", "seq").having(
        what=_what(late),
        callback_source=late["source"],
        callback_seq=picked(own["seq"], _callback_before(batch, late), -1),
        why=undecided_because((Undecided.UNATTRIBUTED, unattributed(batch, late))),
    )
    told = stacked(told, _ended_after_others_had_it(batch))
    known = told.take(is_certain(told["why"]))
    certain, held_back = effects_after_revoke(batch)
    certain, held_back = _seen(certain, why=None), _seen(held_back, why=Undecided.EFFECT_HELD_BACK)
    certain = certain.take(~is_among(certain, known, *_TOLD))
    held_back = held_back.take(~is_among(held_back, stacked(known, certain), *_TOLD))
    return WorkAfterCallback(stacked(told, certain, held_back, _before_a_late_line(batch)).columns)


@index
def uninformed_work(batch: Batch) -> UninformedWork:
    """Returns the work of members that had lost the partition to others, and did not know it."""
    work = member_lines(batch).take(_works(member_lines(batch)))
    windows = zombie_windows(batch)
    loss_ns = picked(windows["loss_ns"], work["ownership_epoch"], NEVER)
    said_ns = batch.written_ns(work["source"], work["time_ns"])
    inside = (loss_ns != NEVER) & (said_ns > loss_ns)
    knowing = fetched_though_told(batch, work["ownership_epoch"], work["offset"], work["time_ns"])
    refused_seq, _ = first_start_after_rejected_commit(batch, work["ownership_epoch"], work["offset"])
    work = work.take(inside & ~knowing & (work["seq"] < refused_seq))
    given, loss = logged_assignments(batch), picked(windows["loss"], work["ownership_epoch"], -1)
    return UninformedWork(work.columns).having(
        what=_what(work),
        given_source=picked(given["source"], loss, -1),
        given_seq=picked(given["seq"], loss, -1),
    )


def _ended_after_others_had_it(batch: Batch) -> Table:
    """Returns the ends of handlers that began in an ownership epoch which `revoked` closed, and ended in a later one of
    the same file, when the group had given the partition to others meanwhile, by the offsets log.

    Where it was given back at once, the work stayed with whom it was given to. What was discarded was not worked on. A
    line that nobody could read may have told that the record was delivered again.
    """
    done, held = completions(batch), ownership_epochs(batch)
    begun_in, ended_in = done["begun_in"], done["ownership_epoch"]
    late = (begun_in >= 0) & (ended_in > begun_in) & (picked(held["closed_by"], begun_in, 0) == Kind.REVOKED)
    late &= ~np.isin(done["source"], [one.source for one in batch.trial_context.lost_events])
    late &= ~is_among(done, batch.of(Kind.PROCESSED).take(_discarded(batch)), *FILE, "seq")
    done = done.take(late)
    done = done.take(_given_to_others(batch, done["slice"], done["begun_in"], done["ownership_epoch"]))
    return done.only("slice", "offset", "source", "seq").having(
        what=_what(done),
        callback_source=done["source"],
        callback_seq=picked(held["close_seq"], done["begun_in"], -1),
        why=undecided_because((Undecided.UNATTRIBUTED, unattributed(batch, done))),
    )


def _discarded(batch: Batch) -> Bools:
    discarded: Bools = batch.of(Kind.PROCESSED)["outcome"] == Outcome.DISCARDED
    return discarded


def _given_to_others(batch: Batch, slices: Ints, since: Ints, until: Ints) -> Bools:
    """Returns whether the offsets log gave each partition to another member, which was seen on a lane, after one
    ownership epoch of its member had begun and before another one had."""
    rows, held, owner = logged_assignments(batch), ownership_epochs(batch), epoch_owners(batch)
    rows = rows.take(rows["client"] >= 0).sorted_by("slice", "time_ns")
    opened_ns = picked(held["open_ns"], since, NEVER)
    until_ns = batch.written_ns(picked(held["source"], until, -1), picked(held["open_ns"], until, NONE))
    which, row = in_ranges(*between(rows["slice"], rows["time_ns"], slices, opened_ns + 1, until_ns))
    mine = picked(owner, since, -1)[which]
    others = (mine >= 0) & (rows["client"][row] != mine)
    return np.isin(np.arange(len(slices)), which[others])


def _before_a_late_line(batch: Batch) -> Table:
    """Returns the work that came after a callback of which the member told only later."""
    own = member_lines(batch)
    work = own.take(~own["revoked"] & _works(own))
    work = work.take(before_late_revoked_line(batch, work))
    return work.only("slice", "offset", "source", "seq").having(
        what=_what(work),
        callback_source=np.full(len(work), -1),
        callback_seq=np.full(len(work), -1),
        why=np.full(len(work), Undecided.REVOKED_LATE, dtype=object),
    )


def _seen(effects: Table, *, why: str | None) -> Table:
    return effects.only("slice", "offset", "source", "seq").having(
        what=np.full(len(effects), "effected", dtype=object),
        callback_source=effects["file"],
        callback_seq=effects["callback"],
        why=np.full(len(effects), why, dtype=object),
    )


def _works(own: Table) -> Bools:
    """Returns which rows are lines that tell of work."""
    works: Bools = np.isin(own["kind"], (Kind.DELIVERED, Kind.PROCESSED)) & (own["told_by"] == SAID)
    return works


def _what(work: Table) -> Array:
    names = np.array(["delivered", "processed"], dtype=object)
    told: Array = names[(work["kind"] == Kind.PROCESSED).astype(np.int64)]
    return told


def _in_hand_when_lost(batch: Batch, late: Table) -> Bools:
    """Returns whether each row ends a handler that had begun before the partition was lost (not revoked)."""
    callback, sources = _callback_before(batch, late), len(batch.trial_context.sources)
    ends = finished_handlers(batch).sorted_by("slice", "source", "end_seq")
    handler = exactly(
        joined_with(ends["slice"], ends["source"], sources),
        ends["end_seq"],
        joined_with(late["slice"], late["source"], sources),
        late["seq"],
    )
    begun = (handler >= 0) & (
        picked(ends["start_seq"], handler, NEVER) < picked(member_lines(batch)["seq"], callback, NONE)
    )
    in_hand: Bools = begun & (picked(member_lines(batch)["kind"], callback, 0) == Kind.LOST)
    return in_hand


def _has_it_again(batch: Batch, late: Table) -> Bools:
    """Returns which rows are work on what was fetched after the partition had been given back to the member, which
    still has it: the line of its `assigned` callback is still to be read."""
    since_ns = picked(member_lines(batch)["time_ns"], _callback_before(batch, late), NEVER)
    member = picked(batch.incarnations["member"], incarnation_of(batch, late["source"]), -1)
    again = fetched_since_reassigned(batch, late.having(member=member), since_ns)
    now, before = (
        others_hold(batch, late["slice"], member, at_ns) for at_ns in (late["time_ns"], at_earliest(late["time_ns"]))
    )
    return again & ~(now & before)


def _callback_before(batch: Batch, late: Table) -> Ints:
    """Returns the row of `member_lines` with the revoked or lost callback before each row, in the same file."""
    own = member_lines(batch)
    callbacks = np.flatnonzero(np.isin(own["kind"], (Kind.REVOKED, Kind.LOST)))
    row = at_or_before(own["file"][callbacks], own["seq"][callbacks], late["file"], late["seq"])
    return picked(callbacks, row, -1)


def before_late_revoked_line(batch: Batch, work: Table) -> Bools:
    """Returns which lines of work came after the callback that gave the partition back had returned, while the newest
    callback that its member tells of is the one that took it."""
    own = member_lines(batch)
    callbacks = own.take(np.isin(own["kind"], CALLBACKS) & (own["told_by"] == SAID))
    last = last_until(callbacks, work, "file", by="seq", until=work["seq"])
    member = picked(batch.incarnations["member"], incarnation_of(batch, work["source"]), -1)
    given_back = revoke_confirmed_ns(batch, work["slice"], member, work["time_ns"])
    untold: Bools = picked(callbacks["kind"], last, 0) == Kind.ASSIGNED
    untold &= (picked(callbacks["time_ns"], last, NONE) < given_back) & alone(batch, work)
    untold &= ~batch.untimed(work["source"])
    said_ns = batch.written_ns(work["source"][untold], work["time_ns"][untold])
    untold[untold] = said_ns > surely_read_ns(batch, given_back[untold], stalls=True)
    return untold

"""Zombie excuses: what a member may still do with a partition that it lost without being told.

By its lines: which handlings of a record lie in the zombie window of their ownership epoch (`zombies.py`). What it
holds at the end of the window the member may finish, and else whatever it had fetched by then; a record fetched later
is never excused, nor is one that it began after it had said itself, or was told, where at most once is claimed, that
the commit which covers it was refused (`work_after_failed_commit.py`). No plain consumer can prevent the rest: inside
the window overlap and reordering are excused.

By its effects: of a member that prints when its handlers end, the window is that of its lines; the record that it had
in hand when its `lost` callback came it may finish until it crashes over it. Of one that prints nothing, nobody sees
what it has in hand: whatever it had fetched before it was told, by an answer or by the end of its ownership epoch, it
may finish at any time after. An effect at the HTTP sink names its member; of one in an output topic any member that can
have had the record may be meant, unless lines tell of the record in somebody's hand: then it is theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from kafka_trial.model.batch import Batch
from kafka_trial.model.client_attribution import alone
from kafka_trial.model.clients import incarnation_of, members_of
from kafka_trial.model.handlers import ENDS, joined_with
from kafka_trial.model.instants import at_earliest, at_latest
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    at_or_after,
    at_or_before,
    between,
    counts,
    exactly,
    in_ranges,
    joined,
    next_in,
    ordered,
    per_group,
    picked,
    previous_in,
)
from kafka_trial.model.ownership_epochs import member_lines, ownership_epochs
from kafka_trial.model.request_logs import complete_until_ns
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table, table
from kafka_trial.model.work_after_failed_commit import first_start_after_rejected_commit
from kafka_trial.model.zombies import zombie_windows

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch


def excused(batch: Batch, epochs: Array, offsets: Array, time_ns: Array) -> Bools:
    """Returns whether each handling of a record lies in the zombie window of its ownership epoch (-1: of none)."""
    windows = zombie_windows(batch)
    loss_ns, until_ns = (
        picked(windows[name], epochs, start) for name, start in (("loss_ns", NEVER), ("until_ns", NONE))
    )
    inside: Bools = (loss_ns != NEVER) & (time_ns >= at_earliest(loss_ns)) & (time_ns <= until_ns)
    _, refused_ns = first_start_after_rejected_commit(batch, epochs, offsets)
    knowing = fetched_though_told(batch, epochs, offsets, time_ns) | (time_ns >= refused_ns)
    return inside & ~knowing


def fetched_though_told(batch: Batch, epochs: Array, offsets: Array, time_ns: Array) -> Bools:
    """Returns whether each record was fetched after its ownership epoch's member had been told that it was lost.

    Lines out of a buffer say nothing of when a record was handled, but its fetch has a time.
    """
    windows = zombie_windows(batch)
    fetched, told_ns = (picked(windows[name], epochs, NEVER) for name in ("fetched", "told_ns"))
    vague = picked(batch.untimed(ownership_epochs(batch)["source"]).astype(np.int64), epochs, 0) == 1
    later: Bools = (offsets >= fetched) & ((time_ns > told_ns) | vague)
    return later


def undecided_moments(batch: Batch, epochs: Array, time_ns: Array) -> Bools:
    """Returns whether each moment is one at which nobody can tell what the member knew and had fetched.

    It was told, or said itself that a commit of its had failed, and the request log holds no fetches of it.
    """
    windows = zombie_windows(batch)
    received_ns = np.minimum(windows["told_ns"], _said_to_fail_ns(batch, windows["loss_ns"]))
    unknown = ~windows["fetches_known"] & (received_ns < ownership_epochs(batch)["close_ns"])
    after_ns = picked(np.where(unknown, received_ns, NEVER), epochs, NEVER)
    undecided: Bools = batch.earliest(time_ns) > at_latest(after_ns)
    return undecided


def _said_to_fail_ns(batch: Batch, after_ns: Ints) -> Ints:
    """Returns the time of the first line after each moment in which the ownership epoch's member, while it held it,
    said that a commit had failed: of the partition, or of nothing in particular; NEVER where there is none."""
    held = ownership_epochs(batch)
    own = member_lines(batch).take(member_lines(batch)["kind"] == Kind.COMMIT_FAIL)
    of_file = np.array(batch.trial_context.refusals, np.int64).reshape(-1, 3)
    after = np.minimum(after_ns, NEVER - 1) + 1
    by_slice = own.only("slice", "source", "client", "seq", "time_ns")
    by_slice = by_slice.sorted_by("slice", "source", "client", "time_ns")
    group, wanted = _files(by_slice, held)
    first = at_or_after(group, by_slice["time_ns"], wanted, after)
    seq, time = picked(by_slice["seq"], first, NEVER), picked(by_slice["time_ns"], first, NEVER)
    unlisted = of_file[np.lexsort((of_file[:, 2], of_file[:, 0]))]
    general = at_or_after(unlisted[:, 0], unlisted[:, 2], held["source"], after)
    general = np.where(alone(batch, held), general, -1)  # of several clients nobody knows whose it was
    general_seq, general_ns = picked(unlisted[:, 1], general, NEVER), picked(unlisted[:, 2], general, NEVER)
    earlier = general_seq < seq
    seq, time = np.where(earlier, general_seq, seq), np.where(earlier, general_ns, time)
    inside = seq < held["close_seq"]
    return np.where(inside, time, NEVER)


def _files(rows: Table, held: Table) -> tuple[Ints, Ints]:
    both = joined(*(np.concatenate([rows[name], held[name]]) for name in ("slice", "source", "client")))
    return both[: len(rows)], both[len(rows) :]


SIDES: Final = ("left", "right")


def in_untold_loss(batch: Batch, effects: Table) -> Bools:
    """Returns which effects (slice, offset, time_ns, member) lie in the window of an untold loss of their member."""
    lost = np.flatnonzero(zombie_windows(batch)["loss"] >= 0)  # ownership epochs are sorted by slice
    begin, end = (np.searchsorted(ownership_epochs(batch)["slice"][lost], effects["slice"], side) for side in SIDES)
    which, row = in_ranges(begin, end)
    pairs = effects.take(which).having(ownership_epoch=lost[row], effect=which)
    maker = ownership_epochs(batch)["member"][pairs["ownership_epoch"]]
    pairs = pairs.take((pairs["member"] < 0) | (pairs["member"] == maker))
    prints = _prints(batch)[pairs["ownership_epoch"]]
    told, own = _told_of(batch, pairs)
    excuse = np.where(prints, _by_lines(batch, pairs, own), _by_fetches(batch, pairs) & (own | ~told))
    late = np.zeros(len(effects), np.bool_)
    late[pairs["effect"][excuse]] = True
    return late


def _prints(batch: Batch) -> Bools:
    """Returns of which ownership epochs the member prints when its handlers end."""
    prints: Bools = (
        picked(batch.incarnations["completes"].astype(np.int64), ownership_epochs(batch)["incarnation"], 0) == 1
    )
    return prints


def _by_lines(batch: Batch, pairs: Table, own: Bools) -> Bools:
    """Returns which effects lie in the window of their ownership epoch's lines, which may be read a little late.

    Of an effect that names no member the ownership epoch must have had the record in hand, nearest of all to it
    (`own`), unless its process, which can have had it, was killed in mid-sentence.
    """
    ownership_epoch, offset, time_ns = (pairs[name] for name in ("ownership_epoch", "offset", "time_ns"))
    inside = excused(batch, ownership_epoch, offset, time_ns) | excused(
        batch, ownership_epoch, offset, at_earliest(time_ns)
    )
    killed = (
        picked(
            batch.incarnations["killed"].astype(np.int64), ownership_epochs(batch)["incarnation"][ownership_epoch], 0
        )
        == 1
    )
    told_ns = np.minimum(zombie_windows(batch)["told_ns"], ownership_epochs(batch)["close_ns"])
    left = _finished_before_crash(batch, pairs)
    killed &= _can_have_come(batch, pairs, told_ns)
    return left | (inside & ((pairs["member"] >= 0) | killed | own))


def _finished_before_crash(batch: Batch, pairs: Table) -> Bools:
    """Returns which effects are of the record that a member had in hand when its `lost` callback came, and which it did
    before its process went down over it: the last line of its work on the partition is that record's delivery."""
    held, incarnations, ownership_epoch = ownership_epochs(batch), batch.incarnations, pairs["ownership_epoch"]
    work = member_lines(batch).take(np.isin(member_lines(batch)["kind"], (Kind.DELIVERED, *ENDS)))
    files = joined_with(work["slice"], work["source"], len(batch.trial_context.sources))
    work = work.having(at=files).sorted_by("at", "seq")
    last = work.take(next_in(work["at"]) < 0)
    file = joined_with(pairs["slice"], held["source"][ownership_epoch], len(batch.trial_context.sources))
    row = exactly(np.zeros(len(last), np.int64), last["at"], np.zeros(len(pairs), np.int64), file)
    begun = (picked(last["kind"], row, 0) == Kind.DELIVERED) & (
        picked(last["ownership_epoch"], row, -1) == ownership_epoch
    )
    begun &= picked(last["offset"], row, NONE) == pairs["offset"]
    down = picked(incarnations["crashed"].astype(np.int64), held["incarnation"][ownership_epoch], 0) == 1
    gone_ns = picked(incarnations["exited_ns"], held["incarnation"][ownership_epoch], NONE)
    time_ns, windows = pairs["time_ns"], zombie_windows(batch)
    while_it_lived = (time_ns >= at_earliest(windows["loss_ns"][ownership_epoch])) & (time_ns <= at_latest(gone_ns))
    knowing = fetched_though_told(batch, ownership_epoch, pairs["offset"], time_ns)
    knowing |= time_ns >= windows["refused_ns"][ownership_epoch]
    left: Bools = begun & down & while_it_lived & ~knowing & (held["closed_by"][ownership_epoch] == Kind.LOST)
    return left


def _told_of(batch: Batch, pairs: Table) -> tuple[Bools, Bools]:
    """Returns whether lines tell of a handling of each effect's record by a member that may be meant, and whether the
    nearest to it is one of the ownership epoch: what another member had in hand at the time is none of it."""
    told = _handlings(batch)
    which, row = in_ranges(
        *between(told["slice"], told["offset"], pairs["slice"], pairs["offset"], pairs["offset"] + 1)
    )
    meant = (pairs["member"][which] < 0) | (told["member"][row] == pairs["member"][which])
    which, row = which[meant], row[meant]
    time_ns = pairs["time_ns"][which]
    apart_ns = np.maximum(0, np.maximum(told["start_ns"][row] - time_ns, time_ns - told["end_ns"][row]))
    nearest = apart_ns == per_group(which, apart_ns, len(pairs), how="min", start=NEVER)[which]
    own = told["ownership_epoch"][row] == pairs["ownership_epoch"][which]
    return counts(which, len(pairs)) > 0, counts(which[nearest & own], len(pairs)) > 0


def _handlings(batch: Batch) -> Table:
    """Returns slice, offset, member, ownership_epoch, start_ns and end_ns (NEVER: it has none) of every time that lines
    tell of a record in hand, sorted by the first two."""
    work = member_lines(batch).take(np.isin(member_lines(batch)["kind"], (Kind.DELIVERED, *ENDS)))
    work = work.take(ordered(work["file"], work["offset"]))
    delivered, before = work["kind"] == Kind.DELIVERED, previous_in(joined(work["file"], work["offset"]))
    following = next_in(joined(work["file"], work["offset"]))
    ended = np.isin(picked(work["kind"], following, 0), ENDS)
    end_ns = np.where(ended, picked(work["time_ns"], following, NEVER), NEVER)
    alone = (work["kind"] == Kind.PROCESSED) & (picked(work["kind"], before, 0) != Kind.DELIVERED)
    found = table(
        slice=work["slice"],
        offset=work["offset"],
        member=picked(batch.incarnations["member"], incarnation_of(batch, work["source"]), -1),
        ownership_epoch=work["ownership_epoch"],
        start_ns=work["time_ns"],
        end_ns=np.where(delivered, end_ns, work["time_ns"]),
    )
    return found.take(delivered | alone).sorted_by("slice", "offset")


def _by_fetches(batch: Batch, pairs: Table) -> Bools:
    """Returns which effects are of records that the member had fetched before it was told of its loss."""
    windows, held, ownership_epoch = zombie_windows(batch), ownership_epochs(batch), pairs["ownership_epoch"]
    told_ns = np.minimum(windows["told_ns"], held["close_ns"])
    knew = pairs["time_ns"] > told_ns[ownership_epoch]
    fetched_later = knew & (pairs["offset"] >= windows["fetched"][ownership_epoch])
    after_loss = pairs["time_ns"] >= at_earliest(windows["loss_ns"][ownership_epoch])
    before = pairs["offset"] < held["begun_at"][ownership_epoch]
    excuse: Bools = after_loss & ~fetched_later & ~before & _can_have_come(batch, pairs, told_ns)
    return excuse


def _can_have_come(batch: Batch, pairs: Table, told_ns: Ints) -> Bools:
    """Returns whether each record lay in the log when the member's last fetch before it was told was answered.

    Only where the request log tells of all of them; else every record can have come.
    """
    records = batch.records
    record = exactly(records["slice"], records["offset"], pairs["slice"], pairs["offset"])
    until_ns = at_latest(told_ns)
    answered_ns = at_latest(_answered_last(batch, until_ns))
    evidence_complete = zombie_windows(batch)["fetches_known"] & (until_ns <= complete_until_ns(batch.trial_context))
    latest_ns = np.where(evidence_complete, answered_ns, NEVER)[pairs["ownership_epoch"]]
    came: Bools = picked(records["appended_ns"], record, NONE) <= latest_ns
    return came


def _answered_last(batch: Batch, until_ns: Ints) -> Ints:
    """Returns when the last fetch of each ownership epoch's member, up to some time, was answered; NONE: none was."""
    asked, held, size = batch.of(Kind.FETCH_ASKED), ownership_epochs(batch), len(batch.trial_context.members) + 1
    answered_ns = batch.monotonic(asked["answered_wall_ns"], asked["time_ns"])
    asker = joined_with(asked["slice"], members_of(batch, asked["lane"], otherwise=-1) + 1, size)
    order = np.lexsort((answered_ns, asker))
    asker, answered_ns = asker[order], answered_ns[order]
    last = at_or_before(asker, answered_ns, joined_with(held["slice"], held["member"] + 1, size), until_ns)
    return picked(answered_ns, last, NONE)

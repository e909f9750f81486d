"""Ownership: did one member at a time own a partition, did it work only while it did, and on what it was given?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.claim_rule import Rule, always, fencing_claimed
from kafka_trial.invariants.client_attribution import unattributed
from kafka_trial.invariants.clients import incarnation_of
from kafka_trial.invariants.false_assignments import false_assigned
from kafka_trial.invariants.handler_retries import handler_starts
from kafka_trial.invariants.handlers import finished_handlers, joined_with
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    at_or_before,
    exactly,
    joined,
    max_before,
    picked,
)
from kafka_trial.invariants.ownership_epochs import SAID, member_lines, owned_by_other_member
from kafka_trial.invariants.ownership_log import logged_assignments, owned_by
from kafka_trial.invariants.rightless_effects import effects_after_revoke, effects_without_right
from kafka_trial.invariants.rightless_work import work_without_right
from kafka_trial.invariants.rows import CALLBACKS, Kind, Protocol
from kafka_trial.invariants.table import Table, is_among, stacked, table
from kafka_trial.invariants.trial_context import TOLERANCE_NS
from kafka_trial.invariants.undecided import Undecided
from kafka_trial.invariants.work_after_failed_commit import first_start_after_rejected_commit, rejected_commit_evidence
from kafka_trial.invariants.zombie_excuses import fetched_though_told, undecided_moments
from kafka_trial.invariants.zombies import zombie_windows

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


@invariant(
    "split-ownership",
    family="ownership",
    needs=("offsets log",),
    level="none",
    severity=220,
    rule=Rule(always),
    message="{place} was owned by two members at once: {split_by}",
)
def split_ownership(batch: Batch) -> Findings:
    """Two members owned a partition at once, by the offsets log or because one worked on after it was told of its loss.

    "Each partition is assigned to exactly one consumer in the group" (KafkaConsumer, Consumer Groups). A member that
    lost the partition without being told is excused (`zombie-work`). So are the records that it had fetched before it
    learned of the loss: by a fencing error, or an assignment without the partition, that it received from a broker; or
    by its own clock, if it asks nothing of its group for two sessions and goes on fetching. A record that it fetched
    later and was delivered is a split. So is a record that it begins after it reported that the commit covering it was
    refused in this way (if it claims at most once: after it was told so). Nothing excuses deliveries to a member that
    reports an assignment which nobody gave it, or that fetches and handles records of a partition without ever having
    been given it. Never legal. Undecided if the request log does not hold the member's fetches.

    Smallest history: member_assignment of m0 and then of m1 that list the same partition.

    Usual cause: Two members worked on one partition, and one of them had been told that it was no longer its own.

    Remedy: Stop work on a partition when the group says so: act on refused heartbeats and commits, do not swallow them.
    """
    rightless, unseen = work_without_right(batch)
    both = stacked(
        _split_by_log(batch),
        _split_though_told(batch),
        _split_though_not_given(batch),
        _split_without_right(batch, rightless),
        _split_without_right(batch, _untold(batch, effects_without_right(batch))),
    )
    rows = both.only("slice", "order", "log_offset", "offset", "by")
    beside = _beside_owners(batch)
    unsure = undecided_moments(batch, beside["ownership_epoch"], beside["time_ns"]) & (beside["refusal_source"] < 0)
    proofs = [(both["source_a"], both["seq_a"]), (both["source_b"], both["seq_b"])]
    unseen = unseen.having(source_b=unseen["source"], seq_b=unseen["seq"])
    unseen = unseen.take(~is_among(unseen, both, "slice", "source_b", "seq_b"))  # else it is told already
    unknown = np.concatenate([beside["slice"][unsure], unseen["slice"]])
    return Findings(rows, proofs, [(Undecided.FETCHES_UNKNOWN, unknown)])


@invariant(
    "work-after-revoke",
    family="ownership",
    needs=("callbacks", "own word"),
    level="events",
    severity=240,
    rule=Rule(always),
    message="record {offset} of {place} was {what} after the partition had been revoked from its member",
)
def work_after_revoke(batch: Batch) -> Findings:
    """A member was delivered or completed a record of a partition after its own revoked or lost callback had returned.

    "Once the callback returns, the partition may be given to another consumer" (ConsumerRebalanceListener): the member
    must finish or give up the records in hand inside the revoked callback. A record whose first effect from the member
    its sink saw afterwards was worked on too late as well. Legal for the record in hand when the lost callback returns:
    the partition was lost before, and the handler may end. If the brokers know of nothing that can have cost the member
    its partition, a `lost` line counts as `revoked`. Undecided if the line may belong to another client of the same
    process.

    Smallest history: `assigned`, `delivered` 5, `revoked`, `processed` 5.

    Usual cause: Work on a partition went on after the callback that gave it back had returned.

    Remedy: In the callback finish or cancel what is in hand, then return; a queue between poll and work must be
    emptied.
    """
    own = member_lines(batch)
    late = own.take(own["revoked"] & _works(own))
    late = late.take(~_in_hand_when_lost(batch, late))
    unsure = unattributed(batch, late)
    undecided, late = [(Undecided.UNATTRIBUTED, late["slice"][unsure])], late.take(~unsure)
    callback = picked(member_lines(batch)["seq"], _callback_before(batch, late), -1)
    late = late.only("slice", "offset", "source", "seq").having(
        file=late["source"], callback=callback, what=_what(late)
    )
    effects, held_back = effects_after_revoke(batch)
    effects = effects.having(what=np.full(len(effects), "effected", dtype=object)).take(
        ~is_among(effects, late, *_TOLD)
    )
    late = stacked(late, effects.only(*late.columns))
    rows = table(slice=late["slice"], order=late["offset"], offset=late["offset"], what=late["what"])
    undecided.append((Undecided.EFFECT_HELD_BACK, held_back["slice"][~is_among(held_back, late, *_TOLD)]))
    return Findings(rows, [(late["file"], late["callback"]), (late["source"], late["seq"])], undecided)


@invariant(
    "zombie-work",
    family="ownership",
    needs=("own word", "ownership epochs", "offsets log"),
    level="events",
    severity=310,
    rule=Rule(fencing_claimed),
    message="record {offset} of {place} was {what} after the group had given the partition to another member",
)
def zombie_work(batch: Batch) -> Findings:
    """A member worked on a partition that others had been given, before it was told, or on records fetched before that.

    No plain consumer can prevent it: it was frozen or cut off, and finishes what it holds when it wakes, or a
    background thread receives the answer that tells it. Counted; legal unless the claim says that effects are fenced.

    Smallest history: m0 `assigned`, group record gives the partition to m1, `delivered` by m0 a second later.

    Usual cause: A member worked on after it had lost its partition without knowing: paused, cut off, or too slow.

    Remedy: No plain consumer can prevent it; where it must not happen, fence the effect (an epoch beside the result).
    """
    work = member_lines(batch).take(_works(member_lines(batch)))
    windows = zombie_windows(batch)
    loss_ns = picked(windows["loss_ns"], work["ownership_epoch"], NEVER)
    said_ns = batch.written_ns(work["source"], work["time_ns"])
    inside = (loss_ns != NEVER) & (said_ns > loss_ns)
    knowing = fetched_though_told(batch, work["ownership_epoch"], work["offset"], work["time_ns"])
    refused_seq, _ = first_start_after_rejected_commit(batch, work["ownership_epoch"], work["offset"])
    work = work.take(inside & ~knowing & (work["seq"] < refused_seq))
    loss = picked(windows["loss"], work["ownership_epoch"], -1)
    rows = table(slice=work["slice"], order=work["offset"], offset=work["offset"], what=_what(work))
    assignment_record = (
        picked(logged_assignments(batch)["source"], loss, -1),
        picked(logged_assignments(batch)["seq"], loss, -1),
    )
    return Findings(rows, [assignment_record, (work["source"], work["seq"])])


_TOLD = ("slice", "file", "offset")  # by which an effect is one that lines tell of


def _untold(batch: Batch, effects: Table) -> Table:
    """Returns the effects of records of which their member's lines tell nothing."""
    begun = handler_starts(batch)
    begun = begun.having(member=picked(batch.incarnations["member"], incarnation_of(batch, begun["source"]), -1))
    return effects.take(~is_among(effects, begun, "slice", "member", "offset"))


def _works(own: Table) -> Bools:
    """Returns which rows are lines that tell of work."""
    works: Bools = np.isin(own["kind"], (Kind.DELIVERED, Kind.PROCESSED)) & (own["told_by"] == SAID)
    return works


def _what(work: Table) -> Array:
    names = np.array(["delivered", "processed"], dtype=object)
    told: Array = names[(work["kind"] == Kind.PROCESSED).astype(np.int64)]
    return told


def _split_by_log(batch: Batch) -> Table:
    """Returns the places of the offsets log from which two member ids own a partition (assigned, not pending)."""
    assignment_records = logged_assignments(batch).take(
        logged_assignments(batch)["protocol"] != Protocol.CONSUMER_PENDING
    )
    longest = max_before(assignment_records["slice"], assignment_records["until_log_offset"])
    split = (longest >= 0) & (
        picked(assignment_records["until_log_offset"], longest, NONE) > assignment_records["log_offset"]
    )
    split &= picked(assignment_records["member_id"], longest, -1) != assignment_records["member_id"]
    later, earlier = assignment_records.take(split), assignment_records.take(longest[split])
    reached = np.minimum(later["until_log_offset"], earlier["until_log_offset"])
    so_far = max_before(later["slice"], reached)
    # A further record inside the same split is not a further split.
    fresh = (so_far < 0) | (picked(reached, so_far, NONE) < later["log_offset"])
    later, earlier = later.take(fresh), earlier.take(fresh)
    return _found(later, later["log_offset"], later["log_offset"], np.full(len(later), NONE), "log", earlier, later)


def _split_though_told(batch: Batch) -> Table:
    """Returns deliveries to members that had been told that others have the partition: of records that they fetched
    later, or that they began though they knew that the commit of them was refused."""
    work = _beside_owners(batch)
    windows, ownership_epoch = zombie_windows(batch), work["ownership_epoch"]
    told_ns = picked(windows["told_ns"], ownership_epoch, NEVER)
    now_ns = batch.written_ns(work["source"], work["time_ns"])
    fetched = ((now_ns > told_ns) | batch.vague(work["source"])) & fetched_though_told(
        batch, ownership_epoch, work["offset"], work["time_ns"]
    )
    begun = work["refusal_source"] >= 0
    answer = table(
        source=np.where(fetched, picked(windows["told_source"], ownership_epoch, -1), work["refusal_source"]),
        seq=np.where(fetched, picked(windows["told_seq"], ownership_epoch, -1), work["refusal_seq"]),
    )
    answer, work = (rows.take(fetched | begun) for rows in (answer, work))
    return _found(work, work["offset"], np.full(len(work), NONE), work["offset"], "told", answer, work)


def _split_though_not_given(batch: Batch) -> Table:
    """Returns deliveries under an assignment that nobody gave, while the log gave the partition to others."""
    work, claim = begun_under_false_assignments(batch)
    return _found(work, work["offset"], np.full(len(work), NONE), work["offset"], "told", claim, work)


def _split_without_right(batch: Batch, work: Table) -> Table:
    """Returns deliveries of what a member fetched without ever having been given the partition."""
    records = logged_assignments(batch).sorted_by("slice", "time_ns")
    given = records.take(at_or_before(records["slice"], records["time_ns"], work["slice"], work["time_ns"]))
    return _found(work, work["offset"], np.full(len(work), NONE), work["offset"], "taken", given, work)


def _beside_owners(batch: Batch) -> Table:
    """Returns deliveries of members whose partition had been given to others, and not back to them, by the log."""
    refusals = rejected_commit_evidence(batch)
    work = handler_starts(batch).having(refusal_source=refusals["source"], refusal_seq=refusals["seq"])
    work = work.take(work["ownership_epoch"] >= 0)  # by a delivery, or by a completion that no delivery began
    windows = zombie_windows(batch)
    work = work.take(picked(windows["loss"], work["ownership_epoch"], -1) >= 0)
    fetched, again_ns = (picked(windows[name], work["ownership_epoch"], NEVER) for name in ("fetched", "again_ns"))
    vague = batch.vague(work["source"]) & (work["offset"] >= fetched)  # handled after it had been fetched
    at_ns = np.where(vague, np.maximum(work["time_ns"], again_ns + TOLERANCE_NS), work["time_ns"])
    return work.take(owned_by_other_member(batch, work.having(time_ns=at_ns)))


def _found(rows: Table, order: Array, log_offset: Array, offset: Array, by: str, first: Table, second: Table) -> Table:
    return table(
        slice=rows["slice"],
        order=order,
        log_offset=log_offset,
        offset=offset,
        by=np.full(len(rows), by, dtype=object),
        source_a=first["source"],
        seq_a=first["seq"],
        source_b=second["source"],
        seq_b=second["seq"],
    )


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


def _callback_before(batch: Batch, late: Table) -> Ints:
    """Returns the row of `member_lines` with the revoked or lost callback before each row, in the same file."""
    own = member_lines(batch)
    callbacks = np.flatnonzero(np.isin(own["kind"], (Kind.REVOKED, Kind.LOST)))
    row = at_or_before(own["file"][callbacks], own["seq"][callbacks], late["file"], late["seq"])
    return picked(callbacks, row, -1)


def begun_under_false_assignments(batch: Batch) -> tuple[Table, Table]:
    """Returns what was begun under a false assignment while the offsets log gave the partition to others, and the
    line of that assignment (source, seq) for each."""
    claims, work = false_assigned(batch).sorted_by("slice", "source", "client", "seq"), handler_starts(batch)
    work = work.take(work["ownership_epoch"] < 0)
    file, wanted = _files(claims, work)
    claim = at_or_before(file, claims["seq"], wanted, work["seq"])
    own = (
        member_lines(batch)
        .take(np.isin(member_lines(batch)["kind"], CALLBACKS))
        .sorted_by("slice", "source", "client", "seq")
    )
    file, wanted = _files(own, work)
    callback = at_or_before(file, own["seq"], wanted, work["seq"])
    since = picked(claims["seq"], claim, NONE)
    closed = picked(batch.incarnations["closed_seq"], incarnation_of(batch, work["source"]), NONE)
    under = (claim >= 0) & (since > picked(own["seq"], callback, NONE)) & ((closed == NONE) | (work["seq"] < closed))
    under &= _of_others(batch, work)
    return work.take(under), claims.only("source", "seq").take(claim[under])


def _of_others(batch: Batch, work: Table) -> Bools:
    """Returns whether the offsets log gave the partition to others all the time in which each row may have been."""
    assignment_records = (
        logged_assignments(batch)
        .take(logged_assignments(batch)["protocol"] != Protocol.CONSUMER_PENDING)
        .sorted_by("slice", "time_ns")
    )
    member = picked(batch.incarnations["member"], incarnation_of(batch, work["source"]), -1)
    written_ns = batch.written_ns(work["source"], work["time_ns"])
    others = np.ones(len(work), np.bool_)
    for at_ns in (written_ns, work["time_ns"], work["time_ns"] + TOLERANCE_NS):
        row = at_or_before(assignment_records["slice"], assignment_records["time_ns"], work["slice"], at_ns)
        others &= (row >= 0) & ~owned_by(
            batch, work["slice"], member, picked(assignment_records["log_offset"], row, NONE)
        )
    return others


def _files(rows: Table, wanted: Table) -> tuple[Ints, Array]:
    both = joined(*(np.concatenate([rows[name], wanted[name]]) for name in ("slice", "source", "client")))
    return both[: len(rows)], both[len(rows) :]

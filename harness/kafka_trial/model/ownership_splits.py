"""How `OwnershipSplits` is made; what its columns mean stands in `partition.py`.

Work without a right is what a member handled of a partition that nobody had given it, while the group had given that to
others. Which ownership epochs are without a right stands in `rights.py`. Work convicts while others have the partition,
where the member itself had fetched the record: what an owner handed over to it may have been fetched by right, and
where the request log cannot tell it is undecided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.batch import Batch, index
from kafka_trial.model.clients import incarnation_of
from kafka_trial.model.contradicted_lines import is_refuted
from kafka_trial.model.false_assignments import false_assigned, uncorroborated
from kafka_trial.model.fencing import fetched_since_reassigned
from kafka_trial.model.handler_retries import handler_starts
from kafka_trial.model.instants import at_latest
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    at_or_before,
    joined,
    max_before,
    picked,
)
from kafka_trial.model.ownership_epochs import member_lines, owned_by_other_member
from kafka_trial.model.ownership_log import logged_assignments, others_hold, owned_by
from kafka_trial.model.partition import OwnershipSplits
from kafka_trial.model.request_logs import brought
from kafka_trial.model.rightless_effects import effects_without_right
from kafka_trial.model.rights import ever_given, without_right
from kafka_trial.model.rows import CALLBACKS, Protocol
from kafka_trial.model.table import FILE, Table, is_among, stacked, table
from kafka_trial.model.undecided import Undecided, undecided_because
from kafka_trial.model.work_after_failed_commit import rejected_commit_evidence
from kafka_trial.model.zombie_excuses import fetched_though_told, undecided_moments
from kafka_trial.model.zombies import zombie_windows

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch


@index
def ownership_splits(batch: Batch) -> OwnershipSplits:
    """Returns where two members owned a partition at once."""
    rightless, unseen = work_without_right(batch)
    found = stacked(
        _split_by_log(batch),
        _split_though_told(batch),
        _split_though_not_given(batch),
        _split_without_right(batch, rightless),
        _split_without_right(batch, _untold(batch, effects_without_right(batch))),
    )
    beside = _beside_owners(batch)
    unsure = undecided_moments(batch, beside["ownership_epoch"], beside["time_ns"]) & (beside["refusal_source"] < 0)
    unseen = unseen.having(second_source=unseen["source"], second_seq=unseen["seq"])
    unseen = unseen.take(~is_among(unseen, found, "slice", "second_source", "second_seq"))  # else it is told already
    unknown = np.concatenate([beside["slice"][unsure], unseen["slice"]])
    nobody = table(slice=unknown, source=np.full(len(unknown), -1), seq=np.full(len(unknown), -1))
    absent = np.full(len(unknown), NONE)
    undecided = _found(nobody, absent, absent, absent, "", nobody, nobody)
    unsure = np.repeat([False, True], [len(found), len(undecided)])
    return OwnershipSplits(stacked(found, undecided).columns).having(
        why=undecided_because((Undecided.FETCHES_UNKNOWN, unsure))
    )


def _untold(batch: Batch, effects: Table) -> Table:
    """Returns the effects of records of which their member's lines tell nothing."""
    begun = handler_starts(batch)
    begun = begun.having(member=picked(batch.incarnations["member"], incarnation_of(batch, begun["source"]), -1))
    return effects.take(~is_among(effects, begun, "slice", "member", "offset"))


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
    fetched = ((now_ns > told_ns) | batch.untimed(work["source"])) & fetched_though_told(
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
    work, claim = _begun_under_false_assignments(batch)
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
    vague = batch.untimed(work["source"]) & (work["offset"] >= fetched)  # handled after it had been fetched
    at_ns = np.where(vague, np.maximum(work["time_ns"], at_latest(again_ns)), work["time_ns"])
    member = picked(batch.incarnations["member"], incarnation_of(batch, work["source"]), -1)
    placed = work.having(time_ns=at_ns, member=member)
    loss_ns = picked(windows["loss_ns"], work["ownership_epoch"], NEVER)
    return work.take(owned_by_other_member(batch, placed) & ~fetched_since_reassigned(batch, placed, loss_ns))


def _found(rows: Table, order: Array, log_offset: Array, offset: Array, by: str, first: Table, second: Table) -> Table:
    return table(
        slice=rows["slice"],
        order=order,
        log_offset=log_offset,
        offset=offset,
        by=np.full(len(rows), by, dtype=object),
        first_source=first["source"],
        first_seq=first["seq"],
        second_source=second["source"],
        second_seq=second["seq"],
    )


def _begun_under_false_assignments(batch: Batch) -> tuple[Table, Table]:
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
    for at_ns in (written_ns, work["time_ns"], at_latest(work["time_ns"])):
        row = at_or_before(assignment_records["slice"], assignment_records["time_ns"], work["slice"], at_ns)
        others &= (row >= 0) & ~owned_by(
            batch, work["slice"], member, picked(assignment_records["log_offset"], row, NONE)
        )
    return others


def _files(rows: Table, wanted: Table) -> tuple[Ints, Array]:
    both = joined(*(np.concatenate([rows[name], wanted[name]]) for name in ("slice", "source", "client")))
    return both[: len(rows)], both[len(rows) :]


def work_without_right(batch: Batch) -> tuple[Table, Table]:
    """Returns what was begun (rows of `handler_starts`) without a right while others had the partition: by a member
    that had fetched the record itself; and by one of which nobody knows whether it had."""
    begun = handler_starts(batch)
    taken = picked(without_right(batch).astype(np.int64), begun["ownership_epoch"], 0) == 1
    exited = picked(batch.incarnations["exited_seq"], incarnation_of(batch, begun["source"]), NONE)
    nowhere = (begun["ownership_epoch"] < 0) & ~begun["revoked"] & ((exited == NONE) | (begun["seq"] < exited))
    begun = begun.take(taken | nowhere)
    elsewhere = ever_given(batch, begun) | is_among(begun, uncorroborated(batch), *FILE)  # `false_assignments.py`
    begun = begun.take((begun["ownership_epoch"] >= 0) | ~elsewhere)
    member = picked(batch.incarnations["member"], incarnation_of(batch, begun["source"]), -1)
    begun = begun.take(others_hold(batch, begun["slice"], member, begun["time_ns"]))
    itself = (begun["ownership_epoch"] >= 0) & brought(batch, begun)
    return begun.take(itself), begun.take(~itself & ~is_refuted(batch, begun))

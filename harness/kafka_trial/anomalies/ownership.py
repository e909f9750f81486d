"""Ownership: did one member at a time own a partition, did it work only while it did, and on what it was given?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_trial.anomalies.claim_rule import Rule, always, fencing_claimed
from kafka_trial.anomalies.invariant import Findings, invariant, proof, split_undecided
from kafka_trial.model.table import table

if TYPE_CHECKING:
    from kafka_trial.model.partition import Partitions


@invariant(
    "split-ownership",
    family="ownership",
    needs=("offsets log",),
    level="none",
    severity=220,
    rule=Rule(always),
    message="{place} was owned by two members at once: {split_by}",
)
def split_ownership(partitions: Partitions) -> Findings:
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
    splits, undecided = split_undecided(partitions.ownership_splits)
    rows = splits.only("slice", "order", "log_offset", "offset", "by")
    return Findings(rows, [proof(splits, "first_"), proof(splits, "second_")], undecided)


@invariant(
    "work-after-revoke",
    family="ownership",
    needs=("callbacks", "work of members"),
    level="events",
    severity=240,
    rule=Rule(always),
    message="record {offset} of {place} was {what} after the partition had been revoked from its member",
)
def work_after_revoke(partitions: Partitions) -> Findings:
    """A member was delivered or completed a record of a partition after its own revoked or lost callback had returned.

    "Once the callback returns, the partition may be given to another consumer" (ConsumerRebalanceListener): the member
    must finish or give up the records in hand inside the revoked callback. A record whose first effect from the member
    its sink saw afterwards was worked on too late as well, also when the partition had been given to others, and back,
    and the member had fetched nothing up to that record since. So was one that it began before `revoked` and completed
    then. Legal for the record in hand when the lost callback returns: the partition was lost before, and the handler
    may end; and for what was fetched since the group gave the partition back, although the `assigned` line comes later.
    If the brokers know of nothing that can have cost the member its partition, a `lost` line counts as `revoked`.
    Undecided if the line may belong to another client of the same process, and where a member says `revoked` only later
    than its next request to its group, which a client makes once the callback has returned.

    Smallest history: `assigned`, `delivered` 5, `revoked`, `processed` 5.

    Usual cause: Work on a partition went on after the callback that gave it back had returned.

    Remedy: In the callback finish or cancel what is in hand, then return; a queue between poll and work must be
    emptied.
    """
    late, undecided = split_undecided(partitions.work_after_callback)
    rows = table(slice=late.slice, order=late.offset, offset=late.offset, what=late.what)
    return Findings(rows, [proof(late, "callback_"), proof(late)], undecided)


@invariant(
    "zombie-work",
    family="ownership",
    needs=("own word", "ownership epochs", "offsets log"),
    level="events",
    severity=310,
    rule=Rule(fencing_claimed),
    message="record {offset} of {place} was {what} after the group had given the partition to another member",
)
def zombie_work(partitions: Partitions) -> Findings:
    """A member worked on a partition that others had been given, before it was told, or on records fetched before that.

    No plain consumer can prevent it: it was frozen or cut off, and finishes what it holds when it wakes, or a
    background thread receives the answer that tells it. Counted; legal unless the claim says that effects are fenced.

    Smallest history: m0 `assigned`, group record gives the partition to m1, `delivered` by m0 a second later.

    Usual cause: A member worked on after it had lost its partition without knowing: paused, cut off, or too slow.

    Remedy: No plain consumer can prevent it; where it must not happen, fence the effect (an epoch beside the result).
    """
    work = partitions.uninformed_work
    rows = table(slice=work.slice, order=work.offset, offset=work.offset, what=work.what)
    return Findings(rows, [proof(work, "given_"), proof(work)])


@invariant(
    "stale-generation",
    family="ownership",
    needs=("offsets log", "requests"),
    level="none",
    progress_in_kafka=True,
    outside_transactions=True,
    severity=230,
    rule=Rule(fencing_claimed),
    message="{committed_offset} was committed on {place} with epoch {epoch}, when its member had {current_epoch}",
)
def stale_generation(partitions: Partitions) -> Findings:
    """A commit was accepted although it was asked for with an older epoch or generation than its member had by then.

    "The member epoch is stale. The member must retry after receiving its updated member epoch" (Kafka, Protocol, Error
    Codes: STALE_MEMBER_EPOCH, KIP-848; for classic groups ILLEGAL_GENERATION): a broker that accepts it lets a member
    commit what it no longer owns. Legal under KIP-1251 (4.3 and later, shown by the assignment epoch in the record):
    the member still owned or was revoking the partition, and the epoch was at least that of the assignment. Refused
    commits are normal, and so is a commit without an epoch. Of several commits of one position at one time the first in
    the log is taken to be this one, the innocent reading. A request whose line came late is left out: by its order, it
    may belong to a later commit.

    Smallest history: group record of generation 2, OffsetCommit 1 with generation 1 and no error, committed 1.

    Usual cause: The broker took a commit of an older generation.

    Remedy: A broker should refuse it: look at its version; a member should drop its positions when it rejoins.
    """
    stale, undecided = split_undecided(partitions.stale_commits)
    rows = table(
        slice=stale.slice,
        order=stale.log_offset,
        log_offset=stale.log_offset,
        committed_offset=stale.committed_offset,
        epoch=stale.epoch,
        current_epoch=stale.current_epoch,
        member=stale.member_name,
    )
    return Findings(rows, [proof(stale, of) for of in ("current_", "", "log_")], undecided)

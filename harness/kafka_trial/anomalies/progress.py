"""Progress: is what a member handled committed in time, and does whoever is answered records commit?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_trial.anomalies.claim_rule import (
    VIOLATION,
    Attributes,
    Rule,
    Weight,
    age_claimed,
    never,
    no_rogue_reader_claimed,
    on_the_partition,
)
from kafka_trial.anomalies.invariant import Findings, invariant, proof, split_undecided
from kafka_trial.claim import Claim
from kafka_trial.model.table import table

if TYPE_CHECKING:
    from kafka_trial.model.partition import Partitions


@invariant(
    "uncommitted-progress",
    family="liveness",
    needs=("records", "own word", "offsets log", "snapshot"),
    level="events",
    progress_in_kafka=True,
    severity=390,
    rule=Rule(never),
    message="record {offset} of {place} was processed {lasted_ms} ms before a commit covered it",
)
def uncommitted_progress(partitions: Partitions) -> Findings:
    """A record and all before it were handled, its member held the partition on, and for W no commit covered it.

    "The committed position is the last offset that has been stored securely. Should the process fail and restart, this
    is the offset that the consumer will recover to" (KafkaConsumer, Javadoc); a team declares how often it is stored. W
    is here that interval plus detection and a rebalance. It differs from `false-lag` in its time: `false-lag` is what
    stands at the snapshot, after the load (all handled, the position behind or never committed); this is progress that
    stayed uncommitted in the middle of the trial, and was committed in the end. Records not covered at the snapshot are
    left to `false-lag`, `stuck-partition` and `late-convergence`. Legal if the partition changed hands meanwhile, and
    while a fault is in force or was healed less than W before. Undecided if the machine stood still.

    Smallest history: `processed` 0; eleven seconds later committed 1; phase snapshot.

    Usual cause: Work was done long before its position was committed: a crash would repeat all of it.

    Remedy: Commit more often, also while a partition is quiet.
    """
    late, undecided = split_undecided(partitions.committed_late)
    rows = table(
        slice=late.slice,
        order=late.offset,
        offset=late.offset,
        records=late.records,
        committed_offset=late.committed_offset,
        lasted_ms=late.lasted_ns // 1_000_000,
    )
    return Findings(rows, [proof(late, "handled_"), proof(late, "commit_")], undecided)


def _excused(_: Claim, attributes: Attributes) -> tuple[Weight, str]:
    by = attributes.get("excused_by")
    return VIOLATION if by is None else ("tolerated", f"it waited no longer than {by} explains")


@invariant(
    "late-record",
    family="liveness",
    needs=("records", "ends of waits", "age limit", "pace", "time to be late", "snapshot"),
    level="sink",
    severity=212,
    rule=Rule(age_claimed, _excused),
    message="{records} records of {place}, from {offset} to {last_offset}, waited longer than they may: "
    "{longest_wait_offset} for {lasted_ms} ms, of which {counted_ms} count and {allowed_ms} are allowed{whose}",
    deciding=("excused_by",),
    follows={"stuck-partition": on_the_partition, "late-convergence": on_the_partition, "unseen": on_the_partition},
)
def late_record(partitions: Partitions) -> Findings:
    """A record waited longer than its team claims (`lag_age_max_s`), from its append until it was handled.

    One finding is of a stretch of records that follow one another.
    "The maximum lag in terms of number of records" (records-lag-max: Kafka, Monitoring) says how much is left to do;
    who waits for a payment asks how long.

    A wait ends when the record is first handled. In transactions it ends with the commit that covers the record; of a
    consumer that shows nothing of its work too, less the declared commit interval. What was not handled by the
    snapshot, and not committed past, has waited until then.

    Not counted is the time before the opening burst was handled, and the time that a fault explains: from its injection
    until W after it is healed (longer where requests stay unanswered or partitions were added), and then as long again,
    while the group works off what has piled up. The fault `cold-reads` explains nothing. Where records queue each may
    take twice the time that the group took for it and those before it at its best, in the opening burst or since.

    Undecided if it may have waited for the rest of its batch or transaction, if more was sent all the while than the
    group was seen to do, if the machine stood still or threads waited for a processor for so long, and if nobody knows
    when it was handled or appended. An audit goes by commits, where brokers dated all records (message.timestamp.type
    = LogAppendTime, by the batches); a trial needs no such setting. Not judged where faults leave no time to be late
    in, where transactions on the topic were aborted, and where records are handed on.

    Smallest history: a claim of five seconds; record 0; nine seconds later `processed` 0.

    Usual cause: A handler that takes too long for what comes, one partition behind another, or a member that waits.

    Remedy: More members and partitions, or handlers side by side; bound how long one record may hold up the next.
    """
    waits, undecided = split_undecided(partitions.late_records)
    rows = table(
        slice=waits.slice,
        order=waits.offset,
        offset=waits.offset,
        last_offset=waits.last_offset,
        longest_wait_offset=waits.longest_wait_offset,
        records=waits.records,
        member=waits.member_name,
        lasted_ms=(waits.until_ns - waits.since_ns) // 1_000_000,
        counted_ms=waits.counted_ns // 1_000_000,
        allowed_ms=waits.allowed_ns // 1_000_000,
        excused_by=waits.excused_by,
    )
    return Findings(rows, [proof(waits), proof(waits, "over_")], undecided)


@invariant(
    "rogue-reader",
    family="resources",
    needs=("offsets log", "requests", "snapshot"),
    level="none",
    progress_in_kafka=True,
    severity=410,
    rule=Rule(no_rogue_reader_claimed),
    message="member {member}{by_client} was sent {fetched_bytes} bytes of {place} for {lasted_ms} ms, without a commit",
    deciding=("client",),
)
def rogue_reader(partitions: Partitions) -> Findings:
    """A member was answered records of a partition for longer than W, and never committed on it: bytes that no commit
    explains.

    Lag is read from commits: "the position of all consumers in a consumer group as well as how far behind the end of
    the log they are" (Kafka, Operations, Checking Consumer Position). A member that reads without committing is not
    seen there, and still loads the brokers. So is a client of a member, known by its client id, that was never seen in
    a group nor to commit, and reads a partition for longer than W beside one of the same member that was: commits
    explain the bytes of that one. W is here the declared commit interval plus detection and a rebalance.
    Legal while a fault on this member, or on all, was in force or was healed less than W before. Legal for records sent
    to it as the owner by the offsets log, if it lost the partition, or was stopped, before it had handled anything
    there, or within W after that: its client had fetched ahead, no commit was due, and the next owner handles the rest.
    Undecided if the machine stood still, or if it is unknown who committed there. Partitions of other topics are not
    seen.

    Smallest history: m0's FETCH from 0 is answered 100 bytes; eleven seconds later its FETCH from 1 is; phase snapshot.

    Usual cause: Somebody fetched records and never committed: a partition read outside the group, or thrown away.

    Remedy: Look which member it is; do not fetch what is not assigned.
    """
    reads, undecided = split_undecided(partitions.rogue_readers)
    rows = table(
        slice=reads.slice,
        order=reads.member,
        member=reads.member_name,
        client=reads.client_id,
        fetched_bytes=reads.bytes,
        offset=reads.offset,
        lasted_ms=reads.lasted_ns // 1_000_000,
    )
    return Findings(rows, [proof(reads), proof(reads, "last_")], undecided)

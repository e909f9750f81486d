"""Progress: is what a member handled committed in time, and does whoever is answered records commit?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_trial.anomalies.claim_rule import Rule, never, no_rogue_reader_claimed
from kafka_trial.anomalies.invariant import Findings, invariant, proof, split_undecided
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


@invariant(
    "rogue-reader",
    family="resources",
    needs=("offsets log", "requests", "snapshot"),
    level="none",
    progress_in_kafka=True,
    severity=410,
    rule=Rule(no_rogue_reader_claimed),
    message="member {member} was sent {fetched_bytes} bytes of {place}, for {lasted_ms} ms, without a commit",
)
def rogue_reader(partitions: Partitions) -> Findings:
    """A member was answered records of a partition for longer than W, and never committed on it: bytes that no commit
    explains.

    Lag is read from commits: "the position of all consumers in a consumer group as well as how far behind the end of
    the log they are" (Kafka, Operations, Checking Consumer Position). A member that reads without committing is not
    seen there, and still loads the brokers. W is here the declared commit interval plus detection and a rebalance.
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
        fetched_bytes=reads.bytes,
        offset=reads.offset,
        lasted_ms=reads.lasted_ns // 1_000_000,
    )
    return Findings(rows, [proof(reads), proof(reads, "last_")], undecided)

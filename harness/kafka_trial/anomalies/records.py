"""Records: is what was acknowledged in the log, was all of it read in time, and is each record what was sent?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_trial.anomalies.claim_rule import (
    VIOLATION,
    Attributes,
    Rule,
    Weight,
    always,
    not_an_operators,
    the_clusters,
    under,
)
from kafka_trial.anomalies.invariant import Findings, invariant, proof, split_undecided
from kafka_trial.claim import Claim
from kafka_trial.model.table import table

if TYPE_CHECKING:
    from kafka_trial.model.partition import Partitions


@invariant(
    "lost-write",
    family="delivery",
    needs=("records", "sends", "log ends", "snapshot"),
    level="none",
    severity=90,
    rule=Rule(always, the_clusters),
    message="the cluster lost record {offset} of {place}, which it had acknowledged",
)
def lost_write(partitions: Partitions) -> Findings:
    """A send was acknowledged, and the complete control read does not hold its record: the cluster lost it.

    "A committed message will not be lost, as long as there is at least one in sync replica alive, at all times" (Kafka,
    Design, Replication); acks=all waits for all of them. Never the consumer's fault: the verdict is unknown. Legal
    below the log start at the end (retention, deleted records: see `overtaken`), and under compaction if a later record
    has the same key.

    Smallest history: send `ok` at offset 1; the control read is complete, log start 0, and holds record 0 only.

    Usual cause: The cluster lost a record that it had acknowledged. The consumer has no part in it.

    Remedy: Look at the broker logs of the run folder: unclean leader election, min.insync.replicas, disks.
    """
    lost, undecided = split_undecided(partitions.lost_writes)
    return Findings(table(slice=lost.slice, order=lost.offset, offset=lost.offset), [proof(lost)], undecided)


def _nobodys_doing(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    """Excuses what expired while no member could run, and what was committed from outside the members."""
    if attributes.get("while_away"):
        return "tolerated", "expired while no member ran: the trial had stopped all of them"
    return not_an_operators(claim, attributes)


@invariant(
    "overtaken",
    family="delivery",
    needs=("records ever", "sends", "handled", "log ends"),
    level="sink",
    severity=20,
    rule=Rule(under("at-least-once", "exactly-once"), _nobodys_doing),
    message="records {offset} to {last_offset} of {place} expired before they were read ({records} of them)",
    deciding=("by_operator", "by_stranger", "while_away"),
)
def overtaken(partitions: Partitions) -> Findings:
    """Records expired before they were read: the log start passed the consumer. One finding a range.

    "The Kafka cluster durably persists all published records, whether or not they have been consumed, using a
    configurable retention period" (Kafka, Introduction): a consumer that falls behind it loses what it had not read,
    and `auto.offset.reset` hides that. Only acknowledged sends are known to have been in the log. A record is lost the
    same way if it was delivered, never processed and committed past, as the log cannot show it any more; or if its
    ownership epoch ended by the end of the drain, as nobody can be given it again. Legal if an operator moved the
    position past the records, or if they expired while the trial had stopped all members and nobody had committed past
    them before. A member killed with -9 never reports its last act: without a sink, what it may have read is undecided.
    So are records that may have expired just before or after such a stop. Committed past or not, these records are
    neither `skipped` nor `unseen`.

    Smallest history: sends `ok` at 0 and 1, `processed` 1, log start 1.

    Usual cause: The consumer was slower than the topic's retention: records were deleted before it read them.

    Remedy: Raise the topic's retention, or give the group more members; alert on the age of the oldest unread record.
    """
    expired, undecided = split_undecided(partitions.expired_unread)
    rows = table(
        slice=expired.slice,
        order=expired.offset,
        offset=expired.offset,
        last_offset=expired.last_offset,
        records=expired.records,
        committed=expired.committed,
        by_operator=expired.by_operator,
        by_stranger=expired.maybe_operator,
        while_away=expired.while_away,
    )
    return Findings(rows, [proof(expired), proof(expired, "last_")], undecided)


def _corrupt(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    return the_clusters(claim, attributes) if attributes.get("found_in") == "control read" else VIOLATION


@invariant(
    "corrupt",
    family="delivery",
    needs=("records", "sends"),
    level="none",
    severity=100,
    rule=Rule(always, _corrupt),
    message="record {offset} of {place} had another content {found} than was sent",
    deciding=("found_in",),
)
def corrupt(partitions: Partitions) -> Findings:
    """A record has another content than was sent: in the log (the cluster's fault), or as an effect (the consumer's).

    "This ensures no on-the-wire or on-disk corruption to the messages occurred" (Kafka, Consumer Configs, check.crcs).
    Content is compared by the CRC-32 of the value. If the control read itself found other content, the cluster is to
    blame: the verdict is unknown, and no effect of that record counts against the consumer. An effect's body is
    compared if consumer.toml declares that it is the record's value. JSON that was written differently and says the
    same is not corrupt.

    Smallest history: send `invoke` with checksum 1, the control read finds it with checksum 2.

    Usual cause: What came out is not what was sent: the wrong decoder, a shared buffer that was overwritten, a cut
    string.

    Remedy: Compare the two records named; hand each record its own buffer; decode by the record's own schema.
    """
    altered = partitions.corrupt_records
    rows = table(slice=altered.slice, order=altered.offset, offset=altered.offset, found_in=altered.found_in)
    return Findings(rows, [proof(altered), proof(altered, "send_")])


@invariant(
    "misplaced",
    family="delivery",
    needs=("records", "ids"),
    level="sink",
    severity=120,
    rule=Rule(always),
    message="the record that was {what} as record {offset} of {place} is not the one that the log holds there",
)
def misplaced(partitions: Partitions) -> Findings:
    """A record was delivered, or had its effect, under a partition and offset where the log holds another record.

    "The records in the partitions are each assigned a sequential id number called the offset that uniquely identifies
    each record within the partition" (Kafka, Introduction). Judged where the id's own record lies elsewhere in the log,
    or was never sent; an id that was sent and is not in the log leaves it undecided. Never legal.

    Smallest history: records r0 and r1; `delivered` offset 0 with id r1.

    Usual cause: The consumer names another partition or offset than the record has.

    Remedy: Take topic, partition and offset from the record itself, never from a counter of your own.
    """
    wrong, undecided = split_undecided(partitions.misplaced_records)
    rows = table(slice=wrong.slice, order=wrong.offset, offset=wrong.offset, what=wrong.what)
    return Findings(rows, [proof(wrong), proof(wrong, "record_")], undecided)

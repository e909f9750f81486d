"""Delivery: was every record handled, and which were delivered again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_trial.anomalies.claim_rule import (
    VIOLATION,
    Attributes,
    Rule,
    Weight,
    always,
    in_the_range,
    never,
    not_an_operators,
    on_the_partition,
    under,
)
from kafka_trial.anomalies.invariant import Findings, invariant, proof, split_undecided
from kafka_trial.claim import Claim
from kafka_trial.model.kernels import NEVER, NONE, picked, value_at
from kafka_trial.model.table import table
from kafka_trial.model.undecided import Undecided

if TYPE_CHECKING:
    from kafka_trial.model.partition import Partitions, Redeliveries


def _skipped(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    weight, why = not_an_operators(claim, attributes)
    if weight != "violation":
        return weight, why
    if claim.delivery == "at-most-once" and attributes.get("in_flight_at_crash"):
        return "tolerated", "in flight at a crash: at-most-once allows it"
    return VIOLATION


@invariant(
    "skipped",
    family="delivery",
    needs=("records", "handled", "offsets log"),
    level="sink",
    progress_in_kafka=True,
    intermediate_too=True,
    severity=10,
    share_of=("records",),
    rule=Rule(
        under("at-least-once", "at-most-once", "exactly-once"),
        _skipped,
        always_for=("at-least-once", "at-most-once", "exactly-once"),
        never_for={"at-most-once": (Undecided.UNCERTAIN_AFTER_KILL,)},
    ),
    message="record {offset} of {place} was committed past and never processed",
    deciding=(
        "by_operator",
        "by_stranger",
        "in_flight_at_crash",
    ),
    follows={"commit-ahead": in_the_range},
)
def skipped(partitions: Partitions) -> Findings:
    """A record was committed past, and never handled: it is lost.

    "At least once: messages are never lost" (Kafka, Message Delivery Semantics): a position may be committed only after
    the records before it were processed. Legal under at-most-once for what was in flight at a crash (also for a record
    that waited for its next attempt, and what lay behind it), where an operator moved the position, and where the
    cluster cut the log off and wrote another record there. A member killed with -9
    never reports its last act: without a sink, what it committed after its last line is undecided; but not where it
    lived on for four poll intervals without a word, and fetched and beat all the while.

    Smallest history: records 0 and 1, `processed` 1, committed 2.

    Usual cause: The position was committed before the work: auto-commit of records that were only handed out, a commit
    of the batch before it is done, or a failed record that was logged and passed over.

    Remedy: Commit after the work and only what was done; switch off enable.auto.offset.store or enable.auto.commit;
    give a failed record somewhere to go (a retry, a dead-letter topic) before the position passes it.
    """
    commits, unhandled = partitions.commits, partitions.unhandled
    passed = unhandled.take(unhandled.committed & (unhandled.handled_ns == NEVER) & ~unhandled.after_truncation)
    lost, undecided = split_undecided(passed)
    rows = table(
        slice=lost.slice,
        order=lost.offset,
        offset=lost.offset,
        committed_offset=picked(commits.committed_offset, lost.commit, NONE),
        by_operator=value_at(commits.by_operator, lost.commit, False),
        by_stranger=value_at(commits.maybe_operator, lost.commit, None),
        in_flight_at_crash=lost.in_flight_at_crash,
    )
    return Findings(rows, [proof(lost), proof(commits, at=lost.commit)], undecided)


@invariant(
    "unseen",
    family="delivery",
    needs=("records", "handled", "snapshot"),
    level="sink",
    of_the_end=True,
    intermediate_too=True,
    severity=30,
    share_of=("records",),
    rule=Rule(under("at-least-once", "exactly-once"), always_for=("at-least-once", "exactly-once")),
    message="record {offset} of {place} was never processed, although the drain was over",
    follows={"stuck-partition": on_the_partition, "head-of-line-blocking": on_the_partition},
)
def unseen(partitions: Partitions) -> Findings:
    """A record was not committed past, and not handled by the end of the drain.

    "Every record is delivered to one consumer in each subscribing group" (Kafka, Introduction). Legal only as long as
    the drain goes on, which is why it is judged at the snapshot, and undecided where the drain was shorter than B.

    Smallest history: records 0 and 1, `processed` 0, committed 1, phase drain; thirteen seconds later phase snapshot.

    Usual cause: The partition was assigned and not read to its end: it stayed paused, was starved, or its handler hung.

    Remedy: Look at stuck-partition; resume what was paused after every rebalance; bound the handler's time.
    """
    left = partitions.unhandled.take(~partitions.unhandled.committed)
    return Findings(table(slice=left.slice, order=left.offset, offset=left.offset), [proof(left)])


@invariant(
    "redelivered",
    family="delivery",
    needs=("ownership epochs", "work"),
    level="sink",
    severity=300,
    share_of=("deliveries", "completions", "effects"),
    rule=Rule(under("at-most-once"), always_for=("at-most-once",)),
    message="record {offset} of {place} was delivered again",
)
def redelivered(partitions: Partitions) -> Findings:
    """A record was delivered again, at or above the floor of its ownership epoch: legal, unless at-most-once is
    claimed.

    "In the case of at-least-once, messages may be redelivered" (Kafka, Message Delivery Semantics). It counts in
    another ownership epoch, and inside one where the record or a later one had been completed (else it was
    `retried`). A record that was completed twice was delivered again, whatever the member printed of its
    deliveries. Where its progress is not in Kafka, a record that its member says it discarded is not counted: a
    client may be given records before it is told to seek, and the member's own store says that they are done. One
    that it left at such a seek, and says nothing of, counts if the sink heard of it; without a sink it is undecided.

    With a sink, each further effect of a record counts too, beyond the handlings that lines report.

    Smallest history: m0 `delivered` 5, `revoked`; m1 `assigned`, `delivered` 5, and its OffsetFetch was answered 5.

    Usual cause: A record was handed out again after a rebalance or restart: normal for at-least-once.

    Remedy: For at-most-once commit before the work, and wait for the answer; else claim at-least-once.
    """
    again = partitions.redeliveries
    return _redeliveries(again.take(~again.below_floor))


@invariant(
    "illegal-redelivery",
    family="delivery",
    needs=("ownership epochs", "work", "offsets log", "requests"),
    level="sink",
    progress_in_kafka=True,
    severity=290,
    share_of=("deliveries", "completions", "effects"),
    rule=Rule(under("at-least-once", "at-most-once"), always_for=("at-least-once",)),
    message="record {offset} of {place} was delivered again, below {floor}, where its ownership epoch began",
)
def illegal_redelivery(partitions: Partitions) -> Findings:
    """A record was delivered again below the floor of its ownership epoch: the member did not start where it was told
    to.

    "The consumer starts at the committed position" (KafkaConsumer, Offsets and Consumer Position). A commit may be
    durable although the member never saw the answer, so the broker decides the floor. With a sink, a further effect
    counts too, if its member first fetched below the floor after it was assigned, or never had the partition before. It
    is undecided where a member that nobody gave the partition, but says that it has it, may have had that effect.

    Smallest history: m0 `delivered` 5; m1's OffsetFetch is answered 6, `assigned`, `delivered` 5.

    Usual cause: A member did not start at the committed position: a seek to the beginning, a stale position kept from
    before the rebalance, or auto.offset.reset where there was a commit.

    Remedy: On assignment start from the committed position, and drop what you remember of a partition when it goes.
    """
    again = partitions.redeliveries
    return _redeliveries(again.take(again.below_floor))


@invariant(
    "retried",
    family="delivery",
    needs=("own word",),
    level="events",
    severity=400,
    share_of=("deliveries",),
    rule=Rule(never),
    message="record {offset} of {place} was tried again, and nothing from there on had been completed",
)
def retried(partitions: Partitions) -> Findings:
    """A record was delivered again inside its ownership epoch, and nothing from there on had been completed: a retry.

    "The consumer can seek to a position" (KafkaConsumer, Controlling The Consumer's Position): after a handler failed,
    the record is read again. Legal under every claim; counted.

    Smallest history: `assigned`, `delivered` 0, `delivered` 0.

    Usual cause: A handler failed and its record was read again, by a seek back or by the client: a sound way to retry.

    Remedy: Nothing; bound how often a record is tried, and set it aside in the end.
    """
    again = partitions.retries
    return Findings(table(slice=again.slice, order=again.offset, offset=again.offset), [proof(again)])


@invariant(
    "phantom",
    family="delivery",
    needs=("ids", "sends"),
    level="sink",
    severity=110,
    rule=Rule(always),
    message="a record with the id {id}, which nobody sent, was {what} ({place})",
)
def phantom(partitions: Partitions) -> Findings:
    """An effect, or a delivered record, has an id that was never sent.

    "A consumer instance sees records in the order they are stored in the log" (Kafka, Introduction): it sees what was
    sent, and nothing else. A send with unknown outcome counts as sent. Undecided if the log itself holds the id,
    because somebody else writes to the topic. Never legal.

    Smallest history: send `invoke` r0; effect `ok` r7.

    Usual cause: The consumer did something for a record that nobody sent: a wrong id, a default value, an old table.

    Remedy: Look where the id named comes from; check that the effect carries the id of the record that caused it.
    """
    found, undecided = split_undecided(partitions.phantoms)
    rows = table(slice=found.slice, order=found.time_ns, id=found.id, offset=found.offset, what=found.what)
    return Findings(rows, [proof(found)], undecided)


@invariant(
    "duplicate-effect",
    family="delivery",
    needs=("effects",),
    level="sink",
    severity=40,
    share_of=("effects",),
    rule=Rule(under("at-most-once", "exactly-once"), always_for=("exactly-once",)),
    message="record {offset} of {place} had its effect again (effect number {number})",
)
def duplicate_effect(partitions: Partitions) -> Findings:
    """One record had two effects, or more: one finding for each beyond the first. Judged by record id.

    "Exactly once: each message is delivered once and only once" (Kafka, Message Delivery Semantics). Legal under
    at-least-once, where redelivered records have their effect again. Only effects that the sink acknowledged count. If
    a partition holds several records of one id, because their producer sent it again, each may have its effect.

    Smallest history: effect `ok` r0, effect `ok` r0.

    Usual cause: A record was handled again after a rebalance or a crash, and its effect is not idempotent.

    Remedy: Make the effect idempotent (an upsert by the record's id), write it with the position in one transaction, or
    use Kafka transactions; at-least-once alone never excludes it.
    """
    again = partitions.duplicate_effects
    rows = table(slice=again.slice, order=again.offset, offset=again.offset, number=again.number)
    return Findings(rows, [proof(again, "first_"), proof(again)])


@invariant(
    "false-report",
    family="delivery",
    needs=("own word",),
    level="events",
    severity=360,
    rule=Rule(never),
    message="the consumer reported {of_record}{place} as {what}, but the {by} shows otherwise",
)
def false_report(partitions: Partitions) -> Findings:
    """A line of the consumer is contradicted by a witness: it had not fetched the record, or there was none yet, or it
    had not been given the partition.

    "The consumer issues fetch requests to the brokers leading the partitions it wants to consume" (Kafka, Design, The
    Consumer): a record that no fetch returned cannot have been handled. The workload contradicts a line if the record
    was sent later; the observer, if the log ended at or below it when asked later; the request log, if no fetch of that
    process from a position at or below it had brought bytes, or the position asked for next was not beyond it. Counted:
    such a line is no evidence for the consumer, and a record lost behind it is `skipped`. Not judged where the request
    log may have gaps: it was not read to its end, a broker was killed before, two clients fetched by turns on one lane,
    or strangers fetched. Nor is a `processed` line judged if the consumer's progress is elsewhere and it says that it
    found the record done there. An `assigned` line of a partition that neither log had given to its member opens no
    ownership epoch.

    Smallest history: m0's FETCH from 0 is answered 100 bytes, its next one asks for 1; `delivered` 1.

    Usual cause: A line says what a witness knows to be otherwise: printed for the wrong record, too early, or of a
    record that the process never fetched; or of a partition that nobody had given to it.

    Remedy: Print record_delivered where the handler begins and record_processed where it ends, from the record itself;
    and partitions_assigned from the callback that the client library calls.
    """
    lines = partitions.false_reports
    rows = table(slice=lines.slice, order=lines.offset, offset=lines.offset, what=lines.what, by=lines.by)
    return Findings(rows, [proof(lines)])


def _redeliveries(again: Redeliveries) -> Findings:
    again, undecided = split_undecided(again)
    rows = table(slice=again.slice, order=again.offset, offset=again.offset, floor=again.floor)
    return Findings(rows, [proof(again), proof(again, "opened_")], undecided)

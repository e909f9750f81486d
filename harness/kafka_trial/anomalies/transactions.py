"""Transactions: does a consumer read what was taken back, does its progress go with what it writes, and does each end,
the same in all its logs?

Hanging ones are judged from what the witnesses saw open in their logs when they were asked to read to the end. Those
are few: one a producer and log at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.anomalies.claim_rule import Attributes, Rule, Weight, always, not_an_operators, the_clusters, under
from kafka_trial.anomalies.invariant import Findings, invariant, proof, split_undecided
from kafka_trial.claim import Claim
from kafka_trial.model.progress import machine_stalled
from kafka_trial.model.table import of_group, table
from kafka_trial.model.trial_context import TOLERANCE_NS, OpenTransaction
from kafka_trial.model.undecided import Undecided
from kafka_trial.model.wall_clock import monotonic

if TYPE_CHECKING:
    from kafka_trial.model.group import Group
    from kafka_trial.model.partition import Partitions


@invariant(
    "aborted-read",
    family="transactions",
    needs=("aborted records", "handled"),
    level="sink",
    severity=60,
    rule=Rule(under("exactly-once")),
    message="record {offset} of {place} was {what} although its transaction was aborted",
)
def aborted_read(partitions: Partitions) -> Findings:
    """A record whose transaction was aborted was delivered, or had its effect: the reader did not wait for its end.

    "If set to read_committed, consumer.poll() will only return transactional messages which have been committed"
    (Kafka, Consumer Configs, isolation.level); by default it returns "even transactional messages which have been
    aborted". Legal where exactly-once is not claimed. If the log also holds the effect's id in a committed record, the
    effect may have come from that one. One finding a record, reported by its first delivery or effect.

    Smallest history: record_aborted r0 at offset 0; delivered 0.

    Usual cause: The consumer reads uncommitted records: isolation.level is read_uncommitted, which most clients default
    to.

    Remedy: Set isolation.level=read_committed.
    """
    read = partitions.aborted_reads
    rows = table(slice=read.slice, order=read.aborted_offset, offset=read.aborted_offset, what=read.what)
    return Findings(rows, [proof(read, "aborted_"), proof(read)])


def _outside_transaction(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    if attributes.get("repeats"):
        return "tolerated", "it repeats the position that stood: nothing is changed by it"
    return not_an_operators(claim, attributes)


@invariant(
    "offset-outside-transaction",
    family="transactions",
    needs=("offsets log", "requests"),
    level="none",
    progress_in_transaction=True,
    severity=70,
    rule=Rule(under("exactly-once"), _outside_transaction),
    message="{committed_offset} was committed on {place} outside of a transaction, from {stood}",
    deciding=(
        "by_operator",
        "by_stranger",
        "repeats",
    ),
)
def offset_outside_transaction(partitions: Partitions) -> Findings:
    """A position was committed outside of any transaction, although the consumer's progress is in its transactions.

    Its output may then be undone without the position, or its position stored without the output. "The consumer should
    have enable.auto.commit=false and should also not commit offsets manually (via sync or async commits)" (Kafka,
    KafkaProducer.sendOffsetsToTransaction; KIP-98, KIP-447). Harmless if it `repeats` the position that stood, or the
    start of the log if there was none: it changes nothing. An operator's commit is never in a transaction. Undecided if
    it is unknown who committed.

    Smallest history: `committed` 1 without a producer id, asked for by m0; its transactions carry its progress.

    Usual cause: The position was committed by the consumer itself and not in the producer's transaction.

    Remedy: Send it with sendOffsetsToTransaction, and switch enable.auto.commit off.
    """
    outside, undecided = split_undecided(partitions.commits_outside_transactions)
    rows = table(
        slice=outside.slice,
        order=outside.log_offset,
        committed_offset=outside.committed_offset,
        log_offset=outside.log_offset,
        stood=outside.stood,
        repeats=outside.repeats,
        by_operator=outside.by_operator,
        by_stranger=outside.maybe_operator,
        member=outside.member_name,
    )
    return Findings(rows, [proof(outside)], undecided)


@invariant(
    "torn-transaction",
    family="transactions",
    needs=("offsets log", "outputs", "requests"),
    level="none",
    progress_in_transaction=True,
    severity=50,
    rule=Rule(under("exactly-once")),
    message="a transaction of producer {producer_id} was committed in {committed_in} and aborted in {aborted_in}",
)
def torn_transaction(partitions: Partitions) -> Findings:
    """A transaction was committed in one log and aborted in another: only a part of its outputs and offsets counts.

    "Atomic writes across multiple partitions" is what KIP-98 promises, offsets included; a request that comes late and
    ends the next transaction breaks it ("torn into parts: some of their effects committed, others lost": Jepsen,
    Bufstream 0.1.0). Never legal. "Each transaction can be identified by (producer id, epoch)" (KIP-890) if the answer
    to EndTxn carries a new epoch: only then a tear is found. If many transactions share an epoch, every end must be one
    that was requested around its time, or requested again of a coordinator that found it ended; otherwise the case is
    undecided.

    Smallest history: EndTxn of producer 7, answered with epoch 1; 7's marker of epoch 1 is a commit in out-0, and an
    abort in the offsets log.

    Usual cause: A transaction was committed in one partition and aborted in another.

    Remedy: Use one transactional.id per process, and stop at ProducerFencedException instead of going on.
    """
    torn, undecided = split_undecided(partitions.torn_transactions)
    rows = table(
        slice=torn.slice,
        order=torn.time_ns,
        producer_id=torn.producer_id,
        producer_epoch=torn.producer_epoch,
        committed_in=torn.committed_in,
        aborted_in=torn.aborted_in,
    )
    return Findings(rows, [proof(torn, of) for of in ("committed_", "aborted_", "asked_")], undecided)


SECOND_NS = 1_000_000_000
MS_NS = 1_000_000
ABORTED_WITHIN_NS = 10 * SECOND_NS  # transaction.abort.timed.out.transaction.cleanup.interval.ms, its default


@invariant(
    "hanging-transaction",
    family="transactions",
    needs=("offsets log", "requests", "snapshot"),
    level="none",
    of="group",
    progress_in_transaction=True,
    severity=80,
    rule=Rule(always, the_clusters),
    message="a transaction of producer {producer_id} was open in {log} for {open_ms} ms, with a timeout of "
    "{timeout_ms} ms",
)
def hanging_transaction(group: Group) -> Findings:
    """A transaction was still open in a log although its coordinator had to have aborted it: readers wait for it.

    "The maximum amount of time in milliseconds that a transaction will remain open before the coordinator proactively
    aborts it" (Kafka, Producer Configs, transaction.timeout.ms), checked every ten seconds. If nothing ends it, the
    last stable offset "is unable to advance" and "consumers using the read_committed isolation level will be stuck"
    (KIP-664, KIP-890). Never the consumer's fault: if a producer dies, or never ends its transaction, the coordinator
    must abort it. Legal until then; the time starts again when a fault heals. Undecided if no witness saw the timeout,
    under a fault, and if the machine stood still.

    Smallest history: InitProducerId of producer 7 with a timeout of 1000 ms; twelve seconds after 7 began to write
    `transaction_open` of 7; phase snapshot.

    Usual cause: The brokers left a transaction open beyond its timeout. The consumer has no part in it.

    Remedy: Find it with kafka-transactions.sh and abort it; it blocks everyone who reads committed records.
    """
    opened = group.trial_context.open_transactions
    unknown = [one for one in opened if one.timeout_ms is None]
    due = [one for one in opened if one.timeout_ms is not None and one.read_ns > _end_by_ns(group, one, healed_ns=0)]
    healed_ns = max((window.healed_ns or 0 for window in group.trial_context.windows), default=0)
    in_force = any(window.healed_ns is None for window in group.trial_context.windows)
    hindered = [one for one in due if in_force or one.read_ns <= _end_by_ns(group, one, healed_ns=healed_ns)]
    hanging = [one for one in due if one not in hindered]
    still = machine_stalled(
        group.trial_context,
        np.array([_began_ns(group, one) for one in hanging], np.int64),
        np.array([one.read_ns for one in hanging], np.int64),
    ).tolist()
    found = [one for one, stood in zip(hanging, still, strict=True) if not stood]
    undecided = {
        Undecided.UNKNOWN_TIMEOUT: len(unknown),
        Undecided.END_UNDER_FAULT: len(hindered),
        Undecided.DELAYED: sum(still),
    }
    return _findings(group, found, undecided)


def _findings(group: Group, found: list[OpenTransaction], undecided: Mapping[Undecided, int]) -> Findings:
    rows = of_group(
        len(found),
        {
            "producer_id": [one.producer_id for one in found],
            "log": [group.trial_context.logs[one.log] for one in found],
            "open_ms": [(one.read_ns - _began_ns(group, one)) // MS_NS for one in found],
            "timeout_ms": [one.timeout_ms for one in found],
        },
    )
    proof = tuple(np.array([getattr(one, name) for one in found], np.int64) for name in ("source", "seq"))
    return Findings(rows, [(proof[0], proof[1])], [(reason, np.full(count, -1)) for reason, count in undecided.items()])


def _end_by_ns(group: Group, one: OpenTransaction, *, healed_ns: int) -> int:
    """Returns when the coordinator must have ended it, if faults were over at `healed_ns`."""
    timed_out_ns = _began_ns(group, one) + (one.timeout_ms or 0) * MS_NS
    return max(timed_out_ns, healed_ns) + ABORTED_WITHIN_NS + TOLERANCE_NS


def _began_ns(group: Group, one: OpenTransaction) -> int:
    if one.began_wall_ns is None:
        return one.read_ns
    wall_ns, read_ns = np.array([one.began_wall_ns], np.int64), np.array([one.read_ns], np.int64)
    return int(monotonic(group.trial_context, wall_ns, read_ns)[0])

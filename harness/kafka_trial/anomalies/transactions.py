"""Transactions: does a consumer read what was taken back, does its progress go with what it writes, and does each end?

Judged from the records of the trial's topic whose transactions were aborted, and from the offsets log; of hanging ones,
from what the witnesses saw open in their logs when they were asked to read to the end. Those are few: one a producer
and log at most. Transactions that were torn are in `torn.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.anomalies.claim_rule import Attributes, Rule, Weight, always, not_an_operators, the_clusters, under
from kafka_trial.anomalies.invariant import Findings, invariant
from kafka_trial.claim import Claim
from kafka_trial.model.commits_log import UNKNOWN, commits_in_effect, from_outside
from kafka_trial.model.kernels import NONE, exactly, first_of, ordered, picked, previous_in
from kafka_trial.model.progress import machine_stalled
from kafka_trial.model.rows import IN_TRANSACTION, Kind, Known
from kafka_trial.model.table import Table, of_group, stacked, table
from kafka_trial.model.trial_context import TOLERANCE_NS, OpenTransaction
from kafka_trial.model.undecided import Undecided
from kafka_trial.model.wall_clock import monotonic

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch
    from kafka_trial.model.group import Group


@invariant(
    "aborted-read",
    family="transactions",
    needs=("aborted records", "handled"),
    level="sink",
    severity=60,
    rule=Rule(under("exactly-once")),
    message="record {offset} of {place} was {what} although its transaction was aborted",
)
def aborted_read(batch: Batch) -> Findings:
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
    gone = batch.of(Kind.ABORTED_RECORD)
    delivered, arrived = batch.of(Kind.DELIVERED), batch.of(Kind.ARRIVED)
    arrived = arrived.take((arrived["known"] & Known.READ == 0) & (arrived["id_hash"] != NONE))
    read = stacked(_hits(gone, delivered, by="offset"), _hits(gone, arrived, by="id_hash"))
    read = read.take(ordered(read["slice"], read["aborted"], read["time_ns"], read["source"], read["seq"]))
    found = read.take(first_of(read["slice"], read["aborted"]))
    what = np.where(found["kind"] == Kind.ARRIVED, "effected", "delivered").astype(object)
    rows = table(slice=found["slice"], order=found["aborted"], offset=found["aborted"], what=what)
    return Findings(rows, [(found["gone_source"], found["gone_seq"]), (found["source"], found["seq"])])


def _hits(gone: Table, told: Table, *, by: str) -> Table:
    """Returns the rows that tell of an aborted record, with its offset and its event; `by` offset or
    id_hash."""
    known = gone.sorted_by("slice", by, "offset")
    at = exactly(known["slice"], known[by], told["slice"], told[by])
    hit = told.only("slice", "kind", "time_ns", "source", "seq").take(at >= 0)
    of = {name: known[column][at[at >= 0]] for name, column in _OF_GONE.items()}
    return hit.having(**of)


_OF_GONE = {"aborted": "offset", "gone_source": "source", "gone_seq": "seq"}


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
def offset_outside_transaction(batch: Batch) -> Findings:
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
    log = commits_in_effect(batch)
    before = previous_in(log["stretch"])
    stood = picked(log["committed_offset"], before, NONE)
    stood = np.where(before < 0, batch.log_starts[log["slice"]], stood)
    repeats = log["committed_offset"] == stood
    outside = log["in_transaction"] != IN_TRANSACTION
    whose = outside & ~repeats & (log["committer"] == UNKNOWN)
    chosen = outside & ~whose
    found, stood = log.take(chosen), stood[chosen]
    members = np.array([*batch.trial_context.members, None], dtype=object)
    rows = table(
        slice=found["slice"],
        order=found["log_offset"],
        committed_offset=found["committed_offset"],
        log_offset=found["log_offset"],
        stood=stood,
        repeats=repeats[chosen],
        **from_outside(found["committer"]),
        member=members[np.where(found["committer"] >= 0, found["committer"], -1)],
    )
    return Findings(
        rows, [(found["source"], found["seq"])], [(Undecided.OUTSIDE_COMMITTER_UNKNOWN, log["slice"][whose])]
    )


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

"""Hanging transactions: is one still open although its coordinator had to end it long ago?

Judged from what the witnesses saw open in their logs when they were asked to read to the end. They are few: one a
producer and log at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.claim_rule import Rule, always, the_clusters
from kafka_trial.invariants.clocks import monotonic
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.progress import DELAYED, stood_still
from kafka_trial.invariants.table import of_group
from kafka_trial.invariants.trial_context import TOLERANCE_NS, OpenTransaction

if TYPE_CHECKING:
    from kafka_trial.invariants.liveness import Group

SECOND_NS = 1_000_000_000
MS_NS = 1_000_000
ABORTED_WITHIN_NS = 10 * SECOND_NS  # transaction.abort.timed.out.transaction.cleanup.interval.ms, its default
UNKNOWN_TIMEOUT = "nobody saw how long a transaction that is open may stay so"
UNDER_FAULT = "a fault was in force when the coordinator had to end a transaction"


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
    aborts it" (Kafka, Producer Configs, transaction.timeout.ms), looked at every ten seconds; one that nothing ends
    "is unable to advance" the last stable offset, and "consumers using the read_committed isolation level will be
    stuck" (KIP-664, KIP-890). Never the consumer's fault: a producer that dies, or never ends what it began, is for the
    coordinator to abort. Legal until then, counted anew from the last healing of a fault. Undecided where nobody saw
    the timeout, under a fault, and where the machine stood still.

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
    still = stood_still(
        group.trial_context,
        np.array([_began_ns(group, one) for one in hanging], np.int64),
        np.array([one.read_ns for one in hanging], np.int64),
    ).tolist()
    found = [one for one, stood in zip(hanging, still, strict=True) if not stood]
    undecided = {UNKNOWN_TIMEOUT: len(unknown), UNDER_FAULT: len(hindered), DELAYED: sum(still)}
    return _findings(group, found, undecided)


def _findings(group: Group, found: list[OpenTransaction], undecided: dict[str, int]) -> Findings:
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

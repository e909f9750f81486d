"""Transactions: does a consumer read what was taken back, and does its progress go with what it writes?

Judged from the records of the trial's topic whose transactions were aborted, and from the offsets log.
Transactions that were torn, or never ended, are in `torn.py` and `hanging.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.claim import Claim
from kafka_trial.invariants.claim_rule import Attributes, Rule, Weight, not_an_operators, under
from kafka_trial.invariants.commits_log import OPERATOR, UNKNOWN, commits_in_effect
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import NONE, exactly, first_of, joined, ordered, picked, previous_in
from kafka_trial.invariants.rows import IN_TRANSACTION, Kind, Known
from kafka_trial.invariants.table import Table, stacked, table

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch

WHOSE = "nobody knows who made a commit outside of a transaction"


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
    aborted". Legal where exactly-once is not claimed. An effect whose id the log holds in a committed record as well
    may have come from that one. One finding a record, told by its first delivery or effect.

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
    found = read.take(first_of(joined(read["slice"], read["aborted"])))
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
        "repeats",
    ),
)
def offset_outside_transaction(batch: Batch) -> Findings:
    """A position was committed outside of any transaction, although the consumer's progress is in its transactions.

    What it wrote can be taken back then, and the position not, or the position is not there with what it wrote.
    "The consumer should have enable.auto.commit=false and should also not commit offsets manually (via sync or async
    commits)" (Kafka, KafkaProducer.sendOffsetsToTransaction; KIP-98, KIP-447). Harmless where it `repeats` the position
    that stood, or the start of the log where none did: nothing is changed by it. An operator's commit is never in a
    transaction. Undecided where nobody knows who committed.

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
        by_operator=found["committer"] == OPERATOR,
        member=members[np.where(found["committer"] >= 0, found["committer"], -1)],
    )
    return Findings(rows, [(found["source"], found["seq"])], [(WHOSE, log["slice"][whose])])

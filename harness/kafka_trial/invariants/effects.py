"""Effects: what reached the outside world, or was said to be delivered, by record id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.claim_rule import Rule, always, under
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import Array, first_of, joined, number_in
from kafka_trial.invariants.rows import Kind, Known
from kafka_trial.invariants.table import table

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch

STRANGERS = "its id was never sent, and yet the log holds it: somebody else writes to the topic"


@invariant(
    "phantom",
    family="delivery",
    needs=("ids", "sends"),
    level="sink",
    severity=110,
    rule=Rule(always),
    message="a record with the id {id}, which nobody sent, was {what} ({place})",
)
def phantom(batch: Batch) -> Findings:
    """An effect, or a delivered record, has an id that was never invoked: nobody sent it.

    "A consumer instance sees records in the order they are stored in the log" (Kafka, Introduction): it sees what was
    sent, and nothing else. A send whose fate nobody knows was invoked. Where the log itself holds the id,
    somebody else writes to the topic, and the case is undecided. Never legal.

    Smallest history: send `invoke` r0; effect `ok` r7.

    Usual cause: The consumer did something for a record that nobody sent: a wrong id, a default value, an old table.

    Remedy: Look where the id named comes from; check that the effect carries the id of the record that caused it.
    """
    told = batch.of(Kind.DELIVERED, Kind.ARRIVED)
    told = told.take(told["known"] & Known.UNSENT > 0).sorted_by("slice", "time_ns", "source", "seq")
    theirs = told["known"] & Known.READ > 0
    found = told.take(~theirs)
    what = np.where(found["kind"] == Kind.ARRIVED, "effected", "delivered").astype(object)
    rows = table(
        slice=found["slice"],
        order=found["time_ns"],
        id=_ids(batch, found["unsent_id"]),
        offset=found["offset"],
        what=what,
    )
    return Findings(rows, [(found["source"], found["seq"])], [(STRANGERS, told["slice"][theirs])])


@invariant(
    "duplicate-effect",
    family="delivery",
    needs=("effects",),
    level="sink",
    severity=40,
    rule=Rule(under("at-most-once", "exactly-once"), core=("exactly-once",)),
    message="record {offset} of {place} had its effect again, for the {number}. time",
)
def duplicate_effect(batch: Batch) -> Findings:
    """One record had two effects, or more: one finding for each beyond the first. Judged by record id.

    "Exactly once: each message is delivered once and only once" (Kafka, Message Delivery Semantics). Legal under
    at-least-once, where redelivered records have their effect again. Only effects that the sink acknowledged count.

    Smallest history: effect `ok` r0, effect `ok` r0.

    Usual cause: A record was handled again after a rebalance or a crash, and its effect is not idempotent.

    Remedy: Make the effect idempotent (an upsert by the record's id), write it with the position in one transaction, or
    use Kafka transactions; at-least-once alone never excludes it.
    """
    effects = batch.arrived
    record = joined(effects["slice"], effects["id_hash"])
    number = number_in(record)
    again = number > 0
    first = first_of(record)[np.cumsum(number == 0)[again] - 1]
    rows = table(
        slice=effects["slice"][again],
        order=effects["offset"][again],
        offset=effects["offset"][again],
        number=number[again] + 1,
    )
    proofs = [(effects["source"][at], effects["seq"][at]) for at in (first, np.flatnonzero(again))]
    return Findings(rows, proofs)


def _ids(batch: Batch, codes: Array) -> Array:
    """Returns the ids that stand in `unsent_id`; few, for only what was never sent carries them."""
    names = np.array([*batch.keys, None], dtype=object)
    return names[codes]

"""States: do the rows of the consumer's table, or the keys at its sink, end with what they should show?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_trial.anomalies.claim_rule import VIOLATION, Attributes, Rule, Weight, on_the_partition
from kafka_trial.anomalies.invariant import Findings, invariant, proof, split_undecided
from kafka_trial.claim import Claim
from kafka_trial.model.table import table
from kafka_trial.model.undecided import Undecided

if TYPE_CHECKING:
    from kafka_trial.model.partition import Partitions


def _claimed(claim: Claim) -> bool:
    return claim.state != "none" and claim.delivery in ("at-least-once", "exactly-once")


def _of_an_entity(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    if claim.state == "key" and attributes.get("same_key") is False:
        return "tolerated", "of records in several partitions: the claim promises the state of a key"
    return VIOLATION


@invariant(
    "stale-state",
    family="delivery",
    needs=("effects", "records", "row states", "snapshot", "states compared"),
    level="sink",
    severity=45,
    rule=Rule(_claimed, _of_an_entity, never_for={"key": (Undecided.UNORDERED,)}),
    message="a state ended as that of record {older_offset} of partition {older_partition}, though it had been that of "
    "record {offset} of {place}, which is newer",
    deciding=("same_key",),
    follows={"reordered-key": on_the_partition},
)
def stale_state(partitions: Partitions) -> Findings:
    """A state ended as that of an older record than one before: a row of the table, or a key at the sink.

    "Messages are never lost but may be redelivered" (Kafka, Message Delivery Semantics). If effects are states, a
    record that comes again may roll a state back, and it is right once the later records have come again too. If
    they do not come, the newest state that was written is lost. Whoever declares `effects = "state"` under
    at-least-once or exactly-once promises that the newest state stands in the end, whatever order is claimed. Rows
    are those of the table's log. At the HTTP sink and in an output topic there is one state of each key: the last
    is the effect that came last, or lies last in its partition ("Messages sent by a producer to a particular topic
    partition will be appended in the order they are sent"), where an output with another key is another state.
    Records of one key and partition are compared by offset (same_key): where the log holds them, or, once they were
    compacted away, where they were acknowledged. Of an id that was sent twice the last place is that of its state,
    and the first decides whether it is surely newer. Records of one entity without a key, and of a key that moved
    when partitions were added, lie in several partitions, between which Kafka promises no order: that is a
    violation only if `state = "entity"` is claimed, and only if sends and timestamps show which is newer; records
    of one timestamp have no order, and where the two disagree, it is undecided. Legal while the state is behind for
    a time. A state is not stale because of a record that never changed it (dead-lettered, failed, dropped, refused
    by the sink), nor if its row is gone. A member that lost its partition without being told is not excused,
    because everybody reads the states. Undecided while the position does not cover the newer record, which may come
    again, and if that was handed on to another topic; if the sink closed the connection of an effect that decides
    it; if the states of one key lie in several partitions of the output topic; and if nobody knows where a record
    lies or lay (it is gone, and was not acknowledged; or its id is unknown), unless the state is that of the newest
    record of its key in the log. Not judged if no state was written with two records of one key or entity.

    Smallest history: records 0 and 1 of key k; row 0 changes to record 1, then to record 0; commit 2. At a sink: the
    effect of record 1, then that of record 0; commit 2.

    Usual cause: A write in which the last writer wins, by several workers or by a member that had lost the partition;
    or a check of what is newer that is not one with the write.

    Remedy: Write only what is newer, in one statement: `INSERT … ON CONFLICT … DO UPDATE … WHERE` the row's version is
    older than the record's; a SELECT before the write decides nothing. An output topic keeps the order of writers that
    are fenced: transactions (KIP-447). An endpoint has to compare versions itself. The trial's sink does not: claim
    `state = "none"` if yours does.
    """
    stale, undecided = split_undecided(partitions.stale_states)
    rows = table(
        slice=stale.slice,
        order=stale.offset,
        offset=stale.offset,
        older_partition=stale.older_partition,
        older_offset=stale.older_offset,
        same_key=stale.same_key,
    )
    return Findings(rows, [proof(stale), (stale.source, stale.older_seq)], undecided)

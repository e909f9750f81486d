"""Orphans: partitions that a settled group with members in it gave to nobody, by the offsets log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_trial.anomalies.claim_rule import Rule, always
from kafka_trial.anomalies.invariant import Findings, invariant, proof, split_undecided
from kafka_trial.model.table import table

if TYPE_CHECKING:
    from kafka_trial.model.partition import Partitions


@invariant(
    "orphan-partition",
    family="ownership",
    needs=("offsets log", "log ends", "snapshot"),
    level="none",
    severity=190,
    rule=Rule(always),
    message="{place} had no owner, though the group had members and was at rest",
)
def orphan_partition(partitions: Partitions) -> Findings:
    """A partition had no owner, although the group had members and had been at rest for longer than the bound.

    "Each partition is consumed by exactly one consumer within each subscribing consumer group at any given time"
    (Kafka, Design, Consumer Position). A partition is owned if, by the last group records, a member has it assigned or
    still has to give it up. The bound is that of a stuck partition: detection of a lost member, a rebalance, a commit
    (and a metadata refresh if partitions or topics came). The group is at rest while no group record is written and no
    fault is in force. Legal in a group without members, while it rebalances, and for a partition that did not exist
    yet. Undecided if the machine stood still meanwhile.

    Smallest history: group record with member m0 and no partition; eleven seconds later phase snapshot.

    Usual cause: The group was at rest and a partition had no owner: a custom assignor, a member that assigned itself by
    hand beside the group, or a topic that came later, which a pattern matches that was looked up once.

    Remedy: Use one of Kafka's assignors, do not mix assign() and subscribe() in one group, and give a pattern to
    subscribe() itself.
    """
    alone, undecided = split_undecided(partitions.ownerless_stretches)
    rows = table(
        slice=alone.slice,
        order=alone.since_ns,
        log_offset=alone.log_offset,
        members=alone.members,
        lasted_ms=(alone.until_ns - alone.since_ns) // 1_000_000,
    )
    return Findings(rows, [proof(alone)], undecided)

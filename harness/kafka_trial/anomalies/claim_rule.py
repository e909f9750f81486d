"""The rule of an anomaly: which claims it can break, what excuses one instance of it, and how one explains another.

Each invariant names its own (`@invariant(rule=…, follows=…)`), with the excuse beside it; here is what several share.
An anomaly is found whatever the claim; `verdict/decide.py` weighs it by these, and puts an anomaly beneath another
where every instance of it is explained so: they share an event that proves both, or a partition, or a range of records.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from kafka_trial.claim import ACROSS_PARTITIONS, Claim
from kafka_trial.model.undecided import Undecided

ON_TOPIC = "on_topic"  # an attribute: the topic, where a group reads several, or hands records on through it
Attributes = Mapping[str, Any]
Weight = Literal["violation", "tolerated", "undecided", "ground"]  # ground: the cluster's fault
Excuse = Callable[[Claim, Attributes], tuple[Weight, str]]

VIOLATION: tuple[Weight, str] = ("violation", "")


def no_excuse(_: Claim, __: Attributes) -> tuple[Weight, str]:
    """Returns that every instance violates the claim."""
    return VIOLATION


@dataclass(frozen=True)
class Rule:
    """`claimed`: can this anomaly break the claim at all? `excuse`: weighs one instance where it can.

    `always_for`: the deliveries that cannot be acquitted by a judge that never looks for it. `never_for`: reasons for
    leaving a case undecided that do not matter to a claimed delivery or state, whichever way the case went.
    """

    claimed: Callable[[Claim], bool]
    excuse: Excuse = no_excuse
    always_for: tuple[str, ...] = ()
    never_for: Mapping[str, tuple[Undecided, ...]] = field(default_factory=dict)


def always(_: Claim) -> bool:
    """It breaks any claim."""
    return True


def never(_: Claim) -> bool:
    """It is counted: no key of a claim excludes it."""
    return False


def under(*delivery: str) -> Callable[[Claim], bool]:
    """It breaks claims of these deliveries."""
    return lambda claim: claim.delivery in delivery


def order_claimed(claim: Claim) -> bool:
    """It breaks claims of any order."""
    return claim.order != "none"


def partition_order_claimed(claim: Claim) -> bool:
    """It breaks claims of order per partition."""
    return claim.order == "partition"


def order_across_partitions_claimed(claim: Claim) -> bool:
    """It breaks claims of order per key that hold for a key which moves to another partition, too."""
    return claim.order == ACROSS_PARTITIONS


def fencing_claimed(claim: Claim) -> bool:
    """It breaks claims of fencing."""
    return claim.fenced


def no_rogue_reader_claimed(claim: Claim) -> bool:
    """It breaks claims that no member reads what no commit explains."""
    return claim.no_rogue_reader


def convergence_claimed(claim: Claim) -> bool:
    """It breaks claims of a time within which the group converges."""
    return claim.converge_within_s is not None


def memory_claimed(claim: Claim) -> bool:
    """It breaks claims of a limit of memory."""
    return claim.memory_max_bytes is not None


def age_claimed(claim: Claim) -> bool:
    """It breaks claims of how old a record may become before it is handled."""
    return claim.lag_age_max_s is not None


def cold_reads_claimed(claim: Claim) -> bool:
    """It breaks claims of how much a group reads that its brokers may have to read from their disks."""
    return claim.reads_cold_bytes_max is not None


def not_an_operators(_: Claim, attributes: Attributes) -> tuple[Weight, str]:
    """Excuses what was committed from outside the members; undecided where nobody can tell."""
    if attributes.get("by_stranger"):
        return "undecided", Undecided.MAYBE_OPERATOR
    if attributes.get("by_operator"):
        return "tolerated", "made by an operator, from outside the members"
    return VIOLATION


def of_other_keys(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    """Excuses records of different keys where order is claimed per key."""
    if claim.order in ("key", ACROSS_PARTITIONS) and attributes.get("same_key") is False:
        return "tolerated", "of different keys: order is claimed per key"
    return VIOLATION


def the_clusters(_: Claim, __: Attributes) -> tuple[Weight, str]:
    """Never blames the consumer: it makes any verdict unknown."""
    return "ground", "the cluster's fault, never the consumer's"


CONTROL_READ = "observer#"  # what it saw proves that there is a record, not who did what


@dataclass(frozen=True)
class Anomaly:
    """One instance of an anomaly, with the events that prove it by name (`source#seq`)."""

    name: str
    topic: str | None
    partition: int | None
    attributes: Mapping[str, Any]
    events: tuple[str, ...]


Explains = Callable[[Sequence[Anomaly]], Callable[[Anomaly], bool]]


def sharing_an_event(causes: Sequence[Anomaly]) -> Callable[[Anomaly], bool]:
    """Explains what is proven by an event that proves a cause too."""
    told = {event for cause in causes for event in cause.events if not event.startswith(CONTROL_READ)}
    return lambda one: not told.isdisjoint(one.events)


def on_the_partition(causes: Sequence[Anomaly]) -> Callable[[Anomaly], bool]:
    """Explains what is on the partition of a cause."""
    places = {(cause.topic, cause.partition) for cause in causes}
    return lambda one: (one.topic, one.partition) in places


def in_the_range(causes: Sequence[Anomaly]) -> Callable[[Anomaly], bool]:
    """Explains records from the first one a commit left out (`offset`) up to what was committed."""
    ranges: dict[tuple[str | None, int | None], list[tuple[int, int]]] = defaultdict(list)
    for cause in sorted(causes, key=lambda one: one.attributes.get("offset", 0)):
        low, high = cause.attributes.get("offset"), cause.attributes.get("committed_offset")
        if low is not None and high is not None:
            of_partition = ranges[cause.topic, cause.partition]
            highest = max(high, of_partition[-1][1]) if of_partition else high
            of_partition.append((low, highest))

    def explained(one: Anomaly) -> bool:
        of_partition, offset = ranges.get((one.topic, one.partition), []), one.attributes.get("offset", -1)
        before = bisect_right(of_partition, offset, key=lambda pair: pair[0])
        return before > 0 and offset < of_partition[before - 1][1]

    return explained

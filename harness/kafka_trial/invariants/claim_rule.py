"""The rule of an anomaly: which claims it can break, and what excuses one instance of it.

Each invariant names its own (`@invariant(rule=…)`), with the excuse beside it; here is what several share. An anomaly
is found whatever the claim; `verdict/decide.py` weighs it by these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kafka_trial.claim import Claim

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

    `core`: the deliveries that cannot be acquitted by a judge that never looks for it. `moot`: reasons for leaving a
    case undecided that do not matter to a delivery, whichever way the case went.
    """

    claimed: Callable[[Claim], bool]
    excuse: Excuse = no_excuse
    core: tuple[str, ...] = ()
    moot: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


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


def fencing_claimed(claim: Claim) -> bool:
    """It breaks claims of fencing."""
    return claim.fenced


def memory_claimed(claim: Claim) -> bool:
    """It breaks claims of a limit of memory."""
    return claim.memory_max_bytes is not None


def not_an_operators(_: Claim, attributes: Attributes) -> tuple[Weight, str]:
    """Excuses what was committed from outside the members."""
    if attributes.get("by_operator"):
        return "tolerated", "made by an operator, from outside the members"
    return VIOLATION


def of_other_keys(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    """Excuses records of different keys where order is claimed per key."""
    if claim.order == "key" and attributes.get("same_key") is False:
        return "tolerated", "of different keys: order is claimed per key"
    return VIOLATION


def the_clusters(_: Claim, __: Attributes) -> tuple[Weight, str]:
    """Never blames the consumer: it makes any verdict unknown."""
    return "ground", "the cluster's fault, never the consumer's"

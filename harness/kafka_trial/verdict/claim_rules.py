"""The claim's rules as data: which anomalies break which claim, and what excuses one instance of them.

`RULES` is the whole table, one rule an anomaly, the worst first; the few functions above it are the excuses. The
anomalies themselves come from `invariants/`, whatever the claim; `verdict.py` decides by these weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kafka_trial.claim import DELIVERY, Claim
from kafka_trial.invariants.delivery import KILLED_UNHEARD

Attributes = Mapping[str, Any]
Weight = Literal["violation", "tolerated", "undecided", "ground"]  # ground: the cluster's fault


@dataclass(frozen=True)
class Rule:
    """`claimed`: can this anomaly break the claim at all? `excuse`: weighs one instance where it can.

    `moot`: reasons for leaving a case undecided that do not matter to a delivery, whichever way the case went.
    """

    claimed: Callable[[Claim], bool]
    excuse: Callable[[Claim, Attributes], tuple[Weight, str]]
    moot: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


VIOLATION: tuple[Weight, str] = ("violation", "")
NOT_EXCLUDED = "this claim does not exclude it"


def _always(_: Claim) -> bool:
    return True


def _no_excuse(_: Claim, __: Attributes) -> tuple[Weight, str]:
    return VIOLATION


def _under(*delivery: str) -> Callable[[Claim], bool]:
    return lambda claim: claim.delivery in delivery


def _skipped(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    if attributes.get("by_operator"):
        return "tolerated", "skipped by an operator's commit, from outside the members"
    if claim.delivery == "at-most-once" and attributes.get("in_flight_at_crash"):
        return "tolerated", "in flight at a crash: at-most-once allows it"
    return VIOLATION


def _out_of_order(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    if claim.order == "key" and attributes.get("same_key") is False:
        return "tolerated", "of different keys: order is claimed per key"
    return VIOLATION


def _regression(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    own = attributes.get("own")
    if attributes.get("by_operator"):
        return "tolerated", "made by an operator, from outside the members"
    if not attributes.get("recovered") or claim.commits == "monotonic":
        return VIOLATION
    if attributes.get("restart_inside") or own is False:
        return VIOLATION
    if own is None:
        return "undecided", "nobody knows who made the backward commit"
    return "tolerated", "the owner's own, passed by later commits, with no restart inside: it settled"


def _not_an_operators(_: Claim, attributes: Attributes) -> tuple[Weight, str]:
    if attributes.get("by_operator"):
        return "tolerated", "made by an operator, from outside the members"
    return VIOLATION


def _the_clusters(_: Claim, __: Attributes) -> tuple[Weight, str]:
    return "ground", "the cluster's fault, never the consumer's"


def _corrupt(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    return _the_clusters(claim, attributes) if attributes.get("found_in") == "control read" else VIOLATION


def _zombie_commit(_: Claim, attributes: Attributes) -> tuple[Weight, str]:
    if attributes.get("fell") or attributes.get("skipped_record"):
        return VIOLATION
    return "tolerated", "the committed offset did not fall, and no record was skipped by it"


def _outside_transaction(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    if attributes.get("repeats"):
        return "tolerated", "it repeats the position that stood: nothing is changed by it"
    return _not_an_operators(claim, attributes)


def _never(_: Claim) -> bool:
    return False


def _oom_killed(_: Claim, attributes: Attributes) -> tuple[Weight, str]:
    if attributes.get("over_limit"):
        return VIOLATION
    return "undecided", "the machine ran out of memory, and this member was not seen above a limit it claims"


RULES: dict[str, Rule] = {
    # The worst first: violations are told in this order.
    # Committed by a member that was killed: handled, or in flight at its crash; at-most-once allows both.
    "skipped": Rule(
        _under("at-least-once", "at-most-once", "exactly-once"), _skipped, {"at-most-once": (KILLED_UNHEARD,)}
    ),
    "overtaken": Rule(_under("at-least-once", "exactly-once"), _not_an_operators),
    "unseen": Rule(_under("at-least-once", "exactly-once"), _no_excuse),
    "duplicate-effect": Rule(_under("at-most-once", "exactly-once"), _no_excuse),
    "torn-transaction": Rule(_under("exactly-once"), _no_excuse),
    "aborted-read": Rule(_under("exactly-once"), _no_excuse),
    "offset-outside-transaction": Rule(_under("exactly-once"), _outside_transaction),
    "hanging-transaction": Rule(_always, _the_clusters),
    "lost-write": Rule(_always, _the_clusters),
    "corrupt": Rule(_always, _corrupt),
    "phantom": Rule(_always, _no_excuse),
    "misplaced": Rule(_always, _no_excuse),
    "commit-lost": Rule(_always, _no_excuse),
    "zombie-commit": Rule(_always, _zombie_commit),
    "commit-regression": Rule(_always, _regression),
    "commit-past-end": Rule(_always, _not_an_operators),
    "commit-ahead": Rule(_under("at-least-once", "exactly-once"), _not_an_operators),
    "stuck-partition": Rule(_always, _no_excuse),
    "orphan-partition": Rule(_always, _no_excuse),
    "false-lag": Rule(_always, _no_excuse),
    "late-convergence": Rule(_always, _no_excuse),
    "split-ownership": Rule(_always, _no_excuse),
    # The broker's to prevent: what a member did wrong by it is `zombie-commit` or a fallen position.
    "stale-generation": Rule(lambda claim: claim.fenced, _no_excuse),
    "work-after-revoke": Rule(_always, _no_excuse),
    "reordered-key": Rule(lambda claim: claim.order != "none", _out_of_order),
    "overlapping-handlers": Rule(lambda claim: claim.order != "none", _out_of_order),
    "nonmonotonic-poll": Rule(lambda claim: claim.order == "partition", _no_excuse),
    "poll-skip": Rule(lambda claim: claim.order == "partition", _no_excuse),
    # An illegal redelivery is a redelivery: at-most-once excludes both.
    "illegal-redelivery": Rule(_under("at-least-once", "at-most-once"), _no_excuse),
    "redelivered": Rule(_under("at-most-once"), _no_excuse),
    "zombie-work": Rule(lambda claim: claim.fenced, _no_excuse),
    "crash-loop": Rule(_always, _no_excuse),
    "unbounded-close": Rule(_always, _no_excuse),
    "memory-over-limit": Rule(lambda claim: claim.memory_max_bytes is not None, _no_excuse),
    "oom-killed": Rule(lambda claim: claim.memory_max_bytes is not None, _oom_killed),
    # Counted: no key of a claim excludes them.
    "false-report": Rule(_never, _no_excuse),
    "starved-partition": Rule(_never, _no_excuse),
    "rebalance-storm": Rule(_never, _no_excuse),
    "uncommitted-progress": Rule(_never, _no_excuse),
    "retried": Rule(_never, _no_excuse),
    "rogue-reader": Rule(_never, _no_excuse),
}

# Without these a claim cannot be acquitted: a judge that never looks for them leaves it open.
CORE = {
    "at-least-once": ("skipped", "unseen", "commit-ahead", "illegal-redelivery"),
    "at-most-once": ("skipped", "redelivered"),
    "exactly-once": ("skipped", "unseen", "duplicate-effect", "commit-ahead"),
    "unclaimed": (),
}


def weigh(claim: Claim, anomaly: str, attributes: Attributes) -> tuple[Weight, str]:
    """Returns what one instance of an anomaly weighs under the claim, and why where it is no violation."""
    rule = RULES.get(anomaly)
    if rule is None or not rule.claimed(claim):
        return "tolerated", NOT_EXCLUDED
    return rule.excuse(claim, attributes)


def breaks(anomaly: str) -> list[str]:
    """Returns which claims an anomaly can break: "any", those of delivery, or a further key; none: it is counted.

    "nobody's" is what the cluster did: it makes every verdict unknown.
    """
    rule = RULES[anomaly]
    if rule.excuse(Claim("unclaimed"), {})[0] == "ground":
        return ["nobody's"]
    deliveries = [delivery for delivery in DELIVERY if rule.claimed(Claim(delivery, order="none"))]
    if deliveries:
        return ["any"] if len(deliveries) == len(DELIVERY) else deliveries
    keys = {
        "order": Claim("unclaimed", order="key"),
        'order = "partition"': Claim("unclaimed", order="partition"),
        "fenced": Claim("unclaimed", order="none", fenced=True),
        "memory_max_bytes": Claim("unclaimed", order="none", memory_max_bytes=1),
    }
    return [key for key, claim in keys.items() if rule.claimed(claim)][:1]


def needed(claim: Claim) -> list[str]:
    """Returns the anomalies that must be looked for before the claim can be acquitted."""
    return [*CORE[claim.delivery], *(["memory-over-limit"] if claim.memory_max_bytes is not None else [])]


def severity(anomaly: str) -> int:
    """Returns where an anomaly stands among the rules, the worst first; one without a rule comes before them."""
    return list(RULES).index(anomaly) if anomaly in RULES else -1

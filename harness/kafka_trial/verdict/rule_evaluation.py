"""What each claim allows, by the rules of the anomalies: each invariant has its own (`@invariant(rule=…)`).

Anomalies are found whatever the claim; `decide.py` decides by these weights.
"""

from __future__ import annotations

from kafka_trial.claim import DELIVERY, Claim
from kafka_trial.invariants.claim_rule import Attributes, Rule, Weight, the_clusters
from kafka_trial.invariants.invariant import find_invariant, list_invariants

NOT_EXCLUDED = "this claim does not exclude it"


def rule_of(anomaly: str) -> Rule | None:
    """Returns the rule of an anomaly; what is no anomaly of the judge's has none."""
    known = find_invariant(anomaly)
    return None if known is None else known.rule


def weigh(claim: Claim, anomaly: str, attributes: Attributes) -> tuple[Weight, str]:
    """Returns what one instance of an anomaly weighs under the claim, and why where it is no violation."""
    rule = rule_of(anomaly)
    if rule is None or not rule.claimed(claim):
        return "tolerated", NOT_EXCLUDED
    return rule.excuse(claim, attributes)


def breaks(rule: Rule) -> list[str]:
    """Returns which claims a rule can break: "any", those of delivery, or a further key; none: it is only counted.

    "nobody's" is what the cluster did: it makes every verdict unknown.
    """
    if rule.excuse is the_clusters:
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
    by_severity = sorted(list_invariants(), key=lambda one: one.severity)
    core = [one.name for one in by_severity if claim.delivery in one.rule.core]
    return [*core, *(["memory-over-limit"] if claim.memory_max_bytes is not None else [])]


def severity(anomaly: str) -> int:
    """Returns what is told first by the smallest number; what is no anomaly of the judge's comes before all."""
    known = find_invariant(anomaly)
    return -1 if known is None else known.severity

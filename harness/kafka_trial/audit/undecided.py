"""Doubt: how what the judge found becomes a case that nobody can decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from kafka_trial.invariants.causal_links import Anomaly
from kafka_trial.verdict.verdict_input import AnomalyResult


def some_open(found: AnomalyResult, doubt: Callable[[Anomaly], str | None]) -> AnomalyResult:
    """Returns what was found, less the instances of which `doubt` says why they prove nothing: these are undecided."""
    doubts = [(one, doubt(one)) for one in found.instances]
    sure = tuple(one for one, reason in doubts if reason is None)
    reasons = Counter(reason for _, reason in doubts if reason is not None)
    if not sure and found.more:  # what was only counted is like what was kept
        reasons[reasons.most_common(1)[0][0]] += found.more
    return with_reasons(replace(found, instances=sure, more=found.more if sure else 0), reasons)


def all_open(found: AnomalyResult, reason: str) -> AnomalyResult:
    """Returns what was found with all of it undecided."""
    return some_open(found, lambda _: reason)


def with_reasons(found: AnomalyResult, reasons: Mapping[str, int]) -> AnomalyResult:
    """Returns what was found with so many more cases undecided, by reason."""
    return replace(found, undecided=dict(Counter(found.undecided) + Counter(reasons)))

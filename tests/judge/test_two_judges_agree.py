"""Two judges, written independently from the same definitions, must say the same of every history."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from history_strategies import SINS, History, histories
from naive_checker import ANOMALIES, judge

EXAMPLES_PER_SIN = 40
CLEAN_EXAMPLES = 150
COUNTED_ONLY = {"redelivered", "zombie-work"}  # legal, unless a claim says otherwise

Sample = list[History]


def _sample(sin: str | None, examples: int) -> Sample:
    """The same `examples` histories each time."""
    sample: Sample = []

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(histories(sins=(sin,)))
    def gather(history: History) -> None:
        sample.append(history)

    gather()
    return sample


@pytest.fixture(scope="module")
def sample() -> Sample:
    """Histories of every sin, and clean ones."""
    clean = _sample(None, CLEAN_EXAMPLES)
    return clean + [history for sin in SINS for history in _sample(sin, EXAMPLES_PER_SIN)]


def test_the_sample_holds_every_anomaly_at_least_twenty_times(sample: Sample) -> None:
    """Each anomaly is found in at least twenty histories."""
    found = Counter(name for h in sample for name, instances in judge(h.events, h.facts).anomalies.items() if instances)
    assert {name: found[name] for name in ANOMALIES if found[name] < 20} == {}


def test_a_tenth_of_the_sample_is_clean_and_a_fifth_hands_over(sample: Sample) -> None:
    """The sample is not only made of sins and of single members."""
    clean = sum(1 for history in sample if history.plan.sin is None)
    handed_over = sum(1 for history in sample if history.plan.members > 1 and history.handovers)
    assert clean * 10 >= len(sample)
    assert handed_over * 5 >= len(sample)


def test_a_clean_history_breaks_no_promise(sample: Sample) -> None:
    """Nothing that could violate an at-least-once claim is found where no sin was planted."""
    wrong = [
        (history.plan, name, instances)
        for history in sample
        if history.plan.sin is None
        for name, instances in judge(history.events, history.facts).anomalies.items()
        if instances and name not in COUNTED_ONLY
    ]
    assert wrong == []

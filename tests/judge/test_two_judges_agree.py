"""Two judges, written independently from the same definitions, must say the same of every history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from history_strategies import SINS, History, histories
from kafka_trial.history.event import Event
from kafka_trial.invariants.circumstances import Settings
from kafka_trial.invariants.invariant import Anomaly
from kafka_trial.judge.judge import judge_events
from naive_checker import ANOMALIES, Found, judge

EXAMPLES_PER_SIN = 36
CLEAN_EXAMPLES = 200
SLEPT_EXAMPLES_PER_SIN = 4
COUNTED_ONLY = {
    "redelivered",
    "zombie-work",
    "duplicate-effect",
    "rogue-reader",
}  # legal, unless a claim says otherwise

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


# --- the other judge -------------------------------------------------------------------------------------------

PLACES = {
    "commit-regression": "log_offset",
    "zombie-commit": "log_offset",
    "commit-past-end": "log_offset",
    "commit-lost": "committed_offset",
    "commit-ahead": "committed_offset",
    "split-ownership": "log_offset",
    "stale-generation": "log_offset",
    "orphan-partition": "log_offset",
    "rebalance-storm": "bumps",
    "crash-loop": "member",
    "unbounded-close": "member",
    "memory-over-limit": "life",
    "oom-killed": "life",
    "rogue-reader": "member",
    "offset-outside-transaction": "log_offset",
    "torn-transaction": "producer_id",
    "hanging-transaction": "producer_id",
}
WITHOUT_PLACE = {"false-lag", "late-convergence"}  # at most one a partition
DECIDING = (
    "recovered",
    "own",
    "restart_inside",
    "fell",
    "skipped_record",
    "in_flight_at_crash",
    "same_key",
    "class",
    "found_in",
    "last_offset",
    "committed",
    "over_limit",
    "repeats",
    "producer_epoch",
    "log",
)
DECIDING_OF = {"aborted-read": ("what",), "offset-outside-transaction": ("by_operator",)}

Said = tuple[Counter[tuple[Any, ...]], int]  # instances, undecided cases


@pytest.mark.parametrize("name", ANOMALIES)
def test_both_judges_say_the_same(name: str, sayings: list[tuple[History, dict[str, Said], dict[str, Said]]]) -> None:
    """Naive and vectorised judge agree on instances, deciding attributes and undecided cases."""
    different = [
        f"{history.plan}\n    naive only {naive[name][0] - kernel[name][0]}, vectorised only "
        f"{kernel[name][0] - naive[name][0]}, undecided {naive[name][1]} and {kernel[name][1]}"
        for history, naive, kernel in sayings
        if name in naive and naive[name] != kernel[name]
    ]
    assert not different, f"{len(different)} of {len(sayings)} histories, the shortest:\n" + min(different, key=len)


def test_both_judges_say_the_same_of_a_harness_that_stood_still(sample: Sample) -> None:
    """For the middle half of a history it heard nothing: what it heard late is undecided for both, and often."""
    begun: Counter[str | None] = Counter()
    late, different = 0, []
    for history in sample:
        begun[history.plan.sin] += 1
        if begun[history.plan.sin] > SLEPT_EXAMPLES_PER_SIN:
            continue
        slept = _slept(history)
        naive, kernel = _naive_says(slept), _vectorised_says(slept)
        different += [(name, slept.plan) for name in naive if naive[name] != kernel[name]]
        late += sum(said[1] for said in kernel.values()) > sum(said[1] for said in _vectorised_says(history).values())
    assert different == []
    assert late >= 20


def _slept(history: History) -> History:
    """The same history, as a harness tells it that stood still from its first quarter to its last."""
    times = sorted(event.time_ns for event in history.events)
    begin_ns, end_ns = times[len(times) // 4], times[3 * len(times) // 4]
    run = [event for event in history.events if event.source == "run"]
    told = Event("run", 0, end_ns, "scheduling_delay", details={"delay_ns": end_ns - begin_ns, "every_ns": 0})
    run = sorted([*run, told], key=lambda event: event.time_ns)
    others = [event for event in history.events if event.source != "run"]
    return replace(history, events=[*others, *(replace(event, seq=seq) for seq, event in enumerate(run))])


@pytest.fixture(scope="module")
def sayings(sample: Sample) -> list[tuple[History, dict[str, Said], dict[str, Said]]]:
    """What both say of every history of the sample."""
    return [(history, _naive_says(history), _vectorised_says(history)) for history in sample]


def _naive_says(history: History) -> dict[str, Said]:
    findings = judge(history.events, history.facts)
    return {
        name: (Counter(_naive_instance(name, found) for found in instances), findings.undecided[name])
        for name, instances in findings.anomalies.items()
        if name not in findings.not_judged
    }


def _naive_instance(name: str, found: Found) -> tuple[Any, ...]:
    topic, partition, place, attributes = found
    return topic, partition, None if name in WITHOUT_PLACE or place == -1 else place, _deciding(name, dict(attributes))


def _vectorised_says(history: History) -> dict[str, Said]:
    judgement = judge_events(history.events, Settings(**history.facts), gated=False)
    assert judgement.crashed == {}
    assert judgement.defects == ()
    return {
        name: (Counter(_vectorised_instance(anomaly) for anomaly in finding.instances), sum(finding.undecided.values()))
        for name, finding in judgement.findings.items()
    }


def _vectorised_instance(anomaly: Anomaly) -> tuple[Any, ...]:
    key = PLACES.get(anomaly.name, "offset")
    life = {"life": f"{anomaly.attributes.get('member')}-{anomaly.attributes.get('incarnation')}"}
    place = (life | dict(anomaly.attributes)).get(key, anomaly.attributes.get("offset"))
    return (
        anomaly.topic,
        anomaly.partition,
        None if anomaly.name in WITHOUT_PLACE else place,
        _deciding(anomaly.name, anomaly.attributes),
    )


def _deciding(name: str, attributes: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    deciding = (*DECIDING, *DECIDING_OF.get(name, ()))
    return tuple((key, attributes[key]) for key in deciding if attributes.get(key) is not None)

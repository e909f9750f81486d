"""What differs between versions, of literal trials: paired by suite and seed, counted, and explained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka_trial.anomalies.invariant import list_invariants
from kafka_trial.cluster.versions import KNOWN, NUMBERS, Release, parse_release
from kafka_trial.cluster.wiring import Wiring, server_settings
from kafka_trial.comparison.differences import compare_trials
from kafka_trial.comparison.explain import CONSUMER, KNOWN_CHANGES, ConsumerKind
from kafka_trial.comparison.figures import FIGURE_NAMES
from kafka_trial.comparison.pairs import ComparedTrial
from kafka_trial.comparison.summary import parts_of

OLD, NEW = "3.9.2", "4.3.1"


def trials(kafka: str, values: list[float], *, suite: str = "member-killed", **fields: Any) -> list[ComparedTrial]:
    """Trials with one convergence each, with seeds from 1 on."""
    return [
        ComparedTrial(suite, kafka, seed, "pass", figures={"convergence": value}, **fields)
        for seed, value in enumerate(values, start=1)
    ]


def compared(*all_trials: ComparedTrial, consumer: ConsumerKind | None = None) -> dict[str, Any]:
    cells = [(one.scenario, one.kafka, one.seed) for one in all_trials]
    return compare_trials(all_trials, name="orders", cells=cells, consumer=consumer or ConsumerKind())


def lines(table: dict[str, Any]) -> list[str]:
    return [line for part in parts_of(table, "orders") for line in (part.title, *part.lines)]


def test_a_figure_that_is_larger_in_every_pair_differs() -> None:
    """Though suites and seeds differ more from each other than the versions do."""
    before, after = trials(OLD, [2, 4, 8, 16, 32]), trials(NEW, [3.1, 6.1, 12.2, 24.4, 47.9])
    assert lines(compared(*before, *after)) == [
        "Kafka 3.9.2 → 4.3.1: 5 pairs of the same suite and seed",
        "verdicts and anomalies: the same in all 5 pairs",
        "convergence: +52 % (+50 to +53 %), 8 s → 12.2 s, 5 pairs. KIP-848 (from 4.0 on): the new group coordinator "
        "serves classic groups too, on four threads, and commits wait for others that are written with them",
        "too few pairs to say (5 are needed): rebalance (0 pairs, 5 lack it), detection (0 pairs, 5 lack it), "
        "redelivered (0 pairs, 5 lack it), throughput (0 pairs, 5 lack it), memory (0 pairs, 5 lack it)",
    ]


def test_what_nothing_explains_is_unexplained() -> None:
    """Between two versions without a known change of it."""
    before, after = trials("4.3.1", [2, 4, 8, 16, 32]), trials("4.4.0", [3.1, 6.1, 12.2, 24.4, 47.9])
    assert "12.2 s, 5 pairs. unexplained" in lines(compared(*before, *after))[2]


def test_four_pairs_are_too_few_to_say_and_never_no_difference() -> None:
    """By name, and of verdicts and anomalies too; an undecided trial has no pair."""
    before, after = trials(OLD, [2, 4, 8, 16, 32]), trials(NEW, [4, 8, 16, 32, 64])
    after[4] = replace(after[4], verdict="unknown")
    title, findings, few = lines(compared(*before, *after))
    assert title == "Kafka 3.9.2 → 4.3.1: 4 pairs of the same suite and seed, 2 trials without a decided counterpart"
    assert findings == "verdicts and anomalies: the same in all 4 pairs; too few pairs to say (5 are needed)"
    assert few.startswith("too few pairs to say (5 are needed): rebalance (0 pairs, 4 lack it), detection (0 pairs, ")
    assert "convergence (4 pairs)" in few


def test_pairs_that_do_not_agree_show_nothing_and_exclude_nothing() -> None:
    """Alike is said only where the interval is within a tenth."""
    before, after = trials(OLD, [10] * 6), trials(NEW, [14, 8, 12, 7, 15, 9])
    close = trials("4.4.0", [14.01, 8.01, 12, 7, 15.01, 9])
    shown = lines(compared(*before, *after, *close))
    assert "a difference of 10 % or more is neither shown nor excluded: convergence" in shown[2]
    assert shown[6] == "less than 10 % apart: convergence (+0 % (-0 to +0 %), 6 pairs)"
    assert [line for line in shown if line.startswith("Kafka")] == [
        f"Kafka {step}: 6 pairs of the same suite and seed"
        for step in ("3.9.2 → 4.3.1", "4.3.1 → 4.4.0", "3.9.2 → 4.4.0")
    ]


def test_the_more_is_compared_the_wider_are_the_intervals() -> None:
    """So that all of a certificate hold together."""
    pair = [*trials(OLD, [2, 4, 8, 16, 32]), *trials(NEW, [3.1, 5.9, 12.3, 24.4, 46])]
    one, three = (compared(*pair, *more)["between"][0]["figures"][2] for more in ([], trials("4.4.0", [1, 2, 3, 4, 5])))
    assert (one["name"], three["low"] < one["low"] < one["high"] < three["high"]) == ("convergence", True)


def failing(kafka: str, kinds: list[str], seeds: range) -> list[ComparedTrial]:
    return [ComparedTrial("leader-lost", kafka, seed, "fail", frozenset(kinds)) for seed in seeds]


def test_verdicts_and_anomalies_are_counted_by_pairs() -> None:
    """Five that all go one way differ; one may be chance."""
    passing = [replace(one, verdict="pass", violations=frozenset()) for one in failing(OLD, [], range(1, 7))]
    after = [*failing(NEW, ["stuck-partition"], range(1, 6)), *failing(NEW, ["skipped"], range(6, 7))]
    found = lines(compared(*passing, *after))
    upgrade = "KIP-896 (from 4.0 on): requests of clients from before 2.1 are not answered any more"
    assert found[1:4] == [
        f"verdict fail: 0 → 6 of 6 pairs (leader-lost). {upgrade}",
        "skipped: 0 → 1 of 6 pairs (leader-lost); it may be chance. unexplained",
        f"stuck-partition: 0 → 5 of 6 pairs (leader-lost). {upgrade}",
    ]


def test_a_verdict_of_one_pair_is_told_with_too_few_pairs() -> None:
    """It is what was seen, and not yet the version's."""
    passed = [replace(one, verdict="pass", violations=frozenset()) for one in failing(OLD, [], range(1, 2))]
    found = lines(compared(*passed, *failing(NEW, ["skipped"], range(1, 2))))
    assert found[2] == "skipped: 0 → 1 of 1 pair (leader-lost); too few pairs to say. unexplained"


@pytest.mark.parametrize(
    ("consumer", "source"),
    [(ConsumerKind(), "unexplained"), (ConsumerKind(CONSUMER), "KIP-1251 (from 4.3 on)")],
)
def test_what_explains_depends_on_the_protocol(consumer: ConsumerKind, source: str) -> None:
    """And on the direction: KIP-1251 makes redeliveries fewer, not more."""
    sides = {
        kafka: [ComparedTrial("control", kafka, seed, "pass", figures={"redelivered": value}) for seed in range(1, 7)]
        for kafka, value in (("4.2.2", 40.0), ("4.3.1", 10.0), ("4.4.0", 40.0))
    }
    fewer, more = compared(*(one for side in sides.values() for one in side), consumer=consumer)["between"][:2]
    because = [side["figures"][3]["because"][0] for side in (fewer, more)]
    assert (because[0].split(":")[0], because[1]) == (source, "unexplained")


def test_every_known_change_names_its_source_and_what_there_is() -> None:
    """Figures and anomalies by their names, a release after the oldest that we know."""
    names = {*FIGURE_NAMES, *(one.name for one in list_invariants()), "fail", "never-assigned"}
    for one in KNOWN_CHANGES:
        assert one.source.startswith(("KIP-", "KAFKA-"))
        assert one.since > min(parse_release(number) for number in NUMBERS)
        assert set(one.names) <= names


def test_nothing_is_explained_by_a_setting_that_our_brokers_all_have(tmp_path: Path) -> None:
    """The harness sets KIP-1263's interval to 0 itself: it can explain no difference."""
    version = KNOWN["4.4.0"]
    ours = server_settings(Wiring(range(20_000, 20_000 + Wiring.size(3)), 3), version, 0, tmp_path)
    named = {setting for one in KNOWN_CHANGES for setting in one.settings}
    assert ("group.consumer.assignment.interval.ms" in ours, [name for name in named if name in ours]) == (True, [])
    assert Release(4, 3) in {one.since for one in KNOWN_CHANGES}

"""Whether a new client is worse than the old one, of literal trials."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_trial.comparison.differences import ClientVerdict, judge_client
from kafka_trial.comparison.pairs import ComparedTrial
from kafka_trial.errors import FAIL, PASS, UNKNOWN

KAFKA = "4.3.1"


def trial(told: str, seed: int = 1, suite: str = "control", **fields: Any) -> ComparedTrial:
    """A trial that passed, is unknown, or failed by the anomalies that are named."""
    verdict = told if told in ("pass", "unknown") else "fail"
    kinds = frozenset(told.split()) if verdict == "fail" else frozenset()
    return ComparedTrial(suite, KAFKA, seed, verdict, kinds, **fields)


def judged(
    before: list[ComparedTrial], after: list[ComparedTrial], suites: tuple[str, ...] = ("control",)
) -> ClientVerdict:
    seeds = sorted({one.seed for one in (*before, *after)})
    return judge_client(before, after, [(suite, KAFKA, seed) for suite in suites for seed in seeds])


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ("pass", "pass", PASS),
        ("pass", "skipped", FAIL),
        ("skipped", "skipped", PASS),
        ("skipped", "skipped reordered-key", FAIL),
        ("skipped", "reordered-key", FAIL),
        ("skipped reordered-key", "skipped", PASS),
        ("skipped", "pass", PASS),
        ("pass", "unknown", UNKNOWN),
        ("skipped", "unknown", UNKNOWN),
        ("unknown", "skipped", UNKNOWN),
        ("unknown", "unknown", UNKNOWN),
        ("unknown", "pass", UNKNOWN),
    ],
)
def test_only_what_is_worse_fails(before: str, after: str, status: int) -> None:
    """What both break alike passes; a comparison of nothing is unknown."""
    assert judged([trial(before)], [trial(after)]).exit == status


def test_each_reason_is_a_sentence() -> None:
    """With the suite and the version."""
    found = judged([trial("skipped reordered-key")], [trial("skipped phantom")])
    assert (found.worse, found.alike, found.better) == (
        ("control on Kafka 4.3.1: phantom, which the baseline did not show",),
        ("control on Kafka 4.3.1: skipped",),
        ("control on Kafka 4.3.1: reordered-key",),
    )


def test_a_flaw_that_shows_with_another_seed_is_not_new() -> None:
    """The old client skips with seed 1, the new one with seed 2: that is luck."""
    before, after = [trial("skipped"), trial("pass", 2)], [trial("pass"), trial("skipped", 2)]
    assert judged(before, after).verdict == "not worse"


@pytest.mark.parametrize(("worse", "verdict"), [(5, "worse"), (4, "not worse")])
def test_a_flaw_that_shows_far_more_often_is_worse(worse: int, verdict: str) -> None:
    """In five pairs that the old client passed, and in none the other way round."""
    before = [trial("skipped", 1), *(trial("pass", seed) for seed in range(2, 8))]
    after = [trial("skipped" if seed < worse + 2 else "pass", seed) for seed in range(1, 8)]
    found = judged(before, after)
    assert found.verdict == verdict
    assert [told for told in found.worse if "fails in 5 of 7 pairs" in told] == list(found.worse)


def test_a_trial_that_is_missing_is_unknown() -> None:
    """The old client was judged with that seed."""
    found = judged([trial("pass"), trial("pass", 2)], [trial("pass")])
    assert found.unknown == ("control on Kafka 4.3.1: not judged with seed 2, and the baseline was",)


def test_an_anomaly_that_is_not_judged_any_more_is_unknown() -> None:
    """The new client prints nothing: nobody can say that it is no worse. Where the old one was not judged either, or
    the new one was in some trial, nothing is lost."""
    silent = {"retried": "it prints no events"}
    lost = judged([trial("pass")], [trial("pass", not_judged=silent)])
    assert lost.unknown == ("control on Kafka 4.3.1: not judged any more for retried: it prints no events",)
    assert judged([trial("pass", not_judged=silent)], [trial("pass", not_judged=silent)]).exit == PASS
    twice = [trial("pass"), trial("pass", 2)]
    assert judged(twice, [trial("pass", not_judged=silent), trial("pass", 2)]).exit == PASS


def test_where_the_baseline_was_not_judged_nothing_is_compared() -> None:
    """It is named, and the rest decides."""
    suites = ("control", "hot-runs")
    before, after = (
        [trial("pass"), trial("unknown", suite="hot-runs")],
        [trial("pass"), trial("pass", suite="hot-runs")],
    )
    found = judged(before, after, suites)
    assert (found.verdict, found.not_compared) == ("not worse", ("hot-runs on Kafka 4.3.1",))


def test_a_fail_is_stronger_than_an_unknown() -> None:
    """What is worse is worse, whatever else is missing."""
    suites = ("control", "hot-runs")
    before = [trial("pass"), trial("pass", suite="hot-runs")]
    found = judged(before, [trial("skipped"), trial("unknown", suite="hot-runs")], suites)
    assert (found.exit, len(found.unknown)) == (FAIL, 1)

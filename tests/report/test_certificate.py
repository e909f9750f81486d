"""A certificate's page, JUnit file and summary, of literal trials: when, how long, tried again, and not tried."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kafka_trial.comparison.differences import Baseline, compare_trials
from kafka_trial.comparison.explain import ConsumerKind
from kafka_trial.comparison.pairs import ComparedTrial
from kafka_trial.errors import FAIL, PASS, UNKNOWN
from kafka_trial.history.output_names import CERTIFICATE as FILE
from kafka_trial.history.output_names import JUNIT
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.report.certificate import (
    PAGE,
    Certificate,
    CertifiedTrial,
    duration_in_words,
    read_certificate,
    times_in_words,
    trial_times,
    write_certificate,
)
from kafka_trial.report.junit import write_junit
from kafka_trial.report.markdown import certificate_summary

STALLED = "the harness stood still for 9.1 s of 30.0 s"
CONTROL = CertifiedTrial(
    *("control", "4.3.1", 1, "pass", 0, [], [], [], [], []),
    versions={},
    run="runs/4.3.1/control/1",
    replay="kafka-trial run control",
    files={},
    began="2026-11-27T23:58:00Z",
    lasted_s=48.2,
)
KILLED = replace(
    CONTROL,
    scenario="member-killed",
    run="runs/4.3.1/member-killed/1-try2",
    began="2026-11-27T23:59:00Z",
    lasted_s=151.0,
    earlier=[{"run": "runs/4.3.1/member-killed/1", "reasons": [STALLED]}],
)
CERTIFICATE = Certificate(
    consumer={"name": "orders", "digest": "d1", "files": {"main.py": "a"}, "command": ["x"], "claim": {"order": "key"}},
    kafka_trial="0.1.0",
    harness_digest="h1",
    suites=["control", "member-killed", "hot-runs"],
    kafka=["4.3.1"],
    seeds=[1],
    left_out={"slow-network": "not named by --suite"},
    trials={one.cell: one for one in (CONTROL, KILLED)},
)
NOT_BEGUN = replace(CERTIFICATE, trials={})


def page_of(certificate: Certificate, folder: Path) -> str:
    """Returns what a reader of the page sees, without markup, in one line."""
    write_certificate(certificate, folder)
    body = (folder / PAGE).read_text().partition("<body>")[2]
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", body)))


@pytest.mark.parametrize(
    "said",
    [
        "2 of 4 suites tried: a verdict of these, and of no other.",
        "Tried 2026-11-27 23:58 to 2026-11-28 00:01 UTC; 2 trials took 3 min.",
        "Seed 1. kafka-trial 0.1.0 (state h1 )",
        "control pass 48 s",
        "member-killed pass 3 min, 2 tries",
        "hot-runs not tried",
        "What did not pass all 2 trials that were tried passed",
        "2 tries; the machine, not the consumer, made unknown runs/4.3.1/member-killed/1 : " + STALLED,
        "What was not tried hot-runs: its turn has not come on Kafka 4.3.1 with seed 1 slow-network: not named",
    ],
)
def test_the_page_says_when_how_long_and_what_was_not_tried(said: str, tmp_path: Path) -> None:
    """Each in its words."""
    assert said in page_of(CERTIFICATE, tmp_path)


def test_what_was_not_tried_is_never_told_as_nothing(tmp_path: Path) -> None:
    """Before the first trial has ended nothing has passed, and nothing was judged."""
    page = page_of(NOT_BEGUN, tmp_path)
    assert ("nothing" in page, page.count("no trial has been tried"), "No trial has ended yet." in page) == (
        False,
        2,
        True,
    )


def test_seeds_stand_beside_their_verdicts(tmp_path: Path) -> None:
    """Where there are several."""
    both = {CONTROL.cell: CONTROL, ("control", "4.3.1", 2): replace(CONTROL, seed=2, verdict="unknown", exit=4)}
    page = page_of(replace(CERTIFICATE, suites=["control"], seeds=[1, 2], trials=both), tmp_path)
    assert "control pass seed 1, 48 s unknown seed 2, 48 s" in page


def test_what_was_tried_again_stands_in_the_junit_file(tmp_path: Path) -> None:
    """How often, and why it was unknown before."""
    write_junit(CERTIFICATE, tmp_path, {})
    cases = list(ElementTree.parse(tmp_path / JUNIT).getroot().iter("testcase"))
    told = {case.get("name"): {one.get("name"): one.get("value") for one in case.iter("property")} for case in cases}
    assert "tries" not in told["control[seed 1]"]
    again = told["member-killed[seed 1]"]
    assert (again["tries"], again["unknown before"]) == ("2", f"{tmp_path}/runs/4.3.1/member-killed/1: {STALLED}")


def test_a_summary_says_of_how_many_suites_it_is_and_what_was_tried_again(tmp_path: Path) -> None:
    """In its first line, and with the reason."""
    summary = unescape(certificate_summary(CERTIFICATE, tmp_path, page=PAGE))
    assert "\n2 of 4 suites, 3 trials: 2 pass, 1 not tried\n" in summary
    assert "### Tried again\n\n- orders on member-killed, Kafka 4.3.1, seed 1: pass in 2 tries" in summary
    assert STALLED in summary


def test_an_unknown_says_what_to_do_wherever_it_is_told(tmp_path: Path) -> None:
    """On the page, in the JUnit file and in the summary."""
    note = "what to do: try it again"
    unknown = replace(CONTROL, verdict="unknown", exit=4, reasons=[STALLED], notes=[note])
    certificate = replace(CERTIFICATE, trials={unknown.cell: unknown})
    write_junit(certificate, tmp_path, {})
    summary = unescape(certificate_summary(certificate, tmp_path, page=PAGE))
    assert [note in text for text in (page_of(certificate, tmp_path), (tmp_path / JUNIT).read_text(), summary)] == [
        True
    ] * 3


def test_a_trial_tells_when_it_began_and_how_long_it_took(tmp_path: Path) -> None:
    """From its first phase on, by its own clocks; without them, nothing."""
    folder = create_run_folder(tmp_path / "run", "control", "orders")
    assert trial_times(RunFolder(tmp_path / "nowhere")) == ("", None)
    with Recorder(folder.history, "run") as told:
        told.record("phase", phase="prepare")
        told.record("clock", read_ns=0, wall_ns=1_795_824_000_000_000_000)
        told.record("end", outcome="ok")
    began, lasted_s = trial_times(folder)
    assert began in ("2026-11-27T23:59:59Z", "2026-11-28T00:00:00Z")
    assert lasted_s == pytest.approx(0.0, abs=1.0)


def test_times_are_told_in_words() -> None:
    """To the minute; nothing of what was not recorded."""
    assert [duration_in_words(seconds) for seconds in (48.2, 119, 150, 7500)] == ["48 s", "119 s", "2 min", "2 h 5 min"]
    assert times_in_words([("", 3.0)]) == ""
    assert times_in_words([("2026-11-27T04:00:00Z", 60.0)]) == "2026-11-27 04:00 to 04:01 UTC; 1 trial took 60 s"


def compared(certificate: Certificate, *, baseline: Baseline | None = None) -> Certificate:
    """Returns a certificate that says what differs between the trials that it has."""
    trials = [
        ComparedTrial(*trial.cell, trial.verdict, frozenset(one["anomaly"] for one in trial.violations))
        for trial in certificate.trials.values()
    ]
    consumer = {"name": "orders", "cells": certificate.cells, "consumer": ConsumerKind()}
    return replace(certificate, comparison=compare_trials(trials, baseline=baseline, **consumer))  # type: ignore[arg-type]


VIOLATION = {"anomaly": "skipped", "count": 1, "sentence": "record 4 was skipped", "events": []}
FAILED = replace(CONTROL, verdict="fail", exit=FAIL, violations=[VIOLATION])
BEFORE = replace(CONTROL, kafka="4.2.2", run="runs/4.2.2/control/1")
TWO_VERSIONS = replace(
    CERTIFICATE, suites=["control"], kafka=["4.2.2", "4.3.1"], trials={one.cell: one for one in (BEFORE, FAILED)}
)
TITLE = "Kafka 4.2.2 → 4.3.1: 1 pair of the same suite and seed"
SKIPPED = "skipped: 0 → 1 of 1 pair (control); too few pairs to say. unexplained"


def test_what_differs_between_versions_stands_wherever_a_reader_looks(tmp_path: Path) -> None:
    """On the page, in the summary and in the JUnit file, where it fails nothing; it reads as it was written."""
    certificate = compared(TWO_VERSIONS)
    page = page_of(certificate, tmp_path)
    write_junit(certificate, tmp_path, {})
    suite = list(ElementTree.parse(tmp_path / JUNIT).getroot())[-1]
    summary = unescape(certificate_summary(certificate, tmp_path, page=PAGE))
    assert [f"What differs {TITLE}" in page, SKIPPED in page] == [True, True]
    assert f"### {TITLE}\n\n- verdict fail" in summary
    assert f"\n- {SKIPPED}\n" in summary
    assert [suite.get(name) for name in ("name", "tests", "failures")] == ["What differs", "1", "0"]
    assert SKIPPED in str(suite[0][0].text)
    assert read_certificate(tmp_path / FILE).comparison == certificate.comparison
    assert certificate.status == FAIL


def test_a_certificate_without_a_comparison_has_no_trace_of_one(tmp_path: Path) -> None:
    """Neither in the file nor on the page nor in the JUnit file."""
    page = page_of(TWO_VERSIONS, tmp_path)
    write_junit(TWO_VERSIONS, tmp_path, {})
    texts = (page, (tmp_path / FILE).read_text(), (tmp_path / JUNIT).read_text())
    assert [word in text for text in texts for word in ("differs", "comparison")] == [False] * 6


@pytest.mark.parametrize(
    ("old", "word", "tags", "status"),
    [
        (FAILED, "NOT WORSE: orders is not worse than its baseline old in what was tried", ["system-out"], PASS),
        (CONTROL, "WORSE: orders is worse than its baseline old", ["failure"], FAIL),
        (
            replace(CONTROL, verdict="unknown"),
            "UNKNOWN: whether orders is worse than its baseline old cannot be told",
            ["error"],
            UNKNOWN,
        ),
    ],
)
def test_with_a_baseline_the_comparison_decides(
    old: CertifiedTrial, word: str, tags: list[str], status: int, tmp_path: Path
) -> None:
    """A trial that the old client fails alike is no failure in the JUnit file; it is told there."""
    one = replace(CERTIFICATE, suites=["control"], trials={FAILED.cell: FAILED})
    kinds = frozenset(one["anomaly"] for one in old.violations)
    certificate = compared(one, baseline=Baseline("old", [ComparedTrial(*old.cell, old.verdict, kinds)]))
    write_junit(certificate, tmp_path, {})
    tried, differs = ElementTree.parse(tmp_path / JUNIT).getroot()
    assert ([part.tag for part in differs[0]], differs[0].get("name"), certificate.status) == (tags, word, status)
    assert [part.tag for part in tried[0]] == ["properties", "system-out"]
    assert "record 4 was skipped" in str(tried[0][1].text)
    assert word in page_of(certificate, tmp_path)

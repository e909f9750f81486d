"""The page of cuts: of its rows alone, and what it says of sins."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from kafka_trial import registry
from lab.calibration.attempts import Attempt, Row
from lab.cuts.campaign import PAGE_NAME, page_of_folder
from lab.cuts.sins import sins_on_suites, sins_section
from lab.repository import reports_folder

pytestmark = pytest.mark.lengthy

# Without an HTTP sink, not ready for poison, and of one topic.
NOT_FOR_THEM = (
    *("slow-handlers", "failing-endpoint", "poison-record"),
    *("several-topics", "several-topics-killed", "topic-created"),
)
CUT = "cut-OffsetCommit-answered-kill"
FOUND = Row(
    Attempt("commits-before-processing", CUT, sin=True),
    ("commit-ahead",),
    "fail",
    ("commit-ahead", "skipped"),
    (),
    (True,),
    making_digest="m2",
    trial_digest="t2",
)
ELSEWHERE = replace(FOUND.attempt, scenario="member-killed")
MISSED = replace(FOUND, attempt=ELSEWHERE, verdict="pass", violations=())


def test_the_page_is_what_its_rows_make() -> None:
    """Whoever adds a row writes it again: `python -m lab.cuts --page`."""
    assert (reports_folder() / PAGE_NAME).read_text() == page_of_folder(reports_folder())


def test_a_sin_is_counted_at_its_cut_by_the_newest_rows_and_elsewhere_by_all() -> None:
    """What was no answer counts nowhere; without rows at cuts there is no such part."""
    older = replace(FOUND, making_digest="m1", verdict="pass", violations=())
    off = replace(FOUND, attempt=replace(FOUND.attempt, sin=False), expected=(), verdict="pass", violations=())
    elsewhere = replace(MISSED, verdict="fail", violations=("commit-ahead",), making_digest="m1")
    unknown = replace(FOUND, verdict="unknown")
    rows = [older, FOUND, FOUND, off, unknown, MISSED, elsewhere]
    assert sins_section(rows, [])[-2] == f"| commits-before-processing | {CUT} | 2 of 2 | 1 of 2 |"
    assert sins_section([MISSED], []) == []


def test_what_is_not_tried_any_more_is_left_out() -> None:
    """A sin that has gone, and a cut that is no longer the one of its anomaly."""
    gone = replace(FOUND, attempt=replace(FOUND.attempt, consumer="never-was"))
    other = replace(FOUND, attempt=replace(FOUND.attempt, scenario="cut-Fetch-after-pause"))
    assert sins_section([gone, other], []) == []


def test_of_a_sin_that_only_cuts_find_any_conviction_elsewhere_counts() -> None:
    """Nothing is promised there, so that whatever is found is a find; of one suite the newest row counts."""
    convicted = replace(MISSED, verdict="fail", violations=("reordered-key",))
    another = replace(convicted, attempt=replace(ELSEWHERE, scenario="member-paused"))
    assert sins_section([FOUND], [convicted, MISSED, another])[-2].endswith("| 1 of 1 | 1 of 2 |")


def test_sins_of_a_cut_or_of_one_suite_are_tried_on_all_others() -> None:
    """By the variant that tells what it does: the former on every suite, the latter on all but their own."""
    tries = Counter(attempt.consumer for attempt in sins_on_suites())
    suites = len(registry.scenarios()) - len(NOT_FOR_THEM)
    assert tries.keys() >= {"starts-over-without-answer", "retries-lost-commits"}
    assert set(tries.values()) == {suites, suites - 1}
    assert {registry.find_consumer(sin).name for sin in tries} == {"consumer.toml"}

"""Ownership epochs that a rebalance ended, and records in hand then: literal histories of two records."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    assigned,
    batch_of,
    delivered,
    exited,
    fetched,
    handled,
    judgement,
    processed,
    revoked,
    told,
)
from kafka_trial.model.summaries import summaries
from kafka_trial.verdict.collect import collect
from kafka_trial.verdict.verdict_input import Scope

Lines = list[Line | list[Line]]
BROUGHT, NOTHING_NEW = fetched("m0", 0, size_bytes=99), fetched("m0", 2)
UNTRIED = "no rebalance met a record in hand: what this consumer does then was not tried"
ALL_DONE: Lines = [assigned("m0"), BROUGHT, handled("m0", 0, 1), NOTHING_NEW, revoked("m0")]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (ALL_DONE, (1, 0)),
        ([assigned("m0"), BROUGHT, handled("m0", 0), delivered("m0", 1), revoked("m0"), processed("m0", 1)], (1, 1)),
        ([assigned("m0"), BROUGHT, handled("m0", 0), revoked("m0"), assigned("m1"), handled("m1", 1)], (1, 1)),
        ([assigned("m0"), fetched("m0", 0), revoked("m0"), assigned("m1"), handled("m1", 0, 1)], (1, 0)),
        ([assigned("m0"), handled("m0", 0, 1), revoked("m0")], (1, 1)),
        ([assigned("m0"), BROUGHT, delivered("m0", 0), exited("m0")], (0, 0)),
        ([*ALL_DONE, assigned("m1"), fetched("m1", 0, size_bytes=9), revoked("m1")], (2, 0)),
    ],
    ids=[
        "all was done",
        "a handler ran",
        "a record was fetched and not begun",
        "nothing was fetched yet",
        "the request log tells of no fetch",
        "an exit is no rebalance",
        "what others had handled is no record in hand",
    ],
)
def test_what_a_rebalance_met(lines: Lines, found: tuple[int, int]) -> None:
    """How many ownership epochs it ended, and in how many of them a record may have been in hand."""
    assert told(summaries(batch_of(lines)), "revocations", "revocations_met") == [found]


@pytest.mark.parametrize(
    ("lines", "untried"),
    [
        (ALL_DONE, (UNTRIED,)),
        ([*ALL_DONE, assigned("m0"), fetched("m0", 0, size_bytes=9), delivered("m0", 0), revoked("m0")], ()),
        ([assigned("m0"), BROUGHT, handled("m0", 0, 1)], ()),
    ],
    ids=["none met one", "one met one", "there was no rebalance"],
)
def test_a_trial_says_what_its_rebalances_did_not_try(lines: Lines, untried: tuple[str, ...]) -> None:
    """Only where there were rebalances, and none of them can have met a record in hand."""
    assert collect(judgement(lines), [], Scope(1)).untried == untried


def test_without_the_whole_request_log_nothing_is_said() -> None:
    """A fetch that is not in the log may have brought a record."""
    assert collect(judgement(ALL_DONE, whole=False), [], Scope(1)).untried == ()

"""What members are given before they seek to where their own store tells them to begin."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from histories import (
    Line,
    after,
    assigned,
    delivered,
    effect,
    exited,
    fault,
    handled,
    history,
    processed,
    revoked,
    with_settings,
)
from kafka_trial.model.trial_context import Settings
from lab.agreement.sayings import naive_says, vectorised_says
from lab.history_strategies import History

AT_LEAST_ONCE = with_settings(progress="sink")
AT_MOST_ONCE = with_settings(progress="sink", delivery="at-most-once")
IN_KAFKA = with_settings(delivery="at-most-once")
SEEN = with_settings(progress="sink", delivery="at-most-once", sink="http")

TAKEN = [assigned("m0"), *handled("m0", 0, 1), delivered("m0", 2)]
TAKEN_OVER = [*TAKEN, fault("kill", "m0"), exited("m0", signal=9), after(4), assigned("m1")]
GIVEN_ON = [revoked("m1", 0), assigned("m0-1")]

LEFT = [delivered("m1", 4)]
SET_ASIDE = [*LEFT, processed("m1", 4, outcome="discarded")]


def found(name: str, *lines: Line | list[Line], settings: Settings) -> tuple[list[int], int]:
    """The records of an anomaly, and how many cases are undecided, of a partition of six, as both judges say."""
    names = ("session_timeout_s", "poll_interval_s", "commit_interval_s", "delivery", "progress", "sink")
    told = {name: getattr(settings, name) for name in names}
    one = cast("History", SimpleNamespace(events=history(lines, records=6), settings=told))
    (cases, undecided), by_naive = vectorised_says(one)[name], naive_says(one)[name]
    assert by_naive == (cases, undecided)
    return sorted(place[2] for place in cases), undecided


@pytest.mark.parametrize("settings", [AT_LEAST_ONCE, AT_MOST_ONCE, with_settings(progress="none")])
@pytest.mark.parametrize("early", [LEFT, SET_ASIDE], ids=["left", "set aside"])
@pytest.mark.parametrize("name", ["nonmonotonic-poll", "poll-skip", "reordered-key", "overlapping-handlers"])
def test_what_a_client_is_given_above_its_start_is_out_of_no_order(
    name: str, early: list[Line], settings: Settings
) -> None:
    """m1's reset policy gives it record 4; its member knows that record 3 is next, and seeks back to it."""
    assert found(name, *TAKEN_OVER, *early, *handled("m1", 3, 4, 5), settings=settings) == ([], 0)


@pytest.mark.parametrize("name", ["nonmonotonic-poll", "reordered-key"])
def test_what_was_done_before_the_step_back_is_out_of_order(name: str) -> None:
    """m1 does record 4, or leaves it in a pool, and then record 3."""
    records = [3, 4] if name == "nonmonotonic-poll" else [3]
    assert found(name, *TAKEN_OVER, *handled("m1", 4, 3, 4), settings=AT_LEAST_ONCE) == (records, 0)
    pooled = [delivered("m1", 4), *handled("m1", 3), processed("m1", 4)]
    expected = [3] if name == "nonmonotonic-poll" else []
    assert found(name, *TAKEN_OVER, *pooled, settings=AT_LEAST_ONCE) == (expected, 0)


def test_a_step_back_after_the_first_work_is_no_seek_to_the_start() -> None:
    """m1 does record 3, is given record 5 and then record 4."""
    lines = [*TAKEN_OVER, *handled("m1", 3), delivered("m1", 5), *handled("m1", 4, 5)]
    assert found("nonmonotonic-poll", *lines, settings=AT_LEAST_ONCE) == ([4], 0)


def test_a_group_starts_where_kafka_says() -> None:
    """Where progress is in Kafka there is no start to seek to."""
    assert found("nonmonotonic-poll", *TAKEN_OVER, *LEFT, *handled("m1", 3, 4), settings=IN_KAFKA) == ([3], 0)


def test_an_effect_shows_that_the_work_had_begun() -> None:
    """m1 posts record 4, says nothing of its end, and steps back."""
    sought = [*handled("m1", 3), effect(3)]
    assert found("nonmonotonic-poll", *TAKEN_OVER, *LEFT, *sought, settings=SEEN) == ([], 0)
    assert found("nonmonotonic-poll", *TAKEN_OVER, *LEFT, effect(4), after(1), *sought, settings=SEEN) == ([3], 0)


def test_a_record_that_was_left_is_skipped_all_the_same() -> None:
    """m1 is given record 4 too early, starts at record 3, and goes on behind record 4; it may have given that up."""
    then = handled("m1", 3, 5)
    assert found("poll-skip", *TAKEN_OVER, *LEFT, *then, settings=AT_LEAST_ONCE) == ([4], 0)
    assert found("poll-skip", *TAKEN_OVER, *SET_ASIDE, *then, settings=AT_LEAST_ONCE) == ([], 0)


def test_at_most_once_a_record_that_was_left_may_have_been_begun() -> None:
    """m1 is given record 4, seeks back to record 3, and gives the partition back; m0 does record 4."""
    then = [*handled("m1", 3), *GIVEN_ON, *handled("m0-1", 4, 5)]
    assert found("redelivered", *TAKEN_OVER, *LEFT, *then, settings=AT_MOST_ONCE) == ([], 1)
    assert found("redelivered", *TAKEN_OVER, *SET_ASIDE, *then, settings=AT_MOST_ONCE) == ([], 0)
    assert found("redelivered", *TAKEN_OVER, *handled("m1", 4), *then, settings=AT_MOST_ONCE) == ([4], 0)
    assert found("redelivered", *TAKEN_OVER, *LEFT, *GIVEN_ON, *then[3:], settings=AT_MOST_ONCE) == ([4], 0)
    assert found("redelivered", *TAKEN_OVER, *LEFT, *then, settings=IN_KAFKA)[0] == [4]


def test_at_most_once_a_sink_shows_whether_it_was_begun() -> None:
    """m1 is given record 4, posts it or does not, and seeks back; m0 does record 4 in the end."""
    then = [*handled("m1", 3), effect(3), *GIVEN_ON, *handled("m0-1", 4), effect(4)]
    assert found("redelivered", *TAKEN_OVER, *LEFT, *then, settings=SEEN) == ([], 0)
    assert found("redelivered", *TAKEN_OVER, *LEFT, effect(4), after(1), *then[:-1], settings=SEEN) == ([4], 0)
    assert found("duplicate-effect", *TAKEN_OVER, *LEFT, effect(4), after(1), *then, settings=SEEN) == ([4], 0)


def test_at_most_once_what_was_left_below_the_start_may_have_been_begun_again() -> None:
    """m1's client begins at record 0, which m0 had done; m1 seeks behind record 2, whose position m0 had stored."""
    assert found("redelivered", *TAKEN_OVER, delivered("m1", 0), *handled("m1", 3), settings=AT_MOST_ONCE) == ([], 1)
    assert found("redelivered", *TAKEN_OVER, *handled("m1", 0, 3), settings=AT_MOST_ONCE) == ([0], 0)
    goes_on = [delivered("m1", 0), *handled("m1", 1)]
    assert found("redelivered", *TAKEN_OVER, *goes_on, settings=AT_MOST_ONCE) == ([0, 1], 0)
    killed = [delivered("m1", 0), fault("kill", "m1", number=1), exited("m1", signal=9)]
    assert found("redelivered", *TAKEN_OVER, *killed, settings=AT_MOST_ONCE) == ([0], 0)

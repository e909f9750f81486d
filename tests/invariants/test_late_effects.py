"""Effects that reach the sink after their member had given the partition back: a cancelled handler's request."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from group_lines import synced
from histories import (
    Line,
    after,
    answered,
    assigned,
    committed,
    delivered,
    effect,
    fault,
    fetched,
    handed_on,
    handled,
    healed,
    history,
    owner,
    processed,
    revoked,
    through,
    with_settings,
)
from kafka_trial.judge.judge import judge_events
from lab.naive.checker import judge

Lines = list[Line | list[Line]]
SINK = with_settings(sink="http", effects="record")

HAD: Lines = [owner("m0"), synced("m0", 0), assigned("m0"), fetched("m0", 0, size_bytes=9), *handled("m0", 0)]
HAD += [effect(0, member="m0"), committed(1, by="m0"), delivered("m0", 1), after(2), revoked("m0", 0)]
OTHERS: Lines = [owner("m1", epoch=2), synced("m1", 0, generation=2), assigned("m1"), answered("m1", 1)]
OTHERS += [fetched("m1", 1, size_bytes=9), delivered("m1", 1), effect(1, member="m1"), processed("m1", 1)]
OTHERS += [committed(2, by="m1"), revoked("m1", 0)]
LATE = [after(2), effect(1, member="m0"), after(2)]


def back(position: int) -> Lines:
    """m0 is given the partition again, and begins to fetch there."""
    again: Lines = [
        after(1),
        owner("m0", epoch=3),
        synced("m0", 0, generation=3),
        assigned("m0"),
        answered("m0", position),
    ]
    return [*again, fetched("m0", position, size_bytes=9)]


def late(*lines: Line | list[Line]) -> tuple[list[int], int]:
    """The records of `work-after-revoke`, and how many cases are undecided, as both judges say."""
    events = history(lines, records=3)
    told, naive = judge_events(events, SINK).findings["work-after-revoke"], judge(events, asdict(SINK))
    found = [one.attributes["offset"] for one in told.instances], sum(told.undecided.values())
    assert ([one[2] for one in naive.anomalies["work-after-revoke"]], naive.undecided["work-after-revoke"]) == found
    return found


@pytest.mark.parametrize(
    "lines",
    [[*LATE, *OTHERS], [*OTHERS, *LATE], [*OTHERS, *LATE, *back(2)], [*OTHERS, *back(2), *LATE, *handled("m0", 2)]],
    ids=["before others begin", "after others were done", "before it is back", "when it is back"],
)
def test_an_effect_after_the_callback_had_returned_is_work(lines: Lines) -> None:
    """m0 cancels the handler of record 1, and its request to the sink goes through all the same."""
    assert late(*HAD, *lines) == ([1], 0)
    held = [fault("cut-off", "m0"), *lines, healed()]
    assert late(*HAD[:-1], held[0], HAD[-1], *held[1:]) == ([], 1)


@pytest.mark.parametrize(
    "lines",
    [
        [*OTHERS, *back(1), *LATE],
        [owner("m0", epoch=2), *back(2), *LATE],
        [*OTHERS, *back(2), fetched("m0", 1, size_bytes=9), *LATE],
        [*OTHERS, *back(2), after(2), effect(2, member="m0")],
        [effect(1, member="m0"), *OTHERS],
        [*OTHERS, *back(2)[:-1], *LATE],
    ],
    ids=["fetched again", "nobody else had it", "sought back", "of what it has now", "just then", "fetches nothing"],
)
def test_an_effect_that_may_be_of_what_the_member_has_is_none(lines: Lines) -> None:
    """It was given the partition again, and may have done record 1 there; or the line was read late."""
    assert late(*HAD, *lines) == ([], 0)


def test_an_effect_that_a_line_tells_of_is_found_once() -> None:
    """The handler says that it ended as well."""
    assert late(*HAD, after(2), effect(1, member="m0"), processed("m0", 1), after(2), *OTHERS) == ([1], 0)


def test_a_record_that_was_handed_on_may_be_done_by_anybody() -> None:
    """m0 reads the topic that it went to."""
    assert late(through(), *HAD[:-1], handed_on(1, 0), HAD[-1], after(2), effect(1, member="m0"), *OTHERS) == ([], 0)

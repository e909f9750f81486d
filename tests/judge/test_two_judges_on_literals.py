"""Literal histories on which the two judges once differed, or both were wrong: what both say now, and why."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from histories import (
    Line,
    after,
    assigned,
    commit,
    delivered,
    effect,
    fetched,
    handled,
    history,
    lost,
    measured,
    owner,
    processed,
)
from lab.agreement.sayings import naive_says, vectorised_says
from lab.history_strategies import History

Lines = list[Line | list[Line]]

SETTINGS = {"events": "jsonl", "session_timeout_s": 3, "poll_interval_s": 5, "commit_interval_s": 1}
WITH_SINK = SETTINGS | {"sink": "http"}


def both(name: str, lines: Lines, settings: dict[str, Any] | None = None, **frame: Any) -> tuple[list[Any], int]:
    """The places of one anomaly, and how many cases are undecided, where both judges say the same of it."""
    told = cast("History", SimpleNamespace(events=history(lines, **frame), settings=settings or SETTINGS))
    naive, vectorised = naive_says(told), vectorised_says(told)
    assert naive[name] == vectorised[name]
    instances, undecided = naive[name]
    return sorted(place for _, _, place, _ in instances.elements()), undecided


# --- commits ahead ---------------------------------------------------------------------------------------------------

IN_HAND: Lines = [assigned("m0"), delivered("m0", 0)]
READ_AT_ONCE = measured("m0", 0.005)


@pytest.mark.parametrize(
    ("lines", "ahead"),
    [
        ([*IN_HAND, commit("m0", 1), after(0.02), effect(0), processed("m0", 0)], [1]),
        ([*IN_HAND, commit("m0", 1), after(0.02), effect(0), commit("m0", 1, "ok")], [1]),
        ([*IN_HAND, commit("m0", 1), effect(0), processed("m0", 0)], []),
        ([*IN_HAND, effect(0), commit("m0", 1), processed("m0", 0)], []),
    ],
    ids=["before its effect", "before its effect, and no line of its end", "within what clocks differ by", "after it"],
)
def test_a_commit_line_before_the_effect_is_ahead_of_it(lines: Lines, ahead: list[int]) -> None:
    """The sink writes down at once: an effect that came between the commit line and the next one came after it."""
    assert both("commit-ahead", [*lines, READ_AT_ONCE], WITH_SINK, records=1) == (ahead, 0)


# --- false reports ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fetches", "refuted"),
    [
        ([fetched("m0", 0, size_bytes=100), fetched("m0", 1)], [1, 1]),
        ([fetched("m0", 0, size_bytes=100), fetched("m0", 2)], []),
    ],
    ids=["it had not fetched it", "it had"],
)
def test_whoever_failed_at_a_record_says_that_it_had_it(fetches: Lines, refuted: list[int]) -> None:
    """`processed … failed` is a line about a record, as one that says done."""
    lines = [assigned("m0"), *fetches, after(1), delivered("m0", 1), processed("m0", 1, outcome="failed")]
    assert both("false-report", lines) == (refuted, 0)


# --- order -----------------------------------------------------------------------------------------------------------

LOST_UNTOLD: Lines = [owner("m1"), assigned("m1"), after(1), owner("m0", idle=["m1"]), assigned("m0")]
WOKEN: Lines = [delivered("m1", 0), effect(0), processed("m1", 0), lost("m1")]


@pytest.mark.parametrize(
    ("lines", "late"),
    [
        ([delivered("m0", 0), effect(1), effect(0), processed("m0", 0), *handled("m0", 1), after(2), *WOKEN], [0]),
        ([effect(1), *WOKEN, *handled("m0", 0, 1)], []),
    ],
    ids=["made by the new owner, and again by the old one", "made by the old one"],
)
def test_an_effect_is_of_whoever_had_its_record_in_hand(lines: Lines, late: list[int]) -> None:
    """An untold loss excuses what its member did, and not what the next owner did two seconds before."""
    assert both("reordered-key", [*LOST_UNTOLD, *lines], WITH_SINK) == (late, 0)

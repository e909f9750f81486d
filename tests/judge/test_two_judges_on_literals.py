"""Literal histories on which the two judges once differed, or both were wrong: what both say now, and why."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from group_lines import heartbeat, synced
from histories import (
    Line,
    after,
    asked,
    assigned,
    commit,
    committed,
    delivered,
    effect,
    exited,
    fetched,
    handled,
    history,
    log_start,
    lost,
    measured,
    owner,
    processed,
    revoked,
    sent,
    started,
)
from lab.agreement.sayings import Said, naive_says, vectorised_says
from lab.history_strategies import History

Lines = list[Line | list[Line]]

SETTINGS = {"events": "jsonl", "session_timeout_s": 3, "poll_interval_s": 5, "commit_interval_s": 1}
WITH_SINK = SETTINGS | {"sink": "http"}


def said(name: str, lines: Lines, settings: dict[str, Any] | None = None, **frame: Any) -> Said:
    """What both judges say of one anomaly: the same."""
    told = cast("History", SimpleNamespace(events=history(lines, **frame), settings=settings or SETTINGS))
    naive, vectorised = naive_says(told), vectorised_says(told)
    assert naive[name] == vectorised[name]
    return naive[name]


def both(name: str, lines: Lines, settings: dict[str, Any] | None = None, **frame: Any) -> tuple[list[Any], int]:
    """The places of one anomaly, and how many cases are undecided."""
    instances, undecided = said(name, lines, settings, **frame)
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


def test_what_was_done_in_an_ownership_epoch_before_was_done() -> None:
    """It is delivered again, as its commit had not been made; the commit may come before it is done once more."""
    before: Lines = [assigned("m0"), *handled("m0", 0), revoked("m0", 0)]
    again: Lines = [assigned("m0"), delivered("m0", 0), commit("m0", 1), processed("m0", 0)]
    assert both("commit-ahead", [*before, *again], records=1) == ([], 0)
    assert both("commit-ahead", again, records=1) == ([1], 0)


# --- losses ----------------------------------------------------------------------------------------------------------

GIVEN: Lines = [owner("m0"), synced("m0", 0), assigned("m0")]
LOST_IN_HAND: Lines = [delivered("m0", 0), lost("m0", 0), processed("m0", 0), READ_AT_ONCE]
FOR_LONG: Lines = [after(1), heartbeat("m0"), after(1), heartbeat("m0")]


@pytest.mark.parametrize(
    ("lines", "late"),
    [
        ([*GIVEN, *FOR_LONG, *LOST_IN_HAND], [0]),
        ([*GIVEN, after(2.4), heartbeat("m0"), *LOST_IN_HAND], [0]),
        ([*GIVEN, after(2.6), heartbeat("m0"), *LOST_IN_HAND], []),
        ([*GIVEN, after(1.2), asked("OFFSET_COMMIT", "m0", 0), after(1.4), heartbeat("m0"), *LOST_IN_HAND], []),
        ([*GIVEN, *FOR_LONG, *LOST_IN_HAND, after(0.1), owner("m1", idle=["m0"])], [0]),
        ([*GIVEN, *FOR_LONG, owner("m1", idle=["m0"]), *LOST_IN_HAND], []),
    ],
    ids=[
        "answered all the time",
        "answered but for less than a session",
        "not answered for a session, less what clocks differ by",
        "answered a commit alone",
        "given to another a moment later",
        "given to another",
    ],
)
def test_a_loss_has_a_reason_by_when_it_is_told(lines: Lines, late: list[int]) -> None:
    """Of a loss that was none, what was in hand had to be finished before: as of what was revoked."""
    assert both("work-after-revoke", lines) == (late, 0)


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


EXPIRED: Lines = [sent(0), sent(1), assigned("m0")]


@pytest.mark.parametrize(
    ("fetches", "ranges"),
    [
        ([fetched("m0", 1, size_bytes=100), fetched("m0", 2)], [0]),
        ([fetched("m0", 0, size_bytes=100), fetched("m0", 2)], []),
    ],
    ids=["it had not fetched it", "it had"],
)
def test_whoever_only_says_that_it_had_a_record_did_not_read_it(fetches: Lines, ranges: list[int]) -> None:
    """Record 0 expired, and a line that no fetch bears out does not make it one that was read."""
    lines = [*EXPIRED, *fetches, after(1), *handled("m0", 0, 1), log_start(1)]
    assert both("overtaken", lines, control={0: None}) == (ranges, 0)


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


# --- what was in flight ----------------------------------------------------------------------------------------------

AT_MOST_ONCE = SETTINGS | {"delivery": "at-most-once"}


def over(connection: str, line: Line) -> Line:
    """A request over that connection."""
    return replace(line, fields=line.fields | {"connection": connection})


STORED, REQUEST = committed(2, by="m0")
ACCEPTED: Lines = [STORED, over("c1", REQUEST), after(1)]
REFUSED = over("c2", asked("OFFSET_COMMIT", "m0", 2, error=25))
SAYS_SO = commit("m0", 2, "fail")


@pytest.mark.parametrize(
    ("lines", "in_flight"),
    [
        ([*ACCEPTED, REFUSED, SAYS_SO], True),
        ([*ACCEPTED, after(62), REFUSED, SAYS_SO], False),
        ([*ACCEPTED, SAYS_SO, exited("m0"), started("m0-1"), REFUSED], False),
    ],
    ids=["asked again", "when no client waits any more", "by another process"],
)
def test_a_refusal_on_another_connection_is_of_the_same_commit(lines: Lines, *, in_flight: bool) -> None:
    """A client waits only so long for an answer before it asks again, and another process knows of none."""
    instances, undecided = said("skipped", [assigned("m0"), *handled("m0", 0), *lines], AT_MOST_ONCE)
    assert [dict(one[3])["in_flight_at_crash"] for one in instances] == [in_flight]
    assert undecided == 0

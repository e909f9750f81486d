"""No progress, by both judges: literal histories of partitions that are stuck, and of sound habits that only look so.

Forty-nine records of fifty are left, so that B is minutes; W is 10 s unless said.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from histories import (
    Line,
    after,
    assigned,
    committed,
    delivered,
    effect,
    exited,
    fault,
    fetched,
    handled,
    healed,
    history,
    on,
    phase,
    processed,
    revoked,
    stood_still,
    waited,
)
from lab.agreement.sayings import naive_says, vectorised_says
from lab.history_strategies import History

Lines = list[Line | list[Line]]

pytestmark = pytest.mark.lengthy

SETTINGS = {"events": "jsonl", "session_timeout_s": 3, "poll_interval_s": 60, "commit_interval_s": 1}
SILENT = SETTINGS | {"events": "none"}
RATE = Line("run", "calibrated", {"rate": 1.0})
FIRST: Lines = [RATE, assigned("m0"), handled("m0", 0), committed(1)]
STUCK, UNDECIDED, NEITHER = "stuck", "undecided", "neither"


def told(name: str, lines: Lines, settings: dict[str, Any], **frame: Any) -> tuple[list[Any], int]:
    """What both judges say of an anomaly, the same: its partitions, and how many cases are undecided."""
    frame = {"records": 50} | frame
    given = cast("History", SimpleNamespace(events=history(lines, **frame), settings=settings))
    naive, vectorised = naive_says(given), vectorised_says(given)
    assert naive[name] == vectorised[name]
    instances, undecided = naive[name]
    return sorted(partition for _, partition, _, _ in instances.elements()), undecided


def said(lines: Lines, settings: dict[str, Any] | None = None, **frame: Any) -> str:
    """Whether partition 0 is stuck."""
    found, undecided = told("stuck-partition", lines, settings or SETTINGS, **frame)
    return STUCK if 0 in found else UNDECIDED if undecided else NEITHER


def drained(lines: Lines, seconds: float) -> Lines:
    return [*lines, phase("drain"), after(seconds)]


@pytest.mark.parametrize(
    "lines",
    [
        FIRST,
        [*FIRST[:3]],
        [RATE, assigned("m0")],
        [RATE],
        [*FIRST, fetched("m0", 50)],
        [*FIRST, fault("pause", "m0"), after(1), healed()],
    ],
    ids=["one done", "never committed", "nothing done", "nobody there", "all was fetched", "a short fault before"],
)
def test_who_sticks_early_is_stuck(lines: Lines) -> None:
    """Whatever B is: the rate of the stuck one is no excuse for it."""
    assert [said(drained([*lines, after(3)], seconds)) for seconds in (8, 13)] == [UNDECIDED, STUCK]


GAPS: dict[str, tuple[Lines, dict[str, Any]]] = {
    "batches": ([assigned("m0"), handled("m0", 0), after(20), handled("m0", 1)], SETTINGS),
    "batches of another partition": (
        [assigned("m0"), on(1, committed(1)[0]), after(20), on(1, committed(2)[0])],
        SETTINGS,
    ),
    "a slow handler": ([assigned("m0"), delivered("m0", 0), after(20), processed("m0", 0)], SETTINGS),
    "a handler as declared": (FIRST, SETTINGS | {"handler_max_s": 20.0}),
    "commits that are rare": ([committed(1), after(20), committed(2)], SILENT),
    "effects that are rare": ([effect(0), after(20), effect(1)], SILENT | {"sink": "http"}),
    "a fault": (
        [assigned("m0"), handled("m0", 0), fault("pause", "m0"), after(20), healed(), handled("m0", 1)],
        SETTINGS,
    ),
}


@pytest.mark.parametrize("habit", GAPS)
def test_a_pause_may_last_as_long_as_one_that_was_seen(habit: str) -> None:
    """W is a session of 3 s, a commit interval of 1 s, and the pause of 20 s: 24 s in all."""
    lines, settings = GAPS[habit]
    early, late = (said(drained(lines, seconds), settings, partitions=2) for seconds in (20, 27))
    assert (early != STUCK, late) == (True, STUCK)


def test_a_pause_may_last_no_longer_than_the_poll_interval() -> None:
    """Five seconds between two polls: W is 10 s, though a pause of twenty was seen."""
    lines, _ = GAPS["batches"]
    assert said(drained(lines, 13), SETTINGS | {"poll_interval_s": 5}) == STUCK


def test_standing_still_at_the_end_is_no_pause() -> None:
    """It has lasted for forty seconds, and nothing ended it."""
    assert said([*FIRST, after(40), *drained([], 13)]) == STUCK


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([delivered("m0", 1)], [UNDECIDED, STUCK]),
        ([delivered("m0", 1), processed("m0", 1, outcome="failed")], [STUCK, STUCK]),
        ([delivered("m0", 1), revoked("m0")], [STUCK, STUCK]),
        ([delivered("m0", 1), exited("m0", code=0)], [STUCK, STUCK]),
        ([*[delivered("m0", 1)] * 3], [STUCK, STUCK]),
    ],
    ids=["in hand", "failed", "revoked", "of one that ended", "tried again and again"],
)
def test_a_record_in_hand_excuses_until_the_poll_interval(lines: Lines, found: list[str]) -> None:
    """It was begun and not finished; a minute later its member must have polled."""
    assert [said([*FIRST, *drained(lines, seconds)]) for seconds in (30, 62)] == found


def test_an_effect_ends_what_was_in_hand() -> None:
    """Nobody printed that it was done."""
    lines = [*FIRST, delivered("m0", 1), effect(1)]
    assert said(drained(lines, 13), SETTINGS | {"sink": "http"}) == STUCK


def retries(*waits_s: float, between: Lines | None = None) -> Lines:
    """Record 1 is delivered again after each of these times."""
    return [line for wait_s in waits_s for line in (delivered("m0", 1), after(wait_s), *(between or []))]


def test_a_record_that_is_retried_with_growing_pauses_is_stuck() -> None:
    """It came five times to one owner, last a second before the end."""
    lines = [*FIRST, phase("drain"), *retries(1, 2, 4, 8, 16, 1)]
    assert said(lines) == STUCK


def test_a_group_that_moves_in_circles_is_late_whatever_b_is() -> None:
    """Each time a new owner is given the record: that is a move, but the partition gets no further."""
    again: Lines = [revoked("m0"), assigned("m0")]
    lines = [*FIRST, phase("drain"), *retries(1, 2, 4, 8, 8, 1, between=again)]
    assert (said(lines), told("late-convergence", lines, SETTINGS)) == (NEITHER, ([0], 0))


def test_what_is_handled_once_more_after_a_rebalance_gets_a_partition_further() -> None:
    """A batch that was not committed: five records, three seconds each."""
    batch: Lines = [
        line for offset in range(1, 6) for line in (delivered("m0", offset), after(3), processed("m0", offset))
    ]
    again: Lines = [
        line for offset in range(1, 6) for line in (delivered("m1", offset), after(3), processed("m1", offset))
    ]
    lines = [*FIRST, *batch, revoked("m0"), assigned("m1"), phase("drain"), *again]
    assert (said(lines), told("late-convergence", lines, SETTINGS)) == (NEITHER, ([], 1))


@pytest.mark.parametrize(
    ("last", "found"),
    [
        ([on(1, delivered("m0", 3))], UNDECIDED),
        ([on(1, committed(9)[0])], UNDECIDED),
        ([fetched("m0", 40)], UNDECIDED),
        ([fetched("m0", 1)], STUCK),
        ([effect(9, outcome="fail")], STUCK),
        ([effect(9)], NEITHER),
        ([stood_still(1)], UNDECIDED),
        ([waited(1, 1)], STUCK),
    ],
    ids=[
        "another is worked at",
        "another is committed",
        "it is fetched further",
        "it is fetched as before",
        "an effect was refused",
        "an effect",
        "the machine stood still",
        "a busy machine",
    ],
)
def test_what_happens_in_the_window(last: Lines, found: str) -> None:
    """After nine of eighteen seconds; before, records of it were fetched up to 30."""
    lines = [*FIRST, fetched("m0", 30), phase("drain"), after(9), *last, after(8)]
    settings = SETTINGS | ({"sink": "http"} if last[0].kind == "effect" else {})  # type: ignore[union-attr]
    partitions = 1 + any(one.fields.get("partition") == 1 for one in last if isinstance(one, Line))
    assert said(lines, settings, partitions=partitions) == found


def test_a_lost_session_is_waited_for() -> None:
    """A member was killed as the drain began: its session of 3 s and a rebalance of up to a minute come first."""
    lines = [*FIRST, fault("kill", "m0"), healed(), phase("drain")]
    assert [said([*lines, after(seconds)]) for seconds in (30, 66)] == [UNDECIDED, STUCK]


@pytest.mark.parametrize(("seconds", "found"), [(20, UNDECIDED), (31, STUCK)])
def test_a_bound_that_is_claimed_is_waited_for(seconds: float, found: str) -> None:
    """The team says that it needs up to thirty seconds."""
    assert said(drained(FIRST, seconds), SETTINGS | {"converge_within_s": 30.0}) == found


def test_what_is_left_without_progress_is_unseen() -> None:
    """All 49 records: nobody works at them any more."""
    found, undecided = told("unseen", drained(FIRST, 13), SETTINGS)
    assert (len(found), undecided) == (49, 0)


def test_a_false_lag_alone_is_not_taken_for_no_progress() -> None:
    """All is done, and the position may still come until B is over."""
    lines = [RATE, assigned("m0"), handled("m0", 0, 1), committed(1)]
    assert told("false-lag", drained(lines, 10.5), SETTINGS | {"poll_interval_s": 9}, records=2) == ([], 1)


def test_an_outage_before_the_drain_is_not_taken_for_no_progress() -> None:
    """Its endpoint was away for half a minute, and has been well for five seconds."""
    lines = [*FIRST, fault("handler-failing", None), after(30), healed(), phase("drain"), after(5)]
    assert said(lines) == UNDECIDED
    assert said([*lines, handled("m0", 1), after(8)]) == NEITHER


@pytest.mark.parametrize(("seconds", "late"), [(11, []), (15, [0])])
def test_of_a_silent_consumer_what_is_committed_past_is_done(seconds: float, late: list[int]) -> None:
    """Of fifty records two were left when the drain began: B is 13 s."""
    lines = [RATE, committed(48), phase("drain"), after(seconds), committed(50), after(1)]
    assert told("late-convergence", lines, SILENT | {"poll_interval_s": 5}) == (late, 0)

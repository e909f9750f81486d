"""Members that were killed after a long silence: had they handled anything, they would have said so."""

from __future__ import annotations

from typing import Any

import pytest

from group_lines import heartbeat, joined, synced
from histories import (
    Line,
    after,
    answered,
    assigned,
    committed,
    delivered,
    exited,
    fault,
    fetched,
    finding,
    handled,
    owner,
    with_settings,
)
from kafka_trial.model.trial_context import Settings
from kafka_trial.model.undecided import Undecided

RECORDS, HANDLED = 30, 5
AT_MOST_ONCE = with_settings(delivery="at-most-once")  # five seconds between two polls


def history(
    silence_s: int, *, begun: tuple[Line, ...] = (), fetches: bool = True, beats: bool = True, **timeouts_ms: int
) -> list[Line | list[Line]]:
    """m0 handles five records, commits past all thirty, says nothing for so long, and is killed."""
    given = [owner("m0"), joined("m0", **timeouts_ms), synced("m0", 0), assigned("m0"), answered("m0", 0)]
    work = [fetched("m0", 0, size_bytes=9), *handled("m0", *range(HANDLED)), *begun, committed(RECORDS, by="m0")]
    second = [after(1), *([heartbeat("m0")] if beats else []), *([fetched("m0", RECORDS)] if fetches else [])]
    killed = [fault("kill", "m0"), exited("m0", signal=9), after(1), owner("m1", epoch=2), synced("m1", 0)]
    return [*given, *work, *second * silence_s, *killed, assigned("m1"), answered("m1", RECORDS), after(20)]


def lost(lines: list[Line | list[Line]], settings: Settings = AT_MOST_ONCE) -> int:
    """How many records are skipped for certain; the others must be undecided for want of its last words."""
    found = finding("skipped", lines, settings=settings, records=RECORDS)
    assert {*found.undecided} <= {Undecided.UNCERTAIN_AFTER_KILL}
    assert found.count + sum(found.undecided.values()) == RECORDS - HANDLED
    return found.count


def test_what_was_committed_before_a_long_silence_is_skipped() -> None:
    """Four times the longest time between two polls; and no crash excuses what it never had in hand."""
    found = finding("skipped", history(22), settings=AT_MOST_ONCE, records=RECORDS)
    assert [one.attributes["in_flight_at_crash"] for one in found.instances] == [False] * (RECORDS - HANDLED)
    assert lost(history(22)) == RECORDS - HANDLED


@pytest.mark.parametrize(
    "lines",
    [
        history(12),
        history(22, begun=(delivered("m0", HANDLED),)),
        history(22, fetches=False),
        history(22, beats=False),
        history(22, session_timeout_ms=3_000, rebalance_timeout_ms=9_000),
    ],
    ids=["short", "a record in hand", "no fetches", "no heartbeats", "it may poll less often"],
)
def test_a_silence_that_something_else_explains_leaves_it_undecided(lines: list[Line | list[Line]]) -> None:
    """It may have been at work, or stood still."""
    assert lost(lines) == 0


@pytest.mark.parametrize("setting", [{"stdout": "buffered"}, {"handler": "batch"}, {"handler_max_s": 30.0}])
def test_who_may_speak_late_or_work_for_long_is_not_held_to_it(setting: dict[str, Any]) -> None:
    """Lines out of a buffer, whole batches, and handlers that declare how long they take."""
    assert lost(history(22), with_settings(delivery="at-most-once", **setting)) == 0


def test_a_handler_that_declares_less_is() -> None:
    """Twenty seconds are longer than it ever takes."""
    assert lost(history(22), with_settings(delivery="at-most-once", handler_max_s=3.0)) == RECORDS - HANDLED

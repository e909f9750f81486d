"""When a process was busy: literal histories, and how stretches of time are added up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from histories import (
    MS,
    Line,
    after,
    asked,
    assigned,
    batch_of,
    delivered,
    fetched,
    lasting,
    on,
    processed,
    revoked,
    started,
    told,
    with_settings,
)
from kafka_trial.model.occupied_intervals import OCCUPIED_INTERVALS, occupied_intervals, occupied_ns
from kafka_trial.model.table import table

BOTH = assigned("m0", 0, 1)
COMMIT = asked("OFFSET_COMMIT", "m0", 1)


def stretches(lines: list[Line | list[Line]], **frame: Any) -> list[tuple[Any, ...]]:
    """What m0 and m1 were busy with: slice, and from when to when in milliseconds."""
    rows = occupied_intervals(batch_of(lines, **frame))
    return [one for one in told(rows, "slice", "since_ns", "until_ns") if one[1] > 0]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([BOTH], []),
        ([BOTH, delivered("m0", 0), after(1), processed("m0", 0)], [(0, 20, 1030)]),
        ([BOTH, delivered("m0", 0), delivered("m0", 1), processed("m0", 0), processed("m0", 1)], [(0, 20, 50)]),
        ([BOTH, *[delivered("m0", 0), processed("m0", 0), delivered("m0", 1), processed("m0", 1)]], [(0, 20, 50)]),
        ([BOTH, delivered("m0", 0), processed("m0", 0, outcome="failed"), processed("m0", 0)], [(0, 20, 40)]),
        ([BOTH, delivered("m0", 0), after(1), revoked("m0", 0)], [(0, 20, 1030)]),
        ([BOTH, delivered("m0", 0), after(1)], [(0, 20, "never")]),
        ([delivered("m0", 0), after(1), processed("m0", 0)], []),
    ],
    ids=[
        *("nothing", "one record", "two at once", "two in close succession", "one that is tried again"),
        *("one that was taken away", "one that was never done", "without a partition"),
    ],
)
def test_a_process_is_occupied_while_it_has_a_record_in_hand(
    lines: list[Line | list[Line]], expected: list[tuple[Any, ...]]
) -> None:
    """Stretches less than ten milliseconds apart are one."""
    assert stretches(lines) == expected


def test_out_of_a_buffer_nobody_knows_when_it_was_busy() -> None:
    """Its lines are no evidence of when."""
    lines: list[Line | list[Line]] = [BOTH, delivered("m0", 0), after(1), processed("m0", 0)]
    assert stretches(lines, settings=with_settings(stdout="buffered")) == []


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([lasting(COMMIT, 0.5)], [500]),
        ([lasting(on(1, COMMIT), 0.5)], [500]),
        ([lasting(fetched("m0", 0), 0.5)], []),
        ([lasting(asked("HEARTBEAT", "m0", 1), 0.5)], []),
        ([lasting(asked("OFFSET_COMMIT", "operator", 1), 0.5)], []),
        ([asked("OFFSET_COMMIT", "m0", 1, error=16, took_ms=5), after(1), lasting(COMMIT, 0.005)], [1015]),
        ([asked("OFFSET_COMMIT", "m0", 1, error=25, took_ms=5), after(1), lasting(COMMIT, 0.005)], [5, 5]),
        ([asked("OFFSET_COMMIT", "m0", 1, error=16, took_ms=5), after(1)], [5]),
    ],
    ids=[
        *("a commit", "of another partition", "a fetch", "a heartbeat", "an operator's"),
        *("not yet: until it asks again", "refused for good", "and it asks no more"),
    ],
)
def test_a_process_is_occupied_while_it_waits_for_an_answer(lines: list[Line], expected: list[float]) -> None:
    """As long as the broker took, by the request log."""
    assert [until_ms - since_ms for _, since_ms, until_ms in stretches([after(1), *lines])] == expected


def test_an_answer_is_awaited_by_the_incarnation_that_asked() -> None:
    """m0 asked for half a second, was started again, and asked for one."""
    lines = [after(1), lasting(COMMIT, 0.5), started("m0-1"), after(2), lasting(COMMIT, 1)]
    batch = batch_of(lines)
    rows = occupied_intervals(batch)
    sources = [batch.trial_context.sources[source] for source in rows["source"].tolist()]
    lasted_ms = [one // MS for one in (rows["until_ns"] - rows["since_ns"]).tolist()]
    assert dict(zip(sources, lasted_ms, strict=True)) == {"consumer-m0-0": 500, "consumer-m0-1": 1000}


@pytest.mark.parametrize(
    ("source", "since_ns", "until_ns", "expected"),
    [
        (1, 0, 100, 40),
        (1, 12, 18, 6),
        (1, 0, 15, 5),
        (1, 35, 100, 15),
        (1, 60, 100, 0),
        (2, 0, 100, 10),
        (2, 20, 28, 3),
        (3, 0, 100, 0),
    ],
)
def test_what_is_at_once_counts_once(source: int, since_ns: int, until_ns: int, expected: int) -> None:
    """Process 1 was busy from 10 to 50, by three things, one inside another; process 2 from 25 to 35."""
    rows = [(0, 1, 10, 30), (1, 1, 15, 20), (2, 1, 25, 50), (0, 2, 25, 35)]
    held = table(
        **{name: np.array(column) for name, column in zip(OCCUPIED_INTERVALS, zip(*rows, strict=True), strict=True)}
    )
    wanted = (np.array([value]) for value in (source, since_ns, until_ns))
    assert occupied_ns(held, *wanted).tolist() == [expected]


def test_without_anything_nobody_is_busy() -> None:
    """No stretches at all."""
    none = np.empty(0, np.int64)
    wanted = (np.array([value]) for value in (1, 0, 9))
    assert occupied_ns(table(**dict.fromkeys(OCCUPIED_INTERVALS, none)), *wanted).tolist() == [0]

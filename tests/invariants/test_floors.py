"""Where an ownership epoch had to start: literal histories, each of at most eight lines."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    after,
    answered,
    asked,
    assigned,
    at_once,
    batch_of,
    committed,
    delivered,
    log_start,
    on,
    processed,
    revoked,
    said,
    stood_still,
    told,
    tombstone,
    with_settings,
)
from kafka_trial.model.start_positions import answers_with_starts, floors

M0 = assigned("m0")


def floor_of_each(lines: list[Line | list[Line]], **frame: object) -> list[int]:
    """The floor of every ownership epoch."""
    found: list[int] = floors(batch_of(lines, **frame)).tolist()  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(
    ("lines", "floor"),
    [
        ([answered("m0", 1), M0], 1),
        ([answered("m0", 1), answered("m0", 2), M0], 2),
        ([answered("m1", 1), M0], 0),
        ([asked("OFFSET_FETCH", "operator", 1), M0], 0),
        ([asked("OFFSET_FETCH", "m0", 1, error=3), M0], 0),
        ([on(1, answered("m0", 1)), M0], 0),
        ([answered("m0", -1), M0], 0),
        ([committed(2), after(1), answered("m0", -1), M0], 0),
        ([committed(2), after(1), answered("m0", 0), M0], 0),
        ([M0, answered("m0", 1)], 1),
        ([M0, after(9), answered("m0", 1), delivered("m0", 1)], 1),
        ([M0, delivered("m0", 0), after(0.040), answered("m0", 1)], 1),
        ([M0, delivered("m0", 0), after(0.041), answered("m0", 1)], 0),
        ([M0, delivered("m0", 0), after(9), delivered("m0", 1), answered("m0", 1)], 0),
        ([answered("m0", 1), after(2.04), M0], 1),
        ([answered("m0", 1), after(2.041), M0], 0),
    ],
    ids=[
        "the answer",
        "the last answer",
        "an answer to another member",
        "an answer to somebody outside the lanes",
        "an answer that is an error",
        "an answer about another partition",
        "the answer that there is none",
        "the answer that there is none against what was committed",
        "an answer at the beginning",
        "an answer after the callback",
        "an answer long after the callback",
        "an answer as long after the first delivery as the logs differ",
        "an answer longer after it",
        "an answer before a later delivery",
        "an answer two seconds, and what the logs differ, before the callback",
        "an answer longer before it",
    ],
)
def test_the_floor_is_what_the_broker_answered(lines: list[Line], floor: int) -> None:
    """To this member, of this partition, for the sake of this assignment; else the beginning of the log."""
    assert floor_of_each(lines, partitions=2) == [floor]


@pytest.mark.parametrize(
    ("gap_s", "floor"), [(0.04, 2), (0.05, 0), (1.0, 0)], ids=["as long as the logs differ", "longer", "much longer"]
)
def test_what_was_answered_for_the_possession_before_is_no_floor_of_the_next(gap_s: float, floor: int) -> None:
    """Nobody asks for the next one while the one before it lasts."""
    lines = [assigned("m0"), answered("m0", 2), after(gap_s), revoked("m0"), at_once(assigned("m0"))]
    assert floor_of_each(lines) == [2, floor]


@pytest.mark.parametrize(
    ("before_s", "since_s", "floor"), [(0.1, 1, 2), (0.1, 1.9, 2), (3, 2.04, 2), (3, 2.041, 0)], ids=str
)
def test_between_two_possessions_there_is_time_to_ask_for_the_next(before_s: float, since_s: float, floor: int) -> None:
    """Two seconds of it at most, and what the logs differ."""
    first = [M0, delivered("m0", 0), revoked("m0"), after(before_s)]
    assert floor_of_each([*first, answered("m0", 2), after(since_s), M0]) == [0, floor]


@pytest.mark.parametrize(
    ("lines", "floor"),
    [
        ([committed(1), after(1), M0], 1),
        ([committed(2), after(1), committed(1), after(1), M0], 1),
        ([committed(1), after(0.49), M0], 1),
        ([committed(1), after(0.489), M0], 0),
        ([committed(1), M0], 0),
        ([committed(2), after(1), committed(1), M0], 1),
        ([committed(1), after(1), committed(2), M0], 1),
        ([committed(2), after(1), committed(3), committed(1), M0], 1),
        ([committed(2), after(1), M0, after(0.49), committed(1)], 1),
        ([committed(2), after(1), M0, after(0.491), committed(1)], 2),
        ([on(1, committed(2)[0]), after(1), M0], 0),
        ([committed(1), after(1), tombstone(), after(1), M0], 1),
    ],
    ids=[
        "committed",
        "the last one",
        "as long before as sources differ",
        "shorter before",
        "just before",
        "fallen just before",
        "risen just before",
        "risen and fallen just before",
        "fallen as long after as sources differ",
        "fallen later",
        "in another partition",
        "deleted",
    ],
)
def test_without_an_answer_the_floor_is_the_lowest_position_that_may_have_stood(
    lines: list[Line | list[Line]], floor: int
) -> None:
    """When the ownership epoch opened, give or take what sources differ by; else the beginning of the log."""
    assert floor_of_each(lines, partitions=2) == [floor]


def test_the_beginning_of_the_log_is_the_lowest_that_was_read() -> None:
    """In each partition its own; what was not read begins with its first record, and without records at 0."""
    lines = [assigned("m0", 0, 1, 2), log_start(2), log_start(1), on(1, log_start(5))]
    assert floor_of_each(lines, partitions=3, records=3, control={0: None}) == [1, 5, 0]
    assert floor_of_each([M0], records=3, control={0: None}) == [1]
    assert floor_of_each([M0], records=0) == [0]


def test_no_floor_where_progress_is_elsewhere() -> None:
    """Wherever it starts is right."""
    batch = batch_of([answered("m0", 1), M0, revoked("m0"), M0], settings=with_settings(progress="sink"))
    assert floors(batch).tolist() == [-(2**63)] * 2


def test_every_possession_has_its_own_floor() -> None:
    """Of two members and two partitions, each was answered something else."""
    here = [answered("m0", 1), on(1, answered("m1", 2)), assigned("m0", 0), assigned("m1", 1), delivered("m0", 1)]
    swapped = [said("m1", "revoked", entries=[{"topic": "t", "partition": 1}]), answered("m1", 3), assigned("m1", 0)]
    assert floor_of_each([*here, *swapped], partitions=2) == [1, 3, 2]


def test_the_answers_are_told_with_their_members() -> None:
    """By partition, member and the time at which they were sent."""
    lines = [answered("m1", 1), answered("m0", 2), on(1, answered("m0", 3)), answered("m0", 4)]
    others = [asked("OFFSET_FETCH", "m0", 5, error=3), asked("OFFSET_FETCH", "operator", 6)]
    answers = answers_with_starts(batch_of([*lines, *others], partitions=2))
    assert told(answers, "slice", "member", "at_ns", "committed_offset") == [
        (0, 0, 20, 2),
        (0, 0, 40, 4),
        (0, 1, 10, 1),
        (1, 0, 30, 3),
    ]


def test_a_possession_that_was_heard_of_late_may_have_opened_before() -> None:
    """The harness stood still: what was committed meanwhile is no floor for certain, and an early answer still is."""
    still = [stood_still(3), M0]
    assert floor_of_each([committed(2), after(3), committed(1), after(1), committed(2), after(1), *still]) == [1]
    assert floor_of_each([answered("m0", 1), after(4), *still]) == [1]
    assert floor_of_each([answered("m0", 1), after(4), M0, processed("m0", 0)]) == [0]


def test_a_position_below_the_beginning_of_the_log_is_a_floor_all_the_same() -> None:
    """What the broker answered counts; where nothing had been committed for certain, the beginning of the log does."""
    assert floor_of_each([log_start(5), answered("m0", 0), M0]) == [0]
    assert floor_of_each([log_start(5), committed(7), M0]) == [5]

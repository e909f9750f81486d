"""Which answers to OffsetFetch are a restart: literal histories, each of at most eight lines."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    after,
    answered,
    assigned,
    batch_of,
    committed,
    delivered,
    exited,
    fetched,
    handled,
    judged,
    on,
    owner,
    revoked,
    started,
)
from kafka_trial.model.start_positions import floors

M0 = assigned("m0")
FELL = [committed(2), committed(1)]
GAUGE = answered("m0", 1)


def restarted(lines: list[Line | list[Line]]) -> list[bool]:
    """Of each time the position fell and came back, whether somebody restarted inside."""
    back = [after(1), *committed(9)]
    return [one["restart_inside"] for one in judged("commit-regression", [*lines, *back], records=9, partitions=2)]


@pytest.mark.parametrize(
    ("lines", "inside"),
    [
        ([M0, fetched("m0", 0), *FELL, GAUGE, fetched("m0", 5)], False),
        ([fetched("m0", 0), *FELL, GAUGE, fetched("m0", 5)], False),
        ([fetched("m0", 0), *FELL, GAUGE], False),
        ([fetched("m0", 1), *FELL, GAUGE, fetched("m0", 1, size_bytes=9)], False),
        ([fetched("m0", 0), *FELL, answered("m0", 1), answered("m0", 1), answered("m0", 1), fetched("m0", 5)], False),
        ([fetched("m0", 0), *FELL, answered("m1", 1)], False),
        ([M0, *handled("m0", 0, 1), *FELL, GAUGE, *handled("m0", 2)], False),
        (
            [owner("m0"), after(1), M0, *handled("m0", 0, 1), *FELL, after(1), answered("m1", 1), *handled("m0", 2)],
            False,
        ),
        ([owner("m0"), after(1), fetched("m0", 0), *FELL, after(1), answered("m1", 1), fetched("m1", 1)], False),
    ],
    ids=[
        "inside an ownership epoch, and it goes on",
        "of a member that prints no ownership epoch, and it goes on",
        "and nothing new is fetched",
        "and it goes on where the answer stands",
        "again and again",
        "of a member that fetches nothing",
        "by its own word, where no fetch was seen",
        "of a member that does not own the partition, where no fetch was seen",
        "of a member that does not own the partition, and fetches it",
    ],
)
def test_a_gauge_that_asks_for_the_committed_position_restarts_nothing(
    lines: list[Line | list[Line]], *, inside: bool
) -> None:
    """Nobody starts from the answer: what the member fetches next lies where it stood, or beyond."""
    assert restarted(lines) == [inside]


@pytest.mark.parametrize(
    "lines",
    [
        [fetched("m0", 3), *FELL, GAUGE, fetched("m0", 1)],
        [fetched("m0", 3), *FELL, GAUGE, fetched("m0", 4, size_bytes=9), fetched("m0", 1)],
        [fetched("m0", 3), *FELL, answered("m1", 1), fetched("m1", 1)],
        [fetched("m0", 1), exited("m0", signal=9), started("m0-1"), *FELL, GAUGE, fetched("m0", 1)],
        [fetched("m0", 1), fetched("m1", 3), *FELL, GAUGE, fetched("m0", 1)],
        [fetched("m0", 3), *FELL, answered("m1", -1), fetched("m1", 0)],
        [on(1, fetched("m0", 3)), fetched("m1", 3), *FELL, GAUGE, fetched("m0", 1)],
        [M0, *handled("m0", 0, 1), *FELL, revoked("m0"), GAUGE],
        [fetched("m0", 3), M0, *FELL, M0, fetched("m0", 4)],
    ],
    ids=[
        "it rewinds to the answer",
        "it rewinds to it after the fetch that was on its way",
        "another member begins there",
        "a new process begins there",
        "it begins there after another member had it",
        "it begins where the log does",
        "it had fetched another partition only",
        "by its own word it had none, where no fetch was seen",
        "by its own word an ownership epoch opens",
    ],
)
def test_a_restart_is_found_though_no_possession_is_printed(lines: list[Line | list[Line]]) -> None:
    """An ownership epoch starts from the answer, or the next fetch rewinds to it."""
    assert restarted(lines) == [True]


@pytest.mark.parametrize(
    ("lines", "floor"),
    [
        ([answered("m0", 1), M0, fetched("m0", 1), answered("m0", 2), delivered("m0", 1)], 1),
        ([answered("m0", 2), M0, fetched("m0", 2), answered("m0", 1), delivered("m0", 2)], 2),
        ([answered("m0", 1), answered("m0", 2), M0, fetched("m0", 1), delivered("m0", 1)], 1),
        ([answered("m0", 1), answered("m0", 0), M0, fetched("m0", 1), delivered("m0", 1)], 1),
        ([answered("m0", 2), M0, fetched("m0", 2), answered("m0", 1), fetched("m0", 1), delivered("m0", 1)], 1),
        ([answered("m0", 2), M0, fetched("m0", 0), answered("m0", 2), delivered("m0", 0)], 2),
        ([answered("m0", -1), M0, fetched("m0", 0), answered("m0", 2), delivered("m0", 0)], 0),
        ([answered("m0", 1), answered("m0", 2), M0, fetched("m0", 0), delivered("m0", 0)], 2),
        ([answered("m0", 1), M0, on(1, fetched("m0", 1)), answered("m0", 2), delivered("m0", 1)], 2),
    ],
    ids=[
        "a higher answer to a gauge",
        "a lower answer to a gauge",
        "a gauge before the first fetch",
        "a gauge that is answered the beginning",
        "the answer that it rewinds to",
        "it starts below the answer",
        "there was nothing committed",
        "it starts at none of its answers",
        "where no fetch was seen the last answer",
    ],
)
def test_the_floor_is_the_answer_that_the_possession_starts_from(lines: list[Line], floor: int) -> None:
    """A gauge moves it neither up nor down; who starts elsewhere is held to what it was answered."""
    assert floors(batch_of(lines, partitions=2, records=3)).tolist() == [floor]


def test_a_gauge_makes_no_redelivery_illegal() -> None:
    """The owner before committed once more, late; m0 had begun below that, and asks where the group stands."""
    before = [assigned("m1"), *handled("m1", 0, 1), committed(1), revoked("m1"), answered("m0", 1), M0]
    asks = [fetched("m0", 1), *committed(2, by="m1"), answered("m0", 2), *handled("m0", 1)]
    assert judged("illegal-redelivery", [*before, *asks]) == []
    assert [one["offset"] for one in judged("redelivered", [*before, *asks])] == [1]


def test_who_starts_below_what_it_was_answered_redelivers_illegally_whatever_its_gauge_says() -> None:
    """It was answered 2, and begins at 1; the gauge is answered the same once more."""
    before = [assigned("m1"), *handled("m1", 0, 1), committed(2), revoked("m1"), answered("m0", 2), M0]
    found = judged("illegal-redelivery", [*before, fetched("m0", 1), answered("m0", 2), *handled("m0", 1)])
    assert [(one["offset"], one["floor"]) for one in found] == [(1, 2)]

"""What a group does again on a mirror that it failed over to: literal histories, each of at most eight lines."""

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
    failed_over,
    handled,
    judged,
    processed,
    revoked,
    undecided,
)
from kafka_trial.model.start_positions import floors

Lines = list[Line | list[Line]]
LEFT: Lines = [
    assigned("m0"),
    *handled("m0", 0, 1, 2),
    *committed(3),
    revoked("m0"),
]  # the commit is at place 1 of the offsets log


def came(least: int | None, start: int, *, answers: bool = True) -> Lines:
    """The group comes to the mirror, and m1 begins at a record that was done before."""
    told = [answered("m1", start)] if answers else []
    return [*LEFT, failed_over(1, least), after(1), *told, assigned("m1"), delivered("m1", start)]


@pytest.mark.parametrize("answers", [True, False], ids=["told where to begin", "nobody saw what it was told"])
def test_what_a_translation_explains_is_no_illegal_redelivery(answers: bool) -> None:
    """Positions of the source are none on the mirror: what was committed there is no floor here."""
    lines = came(1, 1, answers=answers)
    assert judged("illegal-redelivery", lines) == []
    assert judged("redelivered", lines) == [{"offset": 1, "floor": 1}]


def test_whoever_begins_below_the_position_that_it_had_there_is_convicted() -> None:
    """MirrorMaker had written 1, and it began at 0."""
    assert judged("illegal-redelivery", came(1, 0, answers=False)) == [{"offset": 0, "floor": 1}]


def test_a_copied_position_is_convicted_below_what_a_translation_explains() -> None:
    """The coordinator told it to begin there, for somebody had put the source's position there."""
    assert judged("illegal-redelivery", came(1, 0)) == [{"offset": 0, "floor": 1}]
    assert judged("illegal-redelivery", came(0, 0)) == []


def test_where_nobody_knows_where_to_begin_it_is_undecided() -> None:
    """Until the group has committed there: what is done again after that, the commit decides."""
    assert undecided("illegal-redelivery", came(None, 0)) == 1
    again: Lines = [revoked("m1"), after(2), answered("m2", 1), assigned("m2"), delivered("m2", 0)]
    lines = [*came(None, 0)[:-1], *committed(1), after(2), *again]
    assert judged("illegal-redelivery", lines) == [{"offset": 0, "floor": 1}]


def test_a_later_floor_is_that_of_the_mirror_s_own_commits() -> None:
    """However far the group had come on the source."""
    lines = [*came(1, 1), processed("m1", 1), *committed(2), after(2), assigned("m2")]
    assert floors(batch_of(lines)).tolist()[1:] == [1, 2]


def test_a_first_position_on_the_mirror_is_no_regression() -> None:
    """It is below that of the source, which is another log's."""
    lines = [*LEFT, failed_over(1, 1), after(1), assigned("m1"), *handled("m1", 1), *committed(2)]
    assert judged("commit-regression", lines) == []
    assert judged("commit-regression", [*lines, *committed(1)]) != []


GONE_BACK: Lines = [
    *came(1, 1),
    processed("m1", 1),
    *committed(4),  # at place 2
    revoked("m1"),
    failed_over(2, 3, back=True),
    after(1),
]


def test_whoever_goes_back_is_held_to_the_position_that_it_had_left() -> None:
    """What it has committed on the mirror since then is none on the source."""
    lines: Lines = [*GONE_BACK, answered("m2", 3), assigned("m2"), *handled("m2", 3), *committed(4)]
    assert floors(batch_of(lines)).tolist()[1:] == [1, 3]
    assert judged("illegal-redelivery", lines) == []
    assert judged("commit-regression", lines) == []
    assert judged("commit-regression", [*lines, *committed(3)]) != []


def test_whoever_goes_back_further_is_convicted() -> None:
    """Records 1 and 2 had been committed on the source before the group ever left."""
    lines: Lines = [*GONE_BACK, assigned("m2"), delivered("m2", 2)]
    assert judged("illegal-redelivery", lines) == [{"offset": 2, "floor": 3}]

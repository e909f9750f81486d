"""Handlers that take batches (`[evidence] handler = "batch"`): a batch is one unit, and two of them may not overlap."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    after,
    assigned,
    commit,
    committed,
    delivered,
    exited,
    judged,
    processed,
    revoked,
    with_settings,
)

BATCHES = with_settings(handler="batch")
FAILED = processed("m0", 2, outcome="failed")


def given(member: str, *offsets: int) -> list[Line]:
    return [delivered(member, offset) for offset in offsets]


def done(member: str, *offsets: int) -> list[Line]:
    return [processed(member, offset) for offset in offsets]


def overlaps(*lines: Line | list[Line], handler: str = "batch") -> list[tuple[int, int]]:
    """The records whose handler began while another one ran, each with that one."""
    flat = [one for line in lines for one in (line if isinstance(line, list) else [line])]
    found = judged("overlapping-handlers", flat, records=6, settings=with_settings(handler=handler))
    return [(one["offset"], one["other_offset"]) for one in found]


def test_the_records_of_a_batch_do_not_overlap() -> None:
    """All are delivered before the first is done."""
    assert overlaps(assigned("m0"), given("m0", 0, 1, 2), done("m0", 0, 1, 2)) == []


def test_whoever_takes_single_records_overlaps_with_the_same_lines() -> None:
    """Nothing was declared."""
    lines = [assigned("m0"), given("m0", 0, 1), done("m0", 0, 1)]
    assert overlaps(*lines, handler="record") == [(1, 0)]


def test_a_batch_that_begins_before_the_one_before_it_is_done_overlaps() -> None:
    """2 is delivered after the first completion: it is of another batch than 1."""
    assert overlaps(assigned("m0"), given("m0", 0, 1), done("m0", 0), given("m0", 2), done("m0", 1, 2)) == [(2, 1)]


def test_batches_one_after_the_other_do_not_overlap() -> None:
    """The second is delivered when the first is done."""
    batches = [given("m0", 0, 1), done("m0", 0, 1), given("m0", 2, 3), done("m0", 2, 3)]
    assert overlaps(assigned("m0"), *batches) == []


def test_a_commit_between_deliveries_does_not_end_a_batch() -> None:
    """Only a completion does."""
    assert overlaps(assigned("m0"), given("m0", 0), commit("m0", 0), given("m0", 1), done("m0", 0, 1)) == []


def test_a_batch_ends_with_its_possession() -> None:
    """What is delivered in the next one is of another batch, and overlaps with what is still at work."""
    again = [revoked("m0"), assigned("m0"), given("m0", 1)]
    assert overlaps(assigned("m0"), given("m0", 0), again, done("m0", 0, 1)) == [(1, 0)]


def test_every_record_of_a_batch_that_came_too_early_is_told() -> None:
    """Each of them began beside a record of the batch before."""
    lines = [given("m0", 0, 1), done("m0", 0), given("m0", 2, 3), done("m0", 1, 2, 3)]
    assert overlaps(assigned("m0"), *lines) == [(2, 1), (3, 1)]


@pytest.mark.parametrize(("order", "late"), [((0, 1, 2), []), ((1, 0, 2), [0])])
def test_order_in_a_batch_is_that_of_its_completions(order: tuple[int, ...], late: list[int]) -> None:
    """A batch that is worked on out of order is told as such."""
    found = judged(
        "reordered-key", [assigned("m0"), given("m0", 0, 1, 2), done("m0", *order)], records=3, settings=BATCHES
    )
    assert [one["offset"] for one in found] == late


def test_a_commit_in_the_middle_of_a_batch_is_ahead_as_ever() -> None:
    """It covers a record of the batch that is not done."""
    lines = [assigned("m0"), given("m0", 0, 1), done("m0", 0), commit("m0", 2), committed(2, by="m0"), done("m0", 1)]
    assert [one["committed_offset"] for one in judged("commit-ahead", lines, settings=BATCHES)] == [2]


REPLAYED = {
    "its last record failed": [*given("m0", 0, 1, 2), *done("m0", 0, 1), FAILED],
    "its last record was not ended": [*given("m0", 0, 1, 2), *done("m0", 0, 1)],
}
AGAIN = [*given("m0", 0, 1, 2), *done("m0", 0, 1, 2)]


@pytest.mark.parametrize("name", ["redelivered", "illegal-redelivery", "nonmonotonic-poll", "reordered-key"])
@pytest.mark.parametrize("first", REPLAYED.values(), ids=REPLAYED.keys())
def test_a_batch_that_is_handed_out_again_from_the_committed_position_is_a_retry(first: list[Line], name: str) -> None:
    """A client whose listener threw hands the whole batch out once more, whatever of it was done."""
    lines = [assigned("m0"), *first, *AGAIN, *committed(3)]
    assert judged(name, lines, records=3, settings=BATCHES) == []
    assert len(judged("retried", lines, records=3, settings=BATCHES)) == 3


@pytest.mark.parametrize(
    ("lines", "offsets"),
    [
        (
            [*given("m0", 0, 1), *done("m0", 0, 1), *committed(2), after(2), *given("m0", 0, 1), *done("m0", 0, 1)],
            [0, 1],
        ),
        ([*given("m0", 0, 1), *done("m0", 0, 1), *given("m0", 0, 1), *done("m0", 0, 1)], [0, 1]),
        ([*given("m0", 0, 1), *done("m0", 0), *given("m0", 1, 2), *done("m0", 1, 2)], []),
        ([*given("m0", 0, 1), FAILED, *done("m0", 0, 1), *given("m0", 1, 2), *done("m0", 1, 2)], [1]),
    ],
    ids=["below the committed position", "of a batch that ended well", "what had no end", "not the whole batch"],
)
def test_other_batches_that_come_again_are_redelivered(lines: list[Line | list[Line]], offsets: list[int]) -> None:
    """The floor holds for batches too."""
    found = judged("redelivered", [assigned("m0"), *lines], records=3, settings=BATCHES)
    assert [one["offset"] for one in found] == offsets


def test_inside_a_batch_that_is_handed_out_again_order_holds() -> None:
    """Its second time is no excuse for its own order."""
    lines = [assigned("m0"), *REPLAYED["its last record failed"], *given("m0", 0, 1, 2), *done("m0", 1, 0, 2)]
    found = judged("reordered-key", lines, records=["a"] * 3, settings=BATCHES)
    assert [(one["offset"], one["later_offset"]) for one in found] == [(0, 1)]


GIVEN_UP = [processed("m0", offset, outcome="dead-lettered") for offset in (0, 1, 2)]
IN_VAIN = {
    "it printed that its last record failed": [*given("m0", 0, 1, 2), *done("m0", 0, 1), FAILED],
    "it printed nothing of its last record": [*given("m0", 0, 1, 2), *done("m0", 0, 1)],
    "all were done, and then it failed": [*given("m0", 0, 1, 2), *done("m0", 0, 1, 2), FAILED],
}


def ordered_wrongly(*lines: Line | list[Line], handler: str = "batch") -> list[tuple[int, int]]:
    """The records that were handled after a later one, each with that one."""
    flat = [one for line in [assigned("m0"), *lines] for one in (line if isinstance(line, list) else [line])]
    found = judged("reordered-key", flat, records=6, settings=with_settings(handler=handler))
    return [(one["offset"], one["later_offset"]) for one in found]


@pytest.mark.parametrize("tries", [1, 3])
@pytest.mark.parametrize("attempt", IN_VAIN.values(), ids=IN_VAIN.keys())
def test_a_batch_that_failed_may_be_given_up_as_a_whole(attempt: list[Line], tries: int) -> None:
    """Spring's error handler of batch listeners recovers all records of the batch, those included that were done."""
    lines = [*attempt * tries, *GIVEN_UP, *committed(3), *given("m0", 3), *done("m0", 3), *committed(4)]
    assert ordered_wrongly(*lines) == []
    for name in ("redelivered", "nonmonotonic-poll", "skipped", "commit-ahead", "overlapping-handlers"):
        assert judged(name, [assigned("m0"), *lines], records=4, settings=BATCHES) == []


def test_a_member_may_end_while_it_gives_a_batch_up() -> None:
    """Nobody expects the rest of it from who was killed."""
    cut = [*IN_VAIN["it printed that its last record failed"], *GIVEN_UP[:1], exited("m0", signal=9)]
    assert ordered_wrongly(*cut) == []


@pytest.mark.parametrize(
    ("lines", "handler", "late"),
    [
        ([*given("m0", 0, 1, 2), *done("m0", 0, 1, 2), *GIVEN_UP], "batch", [(0, 2), (1, 2)]),
        ([*IN_VAIN["it printed that its last record failed"], *GIVEN_UP], "record", [(0, 1)]),
        ([*IN_VAIN["it printed that its last record failed"], *GIVEN_UP[:1], *given("m0", 3)], "batch", [(0, 1)]),
        ([*IN_VAIN["it printed that its last record failed"], *GIVEN_UP[:1], *done("m0", 2)], "batch", [(0, 1)]),
        ([*IN_VAIN["it printed that its last record failed"], *GIVEN_UP[::-1]], "batch", [(0, 2), (1, 2)]),
        ([*given("m0", 0, 1, 2), *done("m0", 1, 2), *GIVEN_UP], "batch", [(0, 2), (1, 2)]),
        ([*IN_VAIN["it printed that its last record failed"], *done("m0", 0, 1, 2)], "batch", [(0, 1)]),
    ],
    ids=[
        "of a batch that ended well",
        "by a handler of single records",
        "only its first record",
        "only its first record, and the others done",
        "in another order",
        "its first record was left for later",
        "done again, not given up",
    ],
)
def test_other_records_are_not_given_up_out_of_order(
    lines: list[Line], handler: str, late: list[tuple[int, int]]
) -> None:
    """Only a batch that failed is given up as a whole, in its order, before anything else is done."""
    assert ordered_wrongly(*lines, handler=handler) == late


def test_a_batch_that_was_given_up_is_not_handed_out_again() -> None:
    """Giving it up was the end of it, though the position behind it was not committed yet."""
    lines = [assigned("m0"), *IN_VAIN["it printed that its last record failed"], *GIVEN_UP, *AGAIN]
    found = judged("redelivered", lines, records=3, settings=BATCHES)
    assert [one["offset"] for one in found] == [0, 1, 2]

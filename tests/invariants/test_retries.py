"""Retries: what is delivered again inside an ownership epoch, and nothing from there on was completed."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    after,
    assigned,
    commit,
    committed,
    delivered,
    effect,
    finding,
    handled,
    judged,
    processed,
    revoked,
    with_settings,
)

RULES = ("nonmonotonic-poll", "redelivered", "reordered-key", "overlapping-handlers", "poll-skip")
FAILED_0 = [assigned("m0"), delivered("m0", 0), processed("m0", 0, outcome="failed")]
Lines = list[Line | list[Line]]


def broken(lines: Lines, **frame: object) -> dict[str, list[int]]:
    """Returns the offsets that each rule of order names, where it names any."""
    found = {
        name: [one.attributes["offset"] for one in finding(name, lines, **frame).instances]
        for name in (*RULES, "retried")
    }
    return {name: offsets for name, offsets in found.items() if offsets}


def test_a_record_whose_handler_threw_is_retried() -> None:
    """Spring's default error handler seeks back to the record that failed; the line of its end was never printed."""
    assert broken([assigned("m0"), delivered("m0", 0), *handled("m0", 0, 1)]) == {"retried": [0]}


def test_a_record_that_failed_by_its_own_word_is_retried() -> None:
    """`failed` ends the handler, and completes nothing."""
    assert broken([*FAILED_0, *handled("m0", 0, 1)]) == {"retried": [0]}


def test_what_was_handed_out_behind_it_is_delivered_again_too() -> None:
    """Records 1 and 2 came in one batch, the first of them failed, and the member sought back to it."""
    lines = [assigned("m0"), *handled("m0", 0), delivered("m0", 1), delivered("m0", 2), *handled("m0", 1, 2)]
    assert broken(lines, records=3) == {"retried": [1, 2]}


def test_a_step_back_over_completed_records_is_no_retry() -> None:
    """Record 1 was completed: from there on nobody reads in order."""
    lines = [assigned("m0"), *handled("m0", 0, 1), delivered("m0", 0)]
    assert broken(lines) == {"nonmonotonic-poll": [0], "redelivered": [0]}


def test_a_record_that_was_completed_is_not_retried() -> None:
    """The smallest step back: the record itself was done."""
    lines = [assigned("m0"), *handled("m0", 0), *handled("m0", 0)]
    assert broken(lines) == {"nonmonotonic-poll": [0], "redelivered": [0]}


def test_a_failed_record_that_is_done_after_the_next_one_is_no_retry() -> None:
    """It went on, and came back when record 1 was done: the order is broken."""
    lines = [*FAILED_0, *handled("m0", 1), *handled("m0", 0)]
    assert broken(lines) == {"nonmonotonic-poll": [0], "redelivered": [0], "reordered-key": [0]}


def test_a_record_of_an_earlier_place_that_comes_first_later_is_no_retry() -> None:
    """Nothing was completed, but record 0 had never been delivered."""
    assert broken([assigned("m0"), delivered("m0", 1), delivered("m0", 0)]) == {"nonmonotonic-poll": [0]}


def test_a_completion_without_a_delivery_is_a_completion() -> None:
    """It prints `record_processed` only for record 1, and steps back to 0."""
    lines = [assigned("m0"), delivered("m0", 0), processed("m0", 1), delivered("m0", 0)]
    assert broken(lines) == {"nonmonotonic-poll": [0], "redelivered": [0]}


def test_an_effect_behind_it_is_a_completion_too() -> None:
    """The sink had heard of record 1 a second before: what the member does not print, its sink tells."""
    lines = [assigned("m0"), delivered("m0", 0), delivered("m0", 1), effect(1), after(1), delivered("m0", 0)]
    assert broken(lines) == {"nonmonotonic-poll": [0], "redelivered": [0]}


def test_the_effect_of_the_record_itself_is_no_completion() -> None:
    """The sink had it, and the member had no answer: it must try again."""
    lines = [assigned("m0"), delivered("m0", 0), effect(0, outcome="info"), after(1), *handled("m0", 0)]
    assert broken(lines) == {"retried": [0]}


def test_a_retry_in_the_next_possession_is_a_redelivery() -> None:
    """Of another ownership epoch: counted as such, once."""
    lines = [*FAILED_0, revoked("m0"), assigned("m0"), delivered("m0", 0), *handled("m0", 0)]
    assert broken(lines) == {"redelivered": [0], "retried": [0]}


def test_a_failed_record_is_not_handled() -> None:
    """It went on without it, and committed past it: lost."""
    lines = [*FAILED_0, *handled("m0", 1), committed(2)]
    assert [one["offset"] for one in judged("skipped", lines)] == [0]


def test_a_failed_record_that_is_done_later_was_handled() -> None:
    """By the second attempt."""
    assert judged("skipped", [*FAILED_0, *handled("m0", 0, 1), committed(2)]) == []


def test_a_failed_attempt_covers_no_commit() -> None:
    """Committed before the attempt that succeeded."""
    lines = [*FAILED_0, commit("m0", 1), *committed(1, by="m0"), after(1), *handled("m0", 0)]
    assert [one["offset"] for one in judged("commit-ahead", lines)] == [0]


def test_a_failed_handler_has_ended() -> None:
    """The next record's handler begins after it: no two at once."""
    assert broken([*FAILED_0, *handled("m0", 1)]) == {}


def test_a_handler_that_failed_overlaps_while_it_runs() -> None:
    """Record 1 began before record 0 had failed."""
    lines = [assigned("m0"), delivered("m0", 0), delivered("m0", 1), processed("m0", 0, outcome="failed")]
    assert broken([*lines, processed("m0", 1)]) == {"overlapping-handlers": [1]}


@pytest.mark.parametrize(
    ("lines", "again"),
    [
        ([assigned("m0"), processed("m0", 0), processed("m0", 0)], [0]),
        ([assigned("m0"), processed("m0", 0), revoked("m0"), assigned("m1"), processed("m1", 0)], [0]),
        ([assigned("m0"), *handled("m0", 0), processed("m0", 0)], [0]),
        ([assigned("m0"), *handled("m0", 0), revoked("m0"), assigned("m1"), *handled("m1", 0)], [0]),
        ([assigned("m0"), processed("m0", 0), processed("m0", 1)], []),
        ([assigned("m0"), processed("m0", 0, outcome="failed"), processed("m0", 0)], []),
    ],
    ids=["inside", "by another", "its handler ended twice", "delivered again", "each once", "failed, then done"],
)
def test_redelivered_is_what_was_handled_twice_whatever_was_printed(lines: Lines, again: list[int]) -> None:
    """`record_processed` alone tells it too; a handler that was begun again counts once."""
    assert [one["offset"] for one in judged("redelivered", lines)] == again


def test_what_a_failed_transaction_undid_is_handled_again() -> None:
    """Its work was taken back: neither a step back nor a redelivery."""
    undone = [assigned("m0"), *handled("m0", 0), commit("m0", 1, "fail"), *handled("m0", 0)]
    settings = with_settings(progress="transaction", sink="topic")
    assert [judged(name, undone, settings=settings) for name in ("nonmonotonic-poll", "redelivered")] == [[], []]

"""Callbacks that members tell of later than their next request to the group shows them to be over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from group_lines import beat, joined, synced
from histories import (
    Line,
    after,
    answered,
    assigned,
    fault,
    fetched,
    finding,
    handled,
    healed,
    holds,
    judged,
    owner,
    revoked,
    undecided,
)
from kafka_trial.model.undecided import Undecided

History = list[Line | list[Line]]
WORKED: History = [assigned("m0"), answered("m0", 0), fetched("m0", 0, size_bytes=9), *handled("m0", 0)]
CLASSIC: History = [owner("m0"), synced("m0", 0), *WORKED, after(1), synced("m0", generation=2)]
CONSUMER: History = [holds("m0", 0), beat("m0", [0]), *WORKED, after(1), beat("m0", [])]
JOINS_AGAIN = joined("m0", generation=3)
OWNS_LESS = beat("m0", owned=[])


@pytest.mark.parametrize(
    "lost", [[*CLASSIC, JOINS_AGAIN], [*CONSUMER, OWNS_LESS]], ids=["joined again", "said that it owns less"]
)
def test_work_after_a_callback_that_is_told_later_is_undecided(lost: History) -> None:
    """It works off its queue, and says `revoked` when that is empty."""
    found = finding("work-after-revoke", [*lost, after(2), *handled("m0", 1), revoked("m0")])
    assert (found.instances, found.undecided) == ((), {Undecided.REVOKED_LATE: 2})


@pytest.mark.parametrize(
    "lines",
    [
        [*CLASSIC, after(2), *handled("m0", 1), revoked("m0"), JOINS_AGAIN],
        [*CONSUMER, after(2), *handled("m0", 1), revoked("m0"), OWNS_LESS],
        [*CONSUMER, beat("m0", owned=[0]), after(2), *handled("m0", 1), revoked("m0"), OWNS_LESS],
        [*CLASSIC, JOINS_AGAIN, *handled("m0", 1), revoked("m0")],
        [
            *CLASSIC,
            revoked("m0"),
            JOINS_AGAIN,
            synced("m0", 0, generation=3),
            assigned("m0"),
            after(2),
            *handled("m0", 1),
        ],
        [*CLASSIC, JOINS_AGAIN, synced("m0", 0, generation=3), after(2), *handled("m0", 1), revoked("m0")],
    ],
    ids=[
        "before it asks again",
        "before it says that it owns less",
        "it says that it still owns it",
        "the line is on its way",
        "it has it again",
        "it has it again, and does not say so",
    ],
)
def test_work_before_its_callback_is_over_is_in_time(lines: History) -> None:
    """Nothing is known of a callback that may still be running."""
    assert undecided("work-after-revoke", lines) == 0


def test_a_join_that_waited_in_a_broker_that_stood_still_shows_no_callback_to_be_over() -> None:
    """It may have sent it before it was told: the broker reads it, and dates it, when it continues."""
    join, pause = replace(JOINS_AGAIN, source="requests-b1"), fault("broker-pause", None)
    for broker, count in (("b1", 0), ("b2", 2)):
        frozen = replace(pause, fields=pause.fields | {"target": f"coordinator: {broker}"})
        lines = [frozen, after(1), *CLASSIC, after(9), healed(), join, after(2), *handled("m0", 1), revoked("m0")]
        assert undecided("work-after-revoke", lines) == count


def test_what_it_has_still_to_give_up_is_not_given_again() -> None:
    """The record of its assignment is written anew while it says `revoked`, and works on."""
    lines = [*CONSUMER, holds("m0", pending=[0]), revoked("m0"), holds("m0", pending=[0], epoch=2)]
    late: History = [fetched("m0", 1, size_bytes=9), *handled("m0", 1)]
    assert len(judged("work-after-revoke", [*lines, *late])) == 2


def test_work_after_it_was_given_the_partition_again_is_no_late_work() -> None:
    """It left, came back, and says `assigned` once it is at work; what it had from before is late all the same."""
    left_ = [owner("m0"), synced("m0", 0), *WORKED, revoked("m0"), owner("m1", idle=["m0"], epoch=2), after(1)]
    back: History = [*left_, owner("m0", epoch=3), synced("m0", 0, generation=3)]
    again: History = [answered("m0", 1), fetched("m0", 1, size_bytes=9), *handled("m0", 1), assigned("m0")]
    assert judged("work-after-revoke", [*back, *again]) == []
    assert len(judged("work-after-revoke", [*back, *handled("m0", 1), *again])) == 2
    gone: History = [owner("m1", idle=["m0"], epoch=4), after(1), *handled("m0", 1)]
    assert len(judged("work-after-revoke", [*back, *again[:2], *gone])) == 2
    assert len(judged("work-after-revoke", [*left_, *handled("m0", 1), *back[len(left_) :], *again])) == 2

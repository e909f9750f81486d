"""Possessions by the request log: of members that print no `assigned`; and what is not judged where nobody tells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from group_lines import beat, joined, left, synced
from histories import (
    Line,
    after,
    answered,
    assigned,
    batch_of,
    commit,
    committed,
    delivered,
    exited,
    fetched,
    finding,
    handled,
    judged,
    lasting,
    later,
    measured,
    not_judged,
    owner,
    processed,
    revoked,
    started,
    stood_still,
    told,
    with_settings,
)
from kafka_trial.model.ownership_epochs import ownership_epochs

BY_HAND = with_settings(protocol="none")
OF_POSSESSIONS = (
    *("redelivered", "illegal-redelivery", "nonmonotonic-poll", "poll-skip", "reordered-key"),
    *("overlapping-handlers", "zombie-work"),
)
ALIKE = ["a", "a", "a"]


def held(lines: Iterable[Line | list[Line]], **frame: Any) -> list[tuple[object, ...]]:
    """Returns member, opening and closing (ms) of the ownership epochs of partition 0."""
    return told(ownership_epochs(batch_of(lines, **frame)), "member", "open_ns", "close_ns")


def test_a_possession_opens_at_the_assignment_and_ends_at_one_without_it() -> None:
    """A SyncGroup gives the partition, the next one does not."""
    assert held([synced("m0", 0), *handled("m0", 0), synced("m0")]) == [(0, 10, 40)]


def test_a_member_may_be_given_partitions_of_which_nothing_is_known() -> None:
    """Its topic had one partition when it was looked at, and has more since."""
    assert held([synced("m0", 0, 1), *handled("m0", 0)]) == [(0, 10, "never")]


def test_a_possession_ends_when_its_member_leaves() -> None:
    """A LeaveGroup without an error."""
    assert held([synced("m0", 0), left("m0")]) == [(0, 10, 20)]


def test_a_kip_848_heartbeat_gives_and_takes() -> None:
    """Only an assignment says something; a heartbeat without one goes on as before."""
    assert held([beat("m0", [0]), beat("m0"), beat("m0", [])]) == [(0, 10, 30)]


def test_a_possession_ends_with_its_process() -> None:
    """A killed member was told nothing; its next incarnation begins anew."""
    lines = [synced("m0", 0), exited("m0", signal=9), started("m0-1"), synced("m0", 0), answered("m0", 0)]
    assert held(lines) == [(0, 10, 20), (0, 40, "never")]


def test_a_cooperative_member_goes_on_over_a_rebalance() -> None:
    """It is given the partition again, and does not ask for its position."""
    assert held([synced("m0", 0), *handled("m0", 0), synced("m0", 0, 1)], partitions=2) == [
        (0, 10, "never"),
        (0, 40, "never"),
    ]


def test_an_eager_member_begins_anew_in_each_generation() -> None:
    """It asks where to start, so what it is delivered again is a redelivery."""
    lines = [synced("m0", 0), answered("m0", 0), fetched("m0", 0, size_bytes=9), *handled("m0", 0)]
    again = [synced("m0", 0), answered("m0", 0), fetched("m0", 0, size_bytes=9), *handled("m0", 0)]
    assert [one["offset"] for one in judged("redelivered", [*lines, *again])] == [0]
    assert judged("nonmonotonic-poll", [*lines, *again]) == []


def test_a_step_back_without_a_restart_is_found_though_no_callback_is_printed() -> None:
    """The library has none: the brokers say that the partition was its own all the while."""
    lines = [synced("m0", 0), *handled("m0", 0, 1, 0)]
    assert [one["offset"] for one in judged("nonmonotonic-poll", lines)] == [0]


def test_a_restart_below_the_answered_position_is_found_though_no_callback_is_printed() -> None:
    """m1 was answered 1, and begins at 0."""
    lines = [synced("m0", 0), *handled("m0", 0), synced("m0"), synced("m1", 0), answered("m1", 1)]
    found = judged("illegal-redelivery", [*lines, fetched("m1", 0, size_bytes=9), *handled("m1", 0)])
    assert [(one["offset"], one["floor"]) for one in found] == [(0, 1)]


def test_what_is_heard_late_belongs_to_the_possession_before() -> None:
    """A line is read after it was written: nothing of the new one can come before its first records."""
    lines = [synced("m0", 0), *handled("m0", 0), synced("m0", 0), answered("m0", 0), processed("m0", 0)]
    assert judged("nonmonotonic-poll", [*lines, fetched("m0", 0, size_bytes=9), *handled("m0", 0)]) == []


def test_what_a_busy_broker_logs_late_belongs_to_the_possession_it_opens() -> None:
    """The line of the first record that was fetched is heard before the answer that brought it is in the log."""
    before = [synced("m0", 0), *handled("m0", 0), synced("m0"), synced("m0", 0), answered("m0", 2), delivered("m0", 2)]
    lines = [*before, lasting(fetched("m0", 2, size_bytes=9), 0.03), processed("m0", 2)]
    assert judged("poll-skip", lines, records=3) == []
    assert [one["offset"] for one in judged("poll-skip", [*lines, *handled("m0", 4)], records=5)] == [3]


HELD_ON: list[Line | list[Line]] = [
    *(synced("m0", 0), answered("m0", 0), fetched("m0", 0, size_bytes=9), *handled("m0", 0)),
    *(after(2), synced("m0", 0), answered("m0", 1)),
]  # record 1 lies in the library's queue meanwhile


def test_what_was_in_hand_when_the_group_rebalanced_is_of_the_possession_before() -> None:
    """kafka-go's reader has no callbacks: its loop takes record 1 of the old generation, and reads it again in the
    next. The line was read soon after the fetch was answered, and may have been written before."""
    again = [fetched("m0", 1, size_bytes=9), *handled("m0", 1), *handled("m0", 1), measured("m0", 0.03)]
    assert judged("nonmonotonic-poll", [*HELD_ON, *again], records=2) == []
    assert [one["offset"] for one in judged("redelivered", [*HELD_ON, *again], records=2)] == [1]


def test_what_was_handled_before_the_first_fetch_is_of_the_possession_before() -> None:
    """However long the records that were fetched then wait in the queue."""
    again = [*handled("m0", 1), lasting(fetched("m0", 1, size_bytes=9), 0.02), after(1.7), *handled("m0", 1)]
    assert judged("nonmonotonic-poll", [*HELD_ON, *again, measured("m0", 0.03)], records=2) == []


def test_several_records_in_hand_are_of_the_possession_before() -> None:
    """All of them were read before the new ones can have been delivered."""
    again = [*handled("m0", 1, 2), fetched("m0", 1, size_bytes=9), after(1), *handled("m0", 1, 2)]
    assert judged("nonmonotonic-poll", [*HELD_ON, *again, measured("m0", 0.03)], records=3) == []


@pytest.mark.parametrize("back", [[1], [1, 2]])
def test_a_step_back_to_the_first_record_that_was_fetched_is_found(back: list[int]) -> None:
    """A line that was read a tenth of a second after the fetch is not of before it."""
    lines = [*HELD_ON, fetched("m0", 1, size_bytes=9), measured("m0", 0.01), after(0.1), *handled("m0", 1, *back[1:])]
    found = judged("nonmonotonic-poll", [*lines, *handled("m0", *back), measured("m0", 0.01)], records=3)
    assert [one["offset"] for one in found] == back


M = measured("m0", 0.01)  # a line may have waited for 45 ms: with the probe's interval, and the clocks
BEGUN: list[Line | list[Line]] = [
    *(synced("m0", 0), answered("m0", 0), fetched("m0", 0, size_bytes=9), M, *handled("m0", 0)),
]
NEXT: list[Line | list[Line]] = [synced("m0", 0, generation=2), answered("m0", 1), M, fetched("m0", 1, size_bytes=9)]
AGAIN: list[Line | list[Line]] = [*BEGUN, fetched("m0", 1), after(2), *NEXT]  # nothing from record 1 on was in hand
BACK: list[Line | list[Line]] = [  # m1 had the partition meanwhile, and did records 1 to 4
    *(*BEGUN, *committed(1, by="m0"), after(2), synced("m0"), synced("m1", 0), answered("m1", 1)),
    *(fetched("m1", 1, size_bytes=9), *handled("m1", 1, 2, 3, 4), *committed(5, by="m1"), after(2), synced("m1")),
    *(synced("m0", 0, generation=3), answered("m0", 5), M, fetched("m0", 5, size_bytes=9)),
]
FAILED = processed("m0", 5, outcome="failed")
UNFETCHED = [synced("m0", 0, generation=2), answered("m0", 0)]
NEXT_AT_5 = [synced("m0", 0, generation=4), answered("m0", 5), M, fetched("m0", 5, size_bytes=9)]
NEXT_AT_1 = [synced("m0", 0, generation=3), answered("m0", 1), M, fetched("m0", 1, size_bytes=9)]


@pytest.mark.parametrize(
    ("name", "lines", "records"),
    [
        ("poll-skip", [*BACK, delivered("m0", 5), FAILED, *handled("m0", 5), M], 6),
        ("poll-skip", [*BACK, delivered("m0", 5), after(1), *handled("m0", 5), M], 6),
        ("poll-skip", [*BACK, *handled("m0", 5), M, after(2), *NEXT_AT_5, *handled("m0", 5), M], 6),
        (
            "nonmonotonic-poll",
            [
                *(*BEGUN, after(2), synced("m0", 0, generation=2), *handled("m0", 1), answered("m0", 1), M, after(0.1)),
                *(fetched("m0", 1, size_bytes=9), *handled("m0", 1), M, after(2), *NEXT_AT_1, *handled("m0", 1), M),
            ],
            2,
        ),
        (
            "nonmonotonic-poll",
            [
                *(beat("m0", [0]), answered("m0", 0), fetched("m0", 0, size_bytes=9), M, *handled("m0", 0), after(2)),
                *(beat("m0", [], epoch=2), beat("m0", [0], epoch=3), answered("m0", 1), M),
                *(fetched("m0", 1, size_bytes=9), *handled("m0", 1), *handled("m0", 1), M),
            ],
            2,
        ),
        ("redelivered", [*AGAIN, delivered("m0", 1), after(1), *handled("m0", 1), M], 2),
        (
            "nonmonotonic-poll",
            [*BEGUN, after(2), *NEXT, *handled("m0", 1, 1), M, after(2), *NEXT_AT_1, *handled("m0", 1), M],
            2,
        ),
        ("nonmonotonic-poll", [*BEGUN, after(2), *UNFETCHED, M, after(0.1), *handled("m0", 0), M], 2),
    ],
    ids=[
        *("a retry", "an untold retry", "a rebalance before the commit", "a storm", "kip-848", "a retry is no restart"),
        "the next rebalance brings it once more",
        "a restart whose fetch nobody saw",
    ],
)
def test_sound_members_without_callbacks_are_acquitted(name: str, lines: list[Any], records: int) -> None:
    """Partitions that come back, retries, and several rebalances in a row."""
    assert judged(name, lines, records=records) == []


def test_after_a_stall_a_step_back_at_the_opening_is_undecided_at_most() -> None:
    """What was heard when the harness woke may have been said before the fetch was answered."""
    lines = [
        *BEGUN,
        after(2),
        *NEXT,
        after(1.5),
        stood_still(1.5),
        *handled("m0", 1),
        M,
        after(1),
        *handled("m0", 1),
        M,
    ]
    assert finding("nonmonotonic-poll", lines, records=2).instances == ()


@pytest.mark.parametrize(
    ("name", "lines", "records", "offsets"),
    [
        (
            "nonmonotonic-poll",
            [
                *(*AGAIN, *handled("m0", 1, 2), fetched("m0", 3), M, after(60), M, fetched("m0", 1, size_bytes=9)),
                *(*handled("m0", 1, 2), M),
            ],
            3,
            [1, 2],
        ),
        (
            "nonmonotonic-poll",
            [
                *(*AGAIN, *handled("m0", 1), delivered("m0", 2), processed("m0", 2, outcome="failed")),
                *(fetched("m0", 1, size_bytes=9), *handled("m0", 1, 2), M),
            ],
            3,
            [1],
        ),
        ("illegal-redelivery", [*BACK, *handled("m0", 1, 2), *handled("m0", 5), M], 6, [1, 2]),
        (
            "nonmonotonic-poll",
            [*AGAIN, *handled("m0", 1, 3), after(5), fetched("m0", 1, size_bytes=9), *handled("m0", 1, 2, 3), M],
            4,
            [1, 2, 3],
        ),
        ("nonmonotonic-poll", [*BEGUN, after(2), *NEXT, *handled("m0", 1, 1, 1), M], 2, [1]),
        ("nonmonotonic-poll", [synced("m0", 0), after(2), *NEXT, *handled("m0", 1, 1), M], 2, [1]),
        (
            "nonmonotonic-poll",
            [
                *(*BEGUN, after(2), synced("m0", 0, generation=2), answered("m0", 2), M),
                *(fetched("m0", 2, size_bytes=9), *handled("m0", 2, 2), M),
            ],
            3,
            [2],
        ),
        (
            "illegal-redelivery",
            [*BEGUN, after(2), *NEXT, delivered("m0", 1), *handled("m0", 1), *handled("m0", 0), M],
            2,
            [0],
        ),
        ("illegal-redelivery", [*BEGUN, after(2), *NEXT, after(0.1), *handled("m0", 1, 1, 0), M], 2, [0]),
    ],
    ids=[
        "a rewind",
        "a seek to the batch's start",
        "a stale buffer",
        "a skip and back",
        "a third delivery",
        "nothing was fetched before",
        "its deliveries did not go on to it",
        "a retry, and a step back below the position",
        "a rewind, and a step back below the position",
    ],
)
def test_guilty_members_without_callbacks_are_found(
    name: str, lines: list[Any], records: int, offsets: list[int]
) -> None:
    """The record in hand excuses one delivery, where nothing else explains it."""
    assert [one["offset"] for one in judged(name, lines, records=records)] == offsets


def test_its_own_word_outranks_nothing_and_needs_no_help() -> None:
    """A member that prints its callbacks is taken by them."""
    assert held([synced("m0", 0), assigned("m0"), synced("m0"), revoked("m0")]) == [(0, 20, 40)]


@pytest.mark.parametrize("name", OF_POSSESSIONS)
def test_what_needs_possessions_is_not_judged_where_nobody_tells_of_them(name: str) -> None:
    """82,299 deliveries of 4,476 records once came out with no redelivery, all judged."""
    assert not_judged(name, handled("m0", 0, 1, 0, 1)) == (
        "it is not known which partitions m0 had: no assigned line, and no assignment in the request log"
    )


def test_one_member_of_three_without_possessions_is_named() -> None:
    """The others told of theirs: what is not seen of one is not judged of all."""
    lines = [assigned("m0"), *handled("m0", 0), *(assigned("m1", 1), *handled("m2", 1))]
    assert "m2 had" in not_judged("nonmonotonic-poll", lines, members=3)


def test_what_was_found_stands_though_one_member_tells_of_no_possession() -> None:
    """Missing lines keep nobody from being convicted by those that are there; the rest stays open."""
    lines = [assigned("m0"), *handled("m0", 0, 1, 0), *handled("m1", 1)]
    found = finding("nonmonotonic-poll", lines)
    assert (found.not_judged, len(found.instances), sum(found.undecided.values())) == (None, 1, 1)


# --- assigned by hand ----------------------------------------------------------------------------------------------


def test_of_a_member_that_assigns_itself_the_fetches_tell() -> None:
    """The first one opens; a step back behind it is one."""
    lines = [fetched("m0", 0, size_bytes=9), *handled("m0", 0, 1, 0)]
    assert [one["offset"] for one in judged("nonmonotonic-poll", lines, settings=BY_HAND)] == [0]


def test_a_restart_by_hand_begins_a_possession() -> None:
    """It asks for its position, and goes back there."""
    lines = [fetched("m0", 0, size_bytes=9), *handled("m0", 0, 1), fetched("m0", 2), answered("m0", 0)]
    again = [fetched("m0", 0, size_bytes=9), *handled("m0", 0)]
    assert judged("nonmonotonic-poll", [*lines, *again], settings=BY_HAND) == []
    assert [one["offset"] for one in judged("redelivered", [*lines, *again], settings=BY_HAND)] == [0]


def test_a_restart_by_hand_is_one_though_its_position_is_logged_behind_the_fetch() -> None:
    """Two brokers write their request logs each at its own pace."""
    lines = [fetched("m0", 0, size_bytes=9), *handled("m0", 0, 1), after(1), fetched("m0", 2), after(1)]
    again = [fetched("m0", 0, size_bytes=9), later(answered("m0", 0), 20_000_000), *handled("m0", 0)]
    assert judged("nonmonotonic-poll", [*lines, *again], settings=BY_HAND) == []


def test_work_without_a_right_begins_anew_at_a_position_that_others_committed() -> None:
    """It was given something else; what it left out lies between two starts."""
    took = [owner("m0"), synced("m0", 0), synced("m1", 1), assigned("m1", 1), fetched("m1", 0, size_bytes=9)]
    lines = [*took, *handled("m1", 0), after(1), answered("m1", 2), fetched("m1", 2, size_bytes=9), *handled("m1", 2)]
    assert judged("poll-skip", lines) == []
    assert judged("poll-skip", [*took, *handled("m1", 0), *handled("m1", 2)]) != []


@pytest.mark.parametrize(("ns", "possessions"), [(0, 1), (1, 2)], ids=["in the same instant", "a nanosecond later"])
def test_a_restart_by_hand_asks_for_its_position_after_it_last_fetched(ns: int, possessions: int) -> None:
    """What was answered no later than the fetch before is none of it."""
    lines = [fetched("m0", 0, size_bytes=9), *handled("m0", 0, 1), fetched("m0", 2), later(answered("m0", 0), ns)]
    assert len(held([*lines, fetched("m0", 0, size_bytes=9)], settings=BY_HAND)) == possessions


def test_a_gauge_that_asks_for_its_position_is_no_restart() -> None:
    """It goes on where it was."""
    lines = [fetched("m0", 0, size_bytes=9), *handled("m0", 0, 1), answered("m0", 0), fetched("m0", 2, size_bytes=9)]
    assert len(held([*lines, *handled("m0", 2)], settings=BY_HAND)) == 1


# --- completions alone ---------------------------------------------------------------------------------------------


def test_a_rewind_is_found_by_completions() -> None:
    """It prints only what it has done: whoever did a record was given it."""
    lines: list[Line | list[Line]] = [assigned("m0"), *(processed("m0", offset) for offset in (0, 1, 0, 1))]
    assert [one["offset"] for one in judged("nonmonotonic-poll", lines)] == [0, 1]


def test_two_members_that_do_everything_are_found_by_completions() -> None:
    """One after the other; the second began below where the broker told it to."""
    lines = [assigned("m0"), processed("m0", 0), revoked("m0"), answered("m1", 1), assigned("m1"), processed("m1", 0)]
    assert [one["offset"] for one in judged("illegal-redelivery", lines)] == [0]


def test_overlap_is_not_judged_by_completions() -> None:
    """Nobody knows when the handlers began."""
    lines = [assigned("m0"), processed("m0", 0), processed("m0", 1)]
    assert not_judged("overlapping-handlers", lines) == "it is not known when handlers of m0 began: no delivered line"


@pytest.mark.parametrize(
    ("offset", "before", "stdout", "judges"),
    [(0, True, "lines", True), (0, True, "buffered", False), (1, True, "lines", False), (0, False, "lines", False)],
    ids=["given to another", "nobody knows when", "given to nobody", "given to another afterwards"],
)
def test_a_completion_of_what_another_was_given_is_no_work_of_its_own(
    offset: int, before: bool, stdout: str, judges: bool
) -> None:
    """Whoever finds a position in a table says that what lies before it is done, and may get no record."""
    work, found = [delivered("m0", 0), processed("m0", 0)], [assigned("m1"), processed("m1", offset)]
    lines = [*work, revoked("m0"), after(1), *found] if before else [*found, revoked("m1"), *work]
    because = "judged" if judges else "it is not known when handlers of m1 began: no delivered line"
    settings = with_settings(stdout=stdout)
    assert not_judged("overlapping-handlers", [assigned("m0"), *lines], settings=settings) == because


def test_overlap_is_not_judged_by_deliveries() -> None:
    """Nor when they ended."""
    assert not_judged("overlapping-handlers", [assigned("m0"), delivered("m0", 0), delivered("m0", 1)]) == (
        "it is not known when handlers ended: no processed line"
    )


def test_a_completion_that_stands_for_a_delivery_is_told_once_after_a_revocation() -> None:
    """One line is one piece of work."""
    assert len(judged("work-after-revoke", [assigned("m0"), revoked("m0"), processed("m0", 0)])) == 1


def test_work_after_revoke_does_not_apply_where_no_callback_is_printed() -> None:
    """The library has none; the brokers' word of who owned what is judged by others."""
    found = finding("work-after-revoke", [owner("m0"), joined("m0"), synced("m0", 0), *handled("m0", 0)])
    assert found.not_judged is not None
    assert not found.not_judged.applies


def test_a_commit_tells_of_no_possession() -> None:
    """It may be of any partition."""
    assert "m0 had" in not_judged("redelivered", [*handled("m0", 0), commit("m0", 1), after(1), *handled("m0", 0)])

"""When a commit was made: by the member's own request before it, by the request log, else by the offsets log."""

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
    ended,
    exited,
    finding,
    handled,
    judged,
    lasting,
    processed,
    revoked,
    stood_still,
    tombstone,
    undecided,
    with_settings,
)

NAME = "commit-ahead"
M0 = assigned("m0")


def ahead(lines: list[Line | list[Line]], **frame: object) -> list[tuple[int, int]]:
    """The positions that were committed ahead, each with the record that it left behind."""
    return [(one["committed_offset"], one["offset"]) for one in judged(NAME, lines, **frame)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([delivered("m0", 0), committed(1), after(1), processed("m0", 0), commit("m0", 1, "ok")], [(1, 0)]),
        ([delivered("m0", 0), processed("m0", 0), committed(1), after(5), commit("m0", 1, "ok")], []),
        ([delivered("m0", 0), committed(1), after(0.4), processed("m0", 0), commit("m0", 1, "ok")], []),
        ([delivered("m0", 0), committed(1), after(1), commit("m0", 1, "fail"), processed("m0", 0)], [(1, 0)]),
        ([handled("m0", 0), delivered("m0", 1), commit("m0", 1), commit("m0", 2, "ok"), processed("m0", 1)], [(2, 1)]),
        ([handled("m0", 0), commit("m0", 1), delivered("m0", 1), commit("m0", 1, "ok"), processed("m0", 1)], []),
    ],
    ids=[
        "told after the work, committed long before it",
        "told by a callback at the next poll, five seconds later",
        "done as long after it as sources differ",
        "told that it failed, though it is durable",
        "one request, and then an answer without its own",
        "an answer to the request before the delivery",
    ],
)
def test_an_answer_never_stands_for_the_time_of_its_commit(
    lines: list[Line | list[Line]], found: list[tuple[int, int]]
) -> None:
    """It is printed from a callback, or at the next poll: the work may lie between the commit and it."""
    assert ahead([M0, *lines]) == found


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([committed(1), after(1), processed("m0", 0), commit("m0", 1), commit("m0", 1, "ok")], [(1, 0)]),
        ([processed("m0", 0), commit("m0", 1), committed(1), after(1), commit("m0", 1, "ok")], []),
        ([committed(1), after(0.4), processed("m0", 0), commit("m0", 1)], []),
    ],
    ids=[
        "printed when the work was done, a second after the commit",
        "printed before the commit",
        "printed as long after it as sources differ",
    ],
)
def test_a_request_stands_for_its_commit_only_where_it_came_before(
    lines: list[Line | list[Line]], found: list[tuple[int, int]]
) -> None:
    """A line that says afterwards that a commit was asked for asks for nothing."""
    assert ahead([M0, delivered("m0", 0), *lines]) == found


def test_a_request_that_a_harness_which_stood_still_heard_late_is_undecided() -> None:
    """It had slept when the commit was made: the line may have come before it."""
    lines = [M0, delivered("m0", 0), committed(1), after(1), stood_still(2), processed("m0", 0), commit("m0", 1)]
    assert undecided(NAME, lines) == 1


@pytest.mark.parametrize(
    ("lines", "found", "open_cases"),
    [
        ([committed(1), after(0.96), processed("m0", 0), commit("m0", 1)], [], 1),
        ([committed(1), after(0.981), processed("m0", 0), commit("m0", 1)], [1], 0),
        ([committed(1), after(0.6), commit("m0", 1), processed("m0", 0)], [1], 0),
        ([committed(1), after(0.6), processed("m0", 0), commit("m0", 1), committed(1)], [1], 0),
        ([committed(1, by="m1"), after(0.6), processed("m0", 0), commit("m0", 1)], [1], 0),
        ([committed(1), after(0.6), commit("m0", 1)], [1], 0),
    ],
    ids=[
        "a second later",
        "longer after it",
        "before the work was done",
        "of the same position, which is committed again then",
        "of another member",
        "and the work was never done",
    ],
)
def test_a_request_line_that_is_a_little_late_may_have_been_read_late(
    lines: list[Line | list[Line]], found: list[int], open_cases: int
) -> None:
    """Of a pipe that was read late for a moment nobody can tell when the line was written: undecided."""
    told = finding(NAME, [M0, delivered("m0", 0), *lines])
    instances = [one.attributes["committed_offset"] for one in told.instances]
    assert (instances, sum(told.undecided.values())) == (found, open_cases)


LATE_OUTPUT = [processed("m0", 0), commit("m0", 1), committed(1, by="m0"), after(1), effect(0)]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([M0, delivered("m0", 0), *LATE_OUTPUT], []),
        ([assigned("m1"), delivered("m0", 0), *LATE_OUTPUT], []),
        ([M0, delivered("m0", 0), revoked("m0"), *LATE_OUTPUT], []),
        ([M0, delivered("m0", 0), *LATE_OUTPUT[:2], revoked("m0"), after(1), *LATE_OUTPUT[2:]], [(1, 0)]),
        ([M0, delivered("m0", 0), processed("m0", 0), commit("m1", 1), *LATE_OUTPUT[2:]], [(1, 0)]),
        ([M0, delivered("m0", 0), processed("m0", 0), commit("m0", 2), *LATE_OUTPUT[2:]], [(1, 0)]),
        ([M0, delivered("m0", 0), commit("m0", 1), *LATE_OUTPUT[2:]], [(1, 0)]),
        ([M0, delivered("m0", 0), *LATE_OUTPUT[:-1], effect(9)], [(1, 0)]),
    ],
    ids=[
        "done and asked for before it",
        "without a line of its ownership epoch",
        "in an ownership epoch that ended just before",
        "a request of an ownership epoch that ended long before",
        "a request of another member",
        "a request of another position",
        "asked for and not done",
        "its output never came",
    ],
)
def test_where_outputs_are_read_late_the_order_in_the_members_file_decides(
    lines: list[Line | list[Line]], found: list[tuple[int, int]]
) -> None:
    """A reader of the sink topic may hear of an output a second late; that it never came is no matter of time."""
    settings = with_settings(sink="topic", delivery="exactly-once")
    assert ahead(lines, records=1, settings=settings) == found


def test_without_its_own_request_the_request_log_tells_when_it_arrived() -> None:
    """It lay two seconds at the broker before it was appended; the record was done a second after it had arrived."""
    arrived = [line if line.source == "offsets" else lasting(line, 2) for line in committed(1, by="m0")]
    lines = [M0, delivered("m0", 0), after(1), processed("m0", 0), after(0.99), *arrived]
    assert ahead(lines) == [(1, 0)]
    assert ahead([M0, *handled("m0", 0), after(2), *arrived]) == []


def test_another_members_request_tells_nothing_of_when_it_was_made() -> None:
    """Two asked for the position: nobody knows whose it is, and the offsets log has the word."""
    both = [line if line.source == "offsets" else lasting(line, 2) for line in committed(1, by="m0")]
    lines = [M0, delivered("m0", 0), after(1), processed("m0", 0), after(0.99), *both, committed(1, by="m1")[1]]
    assert ahead(lines) == []


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([handled("m0", 0), committed(3, by="operator"), committed(1), committed(2), after(1)], [(2, 1), (3, 2)]),
        ([handled("m0", 0, 1, 2), committed(3), committed(1), committed(2)], []),
        ([handled("m1", 0, 1), committed(2), committed(0), after(1), committed(2), handled("m0", 0, 1)], []),
        ([handled("m0", 0, 1), committed(2), committed(3), committed(1), committed(2), after(1)], [(3, 2)]),
        ([committed(3), committed(0), after(1), handled("m0", 0, 1, 2), committed(2)], [(3, 2)]),
        ([handled("m0", 0), committed(2), committed(2), committed(1), after(1), committed(2), after(1)], [(2, 1)]),
        ([handled("m0", 0), committed(3), tombstone(), committed(2), after(1)], [(2, 1), (3, 2)]),
    ],
    ids=[
        "over what nobody has handled",
        "over what was handled before",
        "over what somebody else handled before",
        "below what it has done",
        "over what was handled since",
        "to the same position again",
        "in a new stretch",
    ],
)
def test_below_an_earlier_peak_a_commit_may_not_pass_what_nobody_has_handled(
    lines: list[Line | list[Line]], found: list[tuple[int, int]]
) -> None:
    """It went back, and rises again: whoever starts there has not seen what lies between."""
    assert ahead([M0, assigned("m1"), *lines], records=3) == found


def test_what_a_killed_member_may_have_handled_convicts_nobody_who_rises_over_it() -> None:
    """Its last commit is undecided; the position falls, and its heir, who began behind it, commits what it did."""
    killed = [M0, *handled("m0", 0), committed(2, by="m0"), exited("m0", signal=9)]
    heir = [after(1), assigned("m1"), *committed(1, by="operator"), *handled("m1", 2), *committed(3, by="m1")]
    assert undecided(NAME, [*killed, *heir], records=3) == 1


def test_where_progress_is_in_transactions_only_what_was_never_handled_counts() -> None:
    """Its positions are handed in before its outputs: both take effect at once. Never handled: skipped as well."""
    settings = with_settings(progress="transaction", delivery="exactly-once", sink="topic")
    begun = [M0, delivered("m0", 0), commit("m0", 1), *committed(1, producer=7, pending=True), processed("m0", 0)]
    end = [ended("commit", None), after(1)]
    assert ahead([*begun, *end, effect(0)], records=1, settings=settings) == []
    assert ahead([*begun, *end, effect(9)], records=1, settings=settings) == [(1, 0)]
    aborted = [M0, delivered("m0", 0), commit("m0", 1), commit("m0", 1, "fail"), effect(9)]
    assert ahead(aborted, records=1, settings=settings) == []

"""Commit requests whose line was written late: their order on the connection tells which commit is theirs."""

from __future__ import annotations

from typing import Any

from histories import Line, after, asked, assigned, batch_of, committed, judged, lasting, on, undecided
from kafka_trial.model.commits_log import commits_in_effect

Lines = list[Line | list[Line]]


def line_of(member: str, value: int, **fields: Any) -> Line:
    """The request log's line of a commit whose answer took no time."""
    return lasting(asked("OFFSET_COMMIT", member, value, **fields), 0)


def committers(lines: Lines) -> list[str | None]:
    """Who made each commit; None: nobody knows."""
    batch = batch_of(lines)
    names = [*batch.trial_context.members]
    return [names[number] if number >= 0 else None for number in commits_in_effect(batch)["committer"].tolist()]


def test_a_request_whose_line_is_late_is_that_of_its_commit() -> None:
    """Its line is of six tenths of a second after the commit: there is no other."""
    lines: Lines = [assigned("m0"), committed(1), after(0.6), line_of("m0", 1)]
    assert committers(lines) == ["m0"]
    assert judged("commit-lost", lines) == []


def test_a_request_without_any_commit_is_lost() -> None:
    """Another position lies there."""
    lines: Lines = [assigned("m0"), committed(1), after(0.6), line_of("m0", 2)]
    assert (committers(lines), len(judged("commit-lost", lines))) == ([None], 1)


def test_a_line_that_is_later_than_any_can_be_stays_as_it_is() -> None:
    """Five seconds, and a little more."""
    late: Lines = [assigned("m0"), committed(1), after(4.9), line_of("m0", 1)]
    later: Lines = [assigned("m0"), committed(1), after(5.1), line_of("m0", 1)]
    assert (committers(late), committers(later)) == (["m0"], [None])
    assert undecided("commit-lost", later) == 1


def test_a_request_that_was_answered_before_it_began_is_none() -> None:
    """The commit was written after the line."""
    lines: Lines = [assigned("m0"), line_of("m0", 1), after(0.6), committed(1)]
    assert committers(lines) == [None]


def test_the_order_of_a_connection_must_fit() -> None:
    """Its request for 2 stands before that for 1, and in the offsets log behind it: that 1 is not its own."""
    lines: Lines = [assigned("m0"), committed(1), after(0.6), committed(2), line_of("m0", 2), line_of("m0", 1)]
    assert committers(lines) == [None, "m0"]
    fitting: Lines = [assigned("m0"), committed(1), committed(2), after(0.6), line_of("m0", 1), line_of("m0", 2)]
    assert committers(fitting) == ["m0", "m0"]
    behind: Lines = [assigned("m0"), committed(1), line_of("m0", 1), committed(2), after(0.6), line_of("m0", 2)]
    assert committers(behind) == ["m0", "m0"]


def test_another_connection_has_an_order_of_its_own() -> None:
    """That the other member's request for 2 was in time says nothing of this one's."""
    lines: Lines = [assigned("m0"), committed(1), after(0.6), committed(2), line_of("m1", 2), line_of("m0", 1)]
    assert committers(lines) == ["m0", "m1"]


def test_one_commit_is_not_that_of_two_requests() -> None:
    """Two members ask for the same position late, one commit lies there: it is the first one's."""
    lines: Lines = [assigned("m0"), committed(1), after(0.6), line_of("m1", 1), line_of("m0", 1)]
    assert committers(lines) == ["m1"]


def test_a_commit_that_has_its_request_in_time_is_nobody_elses() -> None:
    """Of two requests for the same position one was in time."""
    lines: Lines = [assigned("m0"), committed(1), line_of("m1", 1), after(0.6), line_of("m0", 1)]
    assert committers(lines) == ["m1"]
    assert undecided("commit-lost", lines) == 1


def test_a_refused_request_has_no_commit() -> None:
    """It came late too, and the commit is nobody's."""
    lines: Lines = [assigned("m0"), committed(1), after(0.6), line_of("m0", 1, error=22)]
    assert committers(lines) == [None]


def test_other_partitions_have_commits_of_their_own() -> None:
    """The position lies in partition 0, the late line is of partition 1."""
    lines: Lines = [assigned("m0", 0, 1), committed(1), after(0.6), on(1, line_of("m0", 1))]
    assert committers(lines) == [None]

"""Bad lines: what could not be read convicts nobody, is quoted, and keeps a pass from being given."""

from __future__ import annotations

from typing import Any

from histories import (
    Line,
    after,
    assigned,
    commit,
    committed,
    delivered,
    effect,
    exited,
    handled,
    judged,
    judgement,
    processed,
    said,
    undecided,
    with_settings,
)

CUT = '{"name":"record_proc'


def bad(member: str, offset: int | None = None, *, events: int | None = 1, message: str = CUT) -> Line:
    """A line that could not be read; `offset`: it names that record; `events` None: it is text and no event."""
    where: dict[str, Any] = {} if offset is None else {"topic": "t", "partition": 0, "offset": offset}
    told = {} if events is None else {"events": events, "reason": "outcome 'ok'"}
    return said(member, "bad_line", message=message, size_bytes=len(message), **where, **told)


def test_a_record_whose_outcome_is_unknown_is_not_lost() -> None:
    """Its line names it, and says an outcome that nobody knows."""
    assert judged("skipped", [assigned("m0"), *handled("m0", 0), delivered("m0", 1), bad("m0", 1), committed(2)]) == []


def test_another_record_is_lost_all_the_same() -> None:
    """The line names record 0."""
    lines = [assigned("m0"), bad("m0", 0), delivered("m0", 1), committed(2)]
    assert [one["offset"] for one in judged("skipped", lines)] == [1]


def test_where_a_sink_knows_better_a_bad_line_is_nothing() -> None:
    """The record had no effect."""
    lines = [assigned("m0"), *handled("m0", 0), effect(0), bad("m0", 1), committed(2)]
    assert [one["offset"] for one in judged("skipped", lines, settings=with_settings(sink="http"))] == [1]


def test_a_commit_after_a_bad_completion_is_not_ahead() -> None:
    """What it covers may have been said to be done."""
    lines = [assigned("m0"), *handled("m0", 0), delivered("m0", 1), bad("m0", 1), commit("m0", 2), committed(2)]
    assert judged("commit-ahead", lines) == []


def test_a_cut_line_may_have_been_the_completion() -> None:
    """It does not say of which record; one lacks its line."""
    lines = [assigned("m0"), *handled("m0", 0), delivered("m0", 1), bad("m0"), committed(2)]
    found = judgement(lines).findings
    reason = {f"m0 printed a line that could not be read, first: {CUT} (outcome 'ok')": 1}
    assert [dict(found[name].undecided) for name in ("skipped", "commit-ahead")] == [reason, reason]


def test_more_records_lack_their_line_than_lines_were_cut() -> None:
    """One line was one record's at most: the rest is lost for certain."""
    lines = [assigned("m0"), delivered("m0", 0), delivered("m0", 1), bad("m0"), committed(2)]
    assert [one["offset"] for one in judged("skipped", lines)] == [0, 1]


def test_as_many_cut_lines_as_records_leave_all_open() -> None:
    """Also those that were counted, and not quoted any more."""
    lines = [assigned("m0"), delivered("m0", 0), delivered("m0", 1), bad("m0", events=2), committed(2)]
    assert undecided("skipped", lines) == 2


def test_text_is_no_event() -> None:
    """A library's warning names no record, and excuses none."""
    lines = [assigned("m0"), *handled("m0", 0), bad("m0", events=None, message="WARN fetch"), committed(2)]
    assert [one["offset"] for one in judged("skipped", lines)] == [1]


def test_a_commit_before_a_completion_that_can_be_read_is_ahead() -> None:
    """The cut line is another record's."""
    lines = [assigned("m0"), delivered("m0", 0), commit("m0", 1), committed(1, by="m0"), processed("m0", 0)]
    found = judgement([*lines, delivered("m0", 1), bad("m0"), committed(2)]).findings["commit-ahead"]
    assert [one.attributes["committed_offset"] for one in found.instances] == [1]


DONE_AGAIN = [after(1), delivered("m1", 0), processed("m1", 0)]


def test_a_cut_line_may_have_been_an_earlier_completion() -> None:
    """Record 0 was done, its line was cut, it was committed, and another member was given it again."""
    lines = [assigned("m0"), delivered("m0", 0), bad("m0"), committed(1, by="m0"), *DONE_AGAIN]
    assert undecided("commit-ahead", lines) == 1


def test_one_cut_line_explains_one_commit() -> None:
    """Two commits, each ahead of a record that is done a second later: one of them has no excuse."""
    first = [assigned("m0"), delivered("m0", 0), delivered("m0", 1), bad("m0"), committed(1, by="m0")]
    lines = [*first, committed(2, by="m0"), *DONE_AGAIN, delivered("m1", 1), processed("m1", 1)]
    assert [one["committed_offset"] for one in judged("commit-ahead", lines)] == [1, 2]


def test_what_a_sink_writes_down_leaves_a_cut_line_nothing_to_explain() -> None:
    """The effect of record 0 came a second after its commit."""
    lines = [assigned("m0"), delivered("m0", 0), bad("m0"), committed(1, by="m0"), *DONE_AGAIN[:2], effect(0)]
    found = judged("commit-ahead", lines, settings=with_settings(sink="http"))
    assert [one["committed_offset"] for one in found] == [1]


def test_whoever_is_killed_may_be_so_in_its_last_line() -> None:
    """A cut line just before signal 9 is what a kill leaves: the record is its last act as ever."""
    lines = [assigned("m0"), *handled("m0", 0), bad("m0"), exited("m0", signal=9)]
    assert judgement(lines).trial_context.lost_events == ()


def test_a_cut_line_before_an_exit_of_its_own_is_lost() -> None:
    """Nothing cut it but its member."""
    lines = [assigned("m0"), *handled("m0", 0), bad("m0"), exited("m0", code=0)]
    assert [(one.member, one.count, one.nameless) for one in judgement(lines).trial_context.lost_events] == [
        ("m0", 1, 1)
    ]


def test_lines_are_counted_by_incarnation_and_the_first_is_quoted() -> None:
    """Those that name their record as well."""
    lines = [assigned("m0"), bad("m0", 0, message="first"), bad("m0"), bad("m1", events=None)]
    lost = judgement(lines).trial_context.lost_events
    assert [(one.member, one.count, one.nameless, one.first) for one in lost] == [("m0", 2, 1, "first")]


def test_what_members_print_besides_is_counted_and_quoted() -> None:
    """By member: text, events that could not be read, and errors; some lines stand for many that were not quoted."""
    errors = [said("m0", "error", message="no\nbroker"), said("m0", "error", message="again")]
    many = said("m1", "bad_line", message="(7 further bad lines, not quoted)", size_bytes=70, count=7)
    lines = [assigned("m0"), bad("m0", events=None, message="INFO"), bad("m0"), *errors, many]
    printed = [(one.member, one.sort, one.count, one.first) for one in judgement(lines).trial_context.printed]
    assert printed == [
        ("m0", "error", 2, "no broker"),
        ("m0", "lost event", 1, CUT),
        ("m0", "text", 1, "INFO"),
        ("m1", "text", 7, "(7 further bad lines, not quoted)"),
    ]

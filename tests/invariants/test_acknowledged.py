"""Acknowledged commits: literal histories, each of at most eight lines."""

from __future__ import annotations

from histories import (
    aborted,
    after,
    asked,
    commit,
    committed,
    finding,
    judged,
    not_judged,
    phase,
    undecided,
    with_settings,
)


def test_commit_lost_holds() -> None:
    """What the broker and the member were told is in the log."""
    assert judged("commit-lost", [commit("m0", 1), committed(1, by="m0"), commit("m0", 1, "ok")]) == []


def test_commit_lost_is_broken_by_the_members_word() -> None:
    """The member was told that 1 is stored; the log holds nothing."""
    found = finding("commit-lost", [commit("m0", 1), commit("m0", 1, "ok")])
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"committed_offset": 1, "by": "own word"}, ("consumer-m0-0#2",))
    ]


def test_commit_lost_is_broken_by_the_request_log() -> None:
    """The broker answered without an error, twice, and the member heard it: one position, one anomaly."""
    lines = [asked("OFFSET_COMMIT", "m0", 1), asked("OFFSET_COMMIT", "m0", 1), commit("m0", 1, "ok"), committed(2)]
    found = finding("commit-lost", lines)
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"committed_offset": 1, "by": "request log"}, ("requests-b0#2", "consumer-m0-0#1"))
    ]


def test_commit_lost_only_looks_broken_where_it_was_refused() -> None:
    """Refused is not committed; and a time-out is no answer."""
    lines = [commit("m0", 1), asked("OFFSET_COMMIT", "m0", 1, error=22), commit("m0", 1, "fail"), commit("m0", 2)]
    assert judged("commit-lost", lines) == []


def test_commit_lost_only_looks_broken_where_the_answer_came_late() -> None:
    """A frozen member hears of its commit five seconds after it was stored, and of another one since."""
    lines = [committed(1, by="m0"), committed(2, by="m0"), after(5), commit("m0", 1, "ok")]
    assert judged("commit-lost", lines) == []


def test_commit_lost_only_looks_broken_where_there_was_nothing_to_commit() -> None:
    """Clients answer -1001 for a partition whose position they do not know."""
    assert judged("commit-lost", [commit("m0", -1001, "ok")]) == []


def test_commit_lost_only_looks_broken_after_the_snapshot() -> None:
    """At the snapshot the witness was asked to read to the end: what members commit when they stop lies behind it."""
    assert judged("commit-lost", [phase("snapshot"), commit("m0", 1, "ok"), asked("OFFSET_COMMIT", "m0", 1)]) == []


def test_commit_lost_only_looks_broken_by_an_aborted_transaction() -> None:
    """The position is in the log; that it never took effect is the transaction's will."""
    assert judged("commit-lost", [aborted(1), commit("m0", 1, "ok")]) == []


def test_commit_lost_is_undecided_where_the_position_is_of_another_time() -> None:
    """Committed again ten seconds later: nobody can tell a lost commit from a clock that jumped."""
    assert undecided("commit-lost", [asked("OFFSET_COMMIT", "m0", 1), after(10), committed(1, by="m0")]) == 1


def test_commit_lost_is_undecided_where_the_witnesses_contradict_each_other() -> None:
    """The member says that it was stored, the request log that it was refused."""
    assert undecided("commit-lost", [asked("OFFSET_COMMIT", "m0", 1, error=22), commit("m0", 1, "ok")]) == 1


def test_commit_lost_is_not_judged_without_the_offsets_log() -> None:
    """The witness did not read to the end."""
    assert "offsets" in not_judged("commit-lost", [commit("m0", 1, "ok")], whole=False)


def test_commit_lost_is_not_judged_where_progress_is_elsewhere() -> None:
    """What such a consumer commits to Kafka means nothing."""
    told = not_judged("commit-lost", [commit("m0", 1, "ok")], settings=with_settings(progress="table"))
    assert "not in Kafka" in told

"""Acknowledged commits: literal histories, each of at most eight lines."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    aborted,
    after,
    asked,
    at_once,
    commit,
    committed,
    finding,
    judged,
    lasting,
    not_judged,
    on,
    phase,
    read_late,
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


def test_commit_lost_is_not_judged_without_the_offsets_log() -> None:
    """The witness did not read to the end."""
    assert "offsets" in not_judged("commit-lost", [commit("m0", 1, "ok")], whole=False)


def test_commit_lost_is_not_judged_where_progress_is_elsewhere() -> None:
    """What such a consumer commits to Kafka means nothing."""
    told = not_judged("commit-lost", [commit("m0", 1, "ok")], settings=with_settings(progress="table"))
    assert "not in Kafka" in told


ASKED = asked("OFFSET_COMMIT", "m0", 1)
ONE = committed(1)[0]


@pytest.mark.parametrize(
    ("lines", "cases"),
    [
        ([ONE, after(5.065), ASKED], 0),
        ([ONE, after(5.066), ASKED], 1),
        ([ASKED, after(0.49), ONE], 0),
        ([ASKED, after(0.491), ONE], 1),
        ([ONE, after(9), lasting(ASKED, 9)], 0),
        ([ONE, after(9), commit("m0", 1, "ok")], 0),
        ([commit("m0", 1, "ok"), after(0.49), ONE], 0),
        ([commit("m0", 1, "ok"), after(0.491), ONE], 1),
        ([read_late(ONE, 5), after(1), read_late(ASKED, 6)], 0),
    ],
    ids=[
        "as long before its answer as its request took, the logs differ and its line may be late",
        "longer before its answer",
        "as long after its answer as sources differ",
        "longer after its answer",
        "a request that took long",
        "heard of at last",
        "heard of as long before as sources differ",
        "heard of longer before",
        "both were read late",
    ],
)
def test_commit_lost_is_undecided_where_the_position_is_of_another_time_than_the_answer(
    lines: list[Line], cases: int
) -> None:
    """A request took 25 ms; a member may hear of it at any time later."""
    told = finding("commit-lost", lines)
    assert (told.instances, sum(told.undecided.values())) == ((), cases)


@pytest.mark.parametrize(
    ("lines", "lost"),
    [
        ([ASKED, committed(2)], [(1, "request log")]),
        ([ASKED, commit("m0", 2, "ok")], [(1, "request log"), (2, "own word")]),
        ([asked("OFFSET_COMMIT", "operator", 1)], []),
        ([ASKED, on(1, ONE)], [(1, "request log")]),
        ([commit("m0", 0, "ok")], [(0, "own word")]),
        ([commit("m0", -1, "ok")], []),
        ([commit("m0", 1), commit("m0", 1, "fail")], []),
        ([ASKED, at_once(phase("snapshot"))], [(1, "request log")]),
        ([commit("m0", 1, "ok"), at_once(phase("snapshot"))], [(1, "own word")]),
        ([phase("snapshot"), ASKED, commit("m0", 2, "ok")], []),
        ([asked("OFFSET_COMMIT", "m0", 1, error=22), ASKED], [(1, "request log")]),
        ([asked("OFFSET_COMMIT", "m0", 2, error=22), commit("m0", 1, "ok")], [(1, "own word")]),
        ([on(1, asked("OFFSET_COMMIT", "m0", 1, error=22)), commit("m0", 1, "ok")], [(1, "own word")]),
    ],
    ids=[
        "another position",
        "two positions",
        "an operator's",
        "in another partition",
        "the beginning",
        "no position",
        "asked for and refused",
        "answered at the snapshot",
        "heard of at the snapshot",
        "after the snapshot",
        "refused and then granted",
        "another one was refused",
        "one of another partition was refused",
    ],
)
def test_commit_lost_is_each_position_that_was_acknowledged_and_is_not_there(
    lines: list[Line | list[Line]], lost: list[tuple[int, str]]
) -> None:
    """By the request log, else by the member's own word."""
    shown = any(isinstance(line, Line) and line.fields.get("phase") == "snapshot" for line in lines)
    found = judged("commit-lost", lines, partitions=2, snapshot=not shown)
    assert [(one["committed_offset"], one["by"]) for one in found] == lost


def test_commit_lost_is_told_of_each_partition_with_its_own_proofs() -> None:
    """The first acknowledgement of each sort; the second partition has its commit."""
    there = [on(1, ONE), on(1, ASKED)]
    lines = [commit("m1", 1, "ok"), ASKED, commit("m0", 1, "ok"), ASKED, there, on(2, commit("m1", 1, "ok"))]
    found = finding("commit-lost", lines, partitions=3)
    assert [(one.partition, one.events) for one in found.instances] == [
        (0, ("requests-b0#2", "consumer-m1-0#1")),
        (2, ("consumer-m1-0#2",)),
    ]

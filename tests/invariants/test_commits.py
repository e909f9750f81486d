"""Commits: literal histories, each of at most eight lines."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    aborted,
    after,
    answered,
    asked,
    assigned,
    at_once,
    commit,
    committed,
    delivered,
    effect,
    exited,
    finding,
    handled,
    holds,
    judged,
    later,
    log_end,
    not_judged,
    on,
    owner,
    processed,
    revoked,
    tombstone,
    undecided,
    with_settings,
)


def test_commit_regression_holds() -> None:
    """Positions only grow; writing one again is no step back."""
    assert judged("commit-regression", [committed(1), committed(2), committed(2)]) == []


def test_commit_regression_is_broken() -> None:
    """From 2 to 1, and it stands: made by a member that owns nothing."""
    lines = [owner("m1"), committed(2, by="m1"), committed(1, by="m0")]
    found = finding("commit-regression", lines)
    assert [(one.attributes, one.events) for one in found.instances] == [
        (
            {
                "log_offset": 3,
                "from": 2,
                "to": 1,
                "recovered": False,
                "own": False,
                "by_operator": False,
                "restart_inside": False,
            },
            ("offsets#1", "offsets#2"),
        )
    ]


def test_commit_regression_settles() -> None:
    """The owner's own wobble, passed 20 ms later: one episode, recovered, with no restart inside."""
    lines = [owner("m0"), committed(2, by="m0"), committed(0, by="m0"), committed(1, by="m0"), committed(2, by="m0")]
    assert judged("commit-regression", lines) == [
        {
            "log_offset": 3,
            "from": 2,
            "to": 0,
            "lasted_ms": 40,
            "recovered": True,
            "own": True,
            "by_operator": False,
            "restart_inside": False,
        }
    ]


def test_commit_regression_with_a_restart_inside() -> None:
    """Somebody was told to start at 1 while the position had fallen."""
    lines = [
        owner("m0"),
        committed(2, by="m0"),
        committed(1, by="m0"),
        owner("m1"),
        after(1),
        answered("m1", 1),
        committed(2),
    ]
    assert [(one["recovered"], one["restart_inside"]) for one in judged("commit-regression", lines)] == [(True, True)]


def test_commit_regression_by_nobody_knows_whom() -> None:
    """No request of any lane matches: whether it was the owner's own is not said."""
    assert ["own" in one for one in judged("commit-regression", [owner("m0"), committed(2), committed(1)])] == [False]


def test_commit_regression_by_an_operator() -> None:
    """A request from outside the lanes matches."""
    lines = [owner("m0"), committed(2), owner(epoch=2), committed(1, by="operator")]
    assert [(one["by_operator"], one["own"]) for one in judged("commit-regression", lines)] == [(True, False)]


def test_commit_regression_only_looks_broken_after_a_tombstone() -> None:
    """The position was deleted: there is no commit that could be fallen behind."""
    assert judged("commit-regression", [committed(2), tombstone(), committed(1)]) == []


def test_commit_regression_may_end_with_the_committed_offset_deleted() -> None:
    """By a tombstone, with or without a commit behind it: nothing stood there at the end, and nothing recovered."""
    for behind in ([], [committed(1)]):
        lines = [owner("m0"), committed(2), committed(1), tombstone(), *behind]
        assert [(one["recovered"], one["deleted"]) for one in judged("commit-regression", lines)] == [(False, True)]
    still = judged("commit-regression", [owner("m0"), committed(2), committed(1)])
    assert ["deleted" in one for one in still] == [False]


def test_commit_regression_only_looks_broken_by_an_aborted_commit() -> None:
    """A position in a transaction that was aborted never stood."""
    assert judged("commit-regression", [aborted(2), committed(1)]) == []


def test_commit_regression_is_not_judged_without_the_offsets_log() -> None:
    """The witness did not read to the end."""
    assert "offsets" in not_judged("commit-regression", [committed(2), committed(1)], whole=False)


def test_zombie_commit_holds() -> None:
    """The owner commits."""
    assert judged("zombie-commit", [owner("m0"), committed(1, by="m0")]) == []


def test_zombie_commit_is_broken() -> None:
    """A member commits a partition that another one owns, and the position falls."""
    lines = [assigned("m1"), handled("m1", 0, 1), owner("m1"), committed(2, by="m1"), committed(1, by="m0")]
    found = finding("zombie-commit", lines)
    assert [(one.attributes, one.events) for one in found.instances] == [
        (
            {"log_offset": 3, "committed_offset": 1, "member": "m0", "fell": True, "skipped_record": False},
            ("offsets#0", "offsets#2", "requests-b0#3"),
        )
    ]


def test_zombie_commit_skips_a_record() -> None:
    """Forward, past a record that nobody ever handled."""
    lines = [assigned("m1"), handled("m1", 0), owner("m1"), committed(1, by="m1"), committed(2, by="m0")]
    assert [(one["fell"], one["skipped_record"]) for one in judged("zombie-commit", lines)] == [(False, True)]


def test_zombie_commit_of_a_silent_consumer_is_open_where_it_passes_records() -> None:
    """Nobody knows whether they were handled; that a position fell is known all the same."""
    silent = with_settings(events="none", sink="none")
    passing = [owner("m1"), committed(1, by="m1"), committed(2, by="m0")]
    assert undecided("zombie-commit", passing, settings=silent) == 1
    falling = [owner("m1"), committed(2, by="m1"), committed(1, by="m0")]
    assert [one["fell"] for one in judged("zombie-commit", falling, settings=silent)] == [True]


def test_zombie_commit_only_looks_broken_until_another_gets_the_partition() -> None:
    """Classic: the record that takes the partition away gives it to nobody; the commit on revoke comes after it."""
    assert judged("zombie-commit", [owner("m0"), owner(), committed(1, by="m0"), owner("m1")]) == []


def test_zombie_commit_only_looks_broken_while_a_revocation_is_pending() -> None:
    """KIP-848: a partition that is pending revocation is still its owner's."""
    lines = [holds("m0", 0), holds("m0", pending=[0]), committed(1, by="m0"), holds("m0"), holds("m1", 0)]
    assert judged("zombie-commit", lines) == []


def test_zombie_commit_under_kip_848() -> None:
    """The partition was released and given to another: the old owner's commit is a stranger's."""
    lines = [holds("m0", 0), holds("m0"), holds("m1", 0), committed(1, by="m1"), committed(2, by="m0")]
    assert [one["member"] for one in judged("zombie-commit", lines)] == ["m0"]


def test_zombie_commit_only_looks_broken_where_two_may_have_made_it() -> None:
    """Owner and stranger committed the same position at the same time: nobody knows whose the second one is."""
    lines = [owner("m0"), committed(1, by="m0"), committed(1, by="m1")]
    assert judged("zombie-commit", lines) == []


def test_zombie_commit_was_refused() -> None:
    """A commit that the broker refused is in no log."""
    lines = [owner("m1"), committed(2, by="m1"), asked("OFFSET_COMMIT", "m0", 1, error=22)]
    assert judged("zombie-commit", lines) == []


def test_zombie_commit_is_not_judged_without_the_request_log() -> None:
    """Nobody knows who committed."""
    assert "offsets" in not_judged("zombie-commit", [owner("m1"), committed(1, by="m0")], whole=False)


def test_commit_ahead_holds() -> None:
    """Processed, then committed."""
    assert judged("commit-ahead", [assigned("m0"), handled("m0", 0), commit("m0", 1), committed(1)]) == []


def test_commit_ahead_is_broken_by_own_word() -> None:
    """The commit was asked for while record 0 was in hand."""
    lines = [assigned("m0"), delivered("m0", 0), commit("m0", 1), committed(1), processed("m0", 0)]
    found = finding("commit-ahead", lines)
    assert [(one.attributes, one.events) for one in found.instances] == [
        (
            {"offset": 0, "committed_offset": 1, "seen_by": "own word", "by_operator": False},
            ("consumer-m0-0#2", "consumer-m0-0#3", "consumer-m0-0#4"),
        )
    ]


def test_commit_ahead_is_broken_by_the_offsets_log() -> None:
    """A member that tells nothing of its commits finished the record a second after it was committed."""
    lines = [assigned("m0"), delivered("m0", 0), committed(1), after(1), processed("m0", 0)]
    assert [one["seen_by"] for one in judged("commit-ahead", lines)] == ["offsets log"]


def test_commit_ahead_only_looks_broken_within_the_tolerance() -> None:
    """Between the log and a member's file, less than half a second is no order."""
    assert judged("commit-ahead", [assigned("m0"), delivered("m0", 0), committed(1), processed("m0", 0)]) == []


def test_commit_ahead_only_looks_broken_where_the_record_came_again() -> None:
    """Record 0 was done before the commit; that it was delivered once more since changes nothing."""
    lines = [assigned("m0"), handled("m0", 0), commit("m0", 1), committed(1), delivered("m0", 0)]
    assert judged("commit-ahead", lines) == []


def test_commit_ahead_only_looks_broken_beyond_the_position() -> None:
    """Record 1 is in hand, and only what lies before it is committed."""
    lines = [assigned("m0"), handled("m0", 0), delivered("m0", 1), commit("m0", 1), committed(1)]
    assert judged("commit-ahead", lines) == []


def test_commit_ahead_is_undecided_where_a_killed_member_could_not_speak() -> None:
    """The committer died by signal 9 after its last line."""
    lines = [assigned("m0"), delivered("m0", 0), committed(1, by="m0"), exited("m0", signal=9)]
    assert undecided("commit-ahead", lines) == 1


def test_commit_ahead_is_not_judged_without_records() -> None:
    """An empty topic shows nothing."""
    assert not_judged("commit-ahead", [assigned("m0")], records=0) == "there are no records"


def test_commit_past_end_holds() -> None:
    """Committed up to the end."""
    assert judged("commit-past-end", [committed(2), log_end(2)]) == []


def test_commit_past_end_is_broken() -> None:
    """Three positions beyond the end that was read next."""
    found = finding("commit-past-end", [committed(5, by="m0"), log_end(2)])
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"log_offset": 1, "committed_offset": 5, "log_end": 2, "by_operator": False}, ("offsets#0", "observer#1"))
    ]


def test_commit_past_end_only_looks_broken_by_an_older_end() -> None:
    """The log grew before the commit; only an end read after it counts."""
    assert judged("commit-past-end", [log_end(1), committed(2), log_end(2)]) == []


def test_commit_past_end_only_looks_undecided_below_an_older_end() -> None:
    """Nothing was read after the last commit, but a log end never shrinks."""
    assert judged("commit-past-end", [log_end(2), committed(2)]) == []


def test_commit_past_end_is_undecided_where_no_end_was_read() -> None:
    """Beyond every end that was ever read."""
    assert undecided("commit-past-end", [log_end(2), committed(3)]) == 1


def test_commit_past_end_is_not_judged_without_the_observer() -> None:
    """The witnesses did not read to the end."""
    assert "observer" in not_judged("commit-past-end", [committed(3), log_end(2)], whole=False)


def test_rules_of_commits_do_not_apply_where_progress_is_elsewhere() -> None:
    """A consumer whose position lies beside its results."""
    missing = finding("commit-regression", [committed(2), committed(1)], settings=with_settings(progress="sink"))
    assert missing.not_judged is not None
    assert not missing.not_judged.applies


def test_an_effect_is_a_handling() -> None:
    """The sink saw record 0 before it was committed."""
    lines = [assigned("m0"), delivered("m0", 0), effect(0), after(1), committed(1), revoked("m0"), processed("m0", 0)]
    assert judged("commit-ahead", lines) == []


def test_zombie_commit_forward_past_what_was_handled_is_counted_only() -> None:
    """The position rose past a record that was done: nothing fell, nothing was skipped."""
    lines = [assigned("m1"), handled("m1", 0, 1), owner("m1"), committed(1, by="m1"), committed(2, by="m0")]
    assert [(one["fell"], one["skipped_record"]) for one in judged("zombie-commit", lines)] == [(False, False)]


def test_zombie_commit_of_the_same_position_did_not_fall() -> None:
    """A stranger repeats what the owner committed a second ago."""
    lines = [owner("m1"), committed(1, by="m1"), after(1), committed(1, by="m0")]
    assert [one["fell"] for one in judged("zombie-commit", lines)] == [False]


def test_zombie_commit_only_looks_broken_until_another_member_holds_the_partition() -> None:
    """KIP-848: it was released, and nobody has it yet; the last owner stays the owner."""
    assert judged("zombie-commit", [holds("m0", 0), holds("m0"), committed(1, by="m0"), holds("m1", 0)]) == []


def test_a_refused_request_made_no_commit() -> None:
    """Another member's request for the same position was refused: the commit is the owner's own."""
    lines = [owner("m0"), committed(2, by="m0"), committed(1, by="m0"), asked("OFFSET_COMMIT", "m1", 1, error=22)]
    assert [one["own"] for one in judged("commit-regression", lines)] == [True]


def test_commit_ahead_blames_the_first_commit_that_ran_ahead() -> None:
    """The second commit covers only what was done before it."""
    lines = [assigned("m0"), delivered("m0", 0), commit("m0", 1), handled("m0", 1), commit("m0", 2), processed("m0", 0)]
    assert [one["committed_offset"] for one in judged("commit-ahead", lines)] == [1]


FELL = [committed(2), committed(1)]


@pytest.mark.parametrize(
    ("inside", "restarted"),
    [
        ([assigned("m0")], True),
        ([later(assigned("m0"), 1)], True),
        ([at_once(assigned("m0"))], False),
        ([revoked("m0"), delivered("m0", 0)], False),
        ([answered("m1", 1)], True),
        ([at_once(answered("m1", 1))], False),
        ([later(answered("m1", 1), 1)], True),
        ([answered("m1", -1)], True),
        ([answered("m1", 2)], False),
        ([asked("OFFSET_FETCH", "m1", 1, error=3)], False),
        ([asked("OFFSET_FETCH", "operator", 1)], False),
        ([on(1, assigned("m0")), on(1, answered("m1", 0))], False),
    ],
    ids=[
        "a start",
        "a start just after",
        "a start in the same instant",
        "no start",
        "an answer below",
        "an answer in the same instant",
        "an answer just after",
        "an answer that there is none",
        "an answer where it had been",
        "an answer that is an error",
        "an answer to somebody outside the lanes",
        "another partition",
    ],
)
def test_commit_regression_tells_of_a_restart_inside(inside: list[Line], *, restarted: bool) -> None:
    """Between the commit that fell and the one that is back where it was, or for ever."""
    back = [after(1), *committed(2)]
    found = [judged("commit-regression", [*FELL, *inside, *rest], partitions=2) for rest in (back, [])]
    assert [[one["restart_inside"] for one in some] for some in found] == [[restarted], [restarted]]


@pytest.mark.parametrize("line", [assigned("m0"), answered("m1", 1)])
def test_commit_regression_tells_of_no_restart_outside(line: Line) -> None:
    """Before it fell, or when it was back: in the very instant, or later."""
    before = [committed(2), line, after(1), committed(1), committed(2)]
    since = [[*FELL, *committed(2), at_once(line)], [*FELL, *committed(2), line]]
    found = [one["restart_inside"] for lines in (before, *since) for one in judged("commit-regression", lines)]
    assert found == [False] * 3


def test_commit_regression_is_told_of_each_episode() -> None:
    """Two in one partition, one in the other: each with its peak, its fall and its return."""
    there = [on(1, line) for value in (9, 7) for line in committed(value)]
    lines = [committed(3), committed(2), after(1), committed(3), committed(1), *there, committed(4)]
    found = finding("commit-regression", lines, partitions=2)
    told = [(one.partition, one.attributes["from"], one.attributes["to"], one.events) for one in found.instances]
    assert told == [
        (0, 3, 2, ("offsets#0", "offsets#1", "offsets#2")),
        (0, 3, 1, ("offsets#0", "offsets#3", "offsets#6")),
        (1, 9, 7, ("offsets#4", "offsets#5")),
    ]
    assert [one.attributes.get("lasted_ms") for one in found.instances] == [1010, 30, None]


def test_zombie_commit_is_proved_by_the_record_that_gave_the_partition_away() -> None:
    """The last one before the commit, of this partition."""
    lines = [owner("m0"), owner("m1"), on(1, owner("m0")), committed(1, by="m0"), owner("m1")]
    found = finding("zombie-commit", lines, partitions=2)
    assert [one.events for one in found.instances] == [("offsets#1", "offsets#3", "requests-b0#2")]


@pytest.mark.parametrize(
    ("done", "position", "skipped"),
    [([], 2, True), ([0], 2, True), ([1], 2, False), ([0], 1, False), ([0, 1], 3, False), ([0, 1], 4, True)],
)
def test_zombie_commit_tells_whether_it_passed_an_undone_record(
    done: list[int], position: int, *, skipped: bool
) -> None:
    """Between the 1 that stood, or the beginning, and the position that it committed."""
    lines = [assigned("m1"), *handled("m1", *done), owner("m1"), committed(1, by="m1"), committed(position, by="m0")]
    if position == 1:
        lines = [*lines[:-2], lines[-1]]
    found = judged("zombie-commit", lines, records=4, control={2: None})
    assert [one["skipped_record"] for one in found] == [skipped]


@pytest.mark.parametrize(
    ("lines", "cases"),
    [
        ([committed(1, by="m0"), owner("m1")], 1),
        ([owner("m7"), committed(1, by="m0")], 1),
        ([owner("m7"), committed(1, by="operator"), committed(2)], 0),
        ([committed(1, by="m0"), on(1, owner("m1"))], 0),
    ],
    ids=["nobody knew yet", "an id that was seen on no lane", "not by a member", "no record ever listed it"],
)
def test_zombie_commit_is_undecided_where_nobody_knows_the_owner(lines: list[Line | list[Line]], cases: int) -> None:
    """Of a partition that somebody was given at some time."""
    assert undecided("zombie-commit", lines, partitions=2) == cases


@pytest.mark.parametrize(
    ("lines", "past"),
    [
        ([committed(3), at_once(log_end(2))], [2]),
        ([committed(3), log_end(2), log_end(3)], [2]),
        ([committed(3), log_end(3), log_end(2)], []),
        ([log_end(3), committed(3), log_end(2)], [2]),
        ([committed(3), on(1, log_end(2)), log_end(3)], []),
        ([committed(2, by="operator"), log_end(1)], [1]),
        ([committed(3), [on(1, line) for line in committed(9)], log_end(3), on(1, log_end(8))], [8]),
        ([committed(1), committed(2), log_end(1)], [1]),
    ],
    ids=[
        "read in the same instant",
        "the first one read counts",
        "the first one read counts though a later is lower",
        "one read before does not count",
        "one of another partition does not count",
        "by an operator",
        "beyond the end of another partition",
        "beyond the first end of all",
    ],
)
def test_commit_past_end_counts_the_first_end_after_it(lines: list[Line | list[Line]], past: list[int]) -> None:
    """A log end only grows; what is below the first one that was read is below all."""
    assert [one["log_end"] for one in judged("commit-past-end", lines, partitions=2)] == past


@pytest.mark.parametrize(
    ("lines", "cases"),
    [
        ([log_end(5), committed(5)], 0),
        ([log_end(5), log_end(4), committed(5)], 0),
        ([log_end(1), committed(2)], 0),
        ([log_end(1), committed(3)], 1),
        ([committed(3)], 1),
        ([on(1, log_end(5)), committed(3)], 1),
        ([log_end(2), committed(3), committed(4), log_end(4), committed(5)], 1),
    ],
    ids=[
        "an end",
        "the highest of all",
        "a record that was read",
        "beyond both",
        "no end was ever read",
        "another partition's",
        "only the last one",
    ],
)
def test_commit_past_end_is_undecided_beyond_everything_seen(lines: list[Line | list[Line]], cases: int) -> None:
    """Nobody looked afterwards: an end that was read before, or a record that lies there, would do."""
    found = finding("commit-past-end", lines, partitions=2)
    assert sum(found.undecided.values()) == cases


def test_commit_past_end_by_an_operator_says_so() -> None:
    """Asked for from outside the lanes."""
    lines = [committed(5, by="operator"), after(1), committed(6, by="m0"), log_end(2)]
    assert [one["by_operator"] for one in judged("commit-past-end", lines)] == [True, False]

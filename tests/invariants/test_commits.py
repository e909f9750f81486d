"""Commits: literal histories, each of at most eight lines."""

from __future__ import annotations

from histories import (
    aborted,
    after,
    answered,
    asked,
    assigned,
    commit,
    committed,
    delivered,
    effect,
    exited,
    finding,
    handled,
    holds,
    judged,
    log_end,
    not_judged,
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
    lines = [owner("m0"), committed(2, by="m0"), committed(1, by="m0"), after(1), answered("m1", 1), committed(2)]
    assert [(one["recovered"], one["restart_inside"]) for one in judged("commit-regression", lines)] == [(True, True)]


def test_commit_regression_by_nobody_knows_whom() -> None:
    """No request of any lane matches: whether it was the owner's own is not said."""
    assert ["own" in one for one in judged("commit-regression", [owner("m0"), committed(2), committed(1)])] == [False]


def test_commit_regression_by_an_operator() -> None:
    """A request from outside the lanes matches."""
    lines = [owner("m0"), committed(2), committed(1, by="operator")]
    assert [(one["by_operator"], one["own"]) for one in judged("commit-regression", lines)] == [(True, False)]


def test_commit_regression_only_looks_broken_after_a_tombstone() -> None:
    """The position was deleted: there is no commit that could be fallen behind."""
    assert judged("commit-regression", [committed(2), tombstone(), committed(1)]) == []


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


def test_commit_ahead_only_looks_broken_where_lines_came_late() -> None:
    """By its own word, which is exact, the member processed first; its lines were only read a second late."""
    lines = [assigned("m0"), delivered("m0", 0), committed(1), after(1), processed("m0", 0), commit("m0", 1)]
    assert judged("commit-ahead", lines) == []

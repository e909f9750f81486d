"""Progress in transactions: a commit takes effect at its marker, with the output of its transaction. Literal histories,
each of at most eight lines."""

from __future__ import annotations

import pytest

from histories import (
    after,
    assigned,
    commit,
    committed,
    delivered,
    effect,
    ended,
    finding,
    handled,
    judged,
    not_judged,
    owner,
    phase,
    processed,
    with_settings,
)

IN_TRANSACTION = with_settings(progress="transaction", delivery="exactly-once", sink="topic")


def test_a_pending_commit_is_no_position() -> None:
    """2 was written in a transaction that nobody ended: the 1 after it is no step back, and record 1 not skipped."""
    lines = [effect(0), committed(2, producer=7, pending=True), committed(1, producer=8)]
    assert judged("commit-regression", lines, settings=IN_TRANSACTION) == []
    assert judged("skipped", lines, settings=IN_TRANSACTION) == []


def test_a_commit_taken_late_does_not_replace_a_later_one() -> None:
    """1 was written before 2 and taken after it: the coordinator leaves 2 standing."""
    lines = [committed(1, producer=7, pending=True), committed(2, producer=8), ended("commit", None)]
    assert judged("commit-regression", lines, settings=IN_TRANSACTION) == []
    found = judged("offset-outside-transaction", [*lines, committed(2, by="m0")], settings=IN_TRANSACTION)
    assert [(one["stood"], one["repeats"]) for one in found] == [(2, True)]


def test_of_one_transaction_the_last_commit_counts() -> None:
    """2 and then 1 in the same transaction: 2 never stood."""
    lines = [committed(2, producer=7, pending=True), committed(1, producer=7)]
    assert judged("commit-regression", lines, settings=IN_TRANSACTION) == []


def test_commit_regression_is_broken_in_transactions() -> None:
    """From 2 to 1, each taken by its marker."""
    lines = [owner("m0"), committed(2, producer=7, by="m0"), committed(1, producer=7, by="m0")]
    found = judged("commit-regression", lines, settings=IN_TRANSACTION)
    assert [(one["from"], one["to"], one["own"]) for one in found] == [(2, 1, True)]


def test_zombie_commit_is_broken_in_transactions() -> None:
    """The partition is m1's, and m0's transaction commits 1 below the 2 that stood."""
    lines = [owner("m1"), committed(2, producer=8, by="m1"), committed(1, producer=7, by="m0")]
    found = judged("zombie-commit", lines, settings=IN_TRANSACTION)
    assert [(one["member"], one["fell"]) for one in found] == [("m0", True)]


def test_skipped_is_broken_by_output_that_was_taken_back() -> None:
    """m0 says that it has processed 0 and 1; of 0 no output was ever committed."""
    lines = [processed("m0", 0), processed("m0", 1), effect(1), committed(2, producer=7)]
    assert [one["offset"] for one in judged("skipped", lines, settings=IN_TRANSACTION)] == [0]


def test_skipped_only_looks_broken_by_a_record_without_output() -> None:
    """m0 says that it has discarded 0: nothing was to be written."""
    lines = [processed("m0", 0, outcome="discarded"), effect(1), committed(2, producer=7)]
    assert judged("skipped", lines, settings=IN_TRANSACTION) == []


def test_commit_ahead_only_looks_broken_where_one_log_is_told_of_before_another() -> None:
    """The position's marker comes two seconds before the output's; they are of one transaction."""
    lines = [committed(1, producer=7), after(2), effect(0)]
    assert judged("commit-ahead", lines, settings=IN_TRANSACTION) == []


def test_nonmonotonic_poll_only_looks_broken_after_a_transaction_that_failed() -> None:
    """m0 was told that its transaction had failed, and begins anew; without that it is a step back."""
    again = [assigned("m0"), *handled("m0", 0), commit("m0", 1, "fail"), delivered("m0", 0)]
    assert judged("nonmonotonic-poll", again, settings=IN_TRANSACTION) == []
    assert len(judged("nonmonotonic-poll", again[:3] + again[4:], settings=IN_TRANSACTION)) == 1
    assert len(judged("nonmonotonic-poll", again, settings=with_settings(progress="kafka"))) == 1


def test_reordered_key_only_looks_broken_after_a_transaction_that_failed() -> None:
    """What was completed in it is completed again, in order."""
    done = [processed("m0", offset) for offset in (0, 1)]
    lines = [assigned("m0"), *done, commit("m0", 2, "fail"), *done]
    assert judged("reordered-key", lines, settings=IN_TRANSACTION) == []


def test_stale_generation_is_not_judged_in_transactions() -> None:
    """What is not judged is named, and leaves no claim open."""
    missing = finding("stale-generation", [committed(1, producer=7)], settings=IN_TRANSACTION).not_judged
    assert missing is not None
    assert (missing.applies, missing.because) == (
        False,
        "its progress is in its transactions, whose epochs are not looked at",
    )


def test_what_was_handled_is_not_judged_where_the_output_was_not_read_to_its_end() -> None:
    """The witness of the sink topic did not say that it saw all: a record may have had its output."""
    told = not_judged("skipped", [effect(1), committed(2, producer=7)], settings=IN_TRANSACTION, read_output=False)
    assert told == "the witness sink is not known to be complete"


def test_a_position_that_a_later_record_has_replaced_never_stood() -> None:
    """2 was written before 1 and taken after it: the coordinator leaves 1 standing, and nothing fell."""
    lines = [committed(2, producer=7, pending=True), committed(1, producer=8), ended("commit", None)]
    assert judged("commit-regression", lines, settings=IN_TRANSACTION) == []
    assert judged("skipped", [effect(0), *lines], settings=IN_TRANSACTION) == []


def test_a_commit_whose_transaction_was_aborted_is_no_position() -> None:
    """By the marker alone."""
    lines = [effect(0), committed(2, producer=7, pending=True), ended("abort", None)]
    assert judged("skipped", lines, settings=IN_TRANSACTION) == []


@pytest.mark.parametrize(("taken_first", "found"), [(True, 0), (False, 1)])
def test_false_lag_counts_a_position_from_its_marker(*, taken_first: bool, found: int) -> None:
    """All is done, and the position behind it was written long before the snapshot, and taken before it or after."""
    begun = [effect(0), effect(1), phase("drain"), committed(2, producer=7, pending=True), after(30)]
    end = [ended("commit", None), phase("snapshot")]
    lines = [*begun, *(end if taken_first else reversed(end))]
    assert len(judged("false-lag", lines, settings=IN_TRANSACTION, snapshot=False)) == found


def test_misplaced_only_looks_broken_by_the_place_of_an_output() -> None:
    """The output of record 1 lies at offset 0 of another topic; without a topic the effect would claim that place."""
    place = {"partition": 0, "offset": 0}
    assert judged("misplaced", [effect(1, topic="out", **place)], settings=IN_TRANSACTION) == []
    assert len(judged("misplaced", [effect(1, **place)], settings=IN_TRANSACTION)) == 1

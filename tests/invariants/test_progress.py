"""Liveness of commits: literal histories, each of at most eight lines. W is 10 s for these settings."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    after,
    assigned,
    committed,
    fault,
    finding,
    handled,
    judged,
    not_judged,
    phase,
    processed,
    revoked,
    stood_still,
    undecided,
    with_settings,
)

NAME = "uncommitted-progress"
BEGUN = [assigned("m0"), handled("m0", 0, 1)]


def test_progress_is_committed() -> None:
    """Both records are done, and committed nine seconds later."""
    assert judged(NAME, [*BEGUN, after(9), committed(2)]) == []


def test_uncommitted_progress_is_broken() -> None:
    """Both records are done, and for twelve seconds nothing is committed; then all is."""
    found = finding(NAME, [*BEGUN, after(12), committed(2)])
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"offset": 0, "records": 2, "committed_offset": 2, "lasted_ms": 12030}, ("consumer-m0-0#3", "offsets#0"))
    ]


def test_uncommitted_progress_leaves_the_end_to_false_lag() -> None:
    """Never committed, and all is done: what stands at the snapshot has its own name."""
    lines = [*BEGUN, phase("drain"), after(17)]
    assert (judged(NAME, lines), len(judged("false-lag", lines))) == ([], 1)


def test_uncommitted_progress_only_looks_broken_behind_an_undone_record() -> None:
    """Record 1 is done, record 0 not yet: nothing may be committed."""
    lines = [assigned("m0"), processed("m0", 1), after(12), processed("m0", 0), committed(2)]
    assert judged(NAME, lines) == []


def test_uncommitted_progress_only_looks_broken_where_the_partition_moved() -> None:
    """Given up after five seconds: its next owner does the records again."""
    lines = [*BEGUN, after(5), revoked("m0"), assigned("m1"), handled("m1", 0, 1), after(7), committed(2)]
    assert judged(NAME, lines) == []


@pytest.mark.parametrize("line", [fault("stall", "m0"), fault("broker-kill", None)])
def test_uncommitted_progress_only_looks_broken_under_a_fault(line: Line) -> None:
    """Nobody could commit while it was in force."""
    assert judged(NAME, [*BEGUN, line, after(12), committed(2)]) == []


def test_uncommitted_progress_is_undecided_where_the_machine_stood_still() -> None:
    """A second is over a quarter of the session timeout."""
    assert undecided(NAME, [*BEGUN, after(6), stood_still(1), after(6), committed(2)]) == 1


def test_uncommitted_progress_is_not_judged_without_records_or_where_progress_is_elsewhere() -> None:
    """Nothing to commit; or nothing that a commit would mean."""
    because = "no record was delivered by the consumer's own word"
    assert not_judged(NAME, [assigned("m0"), after(12)], records=0) == because
    missing = finding(NAME, BEGUN, settings=with_settings(progress="sink")).not_judged
    assert missing is not None
    assert not missing.applies

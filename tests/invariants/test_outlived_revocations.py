"""Handlers that outlive their own `revoked`, and end when their member has the partition again."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    after,
    assigned,
    committed,
    delivered,
    exited,
    finding,
    handled,
    holds,
    lost,
    owner,
    processed,
    revoked,
    said,
)

Lines = list[Line | list[Line]]

MINE: Lines = [owner("m0", idle=["m1"]), assigned("m0"), delivered("m0", 0)]
THEIRS: Lines = [owner("m1", idle=["m0"], epoch=2), after(1), assigned("m1"), *handled("m1", 0), committed(1, by="m1")]
BACK: Lines = [after(1), revoked("m1"), owner("m0", idle=["m1"], epoch=3), after(1), assigned("m0"), after(1)]
DONE = processed("m0", 0)
BAD = said("m0", "bad_line", message='{"na', events=1, reason="cut")

PENDING: Lines = [holds("m0", 0), holds("m1"), assigned("m0"), delivered("m0", 0), holds("m0", pending=[0], epoch=2)]
TO_M1: Lines = [holds("m0", epoch=2), holds("m1", 0, epoch=2), after(1), assigned("m1"), *handled("m1", 0)]
TO_M0: Lines = [after(1), holds("m1", pending=[0], epoch=3), revoked("m1"), holds("m1", epoch=3), after(1)]
TO_M0 += [holds("m0", 0, epoch=3), after(1), assigned("m0"), after(1)]


def late(*lines: Line | list[Line]) -> list[tuple[int, str]]:
    """What was done after the revocation: which record, and what."""
    found = finding("work-after-revoke", lines, records=2)
    assert not found.undecided
    return [(one.attributes["offset"], one.attributes["what"]) for one in found.instances]


@pytest.mark.parametrize(
    "lines",
    [
        [*MINE, revoked("m0"), *THEIRS, *BACK, DONE],
        [*MINE, revoked("m0"), *THEIRS, *BACK, delivered("m0", 1), DONE],
        [*MINE, revoked("m0"), *THEIRS, *BACK, revoked("m0"), assigned("m0"), DONE],
        [*PENDING, revoked("m0"), *TO_M1, *TO_M0, DONE],
        [*MINE, revoked("m0"), *THEIRS, *BACK, processed("m0", 0, outcome="dead-lettered")],
        [*MINE, revoked("m0"), *THEIRS, DONE, *BACK],
    ],
    ids=[
        "classic",
        "beside another record",
        "two ownership epochs later",
        "KIP-848",
        "it was dead-lettered",
        "before it had the partition again",
    ],
)
def test_a_handler_may_not_outlive_its_revocation(lines: Lines) -> None:
    """Another member had the partition, and handled the record: that the first one has it again is no excuse."""
    assert late(*lines) == [(0, "processed")]


@pytest.mark.parametrize(
    "lines",
    [
        [*MINE, revoked("m0"), owner("m0", idle=["m1"], epoch=2), after(1), assigned("m0"), DONE],
        [*PENDING, revoked("m0"), holds("m0", 0, epoch=3), after(1), assigned("m0"), DONE],
        [*MINE, after(9), THEIRS[0], lost("m0"), *THEIRS[1:], *BACK, DONE],
        [*MINE, DONE, revoked("m0"), *THEIRS, *BACK, DONE],
        [*MINE, revoked("m0"), processed("m0", 0, outcome="failed"), *THEIRS, *BACK, DONE],
        [*MINE, revoked("m0"), *THEIRS, *BACK, processed("m0", 0, outcome="failed")],
        [*MINE, revoked("m0"), *THEIRS, *BACK, processed("m0", 0, outcome="discarded")],
        [*MINE, revoked("m0"), *THEIRS, *BACK, *handled("m0", 0)],
        [*MINE, revoked("m0"), *THEIRS, *BACK, BAD, DONE],
        [*MINE, said("m0", "stopped"), *THEIRS, DONE, exited("m0")],
        [
            *THEIRS,
            revoked("m1"),
            *MINE,
            revoked("m0"),
            owner("m0", idle=["m1"], epoch=4),
            after(1),
            assigned("m0"),
            DONE,
        ],
    ],
    ids=[
        "given back at once",
        "given back at once, KIP-848",
        "lost, not revoked",
        "it had ended before, and printed it twice",
        "it was cancelled, and printed it twice",
        "it was cancelled, and printed that late",
        "it was dropped",
        "it was delivered again",
        "a line that nobody could read",
        "it had been asked to stop",
        "others had it before",
    ],
)
def test_what_is_no_work_after_a_revocation(lines: Lines) -> None:
    """The handler did not outlive it, nobody else had the partition, or the member could not wait for it."""
    assert late(*lines) == []

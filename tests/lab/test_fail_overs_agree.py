"""Both judges on what a group does on a mirror: literal histories with a start, a commit or an answer at an edge."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from histories import (
    EXAMPLE,
    Line,
    after,
    answered,
    assigned,
    committed,
    delivered,
    failed_over,
    handled,
    history,
    owner,
    processed,
    revoked,
    tombstone,
)
from lab.agreement.sayings import naive_says, vectorised_says

Lines = list[Line | list[Line]]
SETTINGS = ("session_timeout_s", "poll_interval_s", "commit_interval_s", "delivery", "events", "sink")
ASKED = (
    *("redelivered", "illegal-redelivery", "retried", "skipped", "unseen"),
    *("commit-regression", "commit-ahead", "commit-lost", "zombie-commit"),
)
LEFT: Lines = [assigned("m0"), *handled("m0", 0, 1, 2), *committed(3), revoked("m0")]  # the commit is at place 1
CASES: dict[str, Lines] = {
    "begins where it was told": [failed_over(1, 1), after(1), answered("m1", 1), assigned("m1"), *handled("m1", 1)],
    "begins below": [failed_over(1, 2), after(1), answered("m1", 1), assigned("m1"), *handled("m1", 1, 2)],
    "copied": [failed_over(1, 1), after(1), assigned("m1"), *handled("m1", 0)],
    "nobody knows": [failed_over(1, None), after(1), answered("m1", -1), assigned("m1"), *handled("m1", 0)],
    "commits 0 there": [failed_over(1, None), after(1), *committed(0), after(2), assigned("m1"), *handled("m1", 0)],
    "commits when it opens": [failed_over(1, None), after(1), *committed(2), assigned("m1"), *handled("m1", 0)],
    "twice in one": [
        failed_over(1, None),
        after(1),
        assigned("m1"),
        *handled("m1", 3),
        *handled("m1", 3),
    ],
    "tried again": [failed_over(1, None), after(1), assigned("m1"), processed("m1", 3), delivered("m1", 3)],
    "skips": [failed_over(1, 4), after(1), answered("m1", 4), assigned("m1"), *handled("m1", 4), *committed(5)],
    "goes back there": [failed_over(1, 1), after(1), assigned("m1"), *handled("m1", 1), *committed(2), *committed(1)],
    "a tombstone there": [failed_over(1, 1), after(1), tombstone(), assigned("m1"), *handled("m1", 1), *committed(2)],
    "back to what it had left": [
        failed_over(1, 2),
        after(1),
        assigned("m1"),
        *handled("m1", 2, 3),
        *committed(4),
        revoked("m1"),
        failed_over(2, 3, back=True),
        after(1),
        answered("m2", 3),
        assigned("m2"),
        *handled("m2", 3),
        *committed(4),
    ],
    "back, and below": [
        failed_over(1, 2),
        after(1),
        *committed(4),
        failed_over(2, 3, back=True),
        after(1),
        assigned("m2"),
        *handled("m2", 2),
    ],
    "another's": [failed_over(1, 2), after(1), owner("m0"), assigned("m1"), *handled("m1", 0)],
}


@pytest.mark.parametrize("name", CASES)
def test_both_judges_say_the_same_of_work_on_a_mirror(name: str) -> None:
    """Of all that the position there, or the log of commits there, decides."""
    settings = {one: getattr(EXAMPLE, one) for one in SETTINGS}
    trial = SimpleNamespace(events=history([*LEFT, *CASES[name]], records=6), settings=settings)
    ours, theirs = vectorised_says(trial), naive_says(trial)  # type: ignore[arg-type]
    assert {one: ours[one] for one in ASKED} == {one: theirs.get(one) for one in ASKED}
    assert any(ours[one][0] or ours[one][1] for one in ASKED)

"""Both judges on log ends that an acknowledged record refutes, and on such that count."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from histories import EXAMPLE, Line, after, assigned, committed, handled, history, log_end, owner, sent
from lab.agreement.sayings import naive_says, vectorised_says

Lines = list[Line | list[Line]]
SETTINGS = ("session_timeout_s", "poll_interval_s", "commit_interval_s", "delivery", "events", "sink")
ASKED = ("commit-past-end", "skipped", "commit-ahead", "false-report")
READ: Lines = [owner("m0"), assigned("m0"), *handled("m0", 0, 1, 2), committed(3, by="m0"), after(1)]
CASES: dict[str, tuple[Lines, bool]] = {
    "acknowledged before": ([*sent(0), *sent(1), *sent(2), *READ, log_end(2), after(1), log_end(3)], False),
    "acknowledged afterwards": ([*sent(0), *sent(1), *READ, log_end(2), *sent(2), after(1), log_end(3)], True),
    "not acknowledged": ([*sent(0), *sent(1), *sent(2, outcome="info"), *READ, log_end(2)], True),
}


@pytest.mark.parametrize("name", CASES)
def test_both_judges_say_the_same_of_log_ends(name: str) -> None:
    """A commit past it convicts where nothing shows that the log was longer than its leader answered."""
    lines, convicted = CASES[name]
    settings = {one: getattr(EXAMPLE, one) for one in SETTINGS}
    trial = SimpleNamespace(events=history([*lines, after(5)], records=3), settings=settings)
    ours, theirs = vectorised_says(trial), naive_says(trial)  # type: ignore[arg-type]
    assert {one: ours[one] for one in ASKED} == {one: theirs.get(one) for one in ASKED}
    assert bool(ours["commit-past-end"][0]) is convicted

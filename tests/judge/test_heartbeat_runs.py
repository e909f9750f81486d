"""Stretches of answered heartbeats: where they begin and end, in literal request logs."""

from __future__ import annotations

from dataclasses import replace

from group_lines import beat, heartbeat, joined, synced
from histories import SECOND_NS, Line, after, batch_of


def stretches(*lines: Line) -> list[tuple[str, float]]:
    """Log and length in seconds of each stretch of m0 that began with the lines or later; its session is 3 s."""
    about = batch_of([joined("m0", session_timeout_ms=3000), *lines]).trial_context
    ours = [one for one in about.heartbeat_runs if one.lane == 0]
    lasted = [(one.source, (one.last_wall_ns or 0) - (one.first_wall_ns or 0)) for one in ours]
    return [(about.sources[source], round(length_ns / SECOND_NS, 1)) for source, length_ns in lasted]


def there(line: Line) -> Line:
    """The same in another broker's log."""
    return replace(line, source="requests-b1")


def test_answers_one_soon_after_the_other_are_one_stretch() -> None:
    """Heartbeats and joins of both protocols; the first join stands two seconds before."""
    lines = [after(1), heartbeat("m0"), after(1), synced("m0", 0), after(1), beat("m0"), after(1), joined("m0")]
    assert stretches(*lines) == [("requests-b0", 0.0), ("requests-b0", 4.0)]


def test_a_gap_of_more_than_half_a_session_ends_a_stretch() -> None:
    """A second and a half."""
    assert stretches(after(1.6), heartbeat("m0")) == [("requests-b0", 0.0)] * 3


def test_an_answer_with_an_error_is_in_no_stretch_unless_the_group_rebalances() -> None:
    """Error 27 of a heartbeat is as good as none."""
    assert stretches(after(1), heartbeat("m0", error=27))[1:] == [("requests-b0", 1.0)]
    assert stretches(after(1), heartbeat("m0", error=16))[1:] == [("requests-b0", 0.0)]


def test_each_log_has_stretches_of_its_own() -> None:
    """The coordinator moved."""
    assert stretches(there(heartbeat("m0")))[1:] == [("requests-b0", 0.0), ("requests-b1", 0.0)]

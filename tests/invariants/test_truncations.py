"""Logs that were cut off by a broker that lacked their tail: what that explains is the cluster's."""

from __future__ import annotations

from typing import Any

import pytest

from group_lines import synced
from histories import (
    Line,
    after,
    answered,
    assigned,
    committed,
    delivered,
    fault,
    fetched,
    finding,
    handled,
    judged,
    log_end,
    owner,
    processed,
    sent,
)
from kafka_trial.claim import Claim
from kafka_trial.verdict.decide import rule_of

BEGUN: list[Line | list[Line]] = [owner("m0"), synced("m0", 0), assigned("m0"), answered("m0", 0)]
READ: list[Line | list[Line]] = [*BEGUN, fetched("m0", 0, size_bytes=9), *handled("m0", 0, 1, 2)]
LOST = [fault("broker-kill", None), after(1)]
KNOWN_BY = {
    "a log end that was read before": [*READ, log_end(3), committed(3, by="m0")],
    "a fetch that brought what is gone": [
        *[*BEGUN, fetched("m0", 0, size_bytes=9), fetched("m0", 2, size_bytes=9)],
        *[*handled("m0", 0, 1, 2), committed(3, by="m0")],
    ],
    "the id of what was delivered": [
        *[*sent(0), *sent(1), *sent(2, outcome="info"), *READ[:-2]],
        *[delivered("m0", 2, id="r2"), processed("m0", 2), committed(3, by="m0")],
    ],
}


@pytest.mark.parametrize("lines", KNOWN_BY.values(), ids=KNOWN_BY.keys())
def test_a_commit_past_a_log_that_was_cut_off_is_tolerated(lines: list[Line | list[Line]]) -> None:
    """It was there when its consumer read and committed it; and the lines of it are believed."""
    cut = [*lines, *LOST, log_end(2), after(5)]
    (found,) = finding("commit-past-end", cut).instances
    rule = rule_of("commit-past-end")
    assert rule is not None
    assert rule.excuse(Claim("at-least-once"), found.attributes)[0] == "tolerated"
    assert judged("false-report", cut) == []


@pytest.mark.parametrize("name", ["skipped", "commit-ahead", "false-report"])
def test_what_is_written_in_the_place_of_what_was_handled_is_not_skipped(name: str) -> None:
    """The new record bears the offset of one that is gone, below a position that was committed before."""
    cut = [*READ, log_end(3), committed(3, by="m0"), *LOST, log_end(2), after(1), *sent(3, at=2), log_end(3), after(5)]
    assert judged(name, cut, records=3, control={2: {"id": "r3"}}) == []


def test_a_commit_past_an_end_that_never_lay_further_is_the_consumers() -> None:
    """Counted twice."""
    (found,) = judged("commit-past-end", [*READ[:-2], committed(3, by="m0"), log_end(2), after(5)])
    assert "cut_off" not in found


# m0 handles and commits all there is; then a new leader answers how far it knows records to be committed.
ALL = [*sent(0), *sent(1), *sent(2), *READ, committed(3, by="m0"), *LOST]


@pytest.mark.parametrize("name", ["commit-past-end", "false-report", "skipped", "commit-ahead", "nonmonotonic-poll"])
def test_a_log_end_below_an_acknowledged_record_that_lies_there_is_none(name: str) -> None:
    """Nothing was cut off, then or ever: nobody sends again what was acknowledged."""
    assert judged(name, [*ALL, log_end(2), after(1), log_end(3), after(5)], records=3) == []


@pytest.mark.parametrize(
    ("lines", "control"),
    [
        ([*ALL, log_end(2)], {2: {"id": "r3"}}),
        ([*sent(0), *sent(1), *sent(2, outcome="info"), *READ, committed(3, by="m0"), *LOST, log_end(2)], {}),
        ([*sent(0), *sent(1), *READ, committed(3, by="m0"), log_end(2), *sent(2)], {}),
    ],
    ids=["another lies there", "nobody acknowledged it", "acknowledged afterwards"],
)
def test_a_log_end_that_nothing_refutes_counts(lines: list[Line | list[Line]], control: dict[int, Any]) -> None:
    """Past it nothing can have been read, let alone committed."""
    assert len(judged("commit-past-end", [*lines, after(5)], records=3, control=control)) == 1


def test_what_was_committed_past_after_the_log_had_been_cut_off_is_skipped() -> None:
    """Its consumer committed past the new record, and not past the old one."""
    short = [*READ[:-2], log_end(3), *LOST, log_end(2), after(1), *sent(3, at=2), log_end(3), after(1)]
    found = judged("skipped", [*short, committed(3, by="m0"), after(5)], records=3, control={2: {"id": "r3"}})
    assert [one["offset"] for one in found] == [2]


GONE: list[Line | list[Line]] = [
    *[*BEGUN, *sent(0), *sent(1), *sent(2, outcome="info"), *sent(3, at=2)],
    *[fetched("m0", 0, size_bytes=9), *handled("m0", 0, 1), delivered("m0", 2, id="r2"), processed("m0", 2)],
]
ANOTHER = {2: {"id": "r3"}}


def test_of_a_record_in_whose_place_another_was_written_its_member_is_set_back_there() -> None:
    """Only the id tells that the log was cut off: what lies below it is as it was."""
    assert judged("nonmonotonic-poll", [*GONE, *handled("m0", 2)], records=3, control=ANOTHER) == []
    (found,) = judged("nonmonotonic-poll", [*GONE, *handled("m0", 1)], records=3, control=ANOTHER)
    assert found["offset"] == 1


def test_whose_position_is_not_there_any_more_starts_over() -> None:
    """A broker told it, whatever is there now."""
    lines = [*GONE, fetched("m0", 3, error=1), *handled("m0", 0)]
    assert judged("nonmonotonic-poll", lines, records=3, control=ANOTHER) == []


def test_a_hole_is_no_place_where_a_log_was_cut_off() -> None:
    """A record that was lost alone: nothing was written in its place, but behind it."""
    lines = [*GONE, *handled("m0", 2)]
    (found,) = judged("nonmonotonic-poll", lines, records=4, control={2: None})
    assert found["offset"] == 2

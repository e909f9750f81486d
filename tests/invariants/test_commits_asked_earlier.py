"""Commits that their client had asked for before others, and that a broker took after them over an older connection."""

from __future__ import annotations

from dataclasses import replace

import pytest

from histories import Line, after, answered, asked, assigned, commit, committed, judged, owner
from kafka_trial.claim import Claim
from kafka_trial.verdict.decide import weigh

OLD, NEW = "to the coordinator", "to the coordinator, anew"


def over(connection: str, *lines: Line | list[Line]) -> list[Line]:
    """The same lines; requests came over that connection."""
    flat = [one for line in lines for one in (line if isinstance(line, list) else [line])]
    return [
        replace(one, fields=one.fields | {"connection": connection}) if one.source == "requests-b0" else one
        for one in flat
    ]


def by(value: int, connection: str, member: str = "m0") -> list[Line]:
    """A commit that a member asked for over a connection."""
    return over(connection, committed(value, by=member))


def there(lines: list[Line]) -> list[Line]:
    """The same lines; the request was another broker's."""
    return [replace(one, source="requests-b1") if one.source == "requests-b0" else one for one in lines]


def under(member_id: str, *lines: Line) -> list[Line]:
    """The same lines; the request bore that member id."""
    return [replace(one, fields=one.fields | {"member_id": member_id}) if "api" in one.fields else one for one in lines]


FIRST_OF_OLD = over(OLD, asked("HEARTBEAT", "m0", 0))
BEGUN = [owner("m0"), *FIRST_OF_OLD]


def were_asked_earlier(*lines: Line | list[Line]) -> list[bool]:
    """Of each episode."""
    return ["asked_earlier" in one for one in judged("commit-regression", [*lines])]


def test_what_came_over_the_older_connection_was_asked_for_before() -> None:
    """The client gave the answer up, asked for 9 over a new connection, and then the broker took 7."""
    assert were_asked_earlier(*BEGUN, by(9, NEW), by(7, OLD), by(10, NEW)) == [True]
    assert were_asked_earlier(*BEGUN, by(9, NEW), by(7, OLD)) == [True]  # it stays so


@pytest.mark.parametrize(
    "lines",
    [
        [*BEGUN, by(9, OLD), by(7, OLD)],
        [*BEGUN, by(9, OLD), by(7, NEW)],
        [*BEGUN, *committed(9, by="m0"), by(7, OLD)],
        [*BEGUN, by(9, NEW), *committed(7, by="m0")],
        [*BEGUN, by(9, NEW, "m1"), by(7, OLD)],
        [*BEGUN, by(9, NEW), by(7, OLD), by(5, NEW), by(10, NEW)],
        [*BEGUN, by(9, NEW), after(1), by(9, OLD), by(7, OLD)],
        [*BEGUN, there(by(9, NEW)), by(7, OLD)],
        [*BEGUN, by(9, NEW), under("id-of-its-second-client", *by(7, OLD))],
        [*BEGUN, under("", *by(9, NEW)), under("", *by(7, OLD))],
    ],
    ids=[
        "one connection",
        "the newer one",
        "a peak over a connection that is not known",
        "a fall over a connection that is not known",
        "another member's peak",
        "and then one more that was asked for later",
        "the same once more, over the older one",
        "the peak by another broker, which coordinated meanwhile",
        "a second client of the process, which knows nothing of the first",
        "no member's: who asked is not known",
    ],
)
def test_any_other_fall_is_the_clients_own(lines: list[Line | list[Line]]) -> None:
    """On one connection the broker takes requests in the order in which they were sent."""
    assert were_asked_earlier(*lines) == [False]


def test_a_line_that_asks_once_more_is_believed() -> None:
    """Whoever asks for 7 after 9 has committed backwards, whatever way the request took."""
    said = [assigned("m0"), commit("m0", 7, "invoke"), commit("m0", 7, "fail"), commit("m0", 9, "invoke")]
    again = commit("m0", 7, "invoke")
    assert were_asked_earlier(*BEGUN, *said, by(9, NEW), by(7, OLD), by(10, NEW)) == [True]
    assert were_asked_earlier(*BEGUN, *said, by(9, NEW), again, by(7, OLD), by(10, NEW)) == [False]


@pytest.mark.parametrize("commits", ["settling", "monotonic"])
def test_no_claim_is_broken_by_it(commits: str) -> None:
    """Even if an ownership epoch began inside; the consumer committed in order."""
    started = [assigned("m0"), answered("m0", 7)]
    for way, weight in ((OLD, "tolerated"), (NEW, "violation")):
        found = judged("commit-regression", [*BEGUN, by(9, NEW), by(7, way), *started, by(10, NEW)])
        claim = Claim(delivery="at-least-once", commits=commits)
        assert [weigh(claim, "commit-regression", one)[0] for one in found] == [weight]

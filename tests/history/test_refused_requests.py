"""Requests that brokers refused: whose they were, and what is said of them; from literal events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafka_trial.history.event import Event
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.refused_requests import (
    Refused,
    refusal_in_words,
    refusals_in_words,
    refused_of_run,
    refused_requests,
)

SAID = "Received request for api with key 8 (OffsetCommit) and unsupported version 1"


def started(member: str, lane: int) -> Event:
    return Event(f"consumer-{member}-0", 0, 0, "started", member=member, details={"lane": lane})


def refusal(seq: int, *, broker: str = "b0", lane: int = 4, **fields: Any) -> Event:
    about = {"api": "OffsetCommit", "version": 1, "reason": "unsupported", "count": 40, "message": SAID}
    times = {"first_ns": seq * 10, "last_ns": seq * 10 + 9}
    return Event(
        f"requests-{broker}", seq, seq * 10 + 9, "request_refused", details={"lane": lane, **about, **times, **fields}
    )


def test_what_is_alike_is_one() -> None:
    """Of two brokers, of old and new names of an API; events come in any order."""
    events = [refusal(1), refusal(2, broker="b1", api="OFFSET_COMMIT", count=2), started("m1", 4)]
    assert refused_requests(events) == [
        Refused("m1", "OffsetCommit", 1, "unsupported", ("b0", "b1"), 42, first_ns=10, last_ns=29, message=SAID)
    ]


def test_a_lane_without_a_member_is_nobodys() -> None:
    """It is not guessed whose request it was."""
    assert refused_requests([refusal(1, lane=7), started("m1", 4)]) == []


def test_the_most_frequent_is_told_first() -> None:
    """Each member has a sentence; of one that a broker could not read at all there is no name."""
    other = {
        "api": None,
        "version": None,
        "reason": "unparsable",
        "count": 1,
        "message": "Error parsing request header",
    }
    events = [started("m0", 3), started("m1", 4), refusal(1, **other), refusal(2), refusal(3, lane=3, count=1)]
    told = "b0 refused {}, and closed the connection without an answer (" + SAID + ")"
    assert refusals_in_words(refused_requests(events)) == (
        f"m0: {told.format('OffsetCommit v1 once')}",
        f"m1: {told.format('OffsetCommit v1 40 times, requests once')}",
    )


def test_of_many_kinds_some_are_told() -> None:
    """Somebody tried every version."""
    found = refused_requests([started("m1", 4), *(refusal(at, version=at) for at in range(5))])
    assert "v0 40 times, OffsetCommit v1 40 times, OffsetCommit v2 40 times, 2 other kinds, and" in refusal_in_words(
        found
    )


def test_a_run_says_it_by_its_files(tmp_path: Path) -> None:
    """One of an earlier harness says nothing; damaged lines are the judge's."""
    assert refused_of_run(tmp_path) == []
    with Recorder(tmp_path, "requests-b0") as requests, Recorder(tmp_path, "consumer-m1-0") as member:
        member.record("started", member="m1", incarnation=0, lane=4, pid=7)
        requests.record("request_refused", lane=4, api="OffsetCommit", version=1, reason="unsupported", count=3)
        requests.record("request_refused", lane=4, api="OffsetCommit", version=1, reason="unsupported", count="many")
    with requests.path.open("ab") as torn:
        torn.write(b'{"schema":1,"kind":"request_refused"\n{"kind":"request_refused"')
    (found,) = refused_of_run(tmp_path)
    assert (found.member, found.request, found.count) == ("m1", "OffsetCommit v1", 4)

"""Which class a stuck partition is of: literal histories, each of at most eight lines. W is 10 s for these settings."""

from __future__ import annotations

from typing import Any

import pytest

from group_lines import synced
from histories import (
    Line,
    after,
    answered,
    assigned,
    at_once,
    committed,
    delivered,
    effect,
    fetched,
    handled,
    judged,
    later,
    log_start,
    on,
    phase,
    revoked,
    said,
    sent,
    started,
    with_settings,
)
from kafka_trial.anomalies.claim_rule import Anomaly
from kafka_trial.verdict.messages import message

ANSWERED = fetched("m0", 0, size_bytes=90)
FALLEN = [*committed(2), *committed(0)]
NOT_FETCHED = fetched("m0", None, complete=True)
ANOTHER_LOG = Line("requests-b1", "request", {"api": "HEARTBEAT", "lane": 0})


def classes(lines: list[Line | list[Line]], **frame: Any) -> list[str]:
    """The class of every partition that stood still for eleven seconds."""
    return [one["class"] for one in judged("stuck-partition", [*lines, phase("drain"), after(25)], **frame)]


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ([assigned("m0"), fetched("m0", 0, size_bytes=1)], "fetched-not-delivered"),
        ([assigned("m0"), handled("m0", 0), ANSWERED, fetched("m0", 1)], "unclassified"),
        ([ANSWERED, after(1), assigned("m0")], "assigned-not-fetched"),
        ([ANSWERED, after(0.49), assigned("m0")], "fetched-not-delivered"),
        ([ANSWERED, after(0.491), assigned("m0")], "assigned-not-fetched"),
        ([assigned("m0"), ANSWERED, revoked("m0"), assigned("m1")], "unclassified"),
        ([assigned("m0"), ANOTHER_LOG, NOT_FETCHED], "unclassified"),
        ([assigned("m0"), NOT_FETCHED, fetched("m0", 0)], "unclassified"),
        ([assigned("m0"), delivered("m0", 0), revoked("m0")], "unassigned"),
        ([assigned("m0"), *FALLEN, delivered("m0", 1)], "delivered-not-committed"),
        ([assigned("m0"), ANSWERED, *FALLEN], "committed-not-delivered"),
        ([assigned("m0"), handled("m0", 0), committed(1)], "unclassified"),
        (FALLEN, "unclassified"),
        ([], "unclassified"),
    ],
    ids=[
        "answered however little",
        "answered before it and now at it",
        "fetched before it was its own",
        "fetched just before it was its own",
        "fetched a little too long before",
        "fetched by its owner before",
        "one request log was not read to its end",
        "fetched again",
        "delivered and given up",
        "fallen back and delivered",
        "fetched and fallen back",
        "committed up to it",
        "fallen back and nobody ever had it",
        "nobody ever had it",
    ],
)
def test_a_class_says_no_more_than_was_seen(lines: list[Line | list[Line]], name: str) -> None:
    """What the owner itself was seen to do with the first undone record since it was assigned."""
    assert classes(lines) == [name]


@pytest.mark.parametrize(("line", "name"), [(ANSWERED, "assigned-not-fetched"), (FALLEN, "unclassified")])
def test_what_came_after_the_snapshot_says_nothing(line: Line | list[Line], name: str) -> None:
    """The record was fetched, or the position rose and fell, when the trial had been looked at."""
    lines = [assigned("m0"), phase("drain"), after(25), phase("snapshot"), line]
    assert [one["class"] for one in judged("stuck-partition", lines, snapshot=False)] == [name]


@pytest.mark.parametrize(
    ("last", "name"),
    [
        ([ANSWERED, at_once(phase("snapshot"))], "fetched-not-delivered"),
        ([revoked("m0"), at_once(phase("snapshot"))], "unclassified"),
        ([revoked("m0"), later(phase("snapshot"), 1)], "unassigned"),
    ],
    ids=["fetched", "given up", "given up just before"],
)
def test_what_came_in_the_instant_of_the_snapshot_was_still_so(last: list[Line], name: str) -> None:
    """It had happened, or was still held, when the trial was looked at."""
    lines = [assigned("m0"), phase("drain"), after(25), *last]
    assert [one["class"] for one in judged("stuck-partition", lines, snapshot=False)] == [name]


def test_a_position_in_kafka_means_nothing_where_progress_is_elsewhere() -> None:
    """It rose and fell there, whatever for."""
    assert classes([assigned("m0"), *FALLEN], settings=with_settings(progress="sink")) == ["unclassified"]


def test_every_partition_has_a_class_of_its_own() -> None:
    """Of three partitions of one member the first is not fetched any more, the next is answered, the last given up."""
    lines = [assigned("m0", 0, 1, 2), fetched("m0", 0, complete=True), revoked("m0", 2), on(1, ANSWERED)]
    dropped = fetched("m0", None, complete=True)
    assert classes([*lines, dropped], partitions=3) == ["assigned-not-fetched", "fetched-not-delivered", "unassigned"]


STRANGER = said("m9", "assigned", entries=[{"topic": "t", "partition": 0}])  # whose process nobody saw start


@pytest.mark.parametrize("fetch", [fetched("m8", 0, size_bytes=90), fetched("m8", None, complete=True)])
def test_an_unknown_lane_is_not_that_of_an_unknown_member(fetch: Line) -> None:
    """Neither what it fetches nor what it leaves out is the owner's doing."""
    assert classes([STRANGER, fetch]) == ["unclassified"]


def test_a_lane_is_not_the_number_of_its_member() -> None:
    """m2, on lane 2, is the second of two members."""
    assert classes([started("m2"), assigned("m2"), fetched("m2", 0, size_bytes=90)], members=1) == [
        "fetched-not-delivered"
    ]


def test_a_stuck_partition_is_not_in_hand_where_another_member_had_been_given_its_record() -> None:
    """m0 was given record 0, and lost the partition; m1, whose it is now, was given nothing."""
    assert classes([assigned("m0"), delivered("m0", 0), revoked("m0"), assigned("m1")]) == ["unclassified"]


@pytest.mark.parametrize(
    ("before", "since"),
    [([assigned("m0")], [delivered("m0", 0)]), ([], [assigned("m0"), revoked("m0")]), ([], [assigned("m0")])],
    ids=["given it since", "had it since", "has it since"],
)
def test_a_stuck_partition_is_classed_by_what_was_at_the_snapshot(before: list[Line], since: list[Line]) -> None:
    """What came after it changes nothing."""
    lines = [*before, phase("drain"), after(25), phase("snapshot"), *since]
    assert [one["class"] for one in judged("stuck-partition", lines, snapshot=False)] == ["unclassified"]


REFUSED = fetched("m0", 0, error=1)
OTHERWISE_BUSY = Line("requests-b0", "request", {"api": "HEARTBEAT", "lane": 0, "connection": "m0"})


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ([assigned("m0"), REFUSED], "fetch-refused"),
        ([assigned("m0"), ANSWERED, REFUSED], "fetch-refused"),
        ([assigned("m0"), REFUSED, fetched("m0", 0)], "unclassified"),
        ([REFUSED, after(1), assigned("m0")], "assigned-not-fetched"),
        ([assigned("m0"), fetched("m1", 0, error=1)], "unclassified"),
        ([assigned("m0"), delivered("m0", 0), REFUSED], "delivered-not-committed"),
        ([assigned("m0"), OTHERWISE_BUSY], "assigned-not-fetched"),
        ([assigned("m0"), ANSWERED, ANSWERED, ANSWERED], "fetched-undecodable"),
        ([assigned("m0"), ANSWERED, ANSWERED], "fetched-not-delivered"),
        ([assigned("m0"), ANSWERED, ANSWERED, ANSWERED, fetched("m0", 2)], "fetched-not-delivered"),
        ([assigned("m0"), fetched("m0", 2), ANSWERED, ANSWERED, ANSWERED], "fetched-undecodable"),
        ([assigned("m0"), ANSWERED, ANSWERED, fetched("m0", 2), ANSWERED], "fetched-not-delivered"),
        ([assigned("m0"), *[fetched("m0", 2, size_bytes=9)] * 3], "unclassified"),
        ([assigned("m0"), *[fetched("m0", 0)] * 3], "unclassified"),
    ],
    ids=[
        "refused",
        "refused in the end",
        "goes on after it",
        "refused before it was its own",
        "another member's",
        "in hand",
        "asks its coordinator, and no leader",
        "three times",
        "twice",
        "goes on behind it",
        "sought back to it",
        "not one after the other",
        "behind it",
        "nothing was answered",
    ],
)
def test_a_class_is_told_by_the_last_fetches(lines: list[Line | list[Line]], name: str) -> None:
    """The last one was refused; or bytes were answered to one position again and again."""
    assert classes(lines) == [name]


def test_a_silent_member_whose_last_fetch_was_refused_is_told_so() -> None:
    """It printed nothing, handled record 0, and its position fell out of the log: it never fetched again."""
    begun = [synced("m0", 0), answered("m0", 0), ANSWERED, effect(0), committed(1, by="m0"), fetched("m0", 1, error=1)]
    settings = with_settings(events="none", sink="http")
    (found,) = judged("stuck-partition", [*begun, phase("drain"), after(25)], settings=settings)
    assert {name: found[name] for name in ("class", "fetch_error", "fetched_before_s")} == {
        "class": "fetch-refused",
        "fetch_error": 1,
        "fetched_before_s": 25,
    }
    told = message("stuck-partition", Anomaly("stuck-partition", "t", 0, found, ()))
    last = "its owner's last fetch was answered OFFSET_OUT_OF_RANGE (1), 25 s before the end"
    assert told.endswith(f"(fetch-refused: {last})")


def test_work_on_records_that_were_deleted_since_is_movement() -> None:
    """Record 0 had its effect in the drain, and was deleted; record 1 is left."""
    lines = [sent(0), log_start(0), assigned("m0"), phase("drain"), after(20), effect(0), after(5), log_start(1)]
    frame: dict[str, Any] = {"settings": with_settings(sink="http"), "control": {0: None}}
    assert judged("stuck-partition", lines, **frame) == []
    assert len(judged("stuck-partition", [*lines, after(20)], **frame)) == 1

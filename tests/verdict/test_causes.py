"""Causes that a history tells: literal lines of members, of the sink, and of request logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_trial.anomalies.claim_rule import Anomaly
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.judgement import Finding
from kafka_trial.verdict.causes import causes_of

HERE = {"topic": "t", "partition": 0}
LISTED = {"entries": [HERE]}
Told = tuple[str, dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """Returns a run folder whose control read holds the records r0 to r4."""
    made = RunFolder(tmp_path)
    made.history.mkdir()
    tell(made, "observer", *(("record", HERE | {"offset": offset, "id": f"r{offset}"}) for offset in range(5)))
    return made


def tell(folder: RunFolder, source: str, *events: Told) -> None:
    """Writes events (kind, fields) of one source."""
    who = {"member": "m0", "incarnation": 0} if source.startswith("consumer") else {}
    with Recorder(folder.history, source) as recorder:
        for number, (kind, fields) in enumerate(events):
            recorder.record(kind, time_ns=number, **fields, **who)


def record(kind: str, offset: int, **fields: Any) -> Told:
    return kind, HERE | {"offset": offset} | fields


def skipped(*offsets: int, in_flight: bool = False, more: int = 0) -> dict[str, Finding]:
    """Returns the finding that these records were skipped, each proved by the control read."""
    found = [
        Anomaly("skipped", "t", 0, {"offset": at, "in_flight_at_crash": in_flight}, (f"observer#{at}", "offsets#0"))
        for at in offsets
    ]
    return {"skipped": Finding("skipped", "delivery", tuple(found), len(found) + more)}


REFUSED = "had been refused by the sink, or had failed, and were not tried again"


def test_what_the_sink_refused_is_told(folder: RunFolder) -> None:
    """Record 0 was refused, record 1 failed by its member's word, record 2 never came to the sink."""
    tell(folder, "sink", ("effect", {"id": "r0", "outcome": "fail"}), ("effect", {"id": "r3", "outcome": "ok"}))
    tell(folder, "consumer-m0-0", record("delivered", 1), record("processed", 1, outcome="failed"))
    assert causes_of(folder, skipped(0, 1, 2)) == (
        f"of 3 records skipped, 2 {REFUSED}; 1 was never delivered to a handler, by the members' lines",
    )


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (("exited", {"asked": "kill"}), "1 was in hand when their member was killed"),
        (("exited", {"asked": "stop", "signal": "SIGTERM"}), "1 was taken in hand and never finished"),
        (("revoked", LISTED), "1 was in hand when their partition was taken away, and was not finished"),
        (("revoked", {"entries": [HERE | {"partition": 1}]}), "1 was taken in hand and never finished"),
        (("revoked", {"entries": "none"}), "1 was taken in hand and never finished"),
    ],
)
def test_what_was_in_hand_is_told_by_the_end_of_its_ownership(folder: RunFolder, end: Told, told: str) -> None:
    """A kill, or a revocation of its partition; else it is only known to be unfinished."""
    tell(folder, "consumer-m0-0", record("delivered", 2), end)
    assert causes_of(folder, skipped(2)) == (f"of 1 record skipped, {told}",)


def test_a_record_behind_which_work_went_on_is_not_said_to_be_in_hand(folder: RunFolder) -> None:
    """Record 3 was completed after record 2 had been delivered: it may have been given up long before the kill."""
    later = [record("delivered", 3), record("processed", 3, outcome="done")]
    tell(folder, "consumer-m0-0", record("delivered", 2), *later, ("exited", {"asked": "kill"}))
    assert causes_of(folder, skipped(2)) == ("of 1 record skipped, 1 was taken in hand and never finished",)


def test_of_silent_members_the_sink_and_the_judge_tell(folder: RunFolder) -> None:
    """Without lines of deliveries nobody knows what was begun; only examples of all that was found were looked at."""
    assert causes_of(folder, skipped(0)) == ()
    tell(folder, "sink", ("effect", {"id": "r3", "outcome": "ok"}))
    looked_at = "of the 2 looked at, out of 9 records skipped"
    assert causes_of(folder, skipped(0, 1, more=7)) == (f"{looked_at}, 2 never reached the sink",)
    crashed = "2 were in flight when their member crashed, or lost the answer to its commit"
    assert causes_of(folder, skipped(0, 1, in_flight=True, more=7)) == (f"{looked_at}, {crashed}",)


def requests(folder: RunFolder, *asked: dict[str, Any]) -> None:
    tell(
        folder,
        "requests-b0",
        *(("request", {"lane": 0, "source_wall_ns": at + 1} | one) for at, one in enumerate(asked)),
    )


def commits(value: int, error: int = 0) -> dict[str, Any]:
    return {"api": "OFFSET_COMMIT", "entries": [HERE | {"committed_offset": value, "error": error}]}


JOIN, TOLD = {"api": "JOIN_GROUP", "error": 0}, {"api": "HEARTBEAT", "error": 27}
AHEAD = Anomaly("commit-ahead", "t", 0, {"committed_offset": 3, "offset": 2}, ())
INSIDE = (
    "of 1 position committed ahead, 1 came with a rebalance: they were committed after their member had been told of "
    "it, and before it had joined again"
)
OUTSIDE = "of 1 position committed ahead, none is known to have come with a rebalance"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ([JOIN, TOLD, commits(3), JOIN], (INSIDE,)),
        ([JOIN, commits(3), TOLD, JOIN], (OUTSIDE,)),
        ([JOIN, TOLD, JOIN, commits(3)], (OUTSIDE,)),
        ([JOIN, commits(3), TOLD, commits(3), JOIN], (OUTSIDE,)),  # the first of that position
        ([JOIN, commits(3, error=25), TOLD, commits(3)], (INSIDE,)),  # a commit that was refused is none
        ([commits(3)], ()),  # it never joined by the log: KIP-848, or a log that begins late
        ([JOIN, TOLD, commits(4)], ()),
    ],
)
def test_a_commit_that_came_with_a_rebalance_is_told(
    folder: RunFolder, asked: list[dict[str, Any]], told: tuple[str, ...]
) -> None:
    """Between the answer that the group rebalances and the next join; nothing where the log does not tell."""
    requests(folder, *asked)
    assert causes_of(folder, {"commit-ahead": Finding("commit-ahead", "commits", (AHEAD,), 1)}) == told


def test_nothing_is_told_of_what_was_not_found(folder: RunFolder) -> None:
    """Neither of a clean run, nor of other anomalies."""
    assert causes_of(folder, {"skipped": Finding("skipped", "delivery"), "unseen": Finding("unseen", "delivery")}) == ()


def reordered(*pairs: tuple[int, int]) -> dict[str, Finding]:
    """Returns the finding that these records were handled after those."""
    told = [{"offset": late, "later_offset": later} for late, later in pairs]
    found = [Anomaly("reordered-key", "t", 0, attributes, ()) for attributes in told]
    return {"reordered-key": Finding("reordered-key", "ordering", tuple(found), len(found))}


def handed_on(record_no: int, partition: int, *, offset: int = 0) -> Told:
    return "handed_on", {"topic": "g-way", "partition": partition, "offset": offset, "id": f"r{record_no}"}


def test_who_went_another_way_than_the_later_record_has_another_key_there(folder: RunFolder) -> None:
    """Of 0 and 1 the first copies count; 2 and 3 went the same way, and 4 was not handed on."""
    went = [handed_on(0, 1), handed_on(0, 2), handed_on(1, 2), handed_on(2, 1), handed_on(3, 1, offset=1)]
    tell(folder, "through", ("through", {"topic": "g-way", "partitions": 3}), *went)
    assert causes_of(folder, reordered((0, 1), (2, 3), (3, 4))) == (
        "of 3 records handled after a later one, 1 was handed on to another partition of g-way than that one: "
        "re-keying separates records of one key or partition, and Kafka keeps order only within a partition",
    )


def test_where_none_went_another_way_nothing_is_told_of_it(folder: RunFolder) -> None:
    """Nor where nothing was handed on at all."""
    assert causes_of(folder, reordered((0, 1))) == ()
    tell(folder, "through", handed_on(0, 1), handed_on(1, 1, offset=1))
    assert causes_of(folder, reordered((0, 1))) == ()

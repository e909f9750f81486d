"""The events around an anomaly."""

from __future__ import annotations

from kafka_trial.history.event import Event
from kafka_trial.report.excerpts import Wanted, excerpts


def delivered(seq: int, partition: int = 0, source: str = "consumer-m0-0") -> Event:
    """Returns a delivery at second `seq`."""
    return Event(source, seq, seq * 10**9, "delivered", topic="t", partition=partition, offset=seq)


def names(history: list[Event], wanted: Wanted, around: int = 2) -> list[str]:
    """Returns the names of an excerpt's rows, marked ones with a star."""
    (rows,) = excerpts((history, history), [wanted], around=around)
    return [row.name.partition("#")[2] + "*" * row.marked for row in rows]


def test_the_nearest_events_of_the_partition_on_both_sides() -> None:
    """Two events before and two after the marked one; another partition's are left out."""
    history = [delivered(seq, partition=seq % 2) for seq in range(20)]
    assert names(history, Wanted(("t", 0), ("consumer-m0-0#10",))) == ["6", "8", "10*", "12", "14"]


def test_an_excerpt_does_not_depend_on_the_order_of_files() -> None:
    """The history read backwards gives the same rows."""
    history = [delivered(seq) for seq in range(20)]
    wanted = Wanted(("t", 0), ("consumer-m0-0#3", "consumer-m0-0#9"))
    assert (
        names(history, wanted) == names(history[::-1], wanted) == ["1", "2", "3*", "4", "5", "7", "8", "9*", "10", "11"]
    )


def test_events_with_many_partitions_and_topic_ids_are_found() -> None:
    """A commit of several partitions and an assignment by topic id belong to the partition too."""
    history = [
        Event("observer", 0, 0, "topic", topic="t", topic_id="T"),
        delivered(1),
        Event("consumer-m0-0", 2, 2, "commit", details={"entries": [{"topic": "t", "partition": 0}]}),
        Event("offsets", 3, 3, "member_assignment", details={"pending": [{"topic_id": "T", "partition": 0}]}),
        Event("offsets", 4, 4, "member_assignment", details={"entries": [{"topic_id": "T", "partition": 1}]}),
        Event("requests-b1", 5, 5, "request", details={"api": "FETCH", "entries": [{"topic": "t", "partition": 0}]}),
    ]
    assert names(history, Wanted(("t", 0), ("consumer-m0-0#1",)), around=9) == ["2", "3", "1*"]


def test_proofs_that_are_not_in_the_history_show_nothing() -> None:
    """An anomaly whose events are gone has an empty excerpt."""
    assert names([delivered(1)], Wanted(("t", 0), ("consumer-m0-0#99",))) == []

"""Events in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_trial.history.event import Event
from kafka_trial.report.event_text import bounded, count_in_words, in_words

EVENTS = [
    (Event("workload", 0, 0, "send", id="r7", key="k", outcome="invoke"), "sends record r7, key k"),
    (
        Event("workload", 0, 0, "send", id="r7", partition=1, offset=5, outcome="ok"),
        "send acknowledged: record r7 at offset 5 of partition 1",
    ),
    (Event("observer", 0, 0, "record", id="r7", partition=1, offset=5), "the log holds record r7 at offset 5"),
    (
        Event("requests-b1", 0, 0, "request", details={"api": "SYNC_GROUP", "lane": 2, "entries": [{"partition": 1}]}),
        "SYNC_GROUP on lane 2: 1",
    ),
    (Event("consumer-m0-0", 0, 0, "delivered", offset=5, key="k"), "delivered offset 5, key k"),
    (Event("consumer-m0-0", 0, 0, "processed", offset=5, outcome="done"), "processed offset 5: done"),
    (Event("offsets", 0, 0, "committed", committed_offset=6, details={"log_offset": 9}), "(offsets log 9)"),
    (
        Event("requests-b1", 0, 0, "request", details={"api": "OFFSET_COMMIT", "lane": 2, "error": 25}),
        "OFFSET_COMMIT on lane 2, error 25",
    ),
    (
        Event(
            "consumer-m0-0",
            0,
            0,
            "commit",
            outcome="fail",
            details={"entries": [{"partition": 1, "committed_offset": 6}], "message": "stale"},
        ),
        "commit refused: 1 at 6: stale",
    ),
    (
        Event("offsets", 0, 0, "group", details={"epoch": 4, "entries": [{"partition": 1, "member_id": "a"}]}),
        "group, epoch 4, owns 1 → a (a)",
    ),
    (Event("consumer-m0-0", 0, 0, "exited", details={"signal": 9}), "process ended by signal 9"),
    (
        Event("consumer-m0-0", 0, 0, "exited", details={"signal": 9, "oom_killed": True}),
        "process ended by signal 9: it wanted more memory than its limit",
    ),
    (Event("consumer-m0-0", 0, 0, "exited", details={"code": 0}), "process ended with status 0"),
    (
        Event("consumer-m0-0", 0, 0, "exited", details={"message": "no engine"}),
        "it is not known how the process ended: no engine",
    ),
    (Event("consumer-m0-0", 0, 0, "something-new", details={"message": "hello"}), "something-new: hello"),
]


@pytest.mark.parametrize(("event", "told"), EVENTS, ids=[event.kind for event, _ in EVENTS])
def test_an_event_says_what_happened(event: Event, told: str) -> None:
    """Each kind has its words; a kind nobody knows is told plainly."""
    assert told in in_words(event)


def test_what_a_stranger_wrote_is_one_bounded_line() -> None:
    """Control characters, terminal escapes and line breaks are shown as dots, long text is cut."""
    assert bounded("a\x1b[31m\nb\u202e" + "c" * 500, most=12) == "a·[31m·b·ccc…"


def test_entries_of_any_shape_do_not_break_the_words() -> None:
    """A consumer may print nonsense where entries belong."""
    event = Event("consumer-m0-0", 0, 0, "assigned", details={"entries": ["x", {"partition": [1]}, None]})
    assert in_words(event) == "assigned partitions [1]"


def test_of_many_partitions_one_is_told() -> None:
    """An excerpt of one partition names that one, and how many others the event is about; owners by client id."""
    entries = [{"topic": "t", "partition": number, "member_id": f"id-{number}"} for number in range(6)]
    details = {"epoch": 4, "entries": entries, "members": [{"member_id": "id-3", "client_id": "orders-m1"}]}
    told = in_words(Event("offsets", 0, 0, "group", details=details), partition=3)
    assert told == "group, epoch 4, owns 3 → orders-m1 (id-3), and 5 other partitions"


@pytest.mark.parametrize(
    ("anomaly", "count", "told"),
    [
        ("skipped", 585, "585 of 12,459 records (4.7 %)"),
        ("skipped", 1, "1 of 12,459 records (less than 0.1 %)"),
        ("skipped", 12458, "12,458 of 12,459 records (99.9 %)"),
        ("skipped", 12459, "12,459 of 12,459 records (100 %)"),
        ("redelivered", 3, "3 of 30 completions (10 %)"),
        ("duplicate-effect", 3, "3"),
        ("zombie-commit", 1500, "1,500"),
        ("exited", 2, "2"),
    ],
    ids=["some", "one", "all but one", "all", "no delivery was told", "none counted", "not of a whole", "no anomaly"],
)
def test_a_count_is_told_with_its_share(anomaly: str, count: int, told: str) -> None:
    """Where each finding is one of something that was counted, of how many, and how much that is."""
    counts = {"records": 12_459, "deliveries": 0, "completions": 30, "effects": 0, "commits": 7}
    assert count_in_words(anomaly, count, counts) == told


def test_more_than_there_were_has_no_share() -> None:
    """What was counted in another way is told as it is."""
    assert count_in_words("redelivered", 40, {"deliveries": 30}) == "40"


def test_a_record_that_was_handed_on_is_told_with_its_place() -> None:
    """Where the group put it, and whose it is."""
    event = Event("through", 3, 9, "handed_on", topic="g-way", partition=2, offset=7, id="r5")
    assert in_words(event) == "the group handed on record r5 to partition 2 of g-way, at offset 7"
    assert in_words(replace(event, id=None)).startswith("the group handed on a record without an id to")

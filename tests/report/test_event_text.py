"""Events in words."""

from __future__ import annotations

import pytest

from kafka_trial.history.event import Event
from kafka_trial.report.event_text import bounded, in_words

EVENTS = [
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
        "nobody knows how the process ended: no engine",
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

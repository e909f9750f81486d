"""The wire: lines of each dialect as events, and lines that are none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafka_trial.consumers.output import Line
from kafka_trial.consumers.wire import BAD_LINES_QUOTED_MAX, Wire

PLACE = {"topic": "orders", "partition": 3}


class EventWriter:
    """Stands in for the recorder: keeps what is recorded."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def __call__(self, kind: str, *, time_ns: int, **fields: Any) -> int:
        self.events.append({"kind": kind} | {name: value for name, value in fields.items() if value is not None})
        return len(self.events) - 1


def events(*lines: Any, dialect: str = "jsonl") -> list[dict[str, Any]]:
    event_writer = EventWriter()
    wire = Wire(event_writer, dialect=dialect)
    for line in lines:
        text = line if isinstance(line, bytes) else json.dumps(line).encode()
        wire.read(Line(text, len(text)), time_ns=1)
    wire.close(time_ns=2)
    return event_writer.events


def test_a_life_in_our_own_dialect() -> None:
    """Every line of the contract becomes its event; the commit's offset is a position, its answer names its invoke."""
    offsets = [PLACE | {"offset": 8}]
    told = events(
        {"name": "startup_complete"},
        {"name": "partitions_assigned", "partitions": [PLACE]},
        {"name": "record_delivered", **PLACE, "offset": 7, "id": "r7", "key": "k"},
        {"name": "record_processed", **PLACE, "offset": 7, "outcome": "discarded"},
        {"name": "commit_requested", "offsets": offsets},
        {"name": "offsets_committed", "offsets": offsets, "success": True},
        {"name": "partitions_lost", "partitions": [PLACE]},
        {"name": "shutdown_complete"},
    )
    entries = [PLACE | {"committed_offset": 8}]
    assert told == [
        {"kind": "ready"},
        {"kind": "assigned", "entries": [PLACE]},
        {"kind": "delivered", **PLACE, "offset": 7, "id": "r7", "key": "k"},
        {"kind": "processed", **PLACE, "offset": 7, "outcome": "discarded"},
        {"kind": "commit", "outcome": "invoke", "entries": entries},
        {"kind": "commit", "outcome": "ok", "op": 4, "entries": entries},
        {"kind": "lost", "entries": [PLACE]},
        {"kind": "stopped"},
    ]


def test_a_line_may_say_which_client_of_its_process_speaks() -> None:
    """The ids of client and member pass into its event, and into no other; what is no text is left out."""
    told = events(
        {"name": "partitions_assigned", "partitions": [PLACE], "client_id": "a", "member_id": "a-1"},
        {"name": "record_delivered", **PLACE, "offset": 7, "member_id": 3, "client_id": None},
        {"name": "error", "message": "x", "client_id": "b"},
        b"no line",
    )
    assert told == [
        {"kind": "assigned", "entries": [PLACE], "client_id": "a", "member_id": "a-1"},
        {"kind": "delivered", **PLACE, "offset": 7},
        {"kind": "error", "message": "x", "client_id": "b"},
        {"kind": "bad_line", "message": "no line", "size_bytes": 7},
    ]


def test_a_line_may_say_when_it_was() -> None:
    """By the consumer's own clock, in milliseconds; what is no time makes a bad line of it."""
    told = events(
        {"name": "record_delivered", **PLACE, "offset": 7, "time_ms": 1_790_000_000_123},
        {"name": "startup_complete", "time_ms": 1_790_000_000_123.5},
        *({"name": "startup_complete", "time_ms": time_ms} for time_ms in (True, "now", -1, 1e300)),
        {"name": "shutdown_complete"},
    )
    assert [event.get("source_wall_ns") for event in told[:2]] == [1_790_000_000_123_000_000, 1_790_000_000_123_500_000]
    assert [event["kind"] for event in told[2:]] == ["bad_line"] * 4 + ["stopped"]
    assert "source_wall_ns" not in told[-1]


def test_javas_verifiable_consumer_as_it_prints() -> None:
    """A printed record is delivered and processed; counts are no event; commits have no invoke."""
    told = events(
        b'{"timestamp":1,"name":"record_data","key":"k","value":"{}","topic":"orders","partition":3,"offset":7}',
        {"timestamp": 2, "name": "records_consumed", "count": 1, "partitions": [PLACE | {"count": 1}]},
        {
            "timestamp": 3,
            "name": "offsets_committed",
            "offsets": [PLACE | {"offset": 8}],
            "success": False,
            "error": "x",
        },
        dialect="verifiable",
    )
    record = {**PLACE, "offset": 7, "key": "k"}
    assert told == [
        {"kind": "delivered", **record},
        {"kind": "processed", "outcome": "done", **record},
        {"kind": "commit", "outcome": "fail", "entries": [PLACE | {"committed_offset": 8}], "message": "x"},
    ]


@pytest.mark.parametrize(
    "line",
    [
        b"Exception in thread main",
        b"[1]",
        b"{}",
        b"\xff\xfe",
        b'{"name": "no_such_thing"}',
        b'{"name": ["record_delivered"]}',
        b'{"name": "no_such_thing", "topic": "orders", "partition": 3, "offset": 1}',
        b"{'name': 'a dict'}",
        b'{"level": "warn", "message": "cut in the midd',
    ],
)
def test_a_line_that_is_no_event_is_quoted(line: bytes) -> None:
    """Text, and JSON of somebody else's, becomes an event that quotes it, and nothing else."""
    assert events(line) == [{"kind": "bad_line", "message": line.decode(errors="replace"), "size_bytes": len(line)}]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"name": "record_delivered", "topic": "orders", "partition": 3}', "'offset' is missing or not known"),
        (
            b'{"name": "record_delivered", "topic": "orders", "partition": "3", "offset": 1}',
            "partition is a whole number of 64 bits",
        ),
        (
            b'{"name": "record_delivered", "topic": "orders", "partition": true, "offset": 1}',
            "partition is a whole number of 64 bits",
        ),
        (
            b'{"name": "record_delivered", "topic": "orders", "partition": 3, "offset": 18446744073709551615}',
            "offset is a whole number of 64 bits",
        ),
        (b'{"name": "partitions_assigned", "partitions": 3}', "a list is expected"),
        (b'{"name": "offsets_committed", "offsets": [], "success": "yes"}', "success is true or false"),
        (b'{"name":"record_proc', "unexpected end of data: line 1 column 21 (char 20)"),
        (b'WARN{"name":"record_processed"}', "unexpected character, expected a JSON value: line 1 column 1 (char 0)"),
    ],
)
def test_an_event_that_went_wrong_is_quoted_with_its_reason(line: bytes, reason: str) -> None:
    """It had a name of ours, or was cut in the middle of one of our lines; of which record nobody knows."""
    quoted = {"message": line.decode(), "size_bytes": len(line)}
    assert events(line) == [{"kind": "bad_line", **quoted, "events": 1, "reason": reason}]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("record_processed", "outcome 'ok'"), ("record_done", "'record_done' is missing or not known")],
)
def test_an_event_that_went_wrong_may_name_its_record(name: str, reason: str) -> None:
    """An unknown outcome, or a name that is nearly ours: of which record it spoke is known."""
    line = {"name": name, **PLACE, "offset": 1, "outcome": "ok"}
    quoted = {"message": json.dumps(line), "size_bytes": len(json.dumps(line))}
    assert events(line) == [{"kind": "bad_line", **quoted, "events": 1, "reason": reason, **PLACE, "offset": 1}]


def test_our_own_lines_are_bad_lines_of_the_other_dialect() -> None:
    """A dialect knows its own names only."""
    assert [event["kind"] for event in events({"name": "partitions_lost", "partitions": []}, dialect="verifiable")] == [
        "bad_line"
    ]


def test_a_flood_of_bad_lines_is_counted_not_kept() -> None:
    """Beyond the bound bad lines are summed up in one event."""
    told = events(*[b"garbage"] * (BAD_LINES_QUOTED_MAX + 5))
    assert len(told) == BAD_LINES_QUOTED_MAX + 1
    assert told[-1] == {
        "kind": "bad_line",
        "message": "(5 further bad lines, not quoted)",
        "size_bytes": 35,
        "count": 5,
    }


def test_answers_find_their_own_question() -> None:
    """Two commits under way at once: each answer carries the op of the one with its positions."""
    one, two = [PLACE | {"offset": 1}], [PLACE | {"offset": 2}]
    told = events(
        {"name": "commit_requested", "offsets": one},
        {"name": "commit_requested", "offsets": two},
        {"name": "offsets_committed", "offsets": two, "success": True},
        {"name": "offsets_committed", "offsets": one, "success": True},
    )
    assert [event.get("op") for event in told] == [None, None, 1, 0]


def test_a_lone_surrogate_does_not_stop_the_history() -> None:
    """Text that is no UTF-8 once decoded is still only a bad line."""
    kinds = [event["kind"] for event in events(b'{"name": "error", "message": "\\ud800"}')]
    assert kinds in (["bad_line"], ["error"])


def test_an_attempt_that_failed_is_told() -> None:
    """It will be tried again: no completion, and no bad line."""
    line = {"name": "record_processed", **PLACE, "offset": 7, "outcome": "failed"}
    assert events(line) == [{"kind": "processed", **PLACE, "offset": 7, "outcome": "failed"}]


EVENT = b'{"name":"record_processed","topic":"orders","partition":3,"offset":7,"outcome":"done"}'
TEXTS = {
    "the word error": b"INFO connected, no error so far",
    "names of events": b"partitions_assigned: [orders-3], startup_complete in 2 s",
    "Kafka's Java client": b"[main] ERROR org.apache.kafka.clients.NetworkClient - disconnected, error code 7",
    "braces first": b"{main} partitions_revoked, error: {'offset': 3}",
    "an open brace": b"function main() {",
    "JSON on several lines": b'  "offset": 7,',
    "the first of several lines": b"{",
    "logback": b'{"@timestamp":"2026-01-01T00:00:00Z","level":"ERROR","logger_name":"a.B","message":"offset 7"}',
    "logback, cut": b'{"@timestamp":"2026-01-01T00:00:00Z","level":"ERROR","mess',
    "ECS": b'{"log.level":"error","message":"no","error":{"type":"E","message":"at offset 7"},"topic":"orders"}',
    "structlog": b'{"event":"error","level":"error","offset":7,"partition":3,"topic":"orders"}',
    "bunyan": b'{"name":"error","hostname":"h","level":50,"msg":"at offset 7","offset":7}',
    "bunyan, cut": b'{"name":"orders-service","hostname":"h","lev',
    "a logger's name": b'{"name":"record_store","level":"INFO","message":"opened"}',
    "JSON behind a prefix": b'INFO committed {"topic":"orders","partition":3,"offset":7}',
    "JSON behind a prefix, cut": b'INFO committed {"topic":"orders","partition":3,"off',
    "a list": b'[{"topic":"orders","partition":3,"offset":7}]',
    "a cut error line": b'{"name":"error","mess',
    "not UTF-8": b'\xff{"message":"\xfe"}',
    "deeply nested": b'{"a":' * 5000,
}
LOST = {
    "cut in the name": (b'{"name":"record_proc', 1),
    "cut before the name": (b'{"na', 1),
    "cut behind the name": (b'{"name": "partitions_assigned", "parti', 1),
    "a middle": (b'cessed","topic":"orders","partition":3,"offset":7}', 1),
    "behind a log prefix": (b"12:00:01 INFO  - " + EVENT, 1),
    "in colours": (b"\x1b[32m" + EVENT + b"\x1b[0m", 1),
    "in the JSON of a log": (b'{"level":"info","message":"' + EVENT.replace(b'"', b'\\"') + b'"}', 1),
    "not UTF-8": (EVENT.replace(b"done", b"\xff"), 1),
    "two in one line": (EVENT + EVENT, 2),
    "one inside the other": (EVENT[:30] + EVENT, 2),
    "one behind the other's beginning": (b'{"na' + EVENT, 2),
}


@pytest.mark.parametrize("line", TEXTS.values(), ids=TEXTS)
def test_text_is_text(line: bytes) -> None:
    """Whatever words it holds: nothing is lost by it."""
    assert [event.get("events") for event in events(line)] == [None]


@pytest.mark.parametrize(("line", "lost"), LOST.values(), ids=LOST)
def test_what_has_the_shape_of_an_event_is_lost(line: bytes, lost: int) -> None:
    """Cut off, behind or inside of something else: so many events nobody could read."""
    assert [event.get("events") for event in events(line)] == [lost]


def test_an_event_behind_a_prefix_names_its_record() -> None:
    """It is whole, and alone in its line."""
    (told,) = events(b"INFO " + EVENT)
    assert {name: told[name] for name in ("topic", "partition", "offset")} == {**PLACE, "offset": 7}


def test_a_cut_line_is_compared_with_those_that_could_be_read() -> None:
    """The events of this program begin with a level, and it logs with the same fields: its cut lines may be events."""
    whole, cut = b'{"level":"info","msg":"","name":"startup_complete"}', b'{"level":"info","ms'
    assert [event.get("events") for event in events(cut, whole, cut)] == [None, None, 1]


def test_a_byte_order_mark_belongs_to_no_line() -> None:
    """Some runtimes write one at the beginning of their output."""
    assert events(b'\xef\xbb\xbf{"name":"startup_complete"}') == [{"kind": "ready"}]

"""The observer without a cluster: brokers that are not there, that close, that say nothing or nonsense."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_trial.history.event import from_line
from kafka_trial.history.record_ids import record_id
from kafka_trial.history.recorder import Recorder
from kafka_trial.kafka_protocol.connection import Brokers, Connection, NoAnswerError
from kafka_trial.kafka_protocol.group_requests import coordinator
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.witness.observe import Observer

COORDINATOR_1 = struct.pack(">ihhi", 0, 0, -1, 1) + struct.pack(">h1si", 1, b"h", 9)
LOADING = struct.pack(">ihhi", 0, 14, -1, -1) + struct.pack(">hi", 0, -1)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def _broker(*answers: bytes | None) -> Iterator[str]:
    """Answers one connection: each answer is a body for the request's correlation id; None closes instead."""

    def serve(listener: socket.socket) -> None:
        link, _ = listener.accept()
        with link:
            for answer in answers:
                size = struct.unpack(">i", link.recv(4))[0]
                correlation = struct.unpack_from(">hhi", link.recv(size))[2]
                if answer is None:
                    return
                link.sendall(struct.pack(">ii", len(answer) + 4, correlation) + answer)
            link.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadGroup("broker") as thread_group:
        thread_group.start("serve", serve, listener)
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def test_a_broker_that_does_not_answer_is_passed_over_and_asked_last() -> None:
    """The next one is asked, and first from then on."""
    dead = f"127.0.0.1:{_free_port()}"
    with _broker(COORDINATOR_1, COORDINATOR_1) as alive, Brokers(f"{dead},{alive}", answer_within_s=0.5) as brokers:
        assert [brokers.anyone(lambda at: coordinator(at, "g")) for _ in range(2)] == [1, 1]
        assert brokers.order == [alive, dead]


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ((None,), "closed the connection"),
        ((COORDINATOR_1 + b"\0",), "left over"),
        ((COORDINATOR_1[:-3],), "does not fit"),
        ((LOADING,), "COORDINATOR_LOAD_IN_PROGRESS"),
    ],
    ids=["closes", "too long", "cut short", "refuses"],
)
def test_what_is_no_answer_is_an_error_with_the_brokers_name(answers: tuple[bytes | None, ...], problem: str) -> None:
    """Nothing is made of half an answer; a refusal carries Kafka's code."""
    with _broker(*answers) as address:
        host, _, port = address.partition(":")
        connection = Connection((host, int(port)), answer_within_s=2)
        with pytest.raises(NoAnswerError, match=f"{address}: .*{problem}") as error:
            coordinator(connection, "g")
        assert error.value.code == (14 if answers == (LOADING,) else None)
        connection.close()


def test_a_frozen_broker_costs_a_bounded_time() -> None:
    """A connection that is accepted and never answered ends with the bound."""
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        connection = Connection(("127.0.0.1", frozen.getsockname()[1]), answer_within_s=0.2)
        with pytest.raises(NoAnswerError, match="timed out"):
            coordinator(connection, "g")
        connection.close()


def test_no_answer_is_an_event_once_and_the_snapshot_is_behind(tmp_path: Path) -> None:
    """Never silent, never a flood; without log ends nobody claims to have read to the end."""
    bootstrap = f"127.0.0.1:{_free_port()}"
    with Recorder(tmp_path, "observer") as recorder, Brokers(bootstrap, answer_within_s=0.2) as brokers:
        observer = Observer(brokers, recorder, bootstrap=bootstrap, topics=["t"], group="g")
        observer.look()
        observer.look()
        assert observer.snapshot(within_s=0.3).state == "behind"
    events = [from_line(line) for line in recorder.path.read_bytes().splitlines()]
    told = [(event.kind, event.details.get("name")) for event in events]
    assert told == [
        ("unanswered", "metadata"),
        ("unanswered", "coordinator"),
        ("unanswered", "controller"),
        ("control_read", None),
    ]
    assert events[-1].details["state"] == "incomplete"


@pytest.mark.parametrize(
    ("headers", "value", "expected"),
    [
        ([("kt-id", b"a1")], b'{"id": "b2"}', "a1"),
        ([("other", b"x")], b'{"id": "b2"}', "b2"),
        ([], b'{"id": 7}', "7"),
        ([], b'{"key": 7}', None),
        ([], b"[1]", None),
        ([], b"\xff\x00", None),
        ([], None, None),
    ],
)
def test_a_record_is_known_by_its_header_or_its_json_field(
    headers: list[tuple[str, bytes | None]], value: bytes | None, expected: str | None
) -> None:
    """The header first; a value without either has no id."""
    assert record_id(headers, value) == expected

"""The broker's own log: which requests it refused, counted, by lane; on excerpts of real brokers of both formats."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kafka_trial.history.event import from_line
from kafka_trial.history.recorder import Recorder
from kafka_trial.witness.request_log import KINDS_MAX, ServerLog

DATA = Path(__file__).parent / "data"
LANES = {20103: 1}
HEAD = "[2026-11-27 20:12:01,042] ERROR Exception while processing request from {} (kafka.network.Processor)\n"
CLOSES = "[2026-11-27 20:12:01,042] ERROR Closing socket for {} because of error (kafka.network.Processor)\n"
CAUSE = "org.apache.kafka.common.errors.InvalidRequestException: {}\n"
OLD = "Received request for api with key 8 (OffsetCommit) and unsupported version 1"


def refused(said: str = OLD, *, port: int = 20103, number: int = 0) -> str:
    """What a broker writes of one request: that it closes the socket, and that it could not process the request."""
    connection = f"127.0.0.1:{port}-127.0.0.1:50123-0-{number}"
    return (CLOSES + CAUSE + HEAD + CAUSE).format(connection, said, connection, said)


def told(folder: Path, *parts: str) -> list[dict[str, Any]]:
    """Returns what is recorded of a log that grows by these parts, and is read after each."""
    log = folder / "server.log"
    log.touch()
    with Recorder(folder, "requests-b0") as recorder:
        witness = ServerLog(log, recorder, LANES)
        for part in parts:
            with log.open("a") as file:
                file.write(part)
            witness.step()
        witness.tell()
        events = [from_line(line) for line in recorder.path.read_bytes().splitlines()]
    return [dict(event.details) for event in events if event.kind == "request_refused"]


def about(fields: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(fields.get(name) for name in ("lane", "api_key", "api", "version", "reason", "count"))


def excerpt(folder: Path, version: str) -> list[tuple[Any, ...]]:
    """Returns what is told of a real broker, to which a client sent one of each kind through lane 0."""
    log = folder / "server.log"
    log.write_bytes((DATA / f"server-{version}.log").read_bytes())
    with Recorder(folder, "requests-b0") as recorder:
        witness = ServerLog(log, recorder, {20011: 0})
        witness.step()
        witness.tell()
        return [about(from_line(line).details) for line in recorder.path.read_bytes().splitlines()]


def test_a_broker_of_3_9_says_what_it_refused(tmp_path: Path) -> None:
    """It serves OffsetCommit v1. Fetch v99, an API that was taken away, one that never was, bodies and headers that end
    too soon, and two clients that speak no Kafka (HTTP, TLS)."""
    assert excerpt(tmp_path, "3.9.2") == [
        (0, 1, None, None, "unparsable", 1),
        (0, None, "CONTROLLED_SHUTDOWN", 0, "unsupported", 1),
        (0, 999, None, None, "unparsable", 1),
        (0, None, "METADATA", 4, "unparsable", 1),
        (0, 3, None, None, "unparsable", 1),
        (0, None, None, None, "oversized", 2),
        (0, None, "JOIN_GROUP", 1, "unparsable", 1),
    ]


def test_a_broker_of_4_3_says_what_it_refused(tmp_path: Path) -> None:
    """The same, and OffsetCommit v1 besides, three times: 4.0 removed it."""
    assert excerpt(tmp_path, "4.3.1") == [
        (0, 8, "OffsetCommit", 1, "unsupported", 3),
        (0, 1, None, None, "unparsable", 1),
        (0, 7, "ControlledShutdown", 0, "unsupported", 1),
        (0, 999, None, None, "unparsable", 1),
        (0, None, "METADATA", 4, "unparsable", 1),
        (0, 3, None, None, "unparsable", 1),
        (0, None, None, None, "oversized", 2),
        (0, None, "JOIN_GROUP", 1, "unparsable", 1),
    ]


def test_a_refused_version_is_told_once_with_its_count(tmp_path: Path) -> None:
    """A client that tries again and again; each request has two complaints, and counts once."""
    (one,) = told(tmp_path, "".join(refused(number=number) for number in range(400)))
    assert about(one) == (1, 8, "OffsetCommit", 1, "unsupported", 400)
    assert (one["address"], one["message"], one["first_ns"] <= one["last_ns"]) == ("127.0.0.1", OLD, True)


@pytest.mark.parametrize("cut", [1, 90, 150, 260, 300])
def test_a_complaint_that_is_being_written_is_waited_for(tmp_path: Path, cut: int) -> None:
    """Cut anywhere: in its time, in its connection, between its lines, in its reason."""
    text = refused()
    assert [about(one) for one in told(tmp_path, text[:cut], text[cut:])] == [
        (1, 8, "OffsetCommit", 1, "unsupported", 1)
    ]


def test_other_lanes_and_other_errors_are_left_out(tmp_path: Path) -> None:
    """A listener of another trial; an error of the broker's own; a line that only quotes such a complaint."""
    own = HEAD.format("127.0.0.1:20103-127.0.0.1:50123-0-1") + "java.lang.IllegalStateException: Channel removed\n"
    quoting = "[2026-11-27 20:12:01,042] INFO said: Received request for api with key 8 (OffsetCommit)\n"
    assert told(tmp_path, refused(port=20104), own, quoting, CAUSE.format(OLD)) == []


def test_many_kinds_within_a_second_are_told_together(tmp_path: Path) -> None:
    """Somebody sends every version there could be: the history does not grow with them."""
    many = "".join(refused(OLD.replace("version 1", f"version {number}")) for number in range(3 * KINDS_MAX))
    events = told(tmp_path, many)
    assert (len(events), sum(one["count"] for one in events)) == (KINDS_MAX + 1, 3 * KINDS_MAX)
    assert about(events[-1]) == (1, None, None, None, "unsupported", 2 * KINDS_MAX)


def test_a_log_that_was_replaced_is_read_from_its_start(tmp_path: Path) -> None:
    """It is evidence beside others: nothing is given up because a part of it is gone."""
    log = tmp_path / "server.log"
    with Recorder(tmp_path, "requests-b0") as recorder:
        witness = ServerLog(log, recorder, LANES)
        for text in ("[2026-11-27 20:12:00,000] INFO started\n" * 30, refused()):
            log.write_text(text)
            witness.step()
        witness.tell()
        assert b'"count":1' in recorder.path.read_bytes()

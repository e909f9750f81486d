"""Which requests of a foreign request log are one client's, and saved files that are read into a history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka_trial.audit.request import NS_PER_S, AuditRequest, Limits
from kafka_trial.audit.request_log_files import Clients, read_request_logs
from kafka_trial.history.event import from_line

S = NS_PER_S
START_S = 1_700_000_000


def _line(at_s: float, api: str, request: Any, response: Any, *, peer: str = "10.0.0.5:1") -> str:
    header = {"requestApiKeyName": api, "requestApiVersion": 9, "correlationId": 5, "clientId": "x"}
    body = {
        "requestHeader": header,
        "request": request,
        "response": response,
        "connection": f"10.0.0.1:9092-{peer}-1-2",
        "totalTimeMs": 1.5,
        "listener": "PLAINTEXT",
    }
    return f'{{"ts":{START_S + at_s:.6f},"r":{json.dumps(body, separators=(",", ":"))}}}\n'


def _heartbeat(at_s: float) -> str:
    return _line(at_s, "HEARTBEAT", {"groupId": "g", "memberId": "m", "generationId": 1}, {"errorCode": 0})


def _commit(at_s: float, *, peer: str = "10.0.0.5:1") -> str:
    request = {"groupId": "g", "memberId": "", "generationId": 1}
    topic = {"name": "t", "partitions": [{"partitionIndex": 0, "committedOffset": 7}]}
    answer = {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "errorCode": 0}]}]}
    return _line(at_s, "OFFSET_COMMIT", request | {"topics": [topic]}, answer, peer=peer)


def _read(folder: Path, *lines: str, bytes_max: int = 1 << 20) -> tuple[list[tuple[Any, ...]], tuple[str, ...]]:
    """Returns (API, second, client's number) of the requests recorded for 100 to 1000 s, and what is unread."""
    log, history = folder / "requests.log", folder / "history"
    log.write_text("".join(lines))
    limits = Limits(bytes_max=bytes_max)
    history.mkdir()
    asked = AuditRequest("h:1", "t", "g", (START_S + 100) * S, (START_S + 1000) * S, request_logs=(log,), limits=limits)
    unread = read_request_logs(asked, history)
    events = map(from_line, (history / "requests-b0.jsonl").read_bytes().splitlines())
    seen = [
        (event.details["api"], (event.source_wall_ns or 0) // S - START_S, event.details.get("lane"))
        for event in events
        if event.kind == "request"
    ]
    return seen, unread


def test_the_windows_requests_are_recorded_with_their_client(tmp_path: Path) -> None:
    """A commit without a member id is that of its connection's member; one from elsewhere is nobody's."""
    lines = [
        _heartbeat(50),
        _heartbeat(150),
        _commit(200),
        _commit(300, peer="10.0.0.9:1"),
        _heartbeat(999),
        _commit(1001),
    ]
    seen, unread = _read(tmp_path, *lines)
    assert (seen, unread) == (
        [("HEARTBEAT", 150, 0), ("OFFSET_COMMIT", 200, 0), ("OFFSET_COMMIT", 300, None), ("HEARTBEAT", 999, 0)],
        (),
    )


def test_a_file_that_does_not_cover_the_window_says_so(tmp_path: Path) -> None:
    """What is not in it may have happened."""
    _, unread = _read(tmp_path, _heartbeat(300), _heartbeat(500))
    assert [sentence.rsplit(" ", 1)[0] for sentence in unread] == [
        "request log requests.log begins only at",
        "request log requests.log ends already at",
    ]


def test_lines_that_nobody_can_read_are_counted(tmp_path: Path) -> None:
    """The first one with its number."""
    _, unread = _read(tmp_path, _heartbeat(100), _heartbeat(150).replace('"ts"', '"tt"'), _heartbeat(1000))
    assert (len(unread), unread[0].startswith("1 lines of request log requests.log (first: line 2")) == (1, True)


@pytest.mark.parametrize(("answered_s", "unread"), [(1000.5, 0), (1000, 1), (999, 1)])
def test_a_line_that_is_being_written_is_none_of_the_windows(answered_s: float, unread: int, tmp_path: Path) -> None:
    """The torn last line of a broker at work; answered inside the window, it is a line that nobody can read."""
    torn = _heartbeat(answered_s)[:-20]
    _, said = _read(tmp_path, _heartbeat(100), _heartbeat(999), torn)
    assert len(said) == unread


def test_a_whole_line_after_the_window_is_still_one_that_nobody_can_read(tmp_path: Path) -> None:
    """It was not torn by reading too early."""
    _, said = _read(tmp_path, _heartbeat(100), _heartbeat(999), _heartbeat(1001)[:-20] + "\n")
    assert len(said) == 1


def test_a_file_of_something_else_is_no_evidence(tmp_path: Path) -> None:
    """An empty one neither."""
    assert _read(tmp_path, "server started\n")[1] == (
        "request log requests.log holds no request that an audit looks at",
    )


def test_a_limit_of_bytes_ends_the_reading(tmp_path: Path) -> None:
    """And is told with the option that raises it."""
    _, unread = _read(tmp_path, _heartbeat(100), _heartbeat(1000), bytes_max=500)
    assert "raise --max-mib" in unread[0]


def _request(
    peer: str, client_id: str, member_id: str | None = None, *, api: str = "HEARTBEAT", group: str = "g"
) -> Any:
    event = {"api": api, "connection": f"10.0.0.1:9092-{peer}-2-7", "client_id": client_id}
    return event | ({"group": group, "member_id": member_id} if api != "FETCH" else {})


def _learned(*requests: Any) -> tuple[Clients, dict[int, str]]:
    clients = Clients("g")
    for request in requests:
        clients.learn("b0", request)
    return clients, clients.settle()


def test_a_client_keeps_its_number_over_a_rejoin_and_a_reconnect() -> None:
    """The connection outlives the member id, and the member id the connection."""
    clients, names = _learned(
        _request("10.0.0.5:1", "x", "m1"), _request("10.0.0.5:1", "x", "m2"), _request("10.0.0.5:2", "x", "m2")
    )
    lanes = [clients.lane_of("b0", _request(f"10.0.0.5:{port}", "x", None, api="OFFSET_COMMIT")) for port in (1, 2)]
    assert (names, lanes) == ({0: "10.0.0.5 x"}, [0, 0])


def test_a_commit_on_a_connection_without_any_member_is_nobodys() -> None:
    """An operator's tool, perhaps."""
    clients, _ = _learned(_request("10.0.0.5:1", "x", "m1"))
    assert clients.lane_of("b0", _request("10.0.0.9:1", "admin", None, api="OFFSET_COMMIT")) is None


def test_fetches_are_those_of_the_only_member_of_their_address_and_client_id() -> None:
    """Where two members share both, or one of another group does, nobody can tell."""
    fetch = [_request("10.0.0.5:9", name, api="FETCH") for name in ("x", "y", "z", "unheard-of")]
    clients, names = _learned(
        _request("10.0.0.5:1", "x", "m1"),
        _request("10.0.0.5:2", "y", "m2"),
        _request("10.0.0.5:3", "y", "m3"),
        _request("10.0.0.5:4", "z", "m4"),
        _request("10.0.0.5:5", "z", "m5", group="another"),
    )
    assert ([clients.lane_of("b0", one) for one in fetch], names[1], names[2]) == (
        [0, None, None, None],
        "10.0.0.5 y #1",
        "10.0.0.5 y #2",
    )


def test_members_of_other_groups_are_no_clients_of_ours() -> None:
    """They get no number."""
    _, names = _learned(_request("10.0.0.5:1", "x", "m1"), _request("10.0.0.5:2", "y", "m2", group="another"))
    assert names == {0: "10.0.0.5 x"}


def test_the_same_connection_name_at_another_broker_is_another_connection() -> None:
    """Names are a broker's own."""
    clients, _ = _learned(_request("10.0.0.5:1", "x", "m1"))
    assert clients.lane_of("b1", _request("10.0.0.5:1", "x", None, api="OFFSET_COMMIT")) is None

"""The witness of the request log: on stored lines of both versions, and on logs that are cut, torn and appended to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka_trial.errors import UnjudgeableError
from kafka_trial.history.event import from_line
from kafka_trial.history.recorder import Recorder
from kafka_trial.witness.request_events import Requests
from kafka_trial.witness.request_lines import LineError, answered_ns, parse_line
from kafka_trial.witness.request_log import RequestLog, RequestLogs, end_of, wanted_texts

DATA = Path(__file__).parent / "data"
VERSIONS = ("4.3.1", "3.9.2")
COMMIT: dict[str, Any] = {
    "groupId": "g",
    "generationIdOrMemberEpoch": 4,
    "memberId": "m-1",
    "groupInstanceId": None,
    "topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "committedOffset": 7}]}],
}
COMMITTED = {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "errorCode": 0}]}]}


def _line(api: str, request: Any, response: Any, *, listener: str = "LANE1", connection: str = "c") -> bytes:
    body = {
        "requestHeader": {"requestApiKeyName": api, "requestApiVersion": 9, "correlationId": 5, "clientId": "me"},
        "request": request,
        "response": response,
        "connection": connection,
        "totalTimeMs": 1.5,
        "listener": listener,
        "clientInformation": {"softwareName": "lib", "softwareVersion": "1"},
    }
    return f'{{"ts":1700000000.123456,"r":{json.dumps(body, separators=(",", ":"))}}}'.encode()


def _events(*lines: bytes, topics: dict[str, str] | None = None) -> list[dict[str, Any]]:
    requests = Requests(topics if topics is not None else {})
    return [fields for line in lines for fields in requests.events(parse_line(line))]


class Log:
    """A request log in a folder, and the witness that follows it."""

    def __init__(self, folder: Path, recorder: Recorder) -> None:
        self.path = folder / "requests.log"
        self.path.touch()
        self._recorder = recorder
        self.witness = RequestLog(self.path, recorder, Requests({}), wanted=wanted_texts([1], ["g"]))

    def append(self, data: bytes) -> None:
        with self.path.open("ab") as log:
            log.write(data)

    def read(self) -> list[tuple[Any, ...]]:
        while self.witness.step():
            pass
        events = map(from_line, self._recorder.path.read_bytes().splitlines())
        told = (event for event in events if event.kind != "api_version")  # test_api_versions.py
        return [(event.kind, event.details.get("line"), event.details.get("api")) for event in told]


@contextmanager
def _log(folder: Path) -> Iterator[Log]:
    with Recorder(folder, "requests-b0") as recorder:
        yield Log(folder, recorder)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_stored_line_is_read(version: str) -> None:
    """Lines of librdkafka and Java clients on a real broker: none is refused, and each API says its piece."""
    lines = (DATA / f"requests-{version}.log").read_bytes().splitlines()
    seen = {event["api"] for event in _events(*lines)}
    consumer = {"CONSUMER_GROUP_HEARTBEAT"} if version >= "4" else set()
    assert seen == consumer | {
        "METADATA",
        "FETCH",
        "LIST_OFFSETS",
        "FIND_COORDINATOR",
        "OFFSET_COMMIT",
        "OFFSET_FETCH",
        "JOIN_GROUP",
        "SYNC_GROUP",
        "HEARTBEAT",
        "LEAVE_GROUP",
        "TXN_OFFSET_COMMIT",
        "ADD_OFFSETS_TO_TXN",
        "ADD_PARTITIONS_TO_TXN",
        "END_TXN",
        "INIT_PRODUCER_ID",
    }


def test_both_versions_tell_the_time_in_nanoseconds() -> None:
    """Microseconds of the epoch on 4.x; UTC date and time in milliseconds on 3.9."""
    new = _line("HEARTBEAT", {}, {})
    old = new.replace(b"1700000000.123456", b'"2023-11-14 22:13:20.123"').replace(b'"r":', b'"r":Completed request:')
    assert parse_line(new).source_wall_ns == 1_700_000_000_123_456_000
    assert parse_line(old).source_wall_ns == 1_700_000_000_123_000_000
    assert [answered_ns(line[:40]) for line in (new, old)] == [1_700_000_000_123_456_000, 1_700_000_000_123_000_000]


@pytest.mark.parametrize("torn", [b"", b'{"ts":17', b'{"ts":"17",', b'{"ts":1.2.3,"r"', b"server started"])
def test_a_beginning_without_its_time_says_none(torn: bytes) -> None:
    """Nothing is guessed."""
    assert answered_ns(torn) is None


END: dict[str, Any] = {"transactionalId": "x", "producerId": 7, "producerEpoch": 4, "committed": True}


@pytest.mark.parametrize(
    ("answer", "epoch", "own"),
    [
        ({"errorCode": 0}, 4, None),
        ({"errorCode": 0, "producerId": 7, "producerEpoch": 5}, 5, True),
        ({"errorCode": 0, "producerId": 9, "producerEpoch": 0}, 0, None),
        ({"errorCode": 47, "producerId": -1, "producerEpoch": -1}, -1, None),
    ],
    ids=["before KIP-890", "with the next epoch", "epochs were exhausted", "refused"],
)
def test_the_end_of_a_transaction_says_whether_its_epoch_is_its_own(
    answer: dict[str, Any], epoch: int, own: bool | None
) -> None:
    """The epoch is the answered one, where there is one: that is what the markers carry."""
    (event,) = _events(_line("END_TXN", END, answer))
    assert (event["state"], event["producer_epoch"], event["own_epoch"]) == ("commit", epoch, own)


def test_a_producer_says_how_long_its_transactions_may_stay_open() -> None:
    """InitProducerId ends nothing."""
    asked = {"transactionalId": "x", "transactionTimeoutMs": 1000, "producerId": -1, "producerEpoch": -1}
    (event,) = _events(_line("INIT_PRODUCER_ID", asked, {"errorCode": 0, "producerId": 7, "producerEpoch": 0}))
    assert (event["producer_id"], event["timeout_ms"], event["state"], event["own_epoch"]) == (7, 1000, None, None)


def test_a_commit_says_who_what_and_whether_it_was_refused() -> None:
    """Lane, connection, client, member and epoch, and per partition the offset with its own error."""
    refused = {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "errorCode": 22}]}]}
    (event,) = _events(_line("OFFSET_COMMIT", COMMIT, refused))
    assert event == {
        "api": "OFFSET_COMMIT",
        "lane": 1,
        "listener": "LANE1",
        "connection": "c",
        "client_id": "me",
        "correlation_id": 5,
        "duration_ms": 1.5,
        "library": "lib 1",
        "source_wall_ns": 1_700_000_000_123_456_000,
        "group": "g",
        "member_id": "m-1",
        "instance_id": None,
        "epoch": 4,
        "transactional_id": None,
        "producer_id": None,
        "producer_epoch": None,
        "error": 22,
        "entries": [{"topic": "t", "partition": 0, "committed_offset": 7, "error": 22}],
    }


def test_several_groups_answered_at_once_are_events_of_their_own() -> None:
    """An offset fetch of version 8 on: each group with its own error; no commit is -1."""
    parts = [{"partitionIndex": 0, "committedOffset": -1, "errorCode": 0}]
    request = {"groups": [{"groupId": "a", "memberId": "m", "memberEpoch": 3, "topics": []}, {"groupId": "b"}]}
    answers = [
        {"groupId": "b", "errorCode": 16, "topics": []},
        {"groupId": "a", "errorCode": 0, "topics": [{"name": "t", "partitions": parts}]},
    ]
    events = _events(_line("OFFSET_FETCH", request, {"groups": answers}))
    assert [
        (event["group"], event["member_id"], event["epoch"], event["error"], event["entries"]) for event in events
    ] == [
        ("a", "m", 3, 0, [{"topic": "t", "partition": 0, "committed_offset": -1, "error": 0}]),
        ("b", None, None, 16, []),
    ]


def test_topic_ids_are_named_once_metadata_told_them() -> None:
    """Commits of Kafka 4 name topics by id only; metadata is recorded only where it says something new."""
    topics: dict[str, str] = {}
    metadata = _line("METADATA", {}, {"topics": [{"name": "t", "topicId": "id-1", "errorCode": 0}]})
    by_id = json.loads(json.dumps(COMMIT).replace('"name": "t"', '"topicId": "id-1"'))
    answer = {"topics": [{"topicId": "id-1", "partitions": [{"partitionIndex": 0, "errorCode": 0}]}]}
    events = _events(metadata, metadata, _line("OFFSET_COMMIT", by_id, answer), topics=topics)
    assert [(event["api"], event["entries"]) for event in events] == [
        ("METADATA", [{"topic": "t", "topic_id": "id-1"}]),
        ("OFFSET_COMMIT", [{"topic_id": "id-1", "partition": 0, "committed_offset": 7, "error": 0, "topic": "t"}]),
    ]


def test_a_first_join_learns_its_member_id_from_the_answer() -> None:
    """The request has none yet; the reason is the client's own."""
    request = {"groupId": "g", "sessionTimeoutMs": 6000, "memberId": "", "reason": "why"}
    response = {"errorCode": 79, "generationId": -1, "leader": "", "memberId": "new"}
    (event,) = _events(_line("JOIN_GROUP", request, response))
    assert (event["member_id"], event["error"], event["reason"], event["leader"]) == ("new", 79, "why", False)


def _fetched(request: dict[str, Any], session: int, sizes: dict[int, int] | None = None) -> bytes:
    answers = [
        {"partitionIndex": number, "errorCode": 0, "recordsSizeInBytes": size} for number, size in (sizes or {}).items()
    ]
    response = {"errorCode": 0, "sessionId": session, "responses": [{"topic": "t", "partitions": answers}]}
    return _line("FETCH", request, response)


def _asks(positions: dict[int, int], *, session: int = 0, epoch: int = -1, forget: tuple[int, ...] = ()) -> Any:
    parts = [{"partition": number, "fetchOffset": position} for number, position in positions.items()]
    return {
        "sessionId": session,
        "sessionEpoch": epoch,
        "topics": [{"topic": "t", "partitions": parts}],
        "forgottenTopicsData": [{"topic": "t", "partitions": list(forget)}] if forget else [],
    }


def _told(*lines: bytes) -> list[tuple[bool | None, list[tuple[int, int, int]]]]:
    return [
        (event["complete"], [(part["partition"], part["offset"], part["size_bytes"]) for part in event["entries"]])
        for event in _events(*lines)
    ]


def test_fetches_that_name_all_partitions_are_kept_where_they_say_something_new() -> None:
    """librdkafka: the set, bytes and positions; an empty answer to the same question is left out."""
    assert _told(
        _fetched(_asks({0: 0, 1: 0}), 0),
        _fetched(_asks({0: 0, 1: 0}), 0),
        _fetched(_asks({0: 0, 1: 0}), 0, {1: 500}),
        _fetched(_asks({0: 0, 1: 9}), 0),
        _fetched(_asks({1: 9}), 0),
    ) == [
        (True, [(0, 0, 0), (1, 0, 0)]),
        (None, [(1, 0, 500)]),
        (None, [(1, 9, 0)]),
        (True, [(1, 9, 0)]),
    ]


def test_fetch_sessions_are_replayed() -> None:
    """Java: opened in full, then changes only, a partition forgotten, the session closed."""
    assert _told(
        _fetched(_asks({0: 0, 1: 0}, epoch=0), 77),
        _fetched(_asks({}, session=77, epoch=1), 77),
        _fetched(_asks({1: 4}, session=77, epoch=2), 77, {1: 300}),
        _fetched(_asks({}, session=77, epoch=3, forget=(0,)), 77),
        _fetched(_asks({}, session=77, epoch=-1), 0),
    ) == [
        (True, [(0, 0, 0), (1, 0, 0)]),
        (None, [(1, 4, 300)]),
        (True, [(1, 4, 0)]),
    ]


def test_a_session_opened_before_the_witness_is_never_called_complete() -> None:
    """What was asked before is not known: entries are what was seen, no more."""
    assert _told(_fetched(_asks({3: 8}, session=5, epoch=9), 5)) == [(None, [(3, 8, 0)])]


@pytest.mark.parametrize("raw", [b"", b"{}", b"null", b'{"ts":1.0,"r":{}}', b'{"ts":1.0,"r":{"requestHeader":'])
def test_what_is_no_line_is_refused(raw: bytes) -> None:
    """Each is a LineError that quotes what was seen."""
    with pytest.raises(LineError, match="expected a line of the request log"):
        parse_line(raw)


def test_only_the_trials_lanes_and_group_are_kept(tmp_path: Path) -> None:
    """A line of our lane, one that names our group from elsewhere; other trials' lines leave nothing."""
    with _log(tmp_path) as log:
        log.append(_line("OFFSET_COMMIT", COMMIT, COMMITTED) + b"\n")
        log.append(_line("OFFSET_COMMIT", COMMIT, COMMITTED, listener="LANE11") + b"\n")
        log.append(_line("OFFSET_COMMIT", COMMIT | {"groupId": "other"}, COMMITTED, listener="LANE11") + b"\n")
        assert log.read() == [("request", 1, "OFFSET_COMMIT"), ("request", 2, "OFFSET_COMMIT")]


def test_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    """Half a line waits for its other half."""
    line = _line("OFFSET_COMMIT", COMMIT, COMMITTED)
    with _log(tmp_path) as log:
        log.append(line[:50])
        assert log.read() == []
        log.append(line[50:] + b"\n")
        assert log.read() == [("request", 1, "OFFSET_COMMIT")]


def test_a_line_torn_by_a_kill_is_told_and_the_next_life_is_read(tmp_path: Path) -> None:
    """The broker's next life appends to the unfinished line; both parts are accounted for."""
    line = _line("OFFSET_COMMIT", COMMIT, COMMITTED)
    with _log(tmp_path) as log:
        log.append(line[:-90] + line + b"\n")
        assert log.read() == [("undecodable", 1, None), ("request", 1, "OFFSET_COMMIT")]
        assert log.witness.undecodable == 1


def test_a_torn_fetch_does_not_blind(tmp_path: Path) -> None:
    """No verdict rests on a fetch: it is told, and the witness still claims to know all that counts."""
    with _log(tmp_path) as log:
        log.append(_fetched(_asks({0: 0}), 0)[:-90] + b"\n")
        assert log.read() == [("unreadable", 1, None)]
        assert log.witness.undecodable == 0


def test_the_snapshot_says_complete_or_undecodable(tmp_path: Path) -> None:
    """An unfinished last line whose writer is gone is given up, and told."""
    with _log(tmp_path) as log:
        log.append(_line("OFFSET_COMMIT", COMMIT, COMMITTED) + b"\n")
        logs = RequestLogs([log.witness])
        first = logs.snapshot(within_s=5)
        log.append(_line("OFFSET_COMMIT", COMMIT, COMMITTED)[:-40])
        second = logs.snapshot(within_s=5)
    assert (first.state, first.position) == ("complete", first.end)
    assert (second.state, second.position) == ("undecodable", second.end)


def test_a_log_that_became_shorter_is_an_error(tmp_path: Path) -> None:
    """Lines are lost: nobody may claim to know all."""
    with _log(tmp_path) as log:
        log.append(_line("OFFSET_COMMIT", COMMIT, COMMITTED) + b"\n")
        log.read()
        log.path.write_bytes(b"")
        with pytest.raises(UnjudgeableError, match="replaced or truncated"):
            log.witness.step()


@pytest.mark.parametrize(("content", "end"), [(b"", 0), (b"abc", 0), (b"a\nbc", 2), (b"a\nbc\n", 5)])
def test_reading_begins_after_the_last_whole_line(tmp_path: Path, content: bytes, end: int) -> None:
    """A warm cluster's log holds other trials' lines, and perhaps half of one."""
    log = tmp_path / "requests.log"
    log.write_bytes(content)
    assert end_of(log) == end
    assert end_of(tmp_path / "absent.log") == 0

"""Which versions a client speaks: said once, with what its broker offered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafka_trial.history.event import from_line
from kafka_trial.history.recorder import Recorder
from kafka_trial.witness.request_events import Requests
from kafka_trial.witness.request_lines import parse_line
from kafka_trial.witness.request_log import REMEMBERED_MAX, ApiVersionsSeen, RequestLog, wanted_texts

OFFER: Mapping[str, Any] = {"errorCode": 0, "apiKeys": [{"apiKey": 8, "minVersion": 0, "maxVersion": 9}]}
REFUSED: Mapping[str, Any] = {"errorCode": 35, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 4}]}


def line(
    api: str, key: int, version: int, *, connection: str = "c1", answer: Mapping[str, Any] = {}, **more: Any
) -> bytes:
    """Returns a line of a request log."""
    header = {"requestApiKey": key, "requestApiVersion": version, "correlationId": 1, "clientId": "me"} | more
    body = {
        "requestHeader": header | {"requestApiKeyName": api},
        "request": {},
        "response": answer,
        "connection": connection,
        "totalTimeMs": 1.0,
        "listener": "LANE1",
    }
    return b'{"ts":1700000000.5,"r":' + orjson.dumps(body) + b"}"


def told(*lines: bytes) -> Iterator[tuple[str, int, bool | None, int | None]]:
    """Yields of each event the API, its version, whether the client asked before, and the highest that was offered."""
    seen = ApiVersionsSeen()
    for raw in lines:
        for fields in seen.events(parse_line(raw)):
            yield fields["api"], fields["version"], fields["asks"], fields["offered_highest"]


def test_a_version_is_told_once_whatever_the_connection() -> None:
    """A client that connects again and again speaks as before; another version is news."""
    commits = [line("OFFSET_COMMIT", 8, 1, connection=f"c{number}") for number in range(3)]
    assert list(told(*commits, line("OFFSET_COMMIT", 8, 2))) == [
        ("OFFSET_COMMIT", 1, None, None),
        ("OFFSET_COMMIT", 2, None, None),
    ]


def test_what_the_broker_offered_is_told_beside() -> None:
    """To the client that asked, and of another one that did not ask too: it is the broker's."""
    asking = line("API_VERSIONS", 18, 3, answer=OFFER)
    other = line("OFFSET_COMMIT", 8, 1, connection="c2")
    assert list(told(asking, line("OFFSET_COMMIT", 8, 7), other)) == [
        ("API_VERSIONS", 3, True, None),
        ("OFFSET_COMMIT", 7, True, 9),
        ("OFFSET_COMMIT", 1, None, 9),
    ]


def test_a_refused_question_offers_nothing() -> None:
    """ApiVersions in a version that the broker does not know is answered with that API alone."""
    assert list(told(line("API_VERSIONS", 18, 5, answer=REFUSED), line("OFFSET_COMMIT", 8, 7))) == [
        ("API_VERSIONS", 5, True, None),
        ("OFFSET_COMMIT", 7, True, None),
    ]


def test_the_brokers_own_mark_is_kept() -> None:
    """`requestApiVersionDeprecated`, which brokers before 4.0 set."""
    (event,) = ApiVersionsSeen().events(parse_line(line("OFFSET_COMMIT", 8, 1, requestApiVersionDeprecated=True)))
    assert (event["deprecated"], event["key"]) == (True, 8)


def test_connections_are_forgotten_at_a_bound() -> None:
    """A client that is cut off for ever does not fill the memory."""
    seen = ApiVersionsSeen()
    for number in range(REMEMBERED_MAX + 5):
        list(seen.events(parse_line(line("API_VERSIONS", 18, 3, connection=f"c{number}", answer=OFFER))))
    assert len(seen._asked) == REMEMBERED_MAX


@pytest.mark.parametrize("asked", [True, False])
def test_the_history_has_it_beside_the_requests(asked: bool, tmp_path: Path) -> None:
    """One event of its own kind; the requests stay as they were."""
    log = tmp_path / "requests.log"
    lines = [line("API_VERSIONS", 18, 3, answer=OFFER)] if asked else []
    heartbeat = line("HEARTBEAT", 12, 4, answer={"errorCode": 0}).replace(
        b'"request":{}', b'"request":{"groupId":"g","memberId":"m","generationId":1}'
    )
    log.write_bytes(b"".join(one + b"\n" for one in [*lines, heartbeat, heartbeat]))
    with Recorder(tmp_path, "requests-b0") as recorder:
        RequestLog(log, recorder, Requests({}), wanted=wanted_texts([1], [])).step()
        events = [from_line(raw) for raw in recorder.path.read_bytes().splitlines()]
    kinds = [(event.kind, event.details["api"]) for event in events]
    before = [("api_version", "API_VERSIONS")] if asked else []
    assert kinds == [*before, ("api_version", "HEARTBEAT"), ("request", "HEARTBEAT"), ("request", "HEARTBEAT")]
    assert [event.details.get("asks") for event in events if event.kind == "api_version"] == [asked or None] * (
        1 + asked
    )

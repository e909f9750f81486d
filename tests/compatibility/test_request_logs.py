"""Request logs that brokers wrote in their own layouts: who sent which version, and what was offered."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kafka_trial.compatibility.clients import Client, Sighting
from kafka_trial.compatibility.request_logs import read_request_logs, request_of
from kafka_trial.errors import InputError

DATA = Path(__file__).parent.parent / "witness" / "data"


def request(
    key: int, name: str, version: int, *, client_id: str = "sarama", library: str = "unknown", **more: Any
) -> str:
    """Returns a request as brokers write it, in JSON."""
    software, _, number = library.partition(" ")
    header = {"requestApiKey": key, "requestApiVersion": version, "correlationId": 5, "clientId": client_id}
    mark = {"requestApiVersionDeprecated": True} if more.pop("deprecated", False) else {}
    body = {
        "isForwarded": False,
        "requestHeader": header | {"requestApiKeyName": name} | mark,
        "request": {"note": "its {braces}", "connection": "of the request"},
        "response": {"errorCode": 0} | more,
        "connection": "10.0.0.1:9092-10.0.0.7:50412-3-1",
        "totalTimeMs": 1.5,
        "listener": "PLAINTEXT",
        "clientInformation": {"softwareName": software, "softwareVersion": number or "unknown"},
    }
    return json.dumps(body, separators=(",", ":"))


COMMIT = request(8, "OFFSET_COMMIT", 1, library="sarama 1.38.1", deprecated=True)
SEEN = Sighting(Client("sarama at 10.0.0.7", "sarama 1.38.1"), "OffsetCommit", 1, asks=True, deprecated=True)
LAYOUTS = {
    "log4j 1": f"[2024-05-01 10:00:00,123] DEBUG Completed request:{COMMIT} (kafka.request.logger)",
    "log4j 2": f"[2025-05-01 10:00:00,123] DEBUG [data-plane-kafka-network-thread] {COMMIT} (kafka.request.logger)",
    "JSON, quoted": json.dumps({"level": "DEBUG", "timeMillis": 1, "message": f"Completed request:{COMMIT}"}),
    "of a trial, 3.9": f'{{"ts":"2026-11-21 03:31:12.653","r":Completed request:{COMMIT}}}',
    "of a trial, 4": f'{{"ts":1795231424.065570,"r":{COMMIT}}}',
}
TEXT = (
    "[2020-05-01 10:00:00,123] DEBUG Completed request:RequestHeader(apiKey=OFFSET_COMMIT, apiVersion=1, "
    "clientId=sarama, correlationId=5) -- {group_id=g,topics=[]},response:{responses=[]} from connection "
    "10.0.0.1:9092-10.0.0.7:50412-3;totalTime:1.2,requestQueueTime:0.1,securityProtocol:PLAINTEXT,"
    "principal:User:ANONYMOUS,listener:PLAINTEXT,clientInformation:ClientInformation(softwareName=sarama, "
    "softwareVersion=1.38.1) (kafka.request.logger)"
)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_says_the_same(layout: str, tmp_path: Path) -> None:
    """What stands around the request is the layout's own; what the request itself holds is not taken for its tail."""
    (tmp_path / "kafka-request.log").write_text(LAYOUTS[layout] + "\n")
    read = read_request_logs([tmp_path])
    assert (read.sightings, read.requests, read.unread) == ([SEEN], 1, [])


def test_requests_as_text_are_read_too(tmp_path: Path) -> None:
    """As brokers before 2.7 wrote them."""
    (tmp_path / "kafka-request.log").write_text(TEXT + "\n")
    (found,) = read_request_logs([tmp_path]).sightings
    assert found == Sighting(SEEN.client, "OffsetCommit", 1, asks=True)


def test_the_offer_of_a_broker_is_what_it_answered(tmp_path: Path) -> None:
    """And who asked without naming a library is known by the same client id and address."""
    offer = request(18, "API_VERSIONS", 0, apiKeys=[{"apiKey": 8, "minVersion": 0, "maxVersion": 9}])
    lines = [LAYOUTS["log4j 1"].replace(COMMIT, one) for one in (offer, request(8, "OFFSET_COMMIT", 1))]
    (tmp_path / "kafka-request.log").write_text("\n".join(lines) + "\n")
    _, commit = read_request_logs([tmp_path]).sightings
    assert commit == Sighting(Client("sarama at 10.0.0.7"), "OffsetCommit", 1, offered=9, asks=True)


def test_each_version_of_a_client_is_told_once(tmp_path: Path) -> None:
    """However many lines, files and packed ones there are, in folders below too."""
    (tmp_path / "broker-1").mkdir()
    (tmp_path / "broker-1" / "kafka-request.log").write_text(f"{COMMIT}\n" * 3)
    (tmp_path / "kafka-request.log.2024-05-01.gz").write_bytes(gzip.compress(f"{COMMIT}\n".encode()))
    (tmp_path / "server.log").write_text(request(1, "FETCH", 2) + "\n")  # no request log by its name
    read = read_request_logs([tmp_path])
    assert (read.sightings, read.files, read.requests) == ([SEEN], 2, 4)


@pytest.mark.parametrize("version", ["3.9.2", "4.3.1"])
def test_stored_lines_of_brokers_are_read(version: str) -> None:
    """Of librdkafka and Java clients; each names its library, so each has asked."""
    read = read_request_logs([DATA / f"requests-{version}.log"])
    assert read.requests == len((DATA / f"requests-{version}.log").read_bytes().splitlines())
    assert {(one.client.library is None, one.asks) for one in read.sightings} == {(False, True)}


def test_what_cannot_be_read_is_counted_and_the_end_may_be_cut_off(tmp_path: Path) -> None:
    """Lines of other loggers are none; a header that is cut off is one, except in a last line without its end."""
    torn = COMMIT[:60]
    log = tmp_path / "kafka-request.log"
    log.write_text(f"{COMMIT}\n[2024] INFO started (kafka.server)\n{torn}\n{torn}")
    read = read_request_logs([log])
    assert (len(read.unread), read.unread[0].startswith("kafka-request.log, line 3: the request's header is cut")) == (
        1,
        True,
    )
    assert request_of(b"at org.apache.kafka.Thing(Thing.java:5)\n") is None


def test_a_folder_without_requests_is_wrong_input(tmp_path: Path) -> None:
    """It says what was looked at, and how brokers write them."""
    with pytest.raises(InputError, match="holds no file whose name says request"):
        read_request_logs([tmp_path])
    (tmp_path / "kafka-request.log").write_text("nothing\n")
    with pytest.raises(InputError, match=r"no request in 1 file .*kafka\.request\.logger is at DEBUG"):
        read_request_logs([tmp_path])
    with pytest.raises(InputError, match="No such file"):
        read_request_logs([tmp_path / "absent"])
    (tmp_path / "kafka-request.log.gz").write_text("no gzip\n")
    with pytest.raises(InputError, match="cannot be read"):
        read_request_logs([tmp_path])

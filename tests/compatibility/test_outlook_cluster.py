"""What the tables and `preflight --to` say, against brokers."""

from __future__ import annotations

import secrets
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import orjson
import pytest
from confluent_kafka import Consumer

from kafka_trial.cli import main
from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.compatibility.tables import apis
from kafka_trial.errors import FAIL, WRONG_INPUT
from kafka_trial.kafka_protocol.broker_features import broker_features
from kafka_trial.kafka_protocol.connection import Brokers
from kafka_trial.process.waiting import wait_until

pytestmark = pytest.mark.cluster

TELEMETRY = {71, 72}  # answered only where a broker has a reporter that takes clients' metrics
FIXED = {"api.version.request": False, "broker.version.fallback": "0.9.0.1"}
REQUESTS = {  # API key → a version that 4.0 removed, and the body of such a request
    "OffsetCommit": (8, 1, struct.pack(">h1sih", 1, b"g", -1, 0) + bytes(4)),
    "Fetch": (1, 2, struct.pack(">iiii", -1, 100, 0, 0)),
    "Produce": (0, 2, struct.pack(">hii", 1, 1000, 0)),
}


@pytest.mark.rotates(every=2)
@pytest.mark.parametrize("version", [DEFAULT_VERSION, "3.9.2"])
def test_brokers_answer_the_versions_of_the_table(version: str, cluster_pool: ClusterPool) -> None:
    """ApiVersions on a broker listener: the same APIs, the same lowest and highest versions."""
    with cluster_pool.cluster_for(version) as cluster, Brokers(cluster.observer_bootstrap) as brokers:
        told = brokers.anyone(broker_features)
    wanted = {api.key: (api.told_lowest, api.highest) for api in apis(version).values() if api.key not in TELEMETRY}
    assert told.apis == wanted
    assert told.finalized["metadata.version"] <= told.supported["metadata.version"][1]


@pytest.mark.rotates(every=4)
def test_a_version_that_was_removed_gets_no_answer(cluster_pool: ClusterPool) -> None:
    """The broker closes the connection, that of Produce too, although ApiVersions tells it from 0 on."""
    with cluster_pool.cluster_for(DEFAULT_VERSION) as cluster:
        host, _, port = cluster.observer_bootstrap.split(",")[0].rpartition(":")
        answers = {name: _answer((host, int(port)), *request) for name, request in REQUESTS.items()}
    assert answers == dict.fromkeys(REQUESTS, b"")


def _answer(address: tuple[str, int], key: int, version: int, body: bytes) -> bytes:
    request = struct.pack(">hhih2s", key, version, 5, 2, b"me") + body
    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        return connection.recv(100)


@contextmanager
def _member(bootstrap: str, topic: str, client_id: str, **settings: object) -> Iterator[None]:
    """Holds a member of a group of its own that has its partitions."""
    known = {"bootstrap.servers": bootstrap, "group.id": client_id, "client.id": client_id, "log_level": 0}
    consumer = Consumer(known | settings)
    consumer.subscribe([topic])

    def owns() -> bool:
        consumer.poll(0.05)
        return bool(consumer.assignment())

    try:
        wait_until(owns, within_s=60, what=f"the assignment of {client_id}", every_s=0.0)
        yield
    finally:
        consumer.close()


@pytest.mark.rotates(every=4)
@pytest.mark.parametrize("version", ["3.9.2"])  # said where tests are put in order by it
def test_preflight_finds_what_an_upgrade_would_break(
    version: str, cluster_pool: ClusterPool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A topic with tiny segments, and a client of fixed old versions beside one that negotiates: on 3.9 both work."""
    topic = f"upgrade-{secrets.token_hex(4)}"
    old, new = f"{topic}-old", f"{topic}-new"
    with (
        cluster_pool.cluster_for(version) as cluster,
        Admin(cluster.observer_bootstrap) as admin,
        cluster.lease_lanes(2) as lanes,
    ):
        admin.create_topic(topic, partitions=1, replication_factor=3, configs={"segment.bytes": "77777"})
        with _member(lanes[0].bootstrap, topic, old, **FIXED), _member(lanes[1].bootstrap, topic, new):
            asked = ["preflight", "--bootstrap", cluster.observer_bootstrap, "--request-log", str(cluster.folder)]
            asked += ["--consumer", "python-at-least-once"]
            status = main([*asked, "--to", "4.4.0", "--json"])
        told = orjson.loads(capsys.readouterr().out)
        assert main([*asked, "--to", version]) == WRONG_INPUT
        assert "the brokers answer as this version does already" in capsys.readouterr().err
        admin.delete_topic(topic)
    assert (status, told["verdict"], told["from"]) == (FAIL, "no", "3.9.2")
    rejected = [one["message"] for one in told["findings"] if one["weight"] == "rejected" and old in one["message"]]
    assert len(rejected) == 1
    assert "which 4.0 removed: brokers of 4.4 close the connection without an answer" in rejected[0]
    assert not [one for one in told["findings"] if new in one["message"]]
    (refused,) = [one["message"] for one in told["findings"] if one["weight"] == "refused" and topic in one["message"]]
    assert refused.startswith("segment.bytes = 77777 is set, and 4.4.0 takes [1048576,...] only")
    assert refused.endswith(f": topic {topic}")
    assert told["features"]["metadata.version"]["finalized"] == told["features"]["metadata.version"]["highest"]
    assert not told["untold"]

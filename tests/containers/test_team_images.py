"""The images of the example teams are what they say: sound at least once, and faulty by one word in the environment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from docker import DockerClient
from docker.models.containers import Container
from docker.models.networks import Network

from kafka_trial.cluster.java import find_java
from kafka_trial.process.waiting import wait_until
from lab.images import image_of_team, main
from one_broker import address, one_broker, one_network
from requirements import missing

RECORDS, PARTITIONS = 40, 2
STOPPED = {"python-orders": 0, "go-orders": 0, "java-orders": 143}  # a JVM that ends by SIGTERM says so

pytestmark = [pytest.mark.cluster, pytest.mark.rotates(together="dear")]


@dataclass
class Sink:
    """What the warehouse has taken, and the answers it gives before it takes anything: 503, or none at all."""

    url: str = ""
    taken: list[tuple[str | None, bytes]] = field(default_factory=list)
    answers: list[int | None] = field(default_factory=list)
    refuses: bool = False
    refused: int = 0


@contextmanager
def serving(host: str, *, refuses: bool = False) -> Iterator[Sink]:
    """Serves a warehouse on an address of this machine, as the harness does its sink; it may refuse from the start."""
    sink = Sink(refuses=refuses)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = sink.answers.pop(0) if sink.answers else 204
            if answer is None:
                self.close_connection = True
                return
            if sink.refuses or answer == 503:
                sink.refused += 1
                self.send_response(503)
                self.send_header("Content-Length", "0")
            else:
                assert self.path == "/token/effect"
                sink.taken.append((self.headers["KT-Id"], body))
                self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer((host, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        sink.url = f"http://{host}:{server.server_port}/token"
        try:
            yield sink
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def network(engine: DockerClient) -> Iterator[Network]:
    """Lends a network for all these tests."""
    with one_network(engine) as network:
        yield network


@pytest.fixture(scope="module")
def bootstrap(engine: DockerClient, network: Network) -> Iterator[str]:
    """Returns the address of a broker for all these tests."""
    with one_broker(engine, network) as container:
        container.start()
        yield f"{address(network)}:9092"


@pytest.mark.parametrize("team", STOPPED)
def test_a_team_delivers_every_record_commits_it_and_leaves(
    team: str, engine: DockerClient, network: Network, bootstrap: str
) -> None:
    """Though the warehouse refuses the first, and hangs up on the second: each record is there, with its id."""
    topic = f"{team}-sound"
    _fill(bootstrap, topic)
    with serving(address(network, 1)) as sink, _running(engine, network, team, topic, bootstrap, sink) as container:
        sink.answers = [503, None]
        expected = {(f"id-{number}", b"order %d" % number) for number in range(RECORDS)}
        wait_until(lambda: set(sink.taken) == expected, within_s=60, what="all records", detail=container.logs)
        container.stop(timeout=30)
        container.reload()
        assert container.attrs["State"]["ExitCode"] == STOPPED[team], container.logs().decode()[-2000:]
        admin = AdminClient({"bootstrap.servers": bootstrap})
        assert admin.describe_consumer_groups([topic])[topic].result(30).members == []
        assert _committed(bootstrap, topic) == RECORDS


@pytest.mark.parametrize("team", STOPPED)
@pytest.mark.parametrize("commit", ["", "before"])
def test_only_the_faulty_twin_commits_what_nobody_took(
    commit: str, team: str, engine: DockerClient, network: Network, bootstrap: str
) -> None:
    """A warehouse that refuses everything: the sound program waits with its commit, the other has lost the record."""
    topic = f"{team}-{commit or 'after'}"
    _fill(bootstrap, topic)
    with (
        serving(address(network, 1), refuses=True) as sink,
        _running(engine, network, team, topic, bootstrap, sink, COMMIT=commit) as container,
    ):
        wait_until(lambda: sink.refused >= 3, within_s=60, what="three refusals", detail=container.logs)
        container.stop(timeout=30)
        assert sink.taken == []
        assert (_committed(bootstrap, topic) > 0) is (commit == "before")


@contextmanager
def _running(
    engine: DockerClient, network: Network, team: str, topic: str, bootstrap: str, sink: Sink, **more: str
) -> Iterator[Container]:
    environment = {
        "BOOTSTRAP_SERVERS": bootstrap,
        "TOPIC": topic,
        "GROUP_ID": topic,
        "CLIENT_ID": f"{topic}-0",
        "SINK_URL": sink.url,
        **more,
    }
    image = _image(engine, team)
    container = engine.containers.run(image, detach=True, environment=environment, network=network.name)
    try:
        yield container
    finally:
        container.remove(force=True, v=True)


def _image(engine: DockerClient, team: str) -> str:
    if team == "java-orders" and not (compiler := find_java().resolve().with_name("javac")).exists():
        missing("javac", f"there is no {compiler} to compile {team} with; set JAVA_HOME to a JDK")
    return image_of_team(engine, team)


def test_one_image_that_cannot_be_built_keeps_no_other_from_it(
    engine: DockerClient, engine_host: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told, and the status is its."""
    monkeypatch.setenv("DOCKER_HOST", engine_host)
    assert main(["cobol-orders", "go-orders"]) == 2
    said = capsys.readouterr()
    assert said.out == "kafka-trial/go-orders:1\n"
    assert said.err.startswith("not built: cobol-orders: team image: ")


def _fill(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})

    def made() -> bool:
        try:
            admin.create_topics([NewTopic(topic, PARTITIONS, 1)], request_timeout=10)[topic].result(15)
        except KafkaException:
            return False
        return True

    wait_until(made, within_s=90, what=f"the topic {topic}")
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        headers: list[tuple[str, str | bytes | None]] = [("kt-id", f"id-{number}".encode())]
        producer.produce(topic, b"order %d" % number, partition=number % PARTITIONS, headers=headers)
    assert producer.flush(60) == 0


def _committed(bootstrap: str, topic: str) -> int:
    """Returns how many records of a topic are committed, in the group of the same name."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    places = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(topic, places)])
    return sum(max(one.offset, 0) for one in asked[topic].result(30).topic_partitions or ())

"""The image of Kafka: one broker, by the contract of Apache Kafka's own image."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Message, Producer
from docker import DockerClient
from docker.models.containers import Container
from docker.models.networks import Network

from kafka_trial.process.waiting import wait_until
from one_broker import CLUSTER_ID, address, one_broker, one_network

LOGGING = """
Configuration:
  shutdownHook: disable
  Appenders:
    Console:
      name: STDOUT
      PatternLayout:
        pattern: "mounted %m%n"
  Loggers:
    Root:
      level: INFO
      AppenderRef:
        - ref: STDOUT
"""


@pytest.fixture
def network(engine: DockerClient) -> Iterator[Network]:
    """Lends a network of its own."""
    with one_network(engine) as network:
        yield network


@pytest.fixture
def broker(engine: DockerClient, network: Network) -> Iterator[Container]:
    """Lends the container of a broker that is not started yet."""
    with one_broker(engine, network) as container:
        yield container


@pytest.mark.cluster
@pytest.mark.rotates
def test_a_broker_boots_from_its_environment_and_keeps_its_records(broker: Container, network: Network) -> None:
    """It serves at its address, is Java itself, not root, ends in order at SIGTERM, and has its data afterwards."""
    broker.put_archive("/mnt/shared/config", _tar("log4j2.yaml", LOGGING))
    broker.start()
    bootstrap = f"{address(network)}:9092"
    assert _sent(bootstrap, b"before").offset() == 0
    (process,) = broker.top(ps_args="-ww -o pid,uid,args")["Processes"]
    command = process[2].split()
    assert process[1] == "1000"
    assert command[0] == "java"
    assert {"-Xmx300m", "-XX:+UseSerialGC", "-Dof.kafka.opts=1", "kafka.Kafka"} <= set(command)
    broker.stop(timeout=60)
    broker.reload()
    logged = broker.logs().decode()
    assert broker.attrs["State"]["ExitCode"] == 143
    assert "mounted [BrokerServer id=7] shut down completed" in logged
    assert f"clusterId {CLUSTER_ID}" in logged
    broker.start()
    assert _sent(bootstrap, b"after").offset() == 1
    assert _received(bootstrap, 2) == [b"before", b"after"]
    assert "since clean shutdown file was found" in broker.logs().decode()


def _sent(bootstrap: str, value: bytes) -> Message:
    """Sends one record, as soon as the broker takes it, and returns it as it was acknowledged."""
    acknowledged: list[Message] = []
    producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 60_000, "log_level": 2})
    producer.produce("orders", value, on_delivery=lambda error, message: acknowledged.append(message))
    producer.flush(60)
    (message,) = acknowledged
    assert message.error() is None
    return message


def _received(bootstrap: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    values: list[bytes | None] = []

    def all_of_them() -> bool:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            values.append(message.value())
        return len(values) >= count

    try:
        wait_until(all_of_them, within_s=60, what=f"{count} records", every_s=0)
    finally:
        consumer.close()
    return values


def _tar(name: str, text: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(text.encode()), 0o644
        archive.addfile(entry, io.BytesIO(text.encode()))
    return content.getvalue()

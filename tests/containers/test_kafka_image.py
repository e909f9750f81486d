"""The image of Kafka: one broker, by the contract of Apache Kafka's own image."""

from __future__ import annotations

import io
import secrets
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, Message, Producer
from docker import DockerClient
from docker.models.containers import Container
from docker.models.networks import Network
from docker.types import EndpointConfig, IPAMConfig, IPAMPool, Mount

from kafka_trial.cluster.images import image_for_kafka
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.process.waiting import wait_until

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
    """Returns a network of its own, whose addresses can be chosen."""
    name = f"kafka-trial-{secrets.token_hex(4)}"
    free = engine.networks.create(name, driver="bridge")
    subnet = free.attrs["IPAM"]["Config"][0]["Subnet"]
    free.remove()
    made = engine.networks.create(name, driver="bridge", ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=subnet)]))
    try:
        yield made
    finally:
        made.remove()


@pytest.fixture
def broker(engine: DockerClient, network: Network) -> Iterator[Container]:
    """Returns the container of one broker, made and not started; it keeps its data in a volume."""
    address = _address(network)
    environment = {
        "KAFKA_NODE_ID": "7",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "7@localhost:9093",
        "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://localhost:9093",
        "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://{address}:9092",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_LOG_DIRS": "/var/lib/kafka/data",
        "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk",
        "KAFKA_HEAP_OPTS": "-Xmx300m",
        "KAFKA_JVM_PERFORMANCE_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "KAFKA_OPTS": "-Dof.kafka.opts=1",
    }
    with ExitStack() as stack:
        volume = engine.volumes.create()
        stack.callback(volume.remove)
        container = engine.containers.create(
            image_for_kafka(engine, DEFAULT_VERSION),
            environment=environment,
            mounts=[Mount("/var/lib/kafka/data", volume.name)],
            network=network.name,
            networking_config={network.name: EndpointConfig(engine.api._version, ipv4_address=address)},
        )
        stack.callback(container.remove, force=True, v=True)
        yield container


@pytest.mark.cluster
def test_a_broker_boots_from_its_environment_and_keeps_its_records(broker: Container, network: Network) -> None:
    """It serves at its address, is Java itself, not root, ends in order at SIGTERM, and has its data afterwards."""
    broker.put_archive("/mnt/shared/config", _tar("log4j2.yaml", LOGGING))
    broker.start()
    bootstrap = f"{_address(network)}:9092"
    assert _sent(bootstrap, b"before").offset() == 0
    (process,) = broker.top(ps_args="-o pid,uid,args")["Processes"]
    command = process[2].split()
    assert process[1] == "1000"
    assert command[0] == "java"
    assert {"-Xmx300m", "-XX:+UseSerialGC", "-Dof.kafka.opts=1", "kafka.Kafka"} <= set(command)
    broker.stop(timeout=60)
    broker.reload()
    logged = broker.logs().decode()
    assert broker.attrs["State"]["ExitCode"] == 143
    assert "mounted [BrokerServer id=7] shut down completed" in logged
    assert "clusterId MkU3OEVBNTcwNTJENDM2Qk" in logged
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


def _address(network: Network) -> str:
    network.reload()
    return str(network.attrs["IPAM"]["Config"][0]["Subnet"]).rpartition(".")[0] + ".7"


def _tar(name: str, text: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(text.encode()), 0o644
        archive.addfile(entry, io.BytesIO(text.encode()))
    return content.getvalue()

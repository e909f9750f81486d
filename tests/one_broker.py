"""One broker in a container, on a network of its own, configured by nothing but its environment."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from docker import DockerClient
from docker.models.containers import Container
from docker.models.networks import Network
from docker.types import EndpointConfig, IPAMConfig, IPAMPool, Mount

from kafka_trial.cluster.images import image_for_kafka
from kafka_trial.cluster.versions import DEFAULT_VERSION

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"


@contextmanager
def one_network(engine: DockerClient) -> Iterator[Network]:
    """Makes a network whose addresses can be chosen."""
    name = f"kafka-trial-{secrets.token_hex(4)}"
    free = engine.networks.create(name, driver="bridge")
    free.reload()
    subnet = free.attrs["IPAM"]["Config"][0]["Subnet"]
    free.remove()
    network = engine.networks.create(name, driver="bridge", ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=subnet)]))
    try:
        network.reload()
        yield network
    finally:
        network.remove()


def address(network: Network, host: int = 7) -> str:
    """Returns an address in a network: the gateway, which is this machine, is the first."""
    return str(network.attrs["IPAM"]["Config"][0]["Subnet"]).rpartition(".")[0] + f".{host}"


@contextmanager
def one_broker(engine: DockerClient, network: Network) -> Iterator[Container]:
    """Makes the container of a broker, and does not start it; it keeps its data in a volume."""
    environment = {
        "KAFKA_NODE_ID": "7",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "7@localhost:9093",
        "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://localhost:9093",
        "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://{address(network)}:9092",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        "KAFKA_LOG_DIRS": "/var/lib/kafka/data",
        "CLUSTER_ID": CLUSTER_ID,
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
            networking_config={network.name: EndpointConfig(engine.api._version, ipv4_address=address(network))},
        )
        stack.callback(container.remove, force=True, v=True)
        yield container

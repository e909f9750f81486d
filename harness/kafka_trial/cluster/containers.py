"""A cluster of containers: brokers of any image that takes Apache Kafka's official environment, and our Toxiproxy.

All share one network namespace, that of Toxiproxy's container, which has one address on a network of our own: ports,
proxies and names of brokers are those of a cluster of processes, and an address stays when a broker is started again.
Clients of any container on that network, and this machine, reach it there. Nothing is published. Into the namespace
only root could look: what is in it Toxiproxy tells, which is inside.
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kafka_trial.cluster.booted import BootedCluster, boot
from kafka_trial.cluster.container_broker import ContainerBroker, container_node
from kafka_trial.cluster.images import NAMED, image_for_toxiproxy, images_for_kafka
from kafka_trial.cluster.versions import find_version, is_of, said_version
from kafka_trial.cluster.wiring import LANES, Wiring
from kafka_trial.containers.container import Container, ContainerSpec
from kafka_trial.containers.engine import connect
from kafka_trial.containers.network import (
    LABEL,
    ContainerNetwork,
    container_network,
    own_labels,
    remove_leftovers,
    require_image,
)
from kafka_trial.errors import StartError, UnjudgeableError
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.control_groups import control_group_of
from kafka_trial.process.threads import ThreadGroup

FIRST_PORT = 20000  # in a network namespace of our own, where nobody else listens
BOOT_WITHIN_S = 180.0  # an image that formats its storage starts a Java for it first
ASKED_WITHIN_S = 60  # a machine that is busy starts a container in ten


@contextmanager
def container_cluster(
    version: str,
    *,
    brokers: int = 3,
    lanes: int = LANES,
    kafka_image: str | None = None,
    later: Sequence[str] = (),
    consumer_images: Sequence[str] = (),
    controllers: int = 0,
    further: int = 0,
) -> Iterator[BootedCluster]:
    """Boots a cluster of containers and ends it; its logs are in a temporary folder, which goes with it.

    `kafka_image`: that of the brokers; by default what `image_for_kafka` returns. `later`: the versions that brokers
    may become; their images, and those of consumers, are there before anything starts. `controllers` and `further` as
    for `process_cluster`.

    Raises:
        InputError: unknown version; one image is named for several versions.
        StartError: no engine answers, an image is missing, the network cannot be made, a broker did not come up or is
            of another version.
    """
    find_version(version)
    client = connect()
    name = f"kt{secrets.token_hex(3)}"
    with ExitStack() as stack:
        stack.callback(client.close)
        for image in consumer_images:
            require_image(client, image)
        kafka_images = images_for_kafka(client, [version, *later], {version: kafka_image} if kafka_image else {})
        proxy_image = image_for_toxiproxy(client)
        images = {image: require_image(client, image) for image in (*kafka_images.values(), proxy_image)}
        client.api.timeout = ASKED_WITHIN_S  # images are built and pulled: an engine that hangs must not hold us
        place = Path(tempfile.mkdtemp(prefix=f"kafka-trial-{name}-"))
        place.chmod(0o755)  # an image has a user of its own
        labels = own_labels()
        away = [sys.executable, "-m", "kafka_trial.containers.network", labels[LABEL]]
        stack.enter_context(ChildProcesses(f"containers of {name}", belongings=[place], taken_away_by=[away]))
        threads = stack.enter_context(ThreadGroup(f"containers of {name}"))
        network = stack.enter_context(container_network(client, name, labels))
        network.images.update(images)
        ports = range(FIRST_PORT, FIRST_PORT + Wiring.size(brokers + further, lanes, controllers))
        toxiproxy = _toxiproxy(proxy_image, network, ports[0], threads)
        if toxiproxy.address is None:
            raise StartError(f"the container of Toxiproxy ended at once: {toxiproxy.last_words()}")
        _require_sight(toxiproxy)
        remove_leftovers(client)  # who sees this engine's processes, sees which of them are gone
        with (place / "toxiproxy.log").open("ab") as log:
            threads.start("toxiproxy log", toxiproxy.copy_log, os.dup(log.fileno()))
        wiring = Wiring(ports, brokers + further, lanes, toxiproxy.address, controllers)

        def make(node: int, version: str) -> ContainerBroker:
            return container_node(node, version, place, wiring, kafka_images, toxiproxy, network, threads)

        made = {number: make(number, version) for number in range(brokers)}
        cluster = BootedCluster(
            *(name, version, place, wiring, made),
            toxiproxy_died=lambda: _end_of(toxiproxy),
            container_network=network,
            controllers={node: make(node, version) for node in wiring.voters if node not in made},
            make_broker=make if further else None,
        )
        boot(cluster, within_s=BOOT_WITHIN_S)
        _require_sockets(cluster)
        _require_version(cluster, kafka_images[version])
        yield cluster


def _end_of(toxiproxy: Container) -> str | None:
    if toxiproxy.alive:
        return None
    return toxiproxy.lost or f"the container of Toxiproxy ended with {toxiproxy.exit_code}"


def _toxiproxy(image: str, network: ContainerNetwork, port: int, threads: ThreadGroup) -> Container:
    """Starts the container whose network namespace all brokers share."""
    spec = ContainerSpec(
        name=f"{network.name}-toxiproxy",
        image=image,
        network=network.name,
        labels=network.labels,
        command=["-host", "0.0.0.0", "-port", str(port)],
    )
    container = Container(network.client, spec, threads)
    container.start()
    return container


def _require_sight(container: Container) -> None:
    """Makes sure that we can see what becomes of a container's processes: without that no fault has evidence.

    Raises:
        StartError: they are hidden from us, or not on this machine.
    """
    try:
        control_group_of(container.pid, container=container.id)
    except UnjudgeableError as error:
        raise StartError(
            f"the processes of containers cannot be seen ({error}): run kafka-trial on the machine of the container "
            "engine, not in a container of it, by a user from whom /proc hides no processes (hidepid)"
        ) from error


def _require_sockets(cluster: BootedCluster) -> None:
    """Makes sure that we can see the connections of the cluster's network.

    Raises:
        StartError: Toxiproxy, which is inside, does not tell of them.
    """
    try:
        cluster.toxiproxy.sockets(0)
    except UnjudgeableError as error:
        raise StartError(
            f"the connections of containers cannot be seen ({error}): it takes the Toxiproxy that kafka-trial builds; "
            "unset KAFKA_TRIAL_TOXIPROXY"
        ) from error


def _require_version(cluster: BootedCluster, image: str) -> None:
    """Makes sure that the brokers of an image are of the version that verdicts on them will name.

    Raises:
        StartError: they say that they are of another.
    """
    for broker in cluster.brokers.values():
        if not is_of(said := said_version(broker.server_log), cluster.kafka_version):
            raise StartError(
                f"the brokers of image {image} are Kafka {said}, and Kafka {cluster.kafka_version} was asked for: "
                f"give --kafka {said}, or name another image in {NAMED}"
            )

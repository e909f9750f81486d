"""A cluster of containers: brokers of any image that takes Apache Kafka's official environment, and our Toxiproxy.

All share one network namespace, that of Toxiproxy's container, which has one address on a network of our own: ports,
proxies and names of brokers are those of a cluster of processes, and an address stays when a broker is started again.
Clients of any container on that network, and this machine, reach it there. Nothing is published. Into the namespace
only root could look: what is in it Toxiproxy tells, which is inside.

A broker has a container for each version that it has been of, each of that version's image, on one data. The first of
them has the data in a volume, and the others have the same volume. None is taken away before the cluster is: whichever
version the broker becomes, its data is there, and so is the container that it was before.
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from signal import SIGCONT, SIGSTOP, SIGTERM

from kafka_trial.cluster.booted import BootedCluster, boot
from kafka_trial.cluster.cluster import FIRST_CONTROLLER, REQUEST_LOG, SERVER_LOG, node_in_words, node_name
from kafka_trial.cluster.images import NAMED, image_for_toxiproxy, images_for_kafka
from kafka_trial.cluster.versions import KNOWN, KafkaVersion, find_version, is_of, said_version
from kafka_trial.cluster.wiring import LANES, Wiring, hosts_file, logging_config, server_settings
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
from kafka_trial.process.control_groups import ContainerView, control_group_of
from kafka_trial.process.threads import ThreadGroup

FIRST_PORT = 20000  # in a network namespace of our own, where nobody else listens
BOOT_WITHIN_S = 180.0  # an image that formats its storage starts a Java for it first
ASKED_WITHIN_S = 60  # a machine that is busy starts a container in ten
INSIDE = Path("/kafka-trial")  # a broker's folder, as its containers have it
# A broker's data: in a volume that the official image has there. What its user writes into folders of its own, only
# that user and root could take away again.
DATA = Path("/var/lib/kafka/data")
ADVERTISED = "advertised.listeners"
CLUSTER_ID = "a2Fma2EtdHJpYWwtMDAwMA"
HEAP = "-Xms256m -Xmx256m"
PERFORMANCE = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Djava.awt.headless=true"


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


class ContainerBroker:
    """One broker, or controller of its own, in a container; `start` starts it again on its own data, of the version
    that it is then to have."""

    def __init__(
        self,
        number: int,
        version: str,
        folder: Path,
        ports: frozenset[int],
        prepare: Callable[[str, Container | None], Container],
    ) -> None:
        """`prepare` writes what a version of Kafka starts with into `folder`, and makes its container, with the volumes
        of another one if there is one. `ports`: those at which it listens.

        Raises:
            StartError: the engine refuses to make a container.
        """
        self.id, self.version, self.folder = number, version, folder
        self.request_log = folder / REQUEST_LOG
        self.server_log = folder / SERVER_LOG
        self._ports = ports
        self._prepare = prepare
        self._first = self._container = self._next = prepare(version, None)

    @property
    def pid(self) -> int:
        """The broker's process.

        Raises:
            UnjudgeableError: it was never started.
        """
        if not self._container.pid:
            raise UnjudgeableError(f"{node_in_words(self.id)} was never started")
        return self._container.pid

    @property
    def container_view(self) -> ContainerView | None:
        """What this machine sees of its container; it shares its address with the others."""
        own = self._container.container_view
        return own and replace(own, address=None, ports=self._ports)

    @property
    def alive(self) -> bool:
        return self._container.alive

    @property
    def exit_code(self) -> int | None:
        return self._container.exit_code

    def start(self) -> None:
        """Starts it; returns before it serves."""
        if not self.alive:
            self._next.start()
            self._container = self._next

    def become(self, version: str) -> None:
        """Makes it a broker of another version of Kafka, from its next start on: a container of that one's image.

        Raises:
            UnjudgeableError: there is no image of that version, or the engine refuses.
        """
        if version == self.version:
            return
        try:
            coming = self._prepare(version, self._first)
        except StartError as error:
            raise UnjudgeableError(f"{node_in_words(self.id)} cannot become {version}: {error}") from error
        self._next, self.version = coming, version

    def kill(self) -> None:
        """kill -9, and waits for it to be gone."""
        self._container.kill()
        self._container.wait(within_s=10)

    def terminate(self) -> None:
        """SIGTERM: a controlled shutdown begins; does not wait."""
        self._container.signal(SIGTERM)

    def pause(self) -> None:
        """Freezes its container."""
        self._container.signal(SIGSTOP)

    def resume(self) -> None:
        """Thaws its container."""
        self._container.signal(SIGCONT)

    def last_words(self, *, lines: int = 5) -> str:
        """Returns the last lines of what it wrote, for an error message."""
        try:
            return " | ".join(self._next.last_words(lines=lines).splitlines())[-2000:]
        except UnjudgeableError as error:
            return str(error)


def container_node(
    node: int,
    version: str,
    place: Path,
    wiring: Wiring,
    images: Mapping[str, str],
    shared: Container,
    network: ContainerNetwork,
    threads: ThreadGroup,
) -> ContainerBroker:
    """Returns a node of a version, not started yet; it may become any version that `images` has, by version.

    `shared`: whose network namespace it is in. `place` gets its folder, with its logs.

    Raises:
        StartError: the engine refuses to make its container.
    """
    folder = place / node_name(node)
    folder.mkdir()
    folder.chmod(0o777)  # an image has a user of its own, whom this machine need not know
    (folder / "hosts").write_text(hosts_file(wiring.brokers, wiring.controllers))
    made: dict[str, Container] = {}

    def prepare(version: str, first: Container | None) -> Container:
        if version not in images:
            raise StartError(f"its cluster was booted with images of Kafka {', '.join(sorted(images))} only")
        known = KNOWN[version]
        flag, text = logging_config(known, INSIDE)
        if version not in made:
            spec = ContainerSpec(
                name=f"{network.name}-{node_name(node)}-{version}",
                image=images[version],
                network=f"container:{shared.id}",
                labels=network.labels,
                env={
                    **environment_of(_settings(wiring, known, node)),
                    "CLUSTER_ID": CLUSTER_ID,
                    "KAFKA_HEAP_OPTS": HEAP,
                    "KAFKA_JVM_PERFORMANCE_OPTS": PERFORMANCE,
                    "KAFKA_LOG4J_OPTS": flag,
                    "KAFKA_OPTS": f"-Djdk.net.hosts.file={INSIDE}/hosts -Djava.net.preferIPv4Stack=true",
                },
                mounts={str(folder): str(INSIDE)},
                volumes_of=None if first is None else first.id,
            )
            made[version] = Container(network.client, spec, threads)
        (folder / "logging.xml").write_text(text)
        return made[version]

    return ContainerBroker(node, version, folder, wiring.ports_of(node), prepare)


def _settings(wiring: Wiring, version: KafkaVersion, node: int) -> Mapping[str, str]:
    """Returns the settings of a node; the official image refuses a controller of its own that advertises listeners."""
    settings = server_settings(wiring, version, node, DATA)
    return {name: value for name, value in settings.items() if node < FIRST_CONTROLLER or name != ADVERTISED}


def environment_of(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns settings as the official image takes them from the environment (KIP-975)."""
    return {f"KAFKA_{_variable(name)}": value for name, value in settings.items()}


def _variable(name: str) -> str:
    return name.replace("_", "__").replace("-", "___").replace(".", "_").upper()

"""A cluster of containers: brokers of any image that takes Apache Kafka's official environment, and our Toxiproxy.

All share one network namespace, that of Toxiproxy's container, which has one address on a network of our own: ports,
proxies and names of brokers are those of a cluster of processes, and an address stays when a broker is started again.
Clients of any container on that network, and this machine, reach it there. Nothing is published. Into the namespace
only root could look: what is in it Toxiproxy tells, which is inside.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from signal import SIGCONT, SIGSTOP, SIGTERM

from kafka_trial.cluster.booted import BootedCluster, boot
from kafka_trial.cluster.images import NAMED, image_for_kafka, image_for_toxiproxy
from kafka_trial.cluster.versions import KNOWN, KafkaVersion, find_version
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
INSIDE = "/kafka-trial"  # a broker's folder, as its container has it
# A broker's data: in a volume that the official image has there. What its user writes into folders of its own, only
# that user and root could take away again.
DATA = Path("/var/lib/kafka/data")
CLUSTER_ID = "a2Fma2EtdHJpYWwtMDAwMA"
HEAP = "-Xms256m -Xmx256m"
PERFORMANCE = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Djava.awt.headless=true"


class ContainerBroker:
    """One broker in a container; `start` starts it again on its own data."""

    def __init__(self, number: int, folder: Path, container: Container, ports: frozenset[int]) -> None:
        """`ports`: those at which it listens."""
        self.id = number
        self.folder = folder
        self.request_log = folder / "requests.log"
        self.server_log = folder / "server.log"
        self._container = container
        self._ports = ports

    @property
    def pid(self) -> int:
        """The broker's process.

        Raises:
            UnjudgeableError: it was never started.
        """
        if not self._container.pid:
            raise UnjudgeableError(f"broker {self.id} was never started")
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
            self._container.start()

    def become(self, version: str) -> None:
        """Containers are made of one image, and keep it."""
        raise UnjudgeableError(f"broker {self.id} is a container: it cannot become {version} on its own data")

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
            return " | ".join(self._container.last_words(lines=lines).splitlines())[-2000:]
        except UnjudgeableError as error:
            return str(error)


@contextmanager
def container_cluster(
    version: str, *, brokers: int = 3, lanes: int = LANES, kafka_image: str | None = None
) -> Iterator[BootedCluster]:
    """Boots a cluster of containers and ends it; its logs are in a temporary folder, which goes with it.

    `kafka_image`: that of the brokers; by default what `image_for_kafka` returns.

    Raises:
        InputError: unknown version.
        StartError: no engine answers, an image is missing, the network cannot be made, a broker did not come up or is
            of another version.
    """
    known = KNOWN[find_version(version)]
    client = connect()
    name = f"kt{secrets.token_hex(3)}"
    with ExitStack() as stack:
        stack.callback(client.close)
        kafka_image, proxy_image = kafka_image or image_for_kafka(client, version), image_for_toxiproxy(client)
        images = {image: require_image(client, image) for image in (kafka_image, proxy_image)}
        client.api.timeout = ASKED_WITHIN_S  # images are built and pulled: an engine that hangs must not hold us
        place = Path(tempfile.mkdtemp(prefix=f"kafka-trial-{name}-"))
        labels = own_labels()
        away = [sys.executable, "-m", "kafka_trial.containers.network", labels[LABEL]]
        stack.enter_context(ChildProcesses(f"containers of {name}", belongings=[place], taken_away_by=[away]))
        threads = stack.enter_context(ThreadGroup(f"containers of {name}"))
        network = stack.enter_context(container_network(client, name, labels))
        network.images.update(images)
        ports = range(FIRST_PORT, FIRST_PORT + Wiring.size(brokers, lanes))
        toxiproxy = _toxiproxy(proxy_image, network, ports[0], threads)
        if toxiproxy.address is None:
            raise StartError(f"the container of Toxiproxy ended at once: {toxiproxy.last_words()}")
        _require_sight(toxiproxy)
        remove_leftovers(client)  # who sees this engine's processes, sees which of them are gone
        with (place / "toxiproxy.log").open("ab") as log:
            threads.start("toxiproxy log", toxiproxy.copy_log, os.dup(log.fileno()))
        wiring = Wiring(ports, brokers, lanes, toxiproxy.address)
        made = {}
        for number in range(brokers):
            container = _broker(number, kafka_image, known, place, wiring, toxiproxy, network, threads)
            made[number] = ContainerBroker(number, place / f"b{number}", container, wiring.ports_of(number))
        cluster = BootedCluster(
            name, version, place, wiring, made, toxiproxy_died=lambda: _end_of(toxiproxy), container_network=network
        )
        boot(cluster, within_s=BOOT_WITHIN_S)
        _require_sockets(cluster)
        _require_version(cluster, kafka_image)
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
        log = broker.server_log.read_text(errors="replace") if broker.server_log.exists() else ""
        said = re.search(r"Kafka version: (\S+)", log)
        if said is not None and not f"{said[1]}-".startswith(f"{cluster.kafka_version}-"):
            raise StartError(
                f"the brokers of image {image} are Kafka {said[1]}, and Kafka {cluster.kafka_version} was asked for: "
                f"give --kafka {said[1]}, or name another image in {NAMED}"
            )


def _broker(
    number: int,
    image: str,
    version: KafkaVersion,
    place: Path,
    wiring: Wiring,
    toxiproxy: Container,
    network: ContainerNetwork,
    threads: ThreadGroup,
) -> Container:
    folder, inside = place / f"b{number}", Path(INSIDE)
    place.chmod(0o755)
    folder.mkdir()
    folder.chmod(0o777)  # an image has a user of its own, whom this machine need not know
    (folder / "hosts").write_text(hosts_file(wiring.brokers))
    flag, text = logging_config(version, inside)
    (folder / "logging.xml").write_text(text)
    spec = ContainerSpec(
        name=f"{network.name}-b{number}",
        image=image,
        network=f"container:{toxiproxy.id}",
        labels=network.labels,
        env={
            **environment_of(server_settings(wiring, version, number, DATA)),
            "CLUSTER_ID": CLUSTER_ID,
            "KAFKA_HEAP_OPTS": HEAP,
            "KAFKA_JVM_PERFORMANCE_OPTS": PERFORMANCE,
            "KAFKA_LOG4J_OPTS": flag,
            "KAFKA_OPTS": f"-Djdk.net.hosts.file={INSIDE}/hosts -Djava.net.preferIPv4Stack=true",
        },
        mounts={str(folder): INSIDE},
    )
    return Container(network.client, spec, threads)


def environment_of(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns settings as the official image takes them from the environment (KIP-975)."""
    return {f"KAFKA_{_variable(name)}": value for name, value in settings.items()}


def _variable(name: str) -> str:
    return name.replace("_", "__").replace("-", "___").replace(".", "_").upper()

"""A broker in a container: a container for each version that it has been of, each of that version's image, on one data.

The first of them has the data in a volume, and the others have the same volume. None is taken away before the cluster
is: whichever version the broker becomes, its data is there, and so is the container that it was before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from signal import SIGCONT, SIGSTOP, SIGTERM

from kafka_trial.cluster.cluster import FIRST_CONTROLLER, REQUEST_LOG, SERVER_LOG, node_in_words, node_name
from kafka_trial.cluster.versions import KNOWN, KafkaVersion
from kafka_trial.cluster.wiring import Wiring, hosts_file, logging_config, server_settings
from kafka_trial.containers.container import Container, ContainerSpec
from kafka_trial.containers.network import ContainerNetwork
from kafka_trial.errors import StartError, UnjudgeableError
from kafka_trial.process.control_groups import ContainerView
from kafka_trial.process.threads import ThreadGroup

INSIDE = Path("/kafka-trial")  # a broker's folder, as its containers have it
# A broker's data: in a volume that the official image has there. What its user writes into folders of its own, only
# that user and root could take away again.
DATA = Path("/var/lib/kafka/data")
ADVERTISED = "advertised.listeners"
CLUSTER_ID = "a2Fma2EtdHJpYWwtMDAwMA"
HEAP = "-Xms256m -Xmx256m"
PERFORMANCE = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Djava.awt.headless=true"


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

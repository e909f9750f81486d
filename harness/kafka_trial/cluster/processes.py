"""A cluster of processes: three combined KRaft brokers and a Toxiproxy on loopback, no Docker, no root.

Booted from a formatted template and a class-data archive, all brokers at once. They are supervised: they die with
the harness, however it dies.
"""

from __future__ import annotations

import base64
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from signal import SIGCONT, SIGSTOP, SIGTERM

from kafka_trial.cluster.archive import archive_place, fill_data_folder, formatted_template, train_archive
from kafka_trial.cluster.booted import BootedCluster, boot
from kafka_trial.cluster.cluster import REQUEST_LOG, SERVER_LOG, node_in_words, node_name
from kafka_trial.cluster.java import base_archive_flags, find_java
from kafka_trial.cluster.kafka_jars import class_path
from kafka_trial.cluster.tiered_storage import tiered_settings
from kafka_trial.cluster.toxiproxy import toxiproxy_server
from kafka_trial.cluster.user_cache import made_once
from kafka_trial.cluster.versions import KNOWN, find_version
from kafka_trial.cluster.wiring import (
    LANES,
    NO_SETTINGS,
    Wiring,
    block_of_ports,
    hosts_file,
    logging_config,
    server_properties,
)
from kafka_trial.errors import UnjudgeableError
from kafka_trial.process.children import Child, ChildProcesses
from kafka_trial.process.control_groups import ContainerView
from kafka_trial.process.steps import step
from kafka_trial.process.waiting import wait_until

BOOT_WITHIN_S = 120.0
TRAINING = "training the class-data archive of Kafka {}, on a cluster that is booted for it"
TRAINED = "once: half a minute to two, and brokers boot twice as fast from then on"
JVM = [
    "-Xms256m",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Xlog:cds=off",
    "-Xlog:cds+dynamic=off",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
]


class Broker:
    """One broker process; `start` starts it again on its own data, of the version that it is then to have."""

    def __init__(
        self,
        number: int,
        folder: Path,
        child_processes: ChildProcesses,
        prepare: Callable[[str], list[str]],
        version: str,
    ) -> None:
        """`prepare` writes what a version of Kafka starts with into `folder`, and returns the command."""
        self.id = number
        self.folder = folder
        self.request_log = folder / REQUEST_LOG
        self.server_log = folder / SERVER_LOG
        self.version = version
        self._child_processes = child_processes
        self._prepare = prepare
        self._command = prepare(version)
        self._child: Child | None = None
        self.container_view: ContainerView | None = None

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def alive(self) -> bool:
        return self._child is not None and self._child.alive

    @property
    def exit_code(self) -> int | None:
        return self._child.exit_code if self._child else None

    def start(self) -> None:
        """Starts the process; returns before it serves."""
        if self.alive:
            return
        with (self.folder / "console.log").open("ab") as console:
            self._child = self._child_processes.spawn(
                node_in_words(self.id), self._command, cwd=self.folder, stdout=console, stderr=console
            )

    def become(self, version: str) -> None:
        """Makes it a broker of another version of Kafka, from its next start on."""
        self._command, self.version = self._prepare(version), version

    def kill(self) -> None:
        """kill -9, and waits for the process to be gone."""
        self._running().kill()
        self._running().wait(within_s=10)

    def terminate(self) -> None:
        """SIGTERM: a controlled shutdown begins; does not wait."""
        self._running().signal(SIGTERM)

    def pause(self) -> None:
        """SIGSTOP to the process group."""
        self._running().signal(SIGSTOP)

    def resume(self) -> None:
        """SIGCONT to the process group."""
        self._running().signal(SIGCONT)

    def last_words(self, *, lines: int = 5) -> str:
        """Returns the last lines of its logs, for an error message."""
        texts = [
            log.read_text(errors="replace") for log in (self.folder / "console.log", self.server_log) if log.exists()
        ]
        return " | ".join("\n".join(texts).strip().splitlines()[-lines:])[-2000:]

    def _running(self) -> Child:
        if self._child is None:
            raise UnjudgeableError(f"{node_in_words(self.id)} was never started")
        return self._child


def class_data_archive(version: str) -> Path:
    """Returns the archive of a Kafka version on this Java; trains it the first time (about half a minute)."""
    place = archive_place(version)
    with made_once(place, f"archive-{version}") as temporary:
        if temporary is not None:
            with (
                step(TRAINING.format(version), about=TRAINED),
                process_cluster(version, lanes=2, train=temporary) as cluster,
            ):
                train_archive(cluster)
                last_words = cluster.brokers[0].last_words
                wait_until(temporary.exists, within_s=5, what=f"the archive {temporary.name}", detail=last_words)
    return place


@contextmanager
def process_cluster(
    version: str,
    *,
    brokers: int = 3,
    lanes: int = LANES,
    folder: Path | None = None,
    keep: bool = False,
    train: Path | None = None,
    settings: Mapping[str, str] = NO_SETTINGS,
    heap_mib: int | None = None,
    controllers: int = 0,
    further: int = 0,
    tiered: bool = False,
) -> Iterator[BootedCluster]:
    """Boots a cluster and ends it; `folder` holds data and logs (a temporary one by default, removed unless `keep`).

    `settings` and `heap_mib` of all brokers go before those that a cluster has by itself. With `controllers`, so many
    nodes are controllers and nothing else, and brokers are brokers only: such can be replaced by `further` ones, whose
    ids, ports and names are kept free from the beginning. `tiered`: topics may have a remote tier.

    With `train`, no class-data archive is used: broker 0 writes a new one there when it ends (`archive.py`).

    Raises:
        InputError: unknown version, wrong checksum.
        StartError: no Java, no ports, or a broker did not come up; with its last words.
    """
    find_version(version)
    server = toxiproxy_server()
    if not train:
        class_data_archive(version)
    name = f"kt{secrets.token_hex(3)}"
    with ExitStack() as stack:
        ports = stack.enter_context(block_of_ports(Wiring.size(brokers + further, lanes, controllers)))
        wiring = Wiring(ports, brokers + further, lanes, controllers=controllers)
        place = folder or Path(tempfile.mkdtemp(prefix=f"kafka-trial-{name}-"))
        child_processes = stack.enter_context(ChildProcesses(f"cluster {name}", belongings=[] if keep else [place]))
        settings = {**tiered_settings(place, brokers), **settings} if tiered else settings

        def make(node: int, version: str) -> Broker:
            trains = train if node == 0 else None
            return _node(
                *(node, version, place, wiring, child_processes), settings=settings, heap_mib=heap_mib, train=trains
            )

        made = {node: make(node, version) for node in range(brokers)}
        voting = {node: make(node, version) for node in wiring.voters if node not in made} if controllers else {}
        with (place / "toxiproxy.log").open("ab") as log:
            command = [str(server), "-host", wiring.host, "-port", str(wiring.toxiproxy_port)]
            toxiproxy = child_processes.spawn("toxiproxy", command, stdout=log, stderr=log)
        cluster = BootedCluster(
            name,
            version,
            place,
            wiring,
            made,
            toxiproxy_died=lambda: None if toxiproxy.alive else f"Toxiproxy exited with {toxiproxy.exit_code}",
            controllers=voting,
            make_broker=make if further else None,
        )
        boot(cluster, within_s=BOOT_WITHIN_S)
        yield cluster


def _node(
    node: int,
    version: str,
    place: Path,
    wiring: Wiring,
    child_processes: ChildProcesses,
    *,
    settings: Mapping[str, str],
    heap_mib: int | None,
    train: Path | None,
) -> Broker:
    folder = place / node_name(node)
    data = folder / "data"
    data.mkdir(parents=True)
    scratch = folder / "tmp"  # native libraries are unpacked there; it goes with the folder
    scratch.mkdir()
    template = formatted_template(version)
    if node in wiring.voters:
        fill_data_folder(template, data)  # with the records that the cluster's metadata begins with
    _stamp_data(template, data, node)
    (folder / "hosts").write_text(hosts_file(wiring.brokers, wiring.controllers))

    def prepare(version: str) -> list[str]:
        known = KNOWN[version]
        (folder / "server.properties").write_text(server_properties(wiring, known, node, data, settings))
        flag, text = logging_config(known, folder)
        (folder / "logging.xml").write_text(text)
        command = [str(find_java()), *JVM, *_heap_flags(heap_mib), *_archive_flags(version, train), flag]
        command += [f"-Djdk.net.hosts.file={folder / 'hosts'}", f"-Djava.io.tmpdir={scratch}"]
        command += [f"-Dkafka.trial.cluster={place}", "-cp", class_path(version)]
        return [*command, "kafka.Kafka", str(folder / "server.properties")]

    return Broker(node, folder, child_processes, prepare, version)


def _heap_flags(heap_mib: int | None) -> list[str]:
    return [] if heap_mib is None else [f"-Xms{heap_mib}m", f"-Xmx{heap_mib}m"]  # of two, a JVM takes the last


def _archive_flags(version: str, train: Path | None) -> list[str]:
    if train:
        return [*base_archive_flags(find_java()), f"-XX:ArchiveClassesAtExit={train}"]
    archive = archive_place(version)
    return [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []


def _stamp_data(template: Path, data: Path, node: int) -> None:
    lines = (template / "meta.properties").read_text().splitlines()
    own = {"node.id": str(node), "cluster.id": "a2Fma2EtdHJpYWwtMDAwMA", "directory.id": _directory_id()}
    kept = [line for line in lines if not line.startswith("#") and line.partition("=")[0] not in own]
    (data / "meta.properties").write_text("\n".join([*kept, *(f"{key}={value}" for key, value in own.items())]) + "\n")


def _directory_id() -> str:
    while True:
        drawn = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        if not drawn.startswith("-"):  # Kafka refuses ids that look like options
            return drawn

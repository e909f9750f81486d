"""Wiring: from version, brokers, lanes and a block of ports to the files a broker is started with.

Per broker: K client listeners `LANE0…` each advertised as its Toxiproxy proxy, an OBSERVER listener that passes no
proxy, INTERNAL and CONTROLLER advertised as `b<i>:port` (names resolved by each JVM's own hosts file), so that
broker-to-broker proxies can be put between them. KRaft refuses to add advertised listeners later: K is fixed at boot.

Ports come in blocks between 20000 and 31999, each held by a file lock, so that two harnesses never meet. Below 32768
because the kernel's ephemeral range begins there: a broker on such a port once died in bind().
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from kafka_trial.cluster.cluster import FIRST_CONTROLLER, Lane, OfThoseThere, node_name
from kafka_trial.cluster.versions import KafkaVersion
from kafka_trial.errors import StartError

LOOPBACK = "127.0.0.1"
LANES = 16
OFFSETS_PARTITIONS = 8
CONSUMER_SESSION_TIMEOUT_S = 3.0  # of members of KIP-848, who cannot ask for another
RECORD_BYTES_MAX = 12 * 1024 * 1024

REQUEST_APIS = [
    "FETCH",
    "LIST_OFFSETS",
    "FIND_COORDINATOR",
    "OFFSET_COMMIT",
    "OFFSET_FETCH",
    "JOIN_GROUP",
    "SYNC_GROUP",
    "HEARTBEAT",
    "LEAVE_GROUP",
    "CONSUMER_GROUP_HEARTBEAT",
    "TXN_OFFSET_COMMIT",
    "ADD_OFFSETS_TO_TXN",
    "END_TXN",
    "API_VERSIONS",
    "METADATA",
    "INIT_PRODUCER_ID",
    "ADD_PARTITIONS_TO_TXN",
    "OFFSET_DELETE",
]
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
REMOTE_READER = "org.apache.kafka.server.log.remote.storage.RemoteLogReader"  # tells of reads of the remote tier
QUIET_LISTENERS = ("INTERNAL", "CONTROLLER", "OBSERVER")


@dataclass(frozen=True)
class Wiring:
    """Who listens where: a layout of one block of ports for `brokers` brokers with `lanes` lanes each.

    `host` is the address at which clients find the proxies and observers the brokers. `brokers` are all that there may
    ever be. `controllers`: how many nodes are controllers only; none: every broker is a controller too.
    """

    ports: range
    brokers: int
    lanes: int = LANES
    host: str = LOOPBACK
    controllers: int = 0

    @staticmethod
    def size(brokers: int, lanes: int = LANES, controllers: int = 0) -> int:
        """How many ports a cluster needs: Toxiproxy's API, pairs of brokers, per broker 2 a lane and 3, and one for
        each controller of its own."""
        return 1 + brokers * (brokers - 1) + brokers * (2 * lanes + 3) + controllers

    @property
    def toxiproxy_port(self) -> int:
        return self.ports[0]

    def pair_port(self, near: int, far: int) -> int:
        """The port reserved for the proxy through which broker `near` will reach broker `far`."""
        return self.ports[1 + near * (self.brokers - 1) + (far if far < near else far - 1)]

    @property
    def voters(self) -> range:
        """The ids of the nodes that are controllers."""
        return range(FIRST_CONTROLLER, FIRST_CONTROLLER + self.controllers) if self.controllers else range(self.brokers)

    def controller_port(self, node: int) -> int:
        if node >= FIRST_CONTROLLER:
            return self.ports[self.size(self.brokers, self.lanes) + node - FIRST_CONTROLLER]
        return self._of(node, 0)

    def internal_port(self, broker: int) -> int:
        return self._of(broker, 1)

    def observer_port(self, broker: int) -> int:
        return self._of(broker, 2)

    def proxy_port(self, broker: int, lane: int) -> int:
        return self._of(broker, 3 + lane)

    def server_port(self, broker: int, lane: int) -> int:
        return self._of(broker, 3 + self.lanes + lane)

    def ports_of(self, broker: int) -> frozenset[int]:
        """Returns the ports at which a broker listens, or a controller of its own."""
        if broker >= FIRST_CONTROLLER:
            return frozenset([self.controller_port(broker)])
        own = (self.controller_port(broker), self.internal_port(broker), self.observer_port(broker))
        return frozenset([*own, *(self.server_port(broker, lane) for lane in range(self.lanes))])

    def lane(self, index: int, cluster: str, *, there: Callable[[], Collection[int]] | None = None) -> Lane:
        """Returns lane `index`, whose proxies' names carry the cluster's name; `there`: which brokers are there, where
        that changes."""
        there = there or (lambda: range(self.brokers))
        ports = {broker: self.proxy_port(broker, index) for broker in range(self.brokers)}
        names = {broker: f"{cluster}-b{broker}-lane{index}" for broker in ports}
        return Lane(index, self.host, OfThoseThere(names, there), OfThoseThere(ports, there))

    def proxies(self, cluster: str, brokers: Collection[int] | None = None) -> list[tuple[str, int, int]]:
        """Returns (name, listening port, upstream port) of every lane's proxies, of some brokers or all."""
        return [
            (self.lane(index, cluster).proxies[broker], self.proxy_port(broker, index), self.server_port(broker, index))
            for broker in (range(self.brokers) if brokers is None else sorted(brokers))
            for index in range(self.lanes)
        ]

    def observer_bootstrap(self) -> str:
        return ",".join(f"{self.host}:{self.observer_port(broker)}" for broker in range(self.brokers))

    def _of(self, broker: int, place: int) -> int:
        start = 1 + self.brokers * (self.brokers - 1) + broker * (2 * self.lanes + 3)
        return self.ports[start + place]


def server_properties(
    wiring: Wiring, version: KafkaVersion, node: int, data: Path, settings: Mapping[str, str] = NO_SETTINGS
) -> str:
    """Returns a node's server.properties; `settings` go before the cluster's own."""
    settings = {**server_settings(wiring, version, node, data), **settings}
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def server_settings(wiring: Wiring, version: KafkaVersion, node: int, data: Path) -> Mapping[str, str]:
    """Returns the settings of a node, by their names in server.properties: of one that is broker and controller, or of
    a broker or controller only where controllers are nodes of their own."""
    roles = {"broker": node < FIRST_CONTROLLER, "controller": node in wiring.voters}
    return {
        "process.roles": ",".join(role for role, has_it in roles.items() if has_it),
        "node.id": str(node),
        "controller.quorum.voters": ",".join(
            f"{voter}@{node_name(voter)}:{wiring.controller_port(voter)}" for voter in wiring.voters
        ),
        "log.dirs": str(data),
        **_listeners(wiring, version, node),
        **_timing(version),
        **_sizes(wiring.brokers),
    }


def hosts_file(brokers: int, controllers: int = 0) -> str:
    """Returns the hosts file of a node's JVM; names that are not in it do not resolve."""
    nodes = [*range(brokers), *range(FIRST_CONTROLLER, FIRST_CONTROLLER + controllers)]
    return "127.0.0.1 localhost\n" + "".join(f"127.0.0.1 {node_name(node)}\n" for node in nodes)


def logging_config(version: KafkaVersion, folder: Path) -> tuple[str, str]:
    """Returns the JVM flag and the text of the logging configuration: server.log, and the request log in full."""
    if version.log4j2:
        return f"-Dlog4j2.configurationFile={folder / 'logging.xml'}", _log4j2(folder)
    return f"-Dlog4j.configuration=file:{folder / 'logging.xml'}", _reload4j(folder)


def one_log(log: Path, config: Path) -> str:
    """Writes a log4j2 configuration that has a JVM log into one file; returns the flag that names it."""
    config.write_text(
        f"""<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="ERROR">
  <Appenders><File name="all" fileName="{log}"><PatternLayout pattern="[%d] %p %m (%c)%n"/></File></Appenders>
  <Loggers><Root level="INFO"><AppenderRef ref="all"/></Root></Loggers>
</Configuration>
"""
    )
    return f"-Dlog4j2.configurationFile={config}"


def _listeners(wiring: Wiring, version: KafkaVersion, node: int) -> Mapping[str, str]:
    bound, told = [], []
    if node in wiring.voters:
        bound.append(f"CONTROLLER://127.0.0.1:{wiring.controller_port(node)}")
        if version.advertised_controllers:
            told.append(f"CONTROLLER://{node_name(node)}:{wiring.controller_port(node)}")
    if node < FIRST_CONTROLLER:
        for_clients, told_clients = _client_listeners(wiring, node)
        bound, told = [*bound, *for_clients], [*told, *told_clients]
    names = ["CONTROLLER", "INTERNAL", "OBSERVER", *(f"LANE{lane}" for lane in range(wiring.lanes))]
    return {
        "listeners": ",".join(bound),
        **({"advertised.listeners": ",".join(told)} if told else {}),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
        "controller.listener.names": "CONTROLLER",
        **({"inter.broker.listener.name": "INTERNAL"} if node < FIRST_CONTROLLER else {}),
    }


def _client_listeners(wiring: Wiring, broker: int) -> tuple[list[str], list[str]]:
    """Returns where a broker listens for brokers, observers and clients, and what it tells them of that."""
    lanes, internal = range(wiring.lanes), wiring.internal_port(broker)
    observer = f"OBSERVER://{wiring.host}:{wiring.observer_port(broker)}"
    bound = [f"LANE{lane}://127.0.0.1:{wiring.server_port(broker, lane)}" for lane in lanes]
    told = [f"LANE{lane}://{wiring.host}:{wiring.proxy_port(broker, lane)}" for lane in lanes]
    return [f"INTERNAL://127.0.0.1:{internal}", observer, *bound], [f"INTERNAL://b{broker}:{internal}", observer, *told]


def _timing(version: KafkaVersion) -> Mapping[str, str]:
    shared = {
        "controller.quorum.election.timeout.ms": "1000",
        "controller.quorum.election.backoff.max.ms": "100",
        "controller.quorum.fetch.timeout.ms": "2000",
        "controller.quorum.append.linger.ms": "5",
        "broker.heartbeat.interval.ms": "500",
        "broker.session.timeout.ms": "3000",
        "replica.lag.time.max.ms": "3000",
        "group.initial.rebalance.delay.ms": "200",
        "group.min.session.timeout.ms": "1000",
        "log.retention.check.interval.ms": "1000",
        "log.segment.delete.delay.ms": "1000",  # a minute by default: deleted topics of warm clusters filled disks
        "log.cleaner.backoff.ms": "500",
    }
    if not version.kraft_only:
        shared["controlled.shutdown.retry.backoff.ms"] = "200"
    if version.consumer_protocol:
        shared |= {
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.session.timeout.ms": str(round(CONSUMER_SESSION_TIMEOUT_S * 1000)),
            "group.consumer.min.heartbeat.interval.ms": "100",
            # librdkafka gives a heartbeat up after one interval, and with an answer that comes later the assignment in
            # it: 300 lost some on a busy machine
            "group.consumer.heartbeat.interval.ms": "1000",
            "group.consumer.migration.policy": "bidirectional",
        }
    if version.assignment_intervals:
        shared |= {"group.consumer.assignment.interval.ms": "0", "group.consumer.min.assignment.interval.ms": "0"}
    return shared


def _sizes(brokers: int) -> Mapping[str, str]:
    replicas = str(min(3, brokers))
    return {
        "num.network.threads": "1",
        "num.io.threads": "4",
        "background.threads": "2",
        "num.replica.fetchers": "1",
        "log.cleaner.threads": "1",
        "log.cleaner.dedupe.buffer.size": "4194304",
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.segment.bytes": "104857600",
        "transaction.state.log.num.partitions": "3",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": str(min(2, brokers)),
        "default.replication.factor": replicas,
        "min.insync.replicas": str(min(2, brokers)),
        "message.max.bytes": str(RECORD_BYTES_MAX),
        "replica.fetch.max.bytes": str(RECORD_BYTES_MAX),
        "socket.request.max.bytes": "104857600",
    }


def _log4j2(folder: Path) -> str:
    wanted = "|".join(REQUEST_APIS)
    drop = "|".join(QUIET_LISTENERS)
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="ERROR">
  <Appenders>
    <File name="server" fileName="{folder / "server.log"}"><PatternLayout pattern="[%d] %p %m (%c)%n"/></File>
    <File name="requests" fileName="{folder / "requests.log"}" immediateFlush="true">
      <Filters>
        <RegexFilter regex="(?s).*&quot;listener&quot;:&quot;({drop})&quot;.*" onMatch="DENY" onMismatch="NEUTRAL"/>
        <RegexFilter regex="(?s).*&quot;requestApiKeyName&quot;:&quot;({wanted})&quot;.*"
                     onMatch="ACCEPT" onMismatch="DENY"/>
      </Filters>
      <PatternLayout pattern='{{"ts":%d{{UNIX}}.%d{{SSSSSS}},"r":%replace{{%m}}{{^Completed request:}}{{}}}}%n'/>
    </File>
  </Appenders>
  <Loggers>
    <Root level="INFO"><AppenderRef ref="server"/></Root>
    <Logger name="kafka.request.logger" level="DEBUG" additivity="false"><AppenderRef ref="requests"/></Logger>
    <Logger name="{REMOTE_READER}" level="DEBUG"/>
  </Loggers>
</Configuration>
"""


def _reload4j(folder: Path) -> str:
    filters = [_match(f'"listener":"{name}"', accept=False) for name in QUIET_LISTENERS]
    filters += [_match(f'"requestApiKeyName":"{name}"', accept=True) for name in REQUEST_APIS]
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE log4j:configuration SYSTEM "log4j.dtd">
<log4j:configuration xmlns:log4j="http://jakarta.apache.org/log4j/">
  <appender name="server" class="org.apache.log4j.FileAppender">
    <param name="File" value="{folder / "server.log"}"/>
    <layout class="org.apache.log4j.PatternLayout"><param name="ConversionPattern" value="[%d] %p %m (%c)%n"/></layout>
  </appender>
  <appender name="requests" class="org.apache.log4j.FileAppender">
    <param name="File" value="{folder / "requests.log"}"/><param name="ImmediateFlush" value="true"/>
    <layout class="org.apache.log4j.EnhancedPatternLayout">
      <param name="ConversionPattern" value='{{"ts":"%d{{yyyy-MM-dd HH:mm:ss.SSS}}{{UTC}}","r":%m}}%n'/>
    </layout>
    {"".join(filters)}<filter class="org.apache.log4j.varia.DenyAllFilter"/>
  </appender>
  <logger name="kafka.request.logger" additivity="false"><level value="DEBUG"/><appender-ref ref="requests"/></logger>
  <root><level value="INFO"/><appender-ref ref="server"/></root>
</log4j:configuration>
"""


def _match(text: str, *, accept: bool) -> str:
    escaped = text.replace('"', "&quot;")
    return (
        '<filter class="org.apache.log4j.varia.StringMatchFilter">'
        f'<param name="StringToMatch" value="{escaped}"/><param name="AcceptOnMatch" value="{str(accept).lower()}"/>'
        "</filter>\n    "
    )


FIRST_PORT, LAST_PORT, BLOCK_PORTS = 20000, 31999, 200


@contextmanager
def block_of_ports(size: int) -> Iterator[range]:
    """Holds a block of `size` free ports for as long as the `with` lasts.

    Raises:
        StartError: every block is taken.
    """
    blocks = -(-size // BLOCK_PORTS)
    for first in range(FIRST_PORT, LAST_PORT + 2 - blocks * BLOCK_PORTS, blocks * BLOCK_PORTS):
        locks = _locked(first, blocks)
        if locks is None:
            continue
        try:
            if all(map(_free, range(first, first + size))):
                yield range(first, first + size)
                return
        finally:
            for lock in locks:
                os.close(lock)
    raise StartError(
        f"no {size} free ports together between {FIRST_PORT} and {LAST_PORT}: other harnesses or programs hold them; "
        "`kafka-trial doctor` names leftovers, `kafka-trial cluster list` shows running clusters"
    )


def _locked(first: int, blocks: int) -> list[int] | None:
    locks: list[int] = []
    for start in range(first, first + blocks * BLOCK_PORTS, BLOCK_PORTS):
        lock = os.open(lock_folder() / f"{start}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        locks.append(lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            for taken in locks:
                os.close(taken)
            return None
    return locks


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def lock_folder() -> Path:
    """Returns the folder of this user's port locks (the kernel frees a lock when its holder dies)."""
    folder = Path(tempfile.gettempdir()) / f"kafka-trial-{os.getuid()}" / "ports"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder

"""A cluster that this process has booted: lanes are lent, its health is looked after, whatever its brokers are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.cluster import (
    REQUEST_LOG,
    BrokerHandle,
    Lane,
    broker_pids,
    node_in_words,
    node_name,
)
from kafka_trial.cluster.toxiproxy import Toxiproxy
from kafka_trial.cluster.wiring import Wiring
from kafka_trial.containers.network import ContainerNetwork
from kafka_trial.errors import StartError, UnjudgeableError
from kafka_trial.process.cpu_waits import SharedCpuWaits
from kafka_trial.process.steps import step
from kafka_trial.process.waiting import wait_until


class OwnBroker(BrokerHandle, Protocol):
    """A broker that this process has started."""

    def last_words(self, *, lines: int = 5) -> str:
        """Returns the last lines that it wrote, for an error message."""
        ...


NO_NODES: Final[Mapping[int, OwnBroker]] = MappingProxyType({})


class BootedCluster:
    """A running cluster, of whatever it is made; by `process_cluster` or `container_cluster`, which also end it."""

    def __init__(
        self,
        name: str,
        version: str,
        folder: Path,
        wiring: Wiring,
        brokers: Mapping[int, OwnBroker],
        *,
        toxiproxy_died: Callable[[], str | None],
        container_network: ContainerNetwork | None = None,
        controllers: Mapping[int, OwnBroker] = NO_NODES,
        make_broker: Callable[[int, str], OwnBroker] | None = None,
    ) -> None:
        """`toxiproxy_died` says how Toxiproxy ended, if it did; `make_broker` makes a further broker of a version, with
        an empty data folder."""
        self.name = name
        self.kafka_version = version
        self.folder = folder
        self.wiring = wiring
        self.brokers = brokers
        self.broker_waits = SharedCpuWaits(lambda: broker_pids(self.brokers))
        self.controllers = controllers
        self.host = wiring.host
        self.container_network = container_network
        self.observer_bootstrap = wiring.observer_bootstrap()
        self.toxiproxy = Toxiproxy(wiring.toxiproxy_port, host=wiring.host)
        self.ruined: str | None = None
        self.rebuilt_because: str | None = None
        # In containers they have a network of their own.
        self.socket_dump = self.toxiproxy.sockets if container_network else None
        self._free_lanes = list(range(wiring.lanes))
        self._lock = threading.Lock()
        self._toxiproxy_died = toxiproxy_died
        self._make_broker = make_broker
        self._gone: dict[int, OwnBroker] = {}

    @property
    def nodes(self) -> Mapping[int, OwnBroker]:
        """The brokers that are there, and the controllers of their own."""
        return {**self.brokers, **self.controllers}

    @property
    def request_logs(self) -> Mapping[int, Path]:
        """The request log of each broker that is there, was there, or may come."""
        return {broker: self.folder / node_name(broker) / REQUEST_LOG for broker in range(self.wiring.brokers)}

    @property
    def server_logs(self) -> Mapping[str, Path]:
        """The log of each node that is there or was there, by its name."""
        return {node_name(node.id): node.server_log for node in (*self.nodes.values(), *self._gone.values())}

    @property
    def lost(self) -> str | None:
        """Why nothing can go on here: Toxiproxy has ended, or the container engine is gone; None while it serves."""
        return self._toxiproxy_died()

    def ruin(self, reason: str) -> None:
        """Marks the cluster as not to be used again; the first reason stays."""
        self.ruined = self.ruined or reason

    def server_port(self, broker: int, lane: int) -> int:
        """The broker's own port behind a lane's proxy."""
        return self.wiring.server_port(broker, lane)

    def observer_address(self, broker: int) -> tuple[str, int]:
        """Where observers reach one broker."""
        return self.host, self.wiring.observer_port(broker)

    def join(self, broker: int, version: str) -> OwnBroker:
        """Starts a further broker of a version, with an empty data folder; returns before it serves.

        Raises:
            UnjudgeableError: no broker of that id may join here.
        """
        if self._make_broker is None or broker not in range(self.wiring.brokers):
            raise UnjudgeableError(f"broker {broker} cannot join: {self.name} was booted without a place for it")
        if broker in self.brokers or broker in self._gone:
            raise UnjudgeableError(f"broker {broker} cannot join {self.name}: its id and its folder were used before")
        made = self._make_broker(broker, version)
        self.toxiproxy.populate(self.wiring.proxies(self.name, [broker]))
        made.start()
        self.brokers = {**self.brokers, broker: made}  # a new mapping: others walk over the old one
        return made

    def leave(self, broker: int) -> None:
        """Lets go of a broker that has ended: nothing listens at its addresses any more.

        Raises:
            UnjudgeableError: it is not there, or still runs.
        """
        gone = self.brokers.get(broker)
        if gone is None or gone.alive:
            raise UnjudgeableError(f"broker {broker} cannot leave: it {'is not there' if gone is None else 'runs'}")
        self._gone[broker] = gone
        self.brokers = {number: one for number, one in self.brokers.items() if number != broker}
        self.toxiproxy.remove(name for name, _, _ in self.wiring.proxies(self.name, [broker]))

    @contextmanager
    def lease_lanes(self, count: int) -> Iterator[list[Lane]]:
        """Lends `count` lanes; each is reset when it comes back."""
        with self._lock:
            if count > len(self._free_lanes):
                free = len(self._free_lanes)
                raise StartError(
                    f"{count} lanes are needed, {free} of {self.wiring.lanes} are free: fewer members or trials"
                )
            indexes, self._free_lanes = self._free_lanes[:count], self._free_lanes[count:]
        lanes = [self.wiring.lane(index, self.name, there=self._there) for index in indexes]
        try:
            yield lanes
        finally:
            self._take_back(lanes)

    def _there(self) -> Collection[int]:
        return self.brokers.keys()

    def _take_back(self, lanes: list[Lane]) -> None:
        try:
            self.toxiproxy.reset(name for lane in lanes for name in lane.proxies.values())
        except UnjudgeableError as error:
            self.ruin(f"lanes could not be reset: {error}")
        with self._lock:
            self._free_lanes = sorted({*self._free_lanes, *(lane.index for lane in lanes)})

    def health(self) -> list[str]:
        """Returns what is not as it should be: dead brokers, replicas out of sync, toxics left behind."""
        if self.lost:
            return [self.lost]
        dead = [
            f"{node_in_words(node.id)} is not running (exit {node.exit_code})"
            for node in self.nodes.values()
            if not node.alive
        ]
        if dead:
            return dead
        try:
            left = [
                f"proxy {proxy.name} is {'toxic' if proxy.toxics else 'disabled'}"
                for proxy in self.toxiproxy.proxies().values()
                if proxy.toxics or not proxy.enabled
            ]
            with Admin(self.observer_bootstrap) as admin:
                return left + admin.under_replicated()
        except UnjudgeableError as error:
            return [str(error)]


def boot(cluster: BootedCluster, *, within_s: float) -> None:
    """Starts all brokers at once beside a Toxiproxy that is starting, and waits until the cluster is whole.

    Raises:
        StartError: it did not come up; with the last words of the brokers.
    """
    with step(f"booting {len(cluster.brokers)} brokers of Kafka {cluster.kafka_version}", about="ten seconds or so"):
        _boot(cluster, within_s)


def _boot(cluster: BootedCluster, within_s: float) -> None:
    for node in cluster.nodes.values():
        node.start()
    try:
        wait_until(
            lambda: _answers(cluster.toxiproxy),
            within_s=20,
            what="Toxiproxy to answer",
            alive=lambda: cluster.lost,
        )
        cluster.toxiproxy.populate(cluster.wiring.proxies(cluster.name, cluster.brokers))
        with Admin(cluster.observer_bootstrap, answer_within_s=1) as asking:
            wait_until(
                lambda: asking.broker_ids() == set(cluster.brokers),
                within_s=within_s,
                what=f"all {len(cluster.brokers)} brokers to register",
                alive=lambda: cluster.lost or _dead_broker(cluster),
            )
        with Admin(cluster.observer_bootstrap) as admin:
            admin.create_offsets_topic(replication_factor=min(3, len(cluster.brokers)))
    except (UnjudgeableError, StartError) as error:
        words = "; ".join(f"{node_in_words(node.id)}: {node.last_words()}" for node in cluster.nodes.values())
        raise StartError(f"Kafka {cluster.kafka_version} did not come up: {error}. Last words: {words}") from error


def _answers(toxiproxy: Toxiproxy) -> bool:
    try:
        return bool(toxiproxy.version())
    except UnjudgeableError:
        return False


def _dead_broker(cluster: BootedCluster) -> str | None:
    dead = next((node for node in cluster.nodes.values() if not node.alive), None)
    return f"{node_in_words(dead.id)} exited with {dead.exit_code}" if dead else None

"""A cluster that this process has booted: lanes are lent, its health is looked after, whatever its brokers are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.cluster import BrokerHandle, Lane
from kafka_trial.cluster.toxiproxy import Toxiproxy
from kafka_trial.cluster.wiring import Wiring
from kafka_trial.containers.network import ContainerNetwork
from kafka_trial.errors import StartError, UnjudgeableError
from kafka_trial.process.steps import step
from kafka_trial.process.waiting import wait_until


class OwnBroker(BrokerHandle, Protocol):
    """A broker that this process has started."""

    def last_words(self, *, lines: int = 5) -> str:
        """Returns the last lines that it wrote, for an error message."""
        ...


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
    ) -> None:
        """`toxiproxy_died` says how Toxiproxy ended, if it did."""
        self.name = name
        self.kafka_version = version
        self.folder = folder
        self.wiring = wiring
        self.brokers = brokers
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
        lanes = [self.wiring.lane(index, self.name) for index in indexes]
        try:
            yield lanes
        finally:
            self._take_back(lanes)

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
            f"broker {broker.id} is not running (exit {broker.exit_code})"
            for broker in self.brokers.values()
            if not broker.alive
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
    for broker in cluster.brokers.values():
        broker.start()
    try:
        wait_until(
            lambda: _answers(cluster.toxiproxy),
            within_s=20,
            what="Toxiproxy to answer",
            alive=lambda: cluster.lost,
        )
        cluster.toxiproxy.populate(cluster.wiring.proxies(cluster.name))
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
        words = "; ".join(f"broker {broker.id}: {broker.last_words()}" for broker in cluster.brokers.values())
        raise StartError(f"Kafka {cluster.kafka_version} did not come up: {error}. Last words: {words}") from error


def _answers(toxiproxy: Toxiproxy) -> bool:
    try:
        return bool(toxiproxy.version())
    except UnjudgeableError:
        return False


def _dead_broker(cluster: BootedCluster) -> str | None:
    dead = next((broker for broker in cluster.brokers.values() if not broker.alive), None)
    return f"broker {dead.id} exited with {dead.exit_code}" if dead else None

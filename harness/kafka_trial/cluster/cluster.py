"""The cluster protocol: what a trial may ask of a Kafka cluster, whatever it is made of.

`processes.py` makes one of processes on this machine, `containers.py` one of containers. Clients under trial reach
brokers only through the proxies of their lane; observers use `observer_bootstrap`, which passes no proxy and cannot be
disturbed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar

from kafka_trial.cluster.toxiproxy import Toxiproxy
from kafka_trial.containers.network import ContainerNetwork
from kafka_trial.errors import UnjudgeableError
from kafka_trial.process.control_groups import ContainerView
from kafka_trial.process.cpu_waits import SharedCpuWaits

T = TypeVar("T")
REQUEST_LOG: Final = "requests.log"  # in the folder of each broker
SERVER_LOG: Final = "server.log"
FIRST_CONTROLLER: Final = 100  # controllers of their own have ids from here on, and brokers none


def node_name(node: int) -> str:
    """Returns the name of a node: `b0` of a broker, `c0` of the first controller of its own."""
    return f"b{node}" if node < FIRST_CONTROLLER else f"c{node - FIRST_CONTROLLER}"


def node_in_words(node: int) -> str:
    """Returns what a node is, and its id."""
    return f"{'broker' if node < FIRST_CONTROLLER else 'controller'} {node}"


class OfThoseThere(Mapping[int, T]):
    """What each broker has, of those that are there at the moment: who asks later may see others."""

    def __init__(self, of_all: Mapping[int, T], there: Callable[[], Collection[int]]) -> None:
        self._of_all = of_all
        self._there = there

    def __getitem__(self, broker: int) -> T:
        if broker not in self._there():
            raise KeyError(broker)
        return self._of_all[broker]

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._there()))

    def __len__(self) -> int:
        return len(self._there())


@dataclass(frozen=True)
class Lane:
    """One client's private way to every broker that is there: a proxy (by name) and its port for each."""

    index: int
    host: str
    proxies: Mapping[int, str]
    ports: Mapping[int, int]

    @property
    def bootstrap(self) -> str:
        """The addresses of the brokers that are there: what a client that starts now is told."""
        return ",".join(f"{self.host}:{port}" for port in self.ports.values())


class BrokerHandle(Protocol):
    """One broker: what can be done to its process, and where it writes."""

    @property
    def id(self) -> int: ...
    @property
    def pid(self) -> int:
        """The broker's process, leader of its process group (of the last start)."""
        ...

    @property
    def alive(self) -> bool: ...
    @property
    def exit_code(self) -> int | None: ...
    @property
    def container_view(self) -> ContainerView | None:
        """What this machine sees of its container; None: it is a process among ours."""
        ...

    @property
    def request_log(self) -> Path: ...
    @property
    def server_log(self) -> Path: ...
    def kill(self) -> None:
        """kill -9."""
        ...

    def terminate(self) -> None:
        """SIGTERM: a controlled shutdown."""
        ...

    def pause(self) -> None:
        """SIGSTOP to the process group."""
        ...

    def resume(self) -> None:
        """SIGCONT to the process group."""
        ...

    def start(self) -> None:
        """Starts the process again on its own data; returns before the broker serves."""
        ...

    def become(self, version: str) -> None:
        """Makes it a broker of another version of Kafka, from its next start on.

        Raises:
            UnjudgeableError: brokers of this cluster cannot.
        """
        ...


def broker_pids(brokers: Mapping[int, BrokerHandle]) -> list[int]:
    """Returns the processes of those brokers that run."""
    pids = []
    for broker in brokers.values():
        with suppress(UnjudgeableError):  # it went meanwhile, or was never started
            pids += [broker.pid] if broker.alive else []
    return pids


class Cluster(Protocol):
    """A running cluster."""

    @property
    def name(self) -> str: ...
    @property
    def kafka_version(self) -> str: ...
    @property
    def folder(self) -> Path: ...
    @property
    def host(self) -> str:
        """The network address of the proxies, and of the listeners that pass none."""
        ...

    @property
    def socket_dump(self) -> Callable[[int], bytes] | None:
        """Asks the kernel, by a mask of TCP states, for the sockets of the network that proxies and brokers are in;
        None: they are in ours."""
        ...

    @property
    def container_network(self) -> ContainerNetwork | None:
        """Where containers reach it; None: nowhere, it has processes for clients."""
        ...

    @property
    def observer_bootstrap(self) -> str:
        """Where observers ask: also at the addresses of brokers that may come, for those that are there may go."""
        ...

    @property
    def brokers(self) -> Mapping[int, BrokerHandle]:
        """The brokers that are there; which they are changes where brokers are replaced."""
        ...

    @property
    def broker_waits(self) -> SharedCpuWaits:
        """How long the brokers that run have waited for a processor, for all trials on it."""
        ...

    @property
    def controllers(self) -> Mapping[int, BrokerHandle]:
        """The controllers that are no brokers, by their ids; none where brokers are controllers too."""
        ...

    @property
    def request_logs(self) -> Mapping[int, Path]:
        """The request log of each broker that is there, was there, or may come."""
        ...

    @property
    def server_logs(self) -> Mapping[str, Path]:
        """The log of each node that is there or was there, by its name."""
        ...

    @property
    def toxiproxy(self) -> Toxiproxy: ...
    @property
    def ruined(self) -> str | None:
        """Why no further trial may use this cluster; None while it is good."""
        ...

    @property
    def lost(self) -> str | None:
        """Why nothing can go on here: Toxiproxy has ended, or the container engine is gone; None while it serves."""
        ...

    @property
    def rebuilt_because(self) -> str | None:
        """Why this cluster stands in for an earlier one that was ruined; None for a first one."""
        ...

    def ruin(self, reason: str) -> None:
        """Marks the cluster as not to be used again."""
        ...

    def health(self) -> list[str]:
        """Returns what is not as it should be, as sentences; empty when all is well."""
        ...

    def lease_lanes(self, count: int) -> AbstractContextManager[list[Lane]]:
        """Lends `count` lanes; each is reset (no toxics, enabled) when it comes back.

        Raises:
            StartError: not enough lanes are free.
        """
        ...

    def server_port(self, broker: int, lane: int) -> int:
        """The broker's own port behind a lane's proxy."""
        ...

    def observer_address(self, broker: int) -> tuple[str, int]:
        """Where observers reach one broker."""
        ...

    def join(self, broker: int, version: str) -> BrokerHandle:
        """Starts a further broker of a version, with an empty data folder; returns before it serves.

        Raises:
            UnjudgeableError: no broker of that id may join here.
        """
        ...

    def leave(self, broker: int) -> None:
        """Lets go of a broker that has ended: nothing listens at its addresses any more.

        Raises:
            UnjudgeableError: it is not there, or still runs.
        """
        ...

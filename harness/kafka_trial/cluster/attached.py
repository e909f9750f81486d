"""A cluster that `cluster up` keeps up, as trials of other processes use it: nothing is booted, nothing is ended.

Its brokers are processes of their holder, so that nobody else can start them again: a scenario that breaks brokers
needs a cluster of its own. Lanes are leased among processes by locks in the cluster's folder, which go with whoever
holds them.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import NoReturn

import psutil

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.cluster import REQUEST_LOG, SERVER_LOG, BrokerHandle, Lane, broker_pids, node_name
from kafka_trial.cluster.detached import State, find, holder_of
from kafka_trial.cluster.kafka_cut import remove_cuts
from kafka_trial.cluster.toxiproxy import Toxiproxy
from kafka_trial.cluster.wiring import Wiring
from kafka_trial.containers.network import ContainerNetwork
from kafka_trial.errors import InputError, StartError, UnjudgeableError
from kafka_trial.process.control_groups import ContainerView
from kafka_trial.process.cpu_waits import SharedCpuWaits


class AttachedBroker:
    """One broker of another process: seen, never touched."""

    def __init__(self, number: int, folder: Path) -> None:
        self.id = number
        self.folder = folder
        self.request_log = folder / REQUEST_LOG
        self.server_log = folder / SERVER_LOG
        self.exit_code: int | None = None
        self.container_view: ContainerView | None = None

    @property
    def pid(self) -> int:
        """The broker's process.

        Raises:
            UnjudgeableError: it does not run.
        """
        process = self._process()
        if process is None:
            raise UnjudgeableError(f"broker {self.id} of {self.folder} does not run any more")
        return int(process.pid)

    @property
    def alive(self) -> bool:
        return self._process() is not None

    def kill(self) -> None:
        """Refuses."""
        self._refuse()

    def terminate(self) -> None:
        """Refuses."""
        self._refuse()

    def pause(self) -> None:
        """Refuses."""
        self._refuse()

    def resume(self) -> None:
        """Refuses."""
        self._refuse()

    def start(self) -> None:
        """Refuses."""
        self._refuse()

    def become(self, version: str) -> None:
        """Refuses."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UnjudgeableError(f"broker {self.id} belongs to another process: nobody else can end it or start it again")

    def _process(self) -> psutil.Process | None:
        properties = str(self.folder / "server.properties")
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if properties in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                    return process
        return None


class AttachedCluster:
    """A running cluster that another process holds."""

    def __init__(self, state: State) -> None:
        brokers, lanes = state.brokers, len(state.lanes)
        ports = range(state.toxiproxy_port, state.toxiproxy_port + Wiring.size(brokers, lanes))
        self.name = state.cluster
        self.state = state
        self.kafka_version = state.kafka_version
        self.folder = Path(state.folder)
        self.wiring = Wiring(ports, brokers, lanes)
        self.host = self.wiring.host
        self.observer_bootstrap = state.observer_bootstrap
        self.toxiproxy = Toxiproxy(state.toxiproxy_port)
        self.brokers = {number: AttachedBroker(number, self.folder / f"b{number}") for number in range(brokers)}
        self.broker_waits = SharedCpuWaits(lambda: broker_pids(self.brokers))
        self.controllers: Mapping[int, BrokerHandle] = {}
        self.request_logs = {number: one.request_log for number, one in self.brokers.items()}
        self.server_logs = {node_name(number): one.server_log for number, one in self.brokers.items()}
        self.ruined: str | None = None
        self.lost: str | None = None  # its holder would know
        self.rebuilt_because: str | None = None
        self.socket_dump: Callable[[int], bytes] | None = None
        self.container_network: ContainerNetwork | None = None

    def ruin(self, reason: str) -> None:
        """Marks the cluster as not to be used again by this process; the first reason stays."""
        self.ruined = self.ruined or reason

    def health(self) -> list[str]:
        """Returns what is not as it should be; the toxics of others' trials are theirs."""
        if holder_of(self.state) is None:
            return [f"its holder (pid {self.state.pid}) is gone, and the brokers with it"]
        try:
            with Admin(self.observer_bootstrap) as admin:
                missing = set(self.brokers) - admin.broker_ids()
                return [f"broker {broker} is not registered" for broker in sorted(missing)] or admin.under_replicated()
        except UnjudgeableError as error:
            return [str(error)]

    @contextmanager
    def lease_lanes(self, count: int) -> Iterator[list[Lane]]:
        """Lends `count` lanes that no other process has; each is reset when it comes back.

        Raises:
            StartError: not enough lanes are free, or the cluster is ruined or not well.
        """
        problems = [self.ruined] if self.ruined else self.health()
        if problems:
            down = f"`kafka-trial cluster down {self.state.name}` ends it"
            raise StartError(f"cluster {self.state.name}: {'; '.join(problems)}; {down}")
        with ExitStack() as locks:
            free = (index for index in range(self.wiring.lanes) if self._locked(index, locks))
            lanes = [self.wiring.lane(index, self.name) for index in islice(free, count)]
            if len(lanes) < count:
                told = (
                    f"{count} lanes are needed, {len(lanes)} of {self.wiring.lanes} are free: fewer members or trials"
                )
                raise StartError(f"cluster {self.state.name}: {told}")
            remove_cuts(self.toxiproxy, lanes)
            try:
                yield lanes
            finally:
                self._reset(lanes)

    def server_port(self, broker: int, lane: int) -> int:
        """The broker's own port behind a lane's proxy."""
        return self.wiring.server_port(broker, lane)

    def observer_address(self, broker: int) -> tuple[str, int]:
        """Where observers reach one broker."""
        return self.host, self.wiring.observer_port(broker)

    def join(self, broker: int, version: str) -> NoReturn:
        """Refuses."""
        raise UnjudgeableError(f"broker {broker} cannot join: cluster {self.state.name} belongs to another process")

    def leave(self, broker: int) -> NoReturn:
        """Refuses."""
        raise UnjudgeableError(f"broker {broker} cannot leave: cluster {self.state.name} belongs to another process")

    def _locked(self, index: int, locks: ExitStack) -> bool:
        file = locks.enter_context((self.folder / f"lane{index}.lock").open("a"))
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    def _reset(self, lanes: list[Lane]) -> None:
        try:
            self.toxiproxy.reset(name for lane in lanes for name in lane.proxies.values())
        except UnjudgeableError as error:
            self.ruin(f"lanes could not be reset: {error}")


def attach(name: str) -> AttachedCluster:
    """Returns the cluster of that name, which `cluster up` keeps up.

    Raises:
        InputError: there is none, its holder is gone, or an older version booted it.
    """
    state = find(name)
    if holder_of(state) is None:
        raise InputError(f"cluster {name}", f"its holder is gone; `kafka-trial cluster down {name}` clears it")
    if not state.cluster:
        raise InputError(f"cluster {name}", "was booted by an older kafka-trial; take it down and boot it again")
    return AttachedCluster(state)

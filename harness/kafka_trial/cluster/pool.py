"""Warm clusters: a trial gets one that is whole; one that a fault ruined is rebuilt, and the reason is told.

Trials that break only members share a cluster side by side; those that break brokers have another one to themselves,
one after the other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field

from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.containers import container_cluster
from kafka_trial.cluster.processes import process_cluster
from kafka_trial.cluster.wiring import LANES, NO_SETTINGS
from kafka_trial.errors import InputError, UnjudgeableError


@dataclass
class _Warm:
    """The cluster of one version, size and configuration, shared or lent to one at a time; how many use it now, and its
    lanes."""

    version: str
    brokers: int
    alone: bool
    containers: bool
    settings: tuple[tuple[str, str], ...]
    heap_mib: int | None
    tiered: bool
    cluster: BootedCluster | None = None
    stack: ExitStack = field(default_factory=ExitStack)
    users: int = 0
    lanes: int = 0

    def has_room(self, lanes: int) -> bool:
        """Whether one more may use it now; an unused one takes anybody, who is then told what it lacks."""
        if self.users == 0 or self.cluster is None:
            return True
        return not (self.alone or self.cluster.ruined) and self.lanes + lanes <= self.cluster.wiring.lanes


class ClusterPool:
    """Keeps one warm cluster per Kafka version, number of brokers, their settings, heap and remote tier, use and kind,
    for as long as the `with` lasts.

    `lanes`: how many each has; what runs side by side shares them.
    """

    def __init__(self, *, lanes: int = LANES) -> None:
        self._lanes = lanes
        self._warm: dict[tuple[object, ...], _Warm] = {}
        self._changed = threading.Condition()
        self.rebuilt_because: list[str] = []

    @contextmanager
    def cluster_for(
        self,
        version: str,
        *,
        brokers: int = 3,
        lanes: int = 0,
        alone: bool = False,
        containers: bool = False,
        settings: Mapping[str, str] = NO_SETTINGS,
        heap_mib: int | None = None,
        tiered: bool = False,
    ) -> Iterator[BootedCluster]:
        """Lends a whole cluster: one that others use too, or `alone` one that nobody else has meanwhile; of processes,
        or of containers. `settings`, the heap of its brokers and a remote tier of its topics (`tiered`) are those of
        processes: containers take none.

        Whoever says how many `lanes` it is going to lease waits until the others leave it as many.

        When the last user has gone it is looked over; found ruined or unwell, the next one asking gets a new one.

        Raises:
            InputError: settings, a heap or a remote tier for brokers in containers.
            StartError: it could not be booted.
        """
        if containers and (settings or heap_mib is not None or tiered):
            told = "take neither settings nor a heap nor a remote tier: leave containers out"
            raise InputError("brokers in containers", told)
        with self._changed:
            given = tuple(sorted(settings.items()))
            key = (version, brokers, alone, containers, given, heap_mib, tiered)
            warm = self._warm.setdefault(key, _Warm(*key))
            self._changed.wait_for(lambda: warm.has_room(lanes))
            cluster = self._whole(warm)
            warm.users, warm.lanes = warm.users + 1, warm.lanes + lanes
        try:
            yield cluster
        finally:
            with self._changed:
                warm.users, warm.lanes = warm.users - 1, warm.lanes - lanes
                if warm.users == 0:
                    _look_over(cluster)
                self._changed.notify_all()

    def end_unused(self, *, alone: bool) -> None:
        """Ends the clusters of that use that nobody has now: idle, each costs a fifteenth of a core, or half of one
        on virtual machines where it is dear to wake a thread (its brokers do a thousand times a second)."""
        with self._changed:
            for warm in self._warm.values():
                if warm.alone is alone and warm.users == 0:
                    warm.stack.close()
                    warm.cluster = None

    def close(self) -> None:
        """Ends every cluster."""
        while self._warm:
            _, warm = self._warm.popitem()
            warm.stack.close()

    def _whole(self, warm: _Warm) -> BootedCluster:
        because = None
        if warm.cluster is not None and warm.cluster.ruined:
            because = f"{warm.cluster.name}: {warm.cluster.ruined}"
            self.rebuilt_because.append(because)
            warm.stack.close()
            warm.cluster = None
        if warm.cluster is None:
            warm.stack = ExitStack()
            warm.cluster = warm.stack.enter_context(self._booted(warm))
            warm.cluster.rebuilt_because = because
        return warm.cluster

    def _booted(self, warm: _Warm) -> AbstractContextManager[BootedCluster]:
        if warm.containers:
            return container_cluster(warm.version, brokers=warm.brokers, lanes=self._lanes)
        return process_cluster(
            warm.version,
            brokers=warm.brokers,
            lanes=self._lanes,
            settings=dict(warm.settings),
            heap_mib=warm.heap_mib,
            tiered=warm.tiered,
        )

    def __enter__(self) -> ClusterPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _look_over(cluster: BootedCluster) -> None:
    if cluster.ruined:
        return
    try:
        problems = cluster.health()
    except UnjudgeableError as error:
        problems = [str(error)]
    for problem in problems:
        cluster.ruin(problem)

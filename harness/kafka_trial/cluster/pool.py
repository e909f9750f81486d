"""Warm clusters: a trial gets one that is whole; one that a fault ruined is rebuilt, and the reason is told.

Trials that break only members share a cluster side by side; one that breaks brokers has it to itself.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from kafka_trial.cluster.processes import ProcessCluster, process_cluster
from kafka_trial.errors import UnjudgeableError


@dataclass
class _Warm:
    """The cluster of one version and size, and who uses it now."""

    version: str
    brokers: int
    cluster: ProcessCluster | None = None
    stack: ExitStack = field(default_factory=ExitStack)
    users: int = 0
    alone: bool = False


class ClusterPool:
    """Keeps one warm cluster per Kafka version and number of brokers, for as long as the `with` lasts."""

    def __init__(self) -> None:
        self._warm: dict[tuple[str, int], _Warm] = {}
        self._changed = threading.Condition()
        self.rebuilt_because: list[str] = []

    @contextmanager
    def cluster_for(self, version: str, *, brokers: int = 3, alone: bool = False) -> Iterator[ProcessCluster]:
        """Lends a whole cluster, waiting for others where one wants it `alone`.

        When the last user has gone it is looked over; found ruined or unwell, the next one asking gets a new one.

        Raises:
            StartError: it could not be booted.
        """
        with self._changed:
            warm = self._warm.setdefault((version, brokers), _Warm(version, brokers))
            self._changed.wait_for(lambda: not warm.alone and (not alone or warm.users == 0))
            cluster = self._whole(warm)
            warm.users += 1
            warm.alone = alone
        try:
            yield cluster
        finally:
            with self._changed:
                warm.users -= 1
                warm.alone = False
                if warm.users == 0:
                    _look_over(cluster)
                self._changed.notify_all()

    def close(self) -> None:
        """Ends every cluster."""
        while self._warm:
            _, warm = self._warm.popitem()
            warm.stack.close()

    def _whole(self, warm: _Warm) -> ProcessCluster:
        because = None
        if warm.cluster is not None and warm.cluster.ruined and warm.users == 0:
            because = f"{warm.cluster.name}: {warm.cluster.ruined}"
            self.rebuilt_because.append(because)
            warm.stack.close()
            warm.cluster = None
        if warm.cluster is None:
            warm.stack = ExitStack()
            warm.cluster = warm.stack.enter_context(process_cluster(warm.version, brokers=warm.brokers))
            warm.cluster.rebuilt_because = because
        return warm.cluster

    def __enter__(self) -> ClusterPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _look_over(cluster: ProcessCluster) -> None:
    if cluster.ruined:
        return
    try:
        problems = cluster.health()
    except UnjudgeableError as error:
        problems = [str(error)]
    for problem in problems:
        cluster.ruin(problem)

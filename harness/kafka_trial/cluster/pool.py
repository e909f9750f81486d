"""Warm clusters: a trial gets one that is whole; one that a fault ruined is rebuilt, and the reason is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kafka_trial.cluster.processes import ProcessCluster, process_cluster


class ClusterPool:
    """Keeps one warm cluster per Kafka version and number of brokers, for as long as the `with` lasts."""

    def __init__(self, *, folder: Path | None = None) -> None:
        self._folder = folder
        self._warm: dict[tuple[str, int], tuple[ProcessCluster, ExitStack]] = {}
        self._lock = threading.Lock()
        self.rebuilt_because: list[str] = []

    @contextmanager
    def cluster_for(self, version: str, *, brokers: int = 3) -> Iterator[ProcessCluster]:
        """Lends a whole cluster; when it comes back ruined or unwell, the next one asking gets a new one."""
        with self._lock:
            cluster = self._whole(version, brokers)
        try:
            yield cluster
        finally:
            if not cluster.ruined:
                for problem in cluster.health():
                    cluster.ruin(problem)

    def close(self) -> None:
        """Ends every cluster."""
        while self._warm:
            _, (_, stack) = self._warm.popitem()
            stack.close()

    def _whole(self, version: str, brokers: int) -> ProcessCluster:
        key = (version, brokers)
        if key in self._warm and self._warm[key][0].ruined:
            cluster, stack = self._warm.pop(key)
            self.rebuilt_because.append(f"{cluster.name}: {cluster.ruined}")
            stack.close()
        if key not in self._warm:
            stack = ExitStack()
            self._warm[key] = stack.enter_context(process_cluster(version, brokers=brokers)), stack
        return self._warm[key][0]

    def __enter__(self) -> ClusterPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""What the brokers and Toxiproxy logged during one trial, kept in its run folder (bounded)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kafka_trial.cluster.cluster import Cluster

KEPT_BYTES_MAX = 5_000_000


@contextmanager
def cluster_logs_kept(cluster: Cluster, logs: Path) -> Iterator[None]:
    """Copies what each log of the cluster grew by while the body ran into `logs`; of much, the end."""
    places = {f"b{broker.id}-server.log": broker.server_log for broker in cluster.brokers.values()}
    places["toxiproxy.log"] = cluster.folder / "toxiproxy.log"
    begins = {name: _size(path) for name, path in places.items()}
    try:
        yield
    finally:
        for name, path in places.items():
            with suppress(OSError):  # a log that cannot be kept spoils no trial
                (logs / name).write_bytes(_grown(path, begins[name]))


def _grown(path: Path, begin: int) -> bytes:
    with path.open("rb") as log:
        log.seek(max(begin, _size(path) - KEPT_BYTES_MAX))
        return log.read(KEPT_BYTES_MAX)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0

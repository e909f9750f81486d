"""What all tests share: warm clusters, one per Kafka version, for the whole session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.processes import ProcessCluster
from kafka_trial.cluster.versions import DEFAULT_VERSION

pytest_plugins = ["pytester"]


@pytest.fixture(scope="session")
def cluster_pool() -> Iterator[ClusterPool]:
    """Holds the warm clusters of this session."""
    with ClusterPool() as pool:
        yield pool


@pytest.fixture
def cluster(cluster_pool: ClusterPool) -> Iterator[ProcessCluster]:
    """Lends a whole three-broker cluster of the default version."""
    with cluster_pool.cluster_for(DEFAULT_VERSION) as cluster:
        yield cluster

"""What all tests share: warm clusters, one per Kafka version, and one Spark session, for the whole session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.processes import ProcessCluster
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.session import Session

pytest_plugins = ["pytester"]


@pytest.fixture(scope="session")
def cluster_pool(kafka_trial_session: Session) -> ClusterPool:
    """Returns the warm clusters of this session, the same that trials use."""
    return kafka_trial_session.clusters


@pytest.fixture
def cluster(cluster_pool: ClusterPool) -> Iterator[ProcessCluster]:
    """Lends a whole three-broker cluster of the default version."""
    with cluster_pool.cluster_for(DEFAULT_VERSION) as cluster:
        yield cluster

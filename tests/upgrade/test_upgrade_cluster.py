"""What the tables say of a version, against brokers of that version."""

from __future__ import annotations

import pytest

from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.kafka_protocol.broker_features import broker_features
from kafka_trial.kafka_protocol.connection import Brokers
from kafka_trial.upgrade.tables import apis

pytestmark = pytest.mark.cluster

TELEMETRY = {71, 72}  # answered only where a broker has a reporter that takes clients' metrics


@pytest.mark.rotates(every=2)
@pytest.mark.parametrize("version", [DEFAULT_VERSION, "3.9.2"])
def test_brokers_answer_the_versions_of_the_table(version: str, cluster_pool: ClusterPool) -> None:
    """ApiVersions on a broker listener: the same APIs, the same lowest and highest versions."""
    with cluster_pool.cluster_for(version) as cluster, Brokers(cluster.observer_bootstrap) as brokers:
        told = brokers.anyone(broker_features)
    wanted = {api.key: (api.told_lowest, api.highest) for api in apis(version).values() if api.key not in TELEMETRY}
    assert told.apis == wanted
    assert told.finalized["metadata.version"] <= told.supported["metadata.version"][1]

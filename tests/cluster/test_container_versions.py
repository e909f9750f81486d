"""Nodes in containers that become another version: on the data that they had, and as new ones beside the old."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.cluster import BrokerHandle
from kafka_trial.cluster.containers import container_cluster
from kafka_trial.cluster.versions import said_version
from kafka_trial.errors import UnjudgeableError
from kafka_trial.process.waiting import wait_until
from topics import send

pytestmark = [pytest.mark.cluster, pytest.mark.rotates(together="dear")]

OLD, NEW = "3.9.2", "4.3.1"
ENDS_WITHIN_S, SERVES_WITHIN_S, SAYS_WITHIN_S = 60, 120, 60


@pytest.fixture(scope="module")
def cluster(engine_host: str) -> Iterator[BootedCluster]:
    """Lends a broker and a controller of its own, of the old version, with a place for one more broker."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", engine_host)
        with container_cluster(OLD, brokers=1, lanes=1, later=[NEW], controllers=1, further=1) as cluster:
            yield cluster


def test_a_broker_keeps_its_data_there_and_back(cluster: BootedCluster) -> None:
    """Its records are there after each start, and its log says of which version it is."""
    broker = cluster.brokers[0]
    with Admin(cluster.observer_bootstrap) as admin:
        admin.create_topic(topic := "kept", partitions=1, replication_factor=1)
        send(cluster.observer_bootstrap, topic, b"a record")
        for version in (NEW, OLD, NEW):
            become(cluster, 0, version)
            wait_until(lambda: records(admin, topic) == 1, within_s=SERVES_WITHIN_S, what="the record to be there")
            wait_for_word(broker, version)


def test_a_controller_of_its_own_becomes_new_and_a_new_broker_joins(cluster: BootedCluster) -> None:
    """What a replacement takes: the old broker and the new one are registered with the same controller."""
    (controller,) = cluster.controllers
    become(cluster, controller, NEW)
    joined = cluster.join(1, NEW)
    with Admin(cluster.observer_bootstrap) as admin:
        wait_until(lambda: ids(admin) == {0, 1}, within_s=SERVES_WITHIN_S, what="both brokers to be registered")
    for node in (joined, cluster.controllers[controller]):
        wait_for_word(node, NEW)
    assert joined.container_view != cluster.brokers[0].container_view


def become(cluster: BootedCluster, node: int, version: str) -> None:
    """Stops a node, and starts it again as a version."""
    handle = cluster.nodes[node]
    handle.terminate()
    wait_until(lambda: not handle.alive, within_s=ENDS_WITHIN_S, what=f"node {node} to shut down")
    handle.become(version)
    handle.start()


def wait_for_word(node: BrokerHandle, version: str) -> None:
    """Waits until a node says in its log that it is of a version, as it does once it has started up."""
    what = f"node {node.id} to say that it is {version}"
    wait_until(lambda: said_version(node.server_log) == version, within_s=SAYS_WITHIN_S, what=what)


def records(admin: Admin, topic: str) -> int | None:
    with suppress(UnjudgeableError):
        return sum(admin.log_ends(topic).values())
    return None


def ids(admin: Admin) -> set[int]:
    with suppress(UnjudgeableError):
        return set(admin.broker_ids())
    return set()

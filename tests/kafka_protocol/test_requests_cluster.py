"""The witnesses' own requests against another client's answers (kafka-python's admin), on both ends of the versions."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import pytest
from confluent_kafka import Consumer
from kafka import KafkaAdminClient

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.versions import NUMBERS
from kafka_trial.kafka_protocol import cluster_queries, group_requests
from kafka_trial.kafka_protocol.connection import Brokers
from kafka_trial.process.waiting import wait_until

pytestmark = pytest.mark.cluster


@dataclass
class Asked:
    """One cluster, asked by both clients."""

    version: str
    brokers: Brokers
    admin: Admin
    bootstrap: str
    topic: str


@pytest.fixture(params=["4.3.1", "3.9.2"])
def asked(request: pytest.FixtureRequest, cluster_pool: ClusterPool) -> Iterator[Asked]:
    """A cluster of each version with a fresh topic of three partitions."""
    with cluster_pool.cluster_for(request.param) as cluster:
        bootstrap, topic = cluster.observer_bootstrap, f"questions-{os.getpid()}-{id(request)}"
        with Admin(bootstrap) as admin, Brokers(bootstrap) as brokers:
            admin.create_topic(topic, partitions=3, replication_factor=3, configs={"retention.ms": "123456"})
            yield Asked(request.param, brokers, admin, bootstrap, topic)


def test_both_clients_are_told_the_same(asked: Asked) -> None:
    """Topic id, leaders, epochs, replicas, ISR, log ends, configs and controller."""
    found = asked.brokers.anyone(lambda at: cluster_queries.metadata(at, [asked.topic, "absent"]))
    asked.brokers.by_id = dict(found.brokers)
    topic, theirs = found.topics[asked.topic], asked.admin.describe(asked.topic)
    assert theirs is not None
    assert set(found.topics) == {asked.topic}
    assert topic.topic_id == theirs.topic_id
    assert [(p.partition, p.leader, p.epoch, set(p.replicas), set(p.isr)) for p in topic.partitions] == [
        (p.partition, p.leader, p.leader_epoch, set(p.replicas), set(p.isr)) for p in theirs.partitions
    ]
    assert {f"{host}:{port}" for host, port in found.brokers.values()} == set(asked.bootstrap.split(","))
    with closing(KafkaAdminClient(bootstrap_servers=asked.bootstrap)) as client:
        theirs_of_it = client.describe_metadata_quorum()["topics"][0]["partitions"][0]
    quorum = asked.brokers.anyone(cluster_queries.quorum)
    assert (quorum.leader, quorum.epoch) == (theirs_of_it["leader_id"], theirs_of_it["leader_epoch"])
    assert quorum.caught_up_ms.keys() == {voter["replica_id"] for voter in theirs_of_it["current_voters"]}
    assert all(0 <= time.time() * 1000 - ms < 60_000 for ms in quorum.caught_up_ms.values())
    configs = asked.brokers.anyone(
        lambda at: cluster_queries.topic_configs(at, asked.topic, ["cleanup.policy", "retention.ms"])
    )
    assert configs == {"cleanup.policy": "delete", "retention.ms": "123456"}


def test_the_oldest_version_tells_of_its_quorum(cluster_pool: ClusterPool) -> None:
    """An upgrade from it begins by asking who the controller is, and waits for controllers that it replaced."""
    with cluster_pool.cluster_for(NUMBERS[0]) as cluster, Admin(cluster.observer_bootstrap) as admin:
        began_s = time.time()
        assert admin.controller() in admin.broker_ids()
        for controller in sorted(admin.broker_ids()):
            admin.await_caught_up(controller, since_wall_s=began_s, within_s=20)


@contextmanager
def _member(asked: Asked, protocol: str) -> Iterator[str]:
    """Holds a member in a group of its own; yields the group's name."""
    group = f"{asked.topic}-{protocol}"
    settings = {"bootstrap.servers": asked.bootstrap, "group.id": group, "client.id": "me", "group.protocol": protocol}
    consumer = Consumer(settings | {"log_level": 0})
    consumer.subscribe([asked.topic])

    def owns() -> bool:
        consumer.poll(0.05)
        return len(consumer.assignment()) == 3

    wait_until(owns, within_s=30, what="the assignment", every_s=0.0)
    yield group
    consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_described_in_its_own_protocol(asked: Asked, protocol: str) -> None:
    """State, member and epoch, from the coordinator that both clients name."""
    if protocol == "consumer" and asked.version < "4":
        pytest.skip("KIP-848 groups are not to be had on 3.9")
    asked.brokers.by_id = dict(asked.brokers.anyone(lambda at: cluster_queries.metadata(at, [])).brokers)
    with _member(asked, protocol) as group:
        node = asked.brokers.anyone(lambda at: group_requests.coordinator(at, group))
        state = asked.brokers.broker(node, lambda at: group_requests.group_state(at, group))
        assert node == asked.admin.coordinator_of(group)
        assert (state.state, state.protocol) == ("Stable", protocol)
        assert [(member.client_id, bool(member.member_id)) for member in state.members] == [("me", True)]
        assert (state.epoch is not None) == (protocol == "consumer")


def test_a_group_that_does_not_exist_is_dead(asked: Asked) -> None:
    """On every version, and whatever the broker knows of KIP-848."""
    asked.brokers.by_id = dict(asked.brokers.anyone(lambda at: cluster_queries.metadata(at, [])).brokers)
    node = asked.brokers.anyone(lambda at: group_requests.coordinator(at, "nobody"))
    assert asked.brokers.broker(node, lambda at: group_requests.group_state(at, "nobody")).state == "Dead"

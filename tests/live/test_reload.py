"""The offsets log of a real broker compacted, and its coordinator loaded again: all is there; one record that cannot be
read takes every group of its partition away."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import pytest
from confluent_kafka import Producer

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.processes import process_cluster
from kafka_trial.cluster.wiring import OFFSETS_PARTITIONS
from kafka_trial.errors import UnjudgeableError, WaitTimeout
from kafka_trial.kafka_protocol.cluster_queries import topic_configs
from kafka_trial.kafka_protocol.connection import Brokers
from kafka_trial.kafka_protocol.group_membership import commit
from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC
from kafka_trial.process.waiting import wait_until
from kafka_trial.upgrade.reload import SETTINGS, CompactedGroups, compact
from kafka_trial.upgrade.side_groups import KINDS, ask_coordinator, make_side_groups, offsets_log

VERSION = "4.3.1"
ON_TRIAL = ("orders", "payments")
PLACES = (3, 5)  # where they lie in the offsets log
COMMITTED = {0: 42}


def settings(cluster: BootedCluster) -> Mapping[str, str | None]:
    """Returns what holds for the offsets log of that which a compaction changes."""
    with Brokers(cluster.observer_bootstrap) as brokers:
        return brokers.anyone(lambda at: topic_configs(at, OFFSETS_TOPIC, list(SETTINGS)))


def restart(cluster: BootedCluster) -> None:
    """Restarts the one broker."""
    broker = cluster.brokers[0]
    broker.terminate()
    wait_until(lambda: not broker.alive, within_s=30, what="the broker to end")
    broker.start()
    with Admin(cluster.observer_bootstrap) as admin:
        admin.await_brokers([0])


def plant(bootstrap: str, partition: int) -> None:
    """Writes the commit of a group in a version that no broker knows."""
    key = struct.pack(">hh", 1, 1) + b"x" + struct.pack(">h", 1) + b"t" + struct.pack(">i", 0)
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "__admin_client"})  # who may write there
    producer.produce(OFFSETS_TOPIC, key=key, value=b"\x00\x63", partition=partition)
    assert producer.flush(20) == 0


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
def test_groups_of_every_kind_are_loaded_from_a_compacted_log() -> None:
    """Two passes are proven or missing by name, the settings are as before, nothing is lost; then a partition is."""
    with process_cluster(VERSION, brokers=1, lanes=1) as cluster:
        with Admin(cluster.observer_bootstrap) as admin:
            admin.create_topic("shop", partitions=1, replication_factor=1)
        with Brokers(cluster.observer_bootstrap) as brokers:
            offsets_log(brokers)
            for group in ON_TRIAL:
                ask_coordinator(brokers, group, lambda at, group=group: commit(at, group, "shop", COMMITTED))
        before = settings(cluster)
        with pytest.raises(UnjudgeableError, match=r"no tombstone lies in the partitions \[3, 5\]"):
            compact(cluster, PLACES, seed=1)
        groups = CompactedGroups(cluster, ON_TRIAL, seed=1)
        assert settings(cluster) == before
        assert {(group.kind, group.partition) for group in groups.side_groups} == {
            (kind, partition) for kind in KINDS for partition in PLACES
        }
        assert groups.compaction.replicas == tuple((partition, 0) for partition in PLACES)
        assert min(groups.compaction.tombstones.values()) > 0

        written = dict.fromkeys(ON_TRIAL, ("shop", COMMITTED))
        restart(cluster)
        assert groups.losses(written) == []

        make_side_groups(cluster, PLACES[1:], of=OFFSETS_PARTITIONS, seed=2)
        with pytest.raises(WaitTimeout, match=r"__consumer_offsets-5 on broker 0: (one key|a tombstone) at"):
            compact(cluster, PLACES[1:], seed=2, within_s=0)  # one touch makes one pass at most
        assert settings(cluster) == before

        broken = PLACES[0]
        plant(cluster.observer_bootstrap, broken)
        restart(cluster)
        lost = groups.losses(written, within_s=10)
        names = [ON_TRIAL[0], *(group.name for group in groups.side_groups if group.partition == broken)]
        assert [loss.accused for loss in lost] == ["cluster"] * len(names)
        for loss, name in zip(lost, names, strict=True):
            assert loss.sentence.startswith(f"the group {name} ")
            assert f"broker 0 did not load {OFFSETS_TOPIC}-{broken} (" in loss.sentence
            assert f"Failed to load metadata from {OFFSETS_TOPIC}-{broken}" in loss.sentence

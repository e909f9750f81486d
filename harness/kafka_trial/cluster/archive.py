"""The class-data archive of a Kafka version: made once, it halves the boot of every broker after it.

Trained on one node of a real three-node cluster that served a topic, a transaction, a classic and, where there is one,
a KIP-848 group; written at its SIGTERM. The class path in training and use is the same string.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.archive_clients import TOPIC
from kafka_trial.cluster.cluster import Cluster
from kafka_trial.cluster.java import find_java
from kafka_trial.cluster.jvm import java_identity, short_hash
from kafka_trial.cluster.kafka_jars import kafka_jars
from kafka_trial.cluster.user_cache import cache_folder
from kafka_trial.cluster.versions import KNOWN
from kafka_trial.errors import StartError
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.waiting import wait_until

DRIVEN_WITHIN_S = 150.0


def archive_place(version: str) -> Path:
    """Returns where the archive of a Kafka version on this Java belongs: another of either makes another name.

    So do the same jars fetched again: the JVM turns an archive down whose jars have other times.
    """
    jars = [f"{jar} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in kafka_jars(version)]
    key = short_hash(java_identity(find_java()), *jars)
    return cache_folder() / "archive" / f"kafka-{version}-{key}.jsa"


def train_archive(cluster: Cluster) -> None:
    """Has a cluster do everything that trials ask of brokers, and ends its broker 0, which writes the archive then.

    Raises:
        StartError: the clients that use the cluster failed.
        WaitTimeout: the broker did not end.
    """
    modern = KNOWN[cluster.kafka_version].consumer_protocol
    with Admin(cluster.observer_bootstrap) as admin, cluster.lease_lanes(1) as lanes:
        admin.create_topic(TOPIC, partitions=3, replication_factor=3)
        _drive(lanes[0].bootstrap, protocols=("classic", "consumer") if modern else ("classic",))
        admin.describe_group(f"{TOPIC}-classic")
    broker = cluster.brokers[0]
    broker.terminate()
    wait_until(lambda: not broker.alive, within_s=60, what="the training broker to write its archive and exit")


def _drive(bootstrap: str, *, protocols: Sequence[str]) -> None:
    """Has the clients of a process of their own use the cluster."""
    with ChildProcesses("archive training") as child_processes:
        argv = [sys.executable, "-m", "kafka_trial.cluster.archive_clients", bootstrap, *protocols]
        status = child_processes.spawn("training clients", argv, stderr=2).wait(within_s=DRIVEN_WITHIN_S)
    if status != 0:
        raise StartError(f"the clients that train the class-data archive ended with {status}; see what they said above")

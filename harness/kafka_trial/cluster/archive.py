"""What every broker of a Kafka version boots from, made once: its formatted data folder, and a class-data archive.

The archive halves the boot. It is trained on one node of a real three-node cluster that served a topic, a transaction,
a classic and, where there is one, a KIP-848 group; written at its SIGTERM. The class path in training and use is the
same string.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.archive_clients import TOPIC
from kafka_trial.cluster.cluster import Cluster
from kafka_trial.cluster.java import find_java, java_identity, short_hash
from kafka_trial.cluster.kafka_jars import class_path, kafka_jars
from kafka_trial.cluster.user_cache import cache_folder, made_once, remove, run_tool, tail
from kafka_trial.cluster.versions import KNOWN
from kafka_trial.errors import StartError
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.waiting import wait_until

PROPERTIES = "format.properties"  # what a template was formatted with stays beside it
DRIVEN_WITHIN_S = 150.0


def formatted_template(version: str) -> Path:
    """Returns a folder with what the version's StorageTool writes into a data folder, made once.

    That is `meta.properties`, and the first records of the cluster's metadata: `bootstrap.checkpoint`, from 4.4 on a
    checkpoint of the metadata log itself.
    """
    place = template_place(version)
    with made_once(place, f"template-{version}") as temporary:
        if temporary is not None:
            _format(version, temporary)
    return place


def template_place(version: str) -> Path:
    """Returns where the formatted template of a Kafka version belongs."""
    return cache_folder() / "template" / version


def fill_data_folder(template: Path, data: Path) -> None:
    """Copies a formatted template into a data folder; `meta.properties` is to be made the broker's own."""
    shutil.copytree(template, data, dirs_exist_ok=True, ignore=shutil.ignore_patterns(PROPERTIES))


def _format(version: str, temporary: Path) -> None:
    temporary.mkdir()
    properties = temporary / PROPERTIES
    properties.write_text(
        "process.roles=broker,controller\nnode.id=0\ncontroller.quorum.voters=0@127.0.0.1:1\n"
        "listeners=CONTROLLER://127.0.0.1:1,X://127.0.0.1:2\nadvertised.listeners=X://127.0.0.1:2\n"
        "controller.listener.names=CONTROLLER\ninter.broker.listener.name=X\n"
        f"listener.security.protocol.map=CONTROLLER:PLAINTEXT,X:PLAINTEXT\nlog.dirs={temporary / 'data'}\n"
    )
    command: list[str | Path] = [find_java(), "-cp", class_path(version), "kafka.tools.StorageTool", "format"]
    command += ["-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", properties]
    status, said = run_tool("StorageTool", command, what=f"formatting a data folder for Kafka {version}")
    if status != 0:
        raise StartError(f"Kafka {version}'s StorageTool could not format a folder: {tail(said)}")
    shutil.copytree(temporary / "data", temporary, dirs_exist_ok=True)
    remove(temporary / "data")


def archive_place(version: str) -> Path:
    """Returns where the archive of a Kafka version on this Java belongs: another of either makes another name.

    So do the same jars fetched again: the JVM turns an archive down whose jars have other times.
    """
    return archive_of(f"kafka-{version}", kafka_jars(version))


def archive_of(name: str, jars: Iterable[Path]) -> Path:
    """Returns where the archive of some jars on this Java belongs."""
    told = [f"{jar} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in jars]
    key = short_hash(java_identity(find_java()), *told)
    return cache_folder() / "archive" / f"{name}-{key}.jsa"


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

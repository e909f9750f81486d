"""Tiered storage: rolled segments of a topic go to a second tier, and then leave the disks of its brokers (KIP-405).

The second tier is that of Kafka's own tests, LocalTieredStorage: a folder of the cluster, which all brokers share. Its
jar is that of the tests of kafka-storage, of the one version TIERED; brokers load it beside their own class path. When
a segment has rolled is up to the topic (`segment.bytes`), and when it leaves the disks too (`local.retention.ms`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from kafka_trial.cluster.jars import IvyModule, JarSet, jars_of
from kafka_trial.cluster.kafka_jars import KAFKA

TIERED: Final = "4.3.1"  # of 4.4.0, the tests of kafka-storage are not served
JARS_MB: Final = 1
FOLDER: Final = "tier"  # in that of the cluster
SEGMENT, HIDDEN = ".log", ".hidden"


def tiered_jar_set() -> JarSet:
    """Returns the set of the one jar that has the second tier."""
    modules = (IvyModule(KAFKA, "kafka-storage", TIERED, transitive=False, classifier="test"),)
    return JarSet(f"tiered storage {TIERED}", f"tiered-storage/{TIERED}", f"tiered-{TIERED}.sha256", modules, JARS_MB)


def tiered_settings(cluster: Path, brokers: int) -> Mapping[str, str]:
    """Returns the settings of brokers that have a second tier, in the folder of their cluster.

    Raises:
        InputError: the jar's checksum is not the committed one.
        StartError: it cannot be fetched.
    """
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "remote.log.storage.manager.class.path": ":".join(map(str, jars_of(tiered_jar_set()))),
        "rsm.config.dir": str(cluster / FOLDER),
        "rsm.config.delete.enable": "true",  # by itself it keeps the segments of topics that are deleted
        "remote.log.metadata.manager.listener.name": "INTERNAL",
        "rlmm.config.remote.log.metadata.topic.replication.factor": str(min(3, brokers)),
        "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
        "remote.log.manager.task.interval.ms": "500",  # how often it is looked for segments that have rolled
        "log.initial.task.delay.ms": "1000",  # half a minute by default, before anything leaves a disk
    }


@contextmanager
def hidden_segments(cluster: Path, topic: str) -> Iterator[int]:
    """Takes the segments that a topic has in the second tier out of the brokers' sight while the body runs: who reads
    one is told that it fails. Yields how many they are."""
    hidden = []
    try:
        for segment in sorted((cluster / FOLDER).glob(f"*/{topic}-*/*{SEGMENT}")):
            with suppress(FileNotFoundError):  # its topic's retention took it meanwhile
                hidden.append(segment.rename(segment.with_suffix(HIDDEN)))
        yield len(hidden)
    finally:
        for segment in hidden:
            with suppress(FileNotFoundError):
                segment.rename(segment.with_suffix(SEGMENT))

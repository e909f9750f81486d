"""Tiered storage: rolled segments of a topic are copied to a remote tier, and then leave the local logs (KIP-405).

The remote tier is that of Kafka's own tests, LocalTieredStorage: a folder of the cluster, which all brokers share. Its
jar is that of the tests of kafka-storage, of one version; brokers load it beside their own class path. When a segment
has rolled is up to the topic (`segment.bytes`), and when it leaves the local log too (`local.retention.ms`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.jars import IvyModule, JarSet, jars_of
from kafka_trial.cluster.kafka_jars import KAFKA

REMOTE_STORAGE_VERSION: Final = "4.3.1"  # Maven Central has no jar of the tests of kafka-storage 4.4.0
JARS_MB: Final = 1  # about
FOLDER: Final = "tier"  # below the folder of the cluster
READ_QUOTA: Final = "remote.log.manager.fetch.max.bytes.per.second"  # of each broker (KIP-956)
SEGMENT, HIDDEN = ".log", ".hidden"  # as LocalTieredStorage 4.3.1 calls the file of a segment, and as it does not
TOPIC_ID = r"[A-Za-z0-9_-]{22}"


def tiered_jar_set() -> JarSet:
    """Returns the set of the one jar that has the remote tier."""
    modules = (IvyModule(KAFKA, "kafka-storage", REMOTE_STORAGE_VERSION, transitive=False, classifier="test"),)
    version = REMOTE_STORAGE_VERSION
    return JarSet(
        f"tiered storage {version}", f"tiered-storage/{version}", f"tiered-{version}.sha256", modules, JARS_MB
    )


def tiered_settings(cluster_folder: Path, brokers: int) -> Mapping[str, str]:
    """Returns the settings of the brokers, so many, of a cluster with a remote tier; the jar is fetched the first time.

    Raises:
        InputError: the jar's checksum is not the committed one.
        StartError: the jar cannot be fetched.
    """
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "remote.log.storage.manager.class.path": ":".join(map(str, jars_of(tiered_jar_set()))),
        "rsm.config.dir": str(cluster_folder / FOLDER),
        "rsm.config.delete.enable": "true",  # by itself it keeps the segments of topics that are deleted
        "remote.log.metadata.manager.listener.name": "INTERNAL",
        "rlmm.config.remote.log.metadata.topic.replication.factor": str(min(3, brokers)),
        "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
        "remote.log.manager.task.interval.ms": "500",  # how often it is looked for segments that have rolled
        "log.initial.task.delay.ms": "1000",  # 30000 by default: nothing leaves a local log earlier
    }


@contextmanager
def remote_read_quota(admin: Admin, brokers: Iterable[int], bytes_per_s: int) -> Iterator[None]:
    """Has each of these brokers read at most so many bytes a second from the remote tier while the body runs (0: as it
    is). One that has read more, over the last eleven seconds, lets fetches wait.

    Raises:
        UnjudgeableError: a broker does not answer, or refuses it.
    """
    if not bytes_per_s:
        yield
        return
    limited = sorted(brokers)
    try:
        admin.set_broker_configs(limited, {READ_QUOTA: str(bytes_per_s)})
        yield
    finally:
        admin.set_broker_configs(limited, {READ_QUOTA: None})


@contextmanager
def hidden_segments(cluster_folder: Path, topic: str) -> Iterator[int]:
    """Hides the remote segments of a topic from the brokers while the body runs: a fetch from one is answered with an
    error. Yields how many are hidden (0: none was found); what is copied meanwhile stays visible.

    Raises:
        OSError: one cannot be renamed.
    """
    of_topic = re.compile(rf"{re.escape(topic)}-\d+-{TOPIC_ID}")
    segments = sorted((cluster_folder / FOLDER).glob(f"*/{topic}-*/*{SEGMENT}"))
    hidden = []
    try:
        for segment in (one for one in segments if of_topic.fullmatch(one.parent.name)):
            with suppress(FileNotFoundError):  # its topic's retention took it meanwhile
                hidden.append(segment.rename(segment.with_suffix(HIDDEN)))
        yield len(hidden)
    finally:
        for segment in hidden:
            with suppress(FileNotFoundError):
                segment.rename(segment.with_suffix(SEGMENT))

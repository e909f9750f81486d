"""MirrorMaker 2: Kafka's own mirror, which copies topics and the positions of groups to another cluster.

A process of the trial, in MirrorMaker's dedicated mode: one JVM, whose state is in topics of the mirror. It is asked
for checkpoints, translated positions and new topics every second; it is otherwise as it comes. Its newest release that
the repository serves whole is MIRROR_MAKER, which brokers of other versions understand.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafka_trial.cluster.archive import archive_of
from kafka_trial.cluster.jars import IvyModule, JarSet, jars_of
from kafka_trial.cluster.java import base_archive_flags, find_java
from kafka_trial.cluster.kafka_jars import KAFKA
from kafka_trial.cluster.processes import JVM
from kafka_trial.cluster.versions import KNOWN
from kafka_trial.cluster.wiring import one_log
from kafka_trial.process.children import Child, ChildProcesses

MIRROR_MAKER: Final = "4.3.1"  # of 4.4.0, connect-mirror is not served
JARS_MB: Final = 36
SOURCE, MIRROR = "source", "mirror"  # what the clusters are called, and remote topics after
DEFAULT, IDENTITY = "default", "identity"
POLICIES: Final = {  # how a topic is called on the mirror (KIP-382, KIP-690)
    DEFAULT: "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    IDENTITY: "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
}
ENDS_WITHIN_S: Final = 30.0  # the first one writes its archive then
LOG, CONSOLE, PROPERTIES = "mirror-maker.log", "console.log", "mirror-maker.properties"


@dataclass(frozen=True)
class MirrorSettings:
    """What a mirror is to copy, and how: `topics` and the positions of `groups`, both by name.

    `policy`: how topics are called on the mirror. `checkpoints_every_s`: how often positions are translated, and
    written for groups that have no member on the mirror. `offset_lag_max`: after so many records of a partition the
    next pair of offsets is written down (offset.lag.max); what lies between two pairs is done again by a group that
    fails over. `translates`: the group's positions are written on the mirror. `own_topics`: the mirror's own, which are
    copied to the source; all that it has from there is offered for that too, and must not be taken.
    """

    topics: Sequence[str]
    groups: Sequence[str]
    policy: str = DEFAULT
    checkpoints_every_s: int = 1
    offset_lag_max: int = 100
    translates: bool = True
    own_topics: Sequence[str] = ()

    def topic_on_mirror(self, topic: str) -> str:
        """Returns what a topic is called on the mirror."""
        return topic if self.policy == IDENTITY else f"{SOURCE}.{topic}"


def mirror_maker_jar_set() -> JarSet:
    """Returns the jars of MirrorMaker 2 and of the clients that it uses."""
    modules = (IvyModule(KAFKA, "connect-mirror", MIRROR_MAKER), IvyModule(*KNOWN[MIRROR_MAKER].logging_dependency))
    name = f"mirror-maker-{MIRROR_MAKER}"
    return JarSet(f"MirrorMaker {MIRROR_MAKER}", f"mirror-maker/{MIRROR_MAKER}", f"{name}.sha256", modules, JARS_MB)


@contextmanager
def mirror_maker(
    child_processes: ChildProcesses, settings: MirrorSettings, *, source: str, mirror: str, folder: Path
) -> Iterator[Child]:
    """Starts a MirrorMaker from the cluster at `source` to that at `mirror` (bootstrap addresses), and ends it; its
    files are in `folder`. Yields before it copies anything. The first one leaves an archive of classes to those after.

    Raises:
        InputError: a jar's checksum is not the committed one.
        StartError: the jars cannot be resolved, or there is no Java.
    """
    jars = jars_of(mirror_maker_jar_set())
    archive = archive_of(f"mirror-maker-{MIRROR_MAKER}", jars)
    trained = None if archive.exists() else archive.with_name(f".{archive.name}.{os.getpid()}")
    properties = folder / PROPERTIES
    properties.write_text(properties_of(settings, source=source, mirror=mirror))
    command = [str(find_java()), *JVM, *_archive_flags(archive, trained)]
    command += [one_log(folder / LOG, folder / "logging.xml")]
    command += ["-cp", ":".join(map(str, jars))]
    command += ["org.apache.kafka.connect.mirror.MirrorMaker", str(properties)]
    with (folder / CONSOLE).open("ab") as console:
        child = child_processes.spawn("MirrorMaker", command, cwd=folder, stdout=console, stderr=console)
    try:
        yield child
    finally:
        child.end(within_s=ENDS_WITHIN_S)
        if trained is not None and trained.exists():
            trained.rename(archive)


def _archive_flags(archive: Path, trained: Path | None) -> list[str]:
    if trained is None:
        return [f"-XX:SharedArchiveFile={archive}"]
    archive.parent.mkdir(parents=True, exist_ok=True)
    return [*base_archive_flags(find_java()), f"-XX:ArchiveClassesAtExit={trained}"]


def properties_of(settings: MirrorSettings, *, source: str, mirror: str) -> str:
    """Returns the properties that a MirrorMaker in dedicated mode starts with."""
    every_s = str(settings.checkpoints_every_s)
    flow, back = f"{SOURCE}->{MIRROR}", f"{MIRROR}->{SOURCE}"
    offered = [*settings.own_topics, *map(settings.topic_on_mirror, settings.topics)]
    ways_back = {f"{back}.topics": ",".join(offered), f"{back}.groups": ",".join(settings.groups)}
    lines = {
        "clusters": f"{SOURCE}, {MIRROR}",
        f"{SOURCE}.bootstrap.servers": source,
        f"{MIRROR}.bootstrap.servers": mirror,
        f"{flow}.enabled": "true",
        f"{flow}.topics": ",".join(settings.topics),
        f"{flow}.groups": ",".join(settings.groups),
        f"{back}.enabled": "true" if settings.own_topics else "false",
        **(ways_back if settings.own_topics else {}),
        "replication.policy.class": POLICIES[settings.policy],
        "emit.heartbeats.enabled": "false",
        "emit.checkpoints.interval.seconds": every_s,
        "sync.group.offsets.enabled": "true" if settings.translates else "false",
        "sync.group.offsets.interval.seconds": every_s,
        "refresh.topics.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
        "sync.topic.acls.enabled": "false",
        "offset-syncs.topic.location": "target",  # a source that is lost must not be needed
        "offset.lag.max": str(settings.offset_lag_max),
        "offset.flush.interval.ms": "1000",
        "tasks.max": "1",
        **dict.fromkeys(_REPLICATION_FACTORS, "1"),  # the mirror has one broker
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


_REPLICATION_FACTORS: Final = (
    "replication.factor",
    "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor",
    "offset-syncs.topic.replication.factor",
    "offset.storage.replication.factor",
    "status.storage.replication.factor",
    "config.storage.replication.factor",
)

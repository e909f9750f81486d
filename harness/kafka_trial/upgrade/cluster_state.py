"""The state of a cluster at the end of a stage, as its brokers answer it; what is lost of it, and by whose fault.

Asked while the load is held and all groups have drained, over the observers' listener. A committed position that the
offsets log holds and the coordinator does not answer is gone for every consumer that restarts: the cluster's fault, no
consumer's. So is one that a tombstone ends: on a cluster of ours nobody deletes offsets, and none is old enough to
expire. A min.insync.replicas that became smaller takes a promise away that nobody withdrew: a setting's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

import orjson

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.errors import UnjudgeableError
from kafka_trial.history.store import RunFolder
from kafka_trial.kafka_protocol.broker_features import BrokerFeatures, broker_features
from kafka_trial.kafka_protocol.cluster_queries import broker_configs, topic_configs
from kafka_trial.kafka_protocol.connection import Connection
from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC

MIN_INSYNC: Final = "min.insync.replicas"
OFFSETS_FILE: Final = "offsets.jsonl"
CLUSTER, SETTING = "cluster", "setting"
Positions = Mapping[int, int]  # by partition


@dataclass(frozen=True)
class GroupState:
    """A group and its topic: committed positions by partition, as its coordinator answers, and as the offsets log has
    them; `refusal`: why nobody coordinates it."""

    topic: str
    answered: Positions
    written: Positions
    refusal: str = ""


@dataclass(frozen=True)
class ClusterState:
    """`features`: what each broker answers, by its id. `min_insync`: what holds for each topic. `groups`, by name.

    `broker_min_insync`: what each broker says is in force for itself, and so for new topics; of this a dynamic value of
    one broker goes when eligible.leader.replicas.version is raised (KIP-966)."""

    features: Mapping[int, BrokerFeatures] = field(default_factory=dict)
    min_insync: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, GroupState] = field(default_factory=dict)
    broker_min_insync: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Loss:
    """What a cluster has lost: who is accused, and what it is, as a sentence."""

    accused: str
    sentence: str


def cluster_state_of(cluster: BootedCluster, written: Mapping[str, tuple[str, Positions]]) -> ClusterState:
    """Returns the state of a cluster; `written`: by group its topic, and the positions that its offsets log holds.

    Raises:
        NoAnswerError: a broker does not answer for itself.
    """
    features: dict[int, BrokerFeatures] = {}
    min_insync: dict[str, int] = {}
    broker_min_insync: dict[int, int] = {}
    for broker in sorted(cluster.brokers):
        with closing(Connection(cluster.observer_address(broker))) as connection:
            features[broker] = broker_features(connection)
            broker_min_insync[broker] = int(broker_configs(connection, broker, [MIN_INSYNC])[MIN_INSYNC] or 0)
            for topic, _ in written.values():
                told = topic_configs(connection, topic, [MIN_INSYNC])[MIN_INSYNC]
                min_insync[topic] = min(int(told or 0), min_insync.get(topic, int(told or 0)))
    with Admin(cluster.observer_bootstrap) as admin:
        groups = {name: _group(admin, name, topic, positions) for name, (topic, positions) in written.items()}
    return ClusterState(features, min_insync, groups, broker_min_insync)


def _group(admin: Admin, name: str, topic: str, written: Positions) -> GroupState:
    try:
        return GroupState(topic, admin.committed_offsets(name, topic), dict(written))
    except UnjudgeableError as error:
        return GroupState(topic, {}, dict(written), str(error))


def losses(before: ClusterState, now: ClusterState) -> Iterator[Loss]:
    """Yields what is lost now: positions and groups by what stands in the offsets log, settings since before."""
    for name, group in now.groups.items():
        if group.refusal:
            yield Loss(CLUSTER, f"nobody coordinates the group {name}: {group.refusal}")
            continue
        for partition, position in sorted(group.written.items()):
            answered = group.answered.get(partition)
            if answered is None or answered < position:
                which = "none" if answered is None else str(answered)
                yield Loss(
                    CLUSTER,
                    f"the committed offset of partition {partition} of {name} is gone: the offsets log holds "
                    f"{position}, its coordinator answers {which}",
                )
    for topic, least in before.min_insync.items():
        if now.min_insync.get(topic, least) < least:
            yield Loss(SETTING, f"{MIN_INSYNC} of {topic} fell from {least} to {now.min_insync[topic]}")
    for broker, least in before.broker_min_insync.items():
        if now.broker_min_insync.get(broker, least) < least:
            fell = f"fell from {least} to {now.broker_min_insync[broker]}"
            yield Loss(SETTING, f"{MIN_INSYNC} of broker {broker}, for topics without their own, {fell}")


def ended_by_tombstones(folder: RunFolder, topic: str, since_ns: float) -> Iterator[Loss]:
    """Yields the committed positions of a trial's topic that tombstones have ended since an instant."""
    for line in (folder.history / OFFSETS_FILE).read_bytes().splitlines():
        event = orjson.loads(line)
        if event["kind"] == "commit_tombstone" and event["topic"] == topic and event["time_ns"] > since_ns:
            place = f"{OFFSETS_TOPIC}-{event['log_partition']}, offset {event['log_offset']}"
            whose = f"partition {event['partition']} of {event['group']}"
            yield Loss(
                CLUSTER,
                f"a tombstone ({place}) ended the committed offset of {whose}",
            )

"""The topics of a trial: created for it, and deleted at its end with all that its group has made."""

from __future__ import annotations

import secrets
from contextlib import ExitStack, suppress
from typing import Final

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.cluster import Cluster
from kafka_trial.errors import UnjudgeableError
from kafka_trial.scenario import Scenario, Topic
from kafka_trial.trial.spec import topic_names

RECORD_BYTES_MAX: Final = 12 * 1024 * 1024


def create_topics(stack: ExitStack, scenario: Scenario, cluster: Cluster, admin: Admin) -> tuple[str, ...]:
    """Creates the topics of a trial, but for those that come later, and returns the names of all; its end deletes
    them."""
    topics = topic_names(f"kt-{secrets.token_hex(4)}", scenario)
    for name, asked, later in zip(topics, scenario.topics, scenario.later, strict=True):
        if not later:
            create_topic(asked, cluster, admin, name)
            stack.callback(delete_topic, cluster, admin, name)
    return topics


def create_topic(topic: Topic, cluster: Cluster, admin: Admin, name: str) -> None:
    """Creates a topic, its replicas spread over the brokers."""
    configs = {
        "min.insync.replicas": str(topic.min_insync_replicas),
        "max.message.bytes": str(RECORD_BYTES_MAX),
        **topic.configs,
    }
    brokers = admin.await_brokers(cluster.brokers)
    assignment = {
        partition: [brokers[(partition + place) % len(brokers)] for place in range(topic.replication_factor)]
        for partition in range(topic.partitions)
    }
    admin.create_topic(
        name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=configs,
        replica_assignment=assignment,
    )


def delete_topic(cluster: Cluster, admin: Admin, topic: str) -> None:
    """Gives a warm cluster its disk back; what does not work ends with the cluster, and is no news about the trial."""
    if not cluster.ruined:
        with suppress(UnjudgeableError):
            admin.delete_topic(topic)


def delete_topics_made(cluster: Cluster, admin: Admin, prefixes: tuple[str, ...], before: frozenset[str]) -> None:
    """Deletes what the consumer made for itself and named after its group or the trial's topic: both names are the
    trial's own, and nobody else's topic begins with them."""
    if not cluster.ruined:
        with suppress(UnjudgeableError):
            for topic in sorted(frozenset(admin.topics()) - before):
                if topic.startswith(prefixes):
                    delete_topic(cluster, admin, topic)

"""A plan's words as a cluster tells them: partitions, their leaders, settings of topic and brokers, a group's size.

Metadata, DescribeConfigs, and for a group FindCoordinator and DescribeGroups: nothing is read of any record, created or
changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafka_trial.errors import InputError, StartError
from kafka_trial.kafka_protocol import cluster_queries, group_requests
from kafka_trial.kafka_protocol.cluster_queries import Topic
from kafka_trial.kafka_protocol.connection import Brokers, NoAnswerError
from kafka_trial.preflight.batches import batch_bytes, largest
from kafka_trial.preflight.size_settings import BROKER, SIZE_SETTINGS, TOPIC


def words_of_cluster(brokers: Brokers, topic_name: str, group: str | None = None) -> tuple[dict[str, Any], list[str]]:
    """Returns the words that a cluster tells of a topic, and what it did not tell.

    The record is the largest that the topic takes now, uncompressed and without a key.

    Raises:
        StartError: nobody answers there.
        InputError: there is no such topic, or no member in the group.
    """
    topic = _topic(brokers, topic_name)
    untold: list[str] = []
    of_topic = _topic_settings(brokers, topic, untold)
    leaders = sorted({part.leader for part in topic.partitions if part.leader >= 0})
    of_brokers = _broker_settings(brokers, leaders, untold)
    words: dict[str, Any] = {
        "name": topic_name,
        "partitions": len(topic.partitions),
        "brokers": max(1, len(leaders)),
        TOPIC: of_topic,
        BROKER: of_brokers,
    }
    if limit := of_topic.get("max.message.bytes"):
        words["record_max"] = largest(lambda size: batch_bytes(size, 0) <= int(limit))
    if group is not None:
        words["consumers"] = _members(brokers, group)
    return words, untold


def _topic(brokers: Brokers, name: str) -> Topic:
    where = ", ".join(brokers.order)
    found = cluster_queries.metadata_of_cluster(brokers, [name])
    if name not in found.topics:
        raise InputError(f"--topic {name}", f"there is no such topic at {where}, or we may not DESCRIBE it")
    return found.topics[name]


def _topic_settings(brokers: Brokers, topic: Topic, untold: list[str]) -> dict[str, str]:
    names = [setting.name for setting in SIZE_SETTINGS[TOPIC, ""]]
    try:
        return _told(brokers.anyone(lambda at: cluster_queries.topic_configs(at, topic.name, names)))
    except NoAnswerError as error:
        untold.append(f"the settings of topic {topic.name} ({error}): Kafka's defaults are taken")
        return {}


def _broker_settings(brokers: Brokers, nodes: Sequence[int], untold: list[str]) -> dict[str, str]:
    """Returns the settings of the brokers that lead partitions: the least of each where they differ."""
    names = [setting.name for setting in SIZE_SETTINGS[BROKER, ""]]
    together: dict[str, str] = {}
    for node in nodes:
        try:
            found = brokers.broker(node, lambda at, node=node: cluster_queries.broker_configs(at, node, names))  # type: ignore[misc]
        except NoAnswerError as error:
            untold.append(f"the settings of broker {node} ({error}): those of others, or Kafka's defaults, are taken")
            continue
        for name, value in _told(found).items():
            before = together.setdefault(name, value)
            if before != value:
                untold.append(f"brokers differ in {name}: {before} and {value}; the lesser is taken")
                together[name] = min(
                    before, value, key=lambda text: (not text.isdigit(), int(text) if text.isdigit() else 0)
                )
    return together


def _told(configs: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in configs.items() if value is not None}


def _members(brokers: Brokers, group: str) -> int:
    try:
        node = brokers.anyone(lambda at: group_requests.coordinator(at, group))
        members = brokers.broker(node, lambda at: group_requests.group_state(at, group)).members
    except NoAnswerError as error:
        raise StartError(
            f"the group {group} was not described: {error}. Say --consumers in the place of --group"
        ) from error
    if not members:
        raise InputError(f"--group {group}", "it has no members now. Say --consumers, or ask again when it runs")
    return len(members)

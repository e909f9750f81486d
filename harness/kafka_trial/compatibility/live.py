"""What a cluster says of itself before an upgrade: versions, features, and what is set for brokers, topics and groups.

ApiVersions, Metadata, DescribeConfigs and ListGroups: nothing is read of any record, created or changed. Which Kafka
the brokers are, no request tells; the API versions that they answer do, by the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from kafka_trial.compatibility.tables import apis, order, versions
from kafka_trial.errors import InputError
from kafka_trial.kafka_protocol import cluster_queries, group_requests
from kafka_trial.kafka_protocol.broker_features import BrokerFeatures, broker_features
from kafka_trial.kafka_protocol.cluster_queries import Config
from kafka_trial.kafka_protocol.connection import Brokers, NoAnswerError
from kafka_trial.kafka_protocol.group_requests import ListedGroup

T = TypeVar("T")
SOMETIMES: Final = ("GetTelemetrySubscriptions", "PushTelemetry")  # only where a metrics reporter takes them
LIST_GROUPS: Final = 16
WITH_KINDS: Final = 5  # the version of ListGroups that tells the kind of each group
HIDDEN: Final = "(hidden)"
INTERNAL: Final = "__"


@dataclass
class ClusterNow:
    """What a cluster told. `set_of_…`: what somebody has set, by broker id, topic or group; the rest are defaults.

    `candidates`: the versions of the tables that answer as its brokers do. `untold`: what was asked and not answered.
    """

    candidates: tuple[str, ...] = ()
    features: dict[int, BrokerFeatures] = field(default_factory=dict)
    set_of_brokers: dict[int, dict[str, str]] = field(default_factory=dict)
    set_of_topics: dict[str, dict[str, str]] = field(default_factory=dict)
    groups: list[ListedGroup] = field(default_factory=list)
    set_of_groups: dict[str, dict[str, str]] = field(default_factory=dict)
    untold: list[str] = field(default_factory=list)

    @property
    def is_mixed(self) -> bool:
        """Whether brokers answer different API versions: a roll is under way, or was left there."""
        return len({tuple(sorted(one.apis.items())) for one in self.features.values()}) > 1


def ask_cluster(brokers: Brokers) -> ClusterNow:
    """Returns what the brokers tell of themselves; what one of them does not tell is named.

    Raises:
        StartError: nobody answers there.
    """
    found = cluster_queries.metadata_of_cluster(brokers, None)
    now = ClusterNow()
    for node in sorted(found.brokers):
        _ask_broker(brokers, node, now)
    for topic in sorted(found.topics):
        if not topic.startswith(INTERNAL):
            told = _told(now, f"the settings of topic {topic}", lambda topic=topic: _topic(brokers, topic))  # type: ignore[misc]
            if told is not None:
                now.set_of_topics[topic] = told
    for group in now.groups:
        if group.kind is not None and (given := _group(brokers, group.name)):
            now.set_of_groups[group.name] = given
    now.candidates = candidates(now.features)
    return now


def candidates(features: Mapping[int, BrokerFeatures]) -> tuple[str, ...]:
    """Returns the versions of the tables of which some broker answers exactly the API versions, the oldest first."""
    answers = [dict(one.apis) for one in features.values()]
    return tuple(version for version in versions() if any(_answers_as(version, answer) for answer in answers))


def version_now(now: ClusterNow, *, to: str, given: str | None) -> str:
    """Returns which version the brokers have: `given`, else the newest of those that answer like the oldest broker.

    Raises:
        InputError: none of the tables does, or they are of version `to` already.
    """
    if given is not None:
        return given
    if now.candidates == (to,):
        raise InputError(f"--to {to}", "the brokers answer as this version does already")
    others = [version for version in now.candidates if version != to]
    if not others:
        raise InputError(
            "--from",
            f"which version have the brokers? They answer as none of {', '.join(versions())} does: say the nearest one",
        )
    if now.is_mixed:
        return others[0]
    return max(others, key=order)


def _answers_as(version: str, answer: Mapping[int, tuple[int, int]]) -> bool:
    rows = [row for row in apis(version).values() if row.name not in SOMETIMES]
    left_out = {row.key for row in apis(version).values() if row.name in SOMETIMES}
    told = {key: span for key, span in answer.items() if key not in left_out}
    return told == {row.key: (row.told_lowest, row.highest) for row in rows}


def _ask_broker(brokers: Brokers, node: int, now: ClusterNow) -> None:
    features = _told(now, f"versions and features of broker {node}", lambda: brokers.broker(node, broker_features))
    if features is None:
        return
    now.features[node] = features
    configs = _told(
        now,
        f"the settings of broker {node}",
        lambda: brokers.broker(node, lambda at: cluster_queries.all_broker_configs(at, node)),
    )
    if configs is not None:
        now.set_of_brokers[node] = given_of(configs)
    version = min(WITH_KINDS, features.apis.get(LIST_GROUPS, (0, 0))[1])
    listed = _told(
        now,
        f"the groups of broker {node}",
        lambda: brokers.broker(node, lambda at: group_requests.listed_groups(at, version=version)),
    )
    now.groups += listed or ()


def _topic(brokers: Brokers, topic: str) -> dict[str, str]:
    return given_of(brokers.anyone(lambda at: cluster_queries.all_topic_configs(at, topic)))


def _group(brokers: Brokers, group: str) -> dict[str, str]:
    """Returns what is set for a group; nothing where brokers keep no settings of groups."""
    try:
        return given_of(brokers.anyone(lambda at: cluster_queries.all_group_configs(at, group)))
    except NoAnswerError:
        return {}


def given_of(configs: tuple[Config, ...]) -> dict[str, str]:
    """Returns the settings that somebody has set; a value that brokers keep to themselves is (hidden)."""
    return {one.name: HIDDEN if one.value is None else one.value for one in configs if not one.is_default}


def _told(now: ClusterNow, what: str, question: Callable[[], T]) -> T | None:
    try:
        return question()
    except NoAnswerError as error:
        now.untold.append(f"{what} ({error})")
        return None

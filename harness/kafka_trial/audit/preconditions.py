"""Preconditions: is there what the audit asks for, and may it be read? Looked at first, and told in full.

Metadata, ListOffsets and one Fetch each: nothing is created, joined or changed by looking.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_trial.audit.request import AuditRequest
from kafka_trial.errors import InputError, StartError, WaitTimeout
from kafka_trial.kafka_protocol import cluster_queries
from kafka_trial.kafka_protocol.batches import fetch
from kafka_trial.kafka_protocol.cluster_queries import Topic
from kafka_trial.kafka_protocol.connection import Brokers, Connection, NoAnswerError
from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC, group_partition
from kafka_trial.kafka_protocol.primitives import error_name
from kafka_trial.process.waiting import wait_until

TOLD_WITHIN_S = 5.0  # a leader that is new, or has just gone, answers without offsets
TOPIC_REFUSED, GROUP_REFUSED, CLUSTER_REFUSED = 29, 30, 31
ACLS = {
    TOPIC_REFUSED: "{operation} on topic {topic}",
    GROUP_REFUSED: "DESCRIBE on group {group}",
    CLUSTER_REFUSED: "DESCRIBE on the cluster",
}
REFUSED = "the cluster does not let us read {topic} ({told}): give our principal DESCRIBE and READ on topic {topic}"


@dataclass(frozen=True)
class Preconditions:
    """What was found: the topic, the partition of the offsets log that holds the group, and its leader."""

    topic: Topic
    log_partition: int
    sinks: tuple[Topic, ...] = ()


def read_preconditions(brokers: Brokers, request: AuditRequest) -> Preconditions:
    """Returns where everything is that the audit asks for.

    Raises:
        StartError: nobody answers at the bootstrap addresses.
        InputError: there is no such topic, or it may not be read; all of these are told at once.
    """
    wanted = [request.topic, OFFSETS_TOPIC, *_sink_topics(request)]
    found = {name: _described(brokers, request, name) for name in wanted}
    problems = [problem for problem in found.values() if isinstance(problem, str)]
    if problems:
        raise InputError("audit", problems)
    topics = {name: topic for name, topic in found.items() if isinstance(topic, Topic)}
    partitions = len(topics[OFFSETS_TOPIC].partitions)
    return Preconditions(
        topics[request.topic],
        group_partition(request.group, partitions=partitions),
        tuple(topics[name] for name in _sink_topics(request)),
    )


def missing_acl(error: NoAnswerError, request: AuditRequest, *, operation: str, topic: str | None = None) -> str | None:
    """Returns what our principal must be given where a question was refused for want of it; else None.

    `operation` is what the question needs on the topic (default: the audited one).
    """
    acl = ACLS.get(error.code or 0)
    if acl is None:
        return None
    wanted = acl.format(operation=operation, topic=topic or request.topic, group=request.group)
    return f"{error}: our principal has no {wanted}"


def _sink_topics(request: AuditRequest) -> tuple[str, ...]:
    return request.sink.topics if request.sink else ()


def _described(brokers: Brokers, request: AuditRequest, name: str) -> Topic | str:
    try:
        found = brokers.anyone(lambda connection: cluster_queries.metadata(connection, [name]))
    except NoAnswerError as error:
        raise StartError(f"no broker answers at {request.bootstrap}: {error}. {_advice(request)}") from error
    brokers.by_id = dict(found.brokers)
    topic = found.topics.get(name)
    if topic is not None:
        return _refused(brokers, topic) or topic
    if (code := found.refused.get(name)) == TOPIC_REFUSED:
        return REFUSED.format(topic=name, told=f"metadata: {error_name(code)}")
    return _absent(name, request)


def _advice(request: AuditRequest) -> str:
    address = "Is the address right and reachable from here"
    if not request.security.config:
        return f"{address}? A listener with TLS or SASL needs --command-config FILE, as Kafka's own tools take it"
    return f"{address}, and is it a listener for {request.security.protocol}, as {request.security.config} says?"


def _absent(name: str, request: AuditRequest) -> str:
    if name == OFFSETS_TOPIC:
        return (
            f"there is no topic {name} for us: no group has ever committed on this cluster, or we may not see it. "
            f"This needs DESCRIBE and READ on topic {name}"
        )
    option = "--sink-topic" if name in _sink_topics(request) else "--topic"
    return f"{option} {name}: there is no such topic at {request.bootstrap}, or we may not DESCRIBE it. Check the name"


def _refused(brokers: Brokers, topic: Topic) -> str | None:
    """Returns what keeps us from reading a topic; asked of one partition that has a leader."""
    led = next((part for part in topic.partitions if part.leader >= 0), None)
    if led is None:
        return f"topic {topic.name}: no partition of it has a leader now; audit again when its brokers are back"

    def ask(connection: Connection) -> bool:
        offsets = cluster_queries.list_offsets(connection, topic.name, [led.partition], which=cluster_queries.EARLIEST)
        if led.partition in offsets:
            fetch(connection, topic.name, led.partition, offsets[led.partition], wait_ms=1)
        return led.partition in offsets

    what = f"broker {led.leader} to tell where {topic.name}-{led.partition} begins"
    try:
        wait_until(lambda: brokers.broker(led.leader, ask), within_s=TOLD_WITHIN_S, what=what, every_s=0.2)
    except WaitTimeout as error:
        return f"topic {topic.name}: {error}; it may not lead it any more: audit again"
    except NoAnswerError as error:
        if error.code == TOPIC_REFUSED:
            return REFUSED.format(topic=topic.name, told=error)
        return (
            f"topic {topic.name}: broker {led.leader}, leader of partition {led.partition}, cannot be asked: {error}. "
            "Its advertised address must be reachable from here"
        )
    return None

"""What the witnesses ask brokers: metadata, log ends, the quorum, topic configs.

Each question is one request of Kafka's protocol, in a version that every broker from 3.7 on answers, and returns
a frozen value. Schemas: `common/message/*.json` in Kafka's clients.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kafka_trial.errors import StartError
from kafka_trial.kafka_protocol.connection import Address, Brokers, Connection, NoAnswerError
from kafka_trial.kafka_protocol.primitives import Reader, error_name

EARLIEST: Final = -2
LATEST: Final = -1
METADATA_TOPIC: Final = "__cluster_metadata"
_TOPIC: Final = 2
_BROKER: Final = 4
_GROUP: Final = 32
DEFAULT_SOURCE: Final = 5  # ConfigSource.DEFAULT_CONFIG: nobody has set it
_NO_TOPIC_ID_BYTES: Final = bytes(16)


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition as a broker knows it; leader -1 while there is none."""

    partition: int
    leader: int
    epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as a broker knows it."""

    name: str
    topic_id: str
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class Metadata:
    """The brokers by id, and the topics asked for that exist; of the others Kafka's error code."""

    brokers: Mapping[int, Address]
    topics: Mapping[str, Topic]
    refused: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Quorum:
    """The metadata quorum: its leader, which is the active controller, and its epoch; `caught_up_ms`: by voter, when it
    had last read all of the log, by the leader's wall clock; -1: not known."""

    leader: int
    epoch: int
    caught_up_ms: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Config:
    """A setting as a broker describes it; `source` is Kafka's number of where its value comes from."""

    name: str
    value: str | None
    source: int

    @property
    def is_default(self) -> bool:
        """Whether nobody has set it: not for the topic, not for this broker, not for all of them."""
        return self.source == DEFAULT_SOURCE


def metadata(connection: Connection, topics: Sequence[str] | None) -> Metadata:
    """Returns the brokers and the given topics, or (None) all topics (Metadata v10)."""
    body = b"\0" if topics is None else compact_count(len(topics))
    body += b"".join(_NO_TOPIC_ID_BYTES + compact(name) + b"\0" for name in topics or ())
    body += b"\0\0\0\0"  # no automatic creation; no authorised operations, of cluster and topic; no tags
    return connection.ask((3, 10), body, _metadata, flexible=True)


def metadata_of_cluster(brokers: Brokers, topics: Sequence[str] | None) -> Metadata:
    """Returns what any broker tells, and lets all of them be asked by their ids from now on.

    Raises:
        StartError: nobody answers there.
    """
    where = ", ".join(brokers.order)
    try:
        found = brokers.anyone(lambda at: metadata(at, topics))
    except NoAnswerError as error:
        raise StartError(
            f"no broker answers at {where}: {error}. Is the address right and reachable from here? A listener with TLS "
            "or SASL needs --command-config FILE, as Kafka's own tools take it"
        ) from error
    brokers.by_id = dict(found.brokers)
    return found


def list_offsets(
    connection: Connection, topic: str, partitions: Sequence[int], *, which: int, committed: bool = False
) -> dict[int, int]:
    """Returns log start (EARLIEST) or log end (LATEST; `committed`: last stable) offsets of partitions a broker leads.

    A partition it does not lead (any more) is left out (ListOffsets v4).
    """
    body = _list_offsets_body(topic, partitions, which=which, committed=committed)
    return {partition: offset for partition, (offset, _) in connection.ask((2, 4), body, _timed_offsets).items()}


def offsets_for_time(
    connection: Connection, topic: str, partitions: Sequence[int], *, time_ms: int
) -> dict[int, tuple[int, int]]:
    """Returns offset and time of the first record of that time or later, for partitions a broker leads.

    Both are -1 where there is none; a partition it does not lead (any more) is left out (ListOffsets v4).
    """
    body = _list_offsets_body(topic, partitions, which=time_ms, committed=False)
    return connection.ask((2, 4), body, _timed_offsets)


def quorum(connection: Connection) -> Quorum:
    """Returns the metadata quorum (DescribeQuorum v1: from 3.3 on).

    Raises:
        NoAnswerError: it has no leader at the moment.
    """
    body = compact_count(1) + compact(METADATA_TOPIC) + compact_count(1) + struct.pack(">i", 0) + b"\0\0\0"
    return connection.ask((55, 1), body, _quorum, flexible=True)


def topic_configs(connection: Connection, topic: str, names: Sequence[str]) -> dict[str, str | None]:
    """Returns some configs of a topic (DescribeConfigs v1)."""
    return _described(connection, _TOPIC, topic, names)


def broker_configs(connection: Connection, broker: int, names: Sequence[str]) -> dict[str, str | None]:
    """Returns some configs of the broker that is asked, by its id (DescribeConfigs v1)."""
    return _described(connection, _BROKER, str(broker), names)


def all_topic_configs(connection: Connection, topic: str) -> tuple[Config, ...]:
    """Returns all configs of a topic, those of its own and those that it has from brokers (DescribeConfigs v1)."""
    return _asked_configs(connection, _TOPIC, topic, None)


def all_broker_configs(connection: Connection, broker: int) -> tuple[Config, ...]:
    """Returns all configs of the broker that is asked, by its id (DescribeConfigs v1)."""
    return _asked_configs(connection, _BROKER, str(broker), None)


def all_group_configs(connection: Connection, group: str) -> tuple[Config, ...]:
    """Returns all configs of a group (DescribeConfigs v1); brokers before 3.9 refuse that."""
    return _asked_configs(connection, _GROUP, group, None)


def _described(connection: Connection, kind: int, name: str, names: Sequence[str]) -> dict[str, str | None]:
    return {config.name: config.value for config in _asked_configs(connection, kind, name, names)}


def _asked_configs(connection: Connection, kind: int, name: str, names: Sequence[str] | None) -> tuple[Config, ...]:
    body = struct.pack(">ib", 1, kind) + plain(name) + struct.pack(">i", -1 if names is None else len(names))
    body += b"".join(plain(config) for config in names or ()) + b"\0"
    return connection.ask((32, 1), body, _configs)


def _metadata(reader: Reader) -> Metadata:
    reader.int32()  # throttle time
    brokers = reader.array(lambda: _broker(reader))
    reader.nullable_string()  # cluster id
    reader.int32()  # controller: in KRaft any broker
    topics = reader.array(lambda: _topic(reader))
    reader.int32()  # authorised operations
    return Metadata(
        dict(brokers),
        {topic.name: topic for code, topic in topics if code == 0},
        {topic.name: code for code, topic in topics if code},
    )


def _broker(reader: Reader) -> tuple[int, Address]:
    broker = reader.int32(), (reader.string(), reader.int32())
    reader.nullable_string()  # rack
    reader.tags()
    return broker


def _topic(reader: Reader) -> tuple[int, Topic]:
    code, name, topic_id = reader.int16(), reader.string(), reader.uuid()
    reader.int8()  # internal
    partitions = sorted(reader.array(lambda: _partition(reader)), key=lambda part: part.partition)
    reader.int32()  # authorised operations
    reader.tags()
    return code, Topic(name, topic_id, tuple(partitions))


def _partition(reader: Reader) -> Partition:
    reader.int16()  # a partition without a leader carries an error, and leader -1
    index, leader, epoch = reader.int32(), reader.int32(), reader.int32()
    replicas, isr = reader.array(reader.int32), reader.array(reader.int32)
    reader.array(reader.int32)  # offline replicas
    reader.tags()
    return Partition(index, leader, epoch, replicas, isr)


def _list_offsets_body(topic: str, partitions: Sequence[int], *, which: int, committed: bool) -> bytes:
    body = struct.pack(">ib", -1, int(committed)) + struct.pack(">i", 1) + plain(topic)
    body += struct.pack(">i", len(partitions))
    return body + b"".join(struct.pack(">iiq", partition, -1, which) for partition in partitions)


def _timed_offsets(reader: Reader) -> dict[int, tuple[int, int]]:
    reader.int32()  # throttle time
    topics = reader.array(lambda: (reader.string(), reader.array(lambda: _offset(reader))))
    return {
        partition: (offset, time_ms)
        for _, answers in topics
        for partition, code, offset, time_ms in answers
        if not code
    }


def _offset(reader: Reader) -> tuple[int, int, int, int]:
    partition, code, time_ms, offset = reader.int32(), reader.int16(), reader.int64(), reader.int64()
    reader.int32()  # leader epoch
    return partition, code, offset, time_ms


def _quorum(reader: Reader) -> Quorum:
    refuse("controller", reader.int16())
    topics = reader.array(lambda: (reader.string(), reader.array(lambda: _quorum_partition(reader)), reader.tags()))
    code, found = topics[0][1][0]
    refuse("controller", code)
    return found


def _quorum_partition(reader: Reader) -> tuple[int, Quorum]:
    reader.int32()  # partition
    code, leader, epoch = reader.int16(), reader.int32(), reader.int32()
    reader.int64()  # high watermark
    voters, _ = (reader.array(lambda: _quorum_replica(reader)) for _ in ("voters", "observers"))
    reader.tags()
    return code, Quorum(leader, epoch, dict(voters))


def _quorum_replica(reader: Reader) -> tuple[int, int]:
    """Returns its id, and when it had caught up (ms)."""
    node, _, _, caught_up_ms = reader.int32(), reader.int64(), reader.int64(), reader.int64()
    reader.tags()
    return node, caught_up_ms


def _configs(reader: Reader) -> tuple[Config, ...]:
    reader.int32()  # throttle time
    code, message, configs = reader.array(lambda: _described_configs(reader))[0]
    refuse("configs", code, message)
    return configs


def _described_configs(reader: Reader) -> tuple[int, str | None, tuple[Config, ...]]:
    code, message = reader.int16(), reader.nullable_string()
    reader.int8()  # resource type
    reader.string()  # resource
    return code, message, reader.array(lambda: _config(reader))


def _config(reader: Reader) -> Config:
    name, value = reader.string(), reader.nullable_string()
    reader.int8()  # read-only
    source = reader.int8()
    reader.int8()  # sensitive
    reader.array(lambda: (reader.string(), reader.nullable_string(), reader.int8()))
    return Config(name, value, source)


def refuse(what: str, code: int, message: str | None = None) -> None:
    """Raises NoAnswerError with Kafka's code where an answer carries one."""
    if code:
        raise NoAnswerError(f"{what}: {error_name(code)} {message or ''}".rstrip(), code=code)


def plain(text: str) -> bytes:
    """Returns a string in plain encoding."""
    raw = text.encode()
    return struct.pack(f">h{len(raw)}s", len(raw), raw)


def compact(text: str) -> bytes:
    """Returns a string in flexible encoding."""
    raw = text.encode()
    return compact_count(len(raw)) + raw


def compact_count(count: int) -> bytes:
    """Returns the length of a string or array in flexible encoding: an unsigned varint of count + 1."""
    value, out = count + 1, bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])

"""What a broker says of itself: the API versions that it answers, and the features of its cluster (KIP-35, KIP-584)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kafka_trial.kafka_protocol.cluster_queries import compact, refuse
from kafka_trial.kafka_protocol.connection import CLIENT_ID, Connection
from kafka_trial.kafka_protocol.primitives import Reader

API_VERSIONS: Final = 18
_WITH_LOWEST_ZERO: Final = 4  # from this version on features whose lowest level is 0 are told (KAFKA-17011)
_SUPPORTED, _EPOCH, _FINALIZED = 0, 1, 2  # tags of the answer


@dataclass(frozen=True, slots=True)
class BrokerFeatures:
    """The versions of each API by its key, and of each feature the levels that are supported, and the finalised one.

    Of a mixed cluster each broker answers for itself what it supports; what is finalised is the whole cluster's, as far
    as that broker has read the metadata log: up to `epoch`, the offset there of the last change; -1 before the first.
    """

    apis: Mapping[int, tuple[int, int]]
    supported: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    finalized: Mapping[str, int] = field(default_factory=dict)
    epoch: int = -1


def broker_features(connection: Connection) -> BrokerFeatures:
    """Returns what a broker answers to ApiVersions v3, or v4 where it knows that.

    Raises:
        NoAnswerError: no answer, or a refusal.
    """
    found = _asked(connection, 3)
    if found.apis.get(API_VERSIONS, (0, 0))[1] >= _WITH_LOWEST_ZERO:
        return _asked(connection, _WITH_LOWEST_ZERO)
    return found


def _asked(connection: Connection, version: int) -> BrokerFeatures:
    body = compact(CLIENT_ID) + compact("1") + b"\0"
    return connection.ask((API_VERSIONS, version), body, _features, flexible=True, plain_header=True)


def _features(reader: Reader) -> BrokerFeatures:
    refuse("ApiVersions", reader.int16())
    apis = reader.array(lambda: _api(reader))
    reader.int32()  # throttle time
    tags = reader.tags()
    reader.flexible = False  # the tags that end the answer are read
    supported = _levels(tags.get(_SUPPORTED))
    finalized = {name: levels[0] for name, levels in _levels(tags.get(_FINALIZED)).items()}  # the highest comes first
    epoch = Reader(tags[_EPOCH]).int64() if _EPOCH in tags else -1
    return BrokerFeatures(dict(apis), supported, finalized, epoch)


def _api(reader: Reader) -> tuple[int, tuple[int, int]]:
    api = reader.int16(), (reader.int16(), reader.int16())
    reader.tags()
    return api


def _levels(raw: bytes | None) -> dict[str, tuple[int, int]]:
    if raw is None:
        return {}
    reader = Reader(raw, flexible=True)
    levels = dict(reader.array(lambda: _level(reader)))
    reader.end()
    return levels


def _level(reader: Reader) -> tuple[str, tuple[int, int]]:
    level = reader.string(), (reader.int16(), reader.int16())
    reader.tags()
    return level

"""Features and API versions of a broker, as it answers them (ApiVersions, KIP-584), and their finalisation.

Of a mixed cluster each broker answers for itself what it supports; what is finalised is the whole cluster's, as far as
that broker has read the metadata log. ApiVersions v4 shows features that a broker supports from level 0 on, which v3
hides (KIP-1022); 3.7 knows no v4. Schemas: `common/message/*.json` in Kafka's clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kafka_trial import __version__
from kafka_trial.kafka_protocol.cluster_queries import compact
from kafka_trial.kafka_protocol.connection import Connection, NoAnswerError
from kafka_trial.kafka_protocol.primitives import Reader, error_name

METADATA_VERSION: Final = "metadata.version"
_API_VERSIONS: Final = 18
_SUPPORTED, _EPOCH, _FINALISED = 0, 1, 2  # tags of the answer
_UNSUPPORTED_VERSION: Final = 35


@dataclass(frozen=True)
class BrokerFeatures:
    """What one broker answers: by feature the lowest and the highest level that it supports, by feature the level in
    force in its cluster, by API key the lowest and the highest version of its listener.

    `epoch`: the offset of the metadata log at which the last level was finalised, -1 before the first.
    """

    supported: Mapping[str, tuple[int, int]]
    finalised: Mapping[str, int]
    epoch: int
    api_versions: Mapping[int, tuple[int, int]]


def broker_features(connection: Connection) -> BrokerFeatures:
    """Returns the features and API versions of the broker that is asked.

    Raises:
        NoAnswerError: it does not answer, or refuses.
    """
    body = compact("kafka-trial") + compact(__version__) + b"\0"
    try:
        return connection.ask((_API_VERSIONS, 4), body, _answer, flexible=True, plain_header=True)
    except NoAnswerError as refusal:
        if refusal.code != _UNSUPPORTED_VERSION:
            raise
    return connection.ask((_API_VERSIONS, 3), body, _answer, flexible=True, plain_header=True)


def _answer(reader: Reader) -> BrokerFeatures:
    code = reader.int16()
    if code:  # the rest is in the encoding of version 0
        raise NoAnswerError(f"ApiVersions was answered {error_name(code)}", code=code)
    api_versions = dict(reader.array(lambda: (reader.int16(), _numbers(reader))))
    reader.int32()  # throttle time
    tags = reader.tags()
    reader.flexible = False  # there are no more
    return BrokerFeatures(
        supported=_by_name(tags.get(_SUPPORTED)),
        finalised={name: highest for name, (highest, _) in _by_name(tags.get(_FINALISED)).items()},
        epoch=Reader(tags[_EPOCH]).int64() if _EPOCH in tags else -1,
        api_versions=api_versions,
    )


def _by_name(tagged: bytes | None) -> dict[str, tuple[int, int]]:
    reader = Reader(b"\x01" if tagged is None else tagged, flexible=True)
    return dict(reader.array(lambda: (reader.string(), _numbers(reader))))


def _numbers(reader: Reader) -> tuple[int, int]:
    numbers = reader.int16(), reader.int16()
    reader.tags()
    return numbers

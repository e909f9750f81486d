"""What changes a cluster for good: levels of features are finalised, by name, and a broker is taken out.

UpdateFeatures (KIP-584, KIP-778, KIP-1022), and UnregisterBroker v0 (KIP-631), which no client library has.

Any broker takes these requests, and hands them to the active controller, as for `kafka-features.sh`. The controller
refuses a level that a registered node does not support, and writes it into the metadata log otherwise; from there each
broker has it in its own time (`broker_features`). Raising a feature to the level it has already is taken: so a request
whose answer was lost may be sent again.

A broker that was shut down stays registered, fenced, until somebody orders its removal.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from kafka_trial.kafka_protocol.broker_features import broker_features
from kafka_trial.kafka_protocol.cluster_queries import compact, compact_count, refuse
from kafka_trial.kafka_protocol.connection import Connection, NoAnswerError
from kafka_trial.kafka_protocol.primitives import Reader, error_name

UPDATE_FEATURES: Final = 57
_LOWEST, _HIGHEST = 1, 2  # from 1 on with the kind of update; from 2 on all or nothing, with one error for all
_CONTROLLER_WITHIN_S: Final = 10.0
_PASSES: Final = {7, 13, 41}  # the controller did not answer in time, or there is none at the moment
BROKER_ID_NOT_REGISTERED: Final = 102
_UNREGISTER_BROKER: Final = (64, 0)


class Update(IntEnum):
    """What may be done to a level: raised; lowered if nothing is lost by it; lowered in any case."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    """The level that a feature is to have in the whole cluster; 0 turns it off."""

    feature: str
    level: int
    update: Update = Update.UPGRADE


def update_features(
    connection: Connection,
    updates: Sequence[FeatureUpdate],
    *,
    validate_only: bool = False,
    within_s: float = _CONTROLLER_WITHIN_S,
) -> list[str]:
    """Asks for levels, in the newest version that the broker knows; returns why they were refused, none: taken.

    Raises:
        NoAnswerError: no answer, or no controller at the moment: it may have been taken all the same.
    """
    known = broker_features(connection).apis.get(UPDATE_FEATURES, (0, 0))
    version = max(_LOWEST, min(_HIGHEST, known[1]))
    body = request_body(updates, validate_only=validate_only, within_s=within_s)

    def read(reader: Reader) -> list[str]:
        return refusals(reader, updates, version=version)

    return connection.ask((UPDATE_FEATURES, version), body, read, flexible=True, broker_waits_s=within_s)


def request_body(updates: Sequence[FeatureUpdate], *, validate_only: bool, within_s: float) -> bytes:
    """Returns the body of a request, which is the same in v1 and v2."""
    body = struct.pack(">i", round(within_s * 1000)) + compact_count(len(updates))
    for one in updates:
        body += compact(one.feature) + struct.pack(">hb", one.level, one.update) + b"\0"
    return body + struct.pack(">?", validate_only) + b"\0"


def refusals(reader: Reader, updates: Sequence[FeatureUpdate], *, version: int) -> list[str]:
    """Returns what an answer refuses, as messages: of v1 each feature by itself, of v2 all together.

    Raises:
        NoAnswerError: the controller did not answer whoever forwarded it.
    """
    reader.int32()  # throttle time
    code, message = reader.int16(), reader.nullable_string()
    if code in _PASSES:
        raise NoAnswerError(f"UpdateFeatures: {error_name(code)} {message or ''}".rstrip(), code=code)
    names = ", ".join(f"{one.feature} {one.level}" for one in updates)
    refused = [_refusal(names, code, message)] if code else []
    if version >= _HIGHEST:
        return refused
    wanted = {one.feature: f"{one.feature} {one.level}" for one in updates}
    results = reader.array(lambda: _result(reader))
    return refused + [_refusal(wanted.get(name, name), code, message) for name, code, message in results if code]


def _refusal(what: str, code: int, message: str | None) -> str:
    return f"{what} was refused, {error_name(code)}: {message or 'no reason given'}"


def _result(reader: Reader) -> tuple[str, int, str | None]:
    result = reader.string(), reader.int16(), reader.nullable_string()
    reader.tags()
    return result


def unregister_broker(connection: Connection, broker: int) -> bool:
    """Takes a broker out of the cluster; False: it was not in it.

    Raises:
        NoAnswerError: the order was refused, or nobody answered.
    """
    try:
        connection.ask(_UNREGISTER_BROKER, struct.pack(">i", broker) + b"\0", _unregistered, flexible=True)
    except NoAnswerError as error:
        if error.code != BROKER_ID_NOT_REGISTERED:
            raise
        return False
    return True


def _unregistered(reader: Reader) -> None:
    reader.int32()  # throttle time
    code, message = reader.int16(), reader.nullable_string()
    refuse("unregistering a broker", code, message)

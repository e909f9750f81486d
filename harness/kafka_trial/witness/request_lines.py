"""One line of a broker's request log: who asked what, on which lane, and what was answered; bytes in, values out.

A line is JSON: when the answer had been sent, and the request with its response, as the broker's
`kafka.request.logger` prints them. Kafka 4 by log4j2: `{"ts":<seconds>.<micros>,"r":{…}}`; 3.9 by reload4j:
`{"ts":"<UTC date and time>","r":Completed request:{…}}`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

LANE: Final = re.compile(r"LANE(\d+)")
LINE_START: Final = b'{"ts":'
_STAMP: Final = re.compile(rb'\{"ts":("[^"]*"|[0-9.]+),')
_PREFIX: Final = b'"r":Completed request:'
_NS_PER_MS: Final = 1_000_000


class LineError(ValueError):
    """A line that is not one of the request log's; says what was expected and quotes the beginning."""


@dataclass(frozen=True, slots=True)
class Line:
    """One completed request. `connection` names it uniquely within a broker's life; `lane` None: no lane's listener.

    `key` is the API's number; `deprecated`: the broker says that a later Kafka removes this version of it (KIP-896).
    """

    source_wall_ns: int
    api: str
    version: int
    correlation_id: int
    client_id: str
    listener: str
    lane: int | None
    connection: str
    library: str | None
    duration_ms: float
    request: Mapping[str, Any]
    response: Mapping[str, Any]
    key: int = -1
    deprecated: bool = False


def parse_line(raw: bytes) -> Line:
    """Returns the request of one line.

    Raises:
        LineError: it is none.
    """
    try:
        body = orjson.loads(raw.replace(_PREFIX, b'"r":', 1))
        logged = body["r"]
        header = logged["requestHeader"]
        return Line(
            _wall_ns(body["ts"]),
            str(header["requestApiKeyName"]),
            int(header["requestApiVersion"]),
            int(header["correlationId"]),
            str(header["clientId"] or ""),
            str(logged["listener"]),
            _lane(logged["listener"]),
            str(logged["connection"]),
            _library(logged.get("clientInformation")),
            float(logged["totalTimeMs"]),
            logged["request"],
            logged["response"],
            int(header.get("requestApiKey", -1)),
            bool(header.get("requestApiVersionDeprecated", False)),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LineError(f"expected a line of the request log, seen {raw[:200]!r} ({error!r})") from error


def answered_ns(raw: bytes) -> int | None:
    """Returns when the request of a line was answered, be the line whole or not; None where its beginning lacks too."""
    begins = _STAMP.match(raw)
    try:
        return None if begins is None else _wall_ns(orjson.loads(begins[1]))
    except ValueError:
        return None


def _wall_ns(stamp: float | str) -> int:
    if isinstance(stamp, str):
        moment = datetime.datetime.fromisoformat(stamp).replace(tzinfo=datetime.UTC)
        return round(moment.timestamp() * 1000) * _NS_PER_MS
    return round(stamp * 1_000_000) * 1000


def _lane(listener: str) -> int | None:
    found = LANE.fullmatch(listener)
    return int(found[1]) if found else None


def _library(information: Mapping[str, str] | None) -> str | None:
    if not information or information.get("softwareName") in (None, "unknown"):
        return None
    return f"{information['softwareName']} {information.get('softwareVersion', '')}".rstrip()

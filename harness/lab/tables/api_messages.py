"""The API versions of one Kafka version, from the message definitions in its clients' jar (`common/message/*.json`).

What a broker listener answers: an API whose definition names the listener `broker`, in its valid versions; the highest
one is left out where it is unstable (`unstable.api.versions.enable` is false by default), and with it an API that has
no other (`ApiKeys.toApiVersion`). PushTelemetry and GetTelemetrySubscriptions are answered only where a broker has a
metrics reporter that takes them (`ApiVersionsResponse.filterApis`); they stand in the table.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from lab.tables.lines import Row

COMMENT: Final = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*')
# ApiKeys.PRODUCE_API_VERSIONS_RESPONSE_MIN_VERSION: librdkafka looks for it; requests of versions 0 to 2 are refused.
TOLD_LOWEST: Final = {"Produce": 0}


def api_rows(jars: Sequence[Path]) -> dict[str, tuple[int, Row]]:
    """Returns each API's key, and its row: lowest, highest, what ApiVersions tells as lowest, deprecated versions."""
    (clients,) = [jar for jar in jars if re.fullmatch(r"kafka-clients-[\d.]+\.jar", jar.name)]
    found: dict[str, tuple[int, Row]] = {}
    for message in _requests(clients):
        name, served = message["name"].removesuffix("Request"), _span(message["validVersions"])
        if "broker" not in message.get("listeners", ()) or served is None:
            continue
        lowest, highest = served
        highest -= bool(message.get("latestVersionUnstable"))
        if highest >= lowest:
            deprecated = _span(message.get("deprecatedVersions", "none"))
            found[name] = message["apiKey"], (lowest, highest, TOLD_LOWEST.get(name, lowest), deprecated)
    return found


def _requests(jar: Path) -> Iterator[dict[str, Any]]:
    with zipfile.ZipFile(jar) as files:
        for name in files.namelist():
            if name.startswith("common/message/") and name.endswith("Request.json"):
                yield orjson.loads(COMMENT.sub(lambda found: found[1] or "", files.read(name).decode()))


def _span(versions: str) -> list[int] | None:
    """Returns the lowest and highest of `3-13` or `0`; None of `none`."""
    if versions == "none":
        return None
    lowest, _, highest = versions.partition("-")
    return [int(lowest), int(highest or lowest)]

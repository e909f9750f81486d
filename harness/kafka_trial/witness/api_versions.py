"""Which version of each API a client speaks, and whether it asked the broker before: what an upgrade may take away.

A client that asks (ApiVersions, KIP-35) sends the highest version that both know; so a lower one than the broker
offers is the highest that the client knows, or is made to send. One that does not ask sends fixed versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kafka_trial.witness.request_lines import Line

ASKS: Final = "API_VERSIONS"
REMEMBERED_MAX: Final = 10_000  # connections: a client that is cut off again and again makes many
Fields = dict[str, Any]


class ApiVersionsSeen:
    """Says once of each client which version of an API it sends; one per broker, whose offer it learns."""

    def __init__(self) -> None:
        self._offer: dict[int, tuple[int, int]] = {}
        self._asked: dict[str, None] = {}  # connections, the oldest first
        self._told: set[tuple[Any, ...]] = set()

    def events(self, line: Line) -> Iterator[Fields]:
        """Yields the fields of an event where a client speaks a version that it was not seen to speak before."""
        if line.api == ASKS:
            self._learn(line)
        asks = line.connection in self._asked
        offered = self._offer.get(line.key, (None, None))
        new = (line.lane, line.client_id, line.library, line.api, line.version, asks, offered)
        if new in self._told:
            return
        self._told.add(new)
        yield {
            "api": line.api,
            "key": line.key,
            "version": line.version,
            "lane": line.lane,
            "listener": line.listener,
            "connection": line.connection,
            "client_id": line.client_id,
            "library": line.library,
            "asks": asks or None,
            "offered_lowest": offered[0],
            "offered_highest": offered[1],
            "deprecated": line.deprecated or None,
            "source_wall_ns": line.source_wall_ns,
        }

    def _learn(self, line: Line) -> None:
        self._asked[line.connection] = None
        if len(self._asked) > REMEMBERED_MAX:
            del self._asked[next(iter(self._asked))]
        if not line.response.get("errorCode"):
            self._offer.update(offer_of(line.response))


def offer_of(response: Mapping[str, Any]) -> dict[int, tuple[int, int]]:
    """Returns the versions that an answer to ApiVersions offers, lowest and highest, by the API's key."""
    return {api["apiKey"]: (api["minVersion"], api["maxVersion"]) for api in response.get("apiKeys") or ()}

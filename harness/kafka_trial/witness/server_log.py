"""What a broker's `server.log` says of requests that it refused to read: those have no line in the request log.

Brokers close the connection of a client whose request they cannot take, without an answer. 4.x does so with versions
that KIP-896 removed, and the client, which is told nothing, tries again for ever. The broker says twice why, first that
it closes the socket and then, for every request, that it could not process it (SocketServer, processChannelException):

    [2026-11-27 20:12:01,042] ERROR Exception while processing request from <connection> (kafka.network.Processor)
    org.apache.kafka.common.errors.InvalidRequestException: Received request for api with key 8 (OffsetCommit) and …

What is larger than any request comes from the selector instead, which warns once: a client that speaks no Kafka, say.
The local port of a connection's name (`local-remote-index`) is that of a lane's listener. A client in a loop makes
thousands of lines a second: they are counted, and told once a second.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from kafka_trial.history.recorder import Recorder

READ_BYTES_MAX: Final = 1 << 20
TOLD_EVERY_NS: Final = 1_000_000_000
KINDS_MAX: Final = 50  # that are told apart within a second
QUOTED_MAX: Final = 300
UNSUPPORTED, UNPARSABLE, OVERSIZED = "unsupported", "unparsable", "oversized"

BEGINS: Final = re.compile(rb"\[\d{4}-\d\d-\d\d ")
CONNECTION: Final = rb"\S+:(?P<port>\d+)-(?P<address>\S+):\d+(?:-\d+)+"
HEADS: Final = (
    re.compile(rb"ERROR .*Exception while processing request from " + CONNECTION),
    re.compile(rb"WARN .*Unexpected error from \S+ \(channelId=" + CONNECTION + rb"\); closing connection"),
)
CAUSE: Final = re.compile(
    r"org\.apache\.kafka\.common\.(?:errors\.(?:InvalidRequest|UnsupportedVersion)|network\.InvalidReceive)Exception: "
)
# By what the broker's classes say (SocketServer, RequestHeader, RequestContext, NetworkReceive); 3.9 names no key.
SAID: Final = (
    (
        UNSUPPORTED,
        r"Received request for api with key (?P<key>\d+) \((?P<api>\w+)\) and unsupported version (?P<v>-?\d+)",
    ),
    (UNSUPPORTED, r"Received request for disabled api with key (?P<key>\d+) \((?P<api>\w+)\) and version (?P<v>-?\d+)"),
    (UNSUPPORTED, r"Unsupported api with key (?P<key>\d+) \((?P<api>\w+)\) and version (?P<v>-?\d+)"),
    (UNSUPPORTED, r"Received request api key (?P<api>\w+) with version (?P<v>-?\d+) which is not enabled"),
    (UNSUPPORTED, r"Unknown API key (?P<key>-?\d+)"),
    (UNPARSABLE, r"Error parsing request header\. Our best guess of the apiKey(?:Id)? is: (?P<key>-?\d+)"),
    (UNPARSABLE, r"Error getting request for apiKey: (?P<api>\w+), apiVersion: (?P<v>-?\d+), connectionId: "),
    (OVERSIZED, r"Invalid receive "),
)
PATTERNS: Final = tuple((reason, re.compile(pattern)) for reason, pattern in SAID)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Requests alike that a broker refused: through which lane, from which address, of which API (its number and name,
    as far as the broker says them) in which version, why, and the broker's words."""

    lane: int
    address: str
    api_key: int | None
    api: str | None
    version: int | None
    reason: str
    message: str


@dataclass(slots=True)
class _Counted:
    count: int
    first_ns: int
    last_ns: int
    message: str


class ServerLog:
    """Follows one broker's log, and records what it refused of the trial's lanes.

    `lanes`: by the port of its listener on this broker. Times are of the monotonic clock, when a line was read. A log
    that has become shorter is read from its start.
    """

    def __init__(self, path: Path, recorder: Recorder, lanes: Mapping[int, int], *, position: int = 0) -> None:
        self.position = position
        self._path = path
        self._recorder = recorder
        self._lanes = lanes
        self._rest = b""
        self._asked: re.Match[bytes] | None = None
        self._counted: dict[Refusal, _Counted] = {}

    @property
    def size(self) -> int:
        """The log's size in bytes now; 0 before the broker has made it."""
        return self._path.stat().st_size if self._path.exists() else 0

    def step(self) -> bool:
        """Reads what was appended (up to a bound); returns whether there was anything."""
        size, now_ns = self.size, time.monotonic_ns()
        if size < self.position:
            self.position, self._rest, self._asked = 0, b"", None
        grown = size > self.position
        if grown:
            with self._path.open("rb") as log:
                log.seek(self.position)
                data = log.read(READ_BYTES_MAX)
            self.position += len(data)
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._rest = self._rest[-READ_BYTES_MAX:]
            for line in lines:
                self._take(line, now_ns)
        self.tell(before_ns=now_ns - TOLD_EVERY_NS)
        return grown

    def tell(self, *, before_ns: int | None = None) -> None:
        """Records what was counted, all of it or what began before an instant."""
        due = [one for one, told in self._counted.items() if before_ns is None or told.first_ns <= before_ns]
        for refusal in due:
            told = self._counted.pop(refusal)
            fields: dict[str, Any] = {name: getattr(refusal, name) for name in FIELDS}
            times = {"count": told.count, "first_ns": told.first_ns, "last_ns": told.last_ns}
            self._recorder.record("request_refused", **fields, **times, message=told.message)
        if due:
            self._recorder.flush()

    def _take(self, line: bytes, now_ns: int) -> None:
        if BEGINS.match(line):
            self._asked = next((found for head in HEADS if (found := head.search(line))), None)
        elif self._asked is not None:
            asked, self._asked = self._asked, None
            lane = self._lanes.get(int(asked["port"]))
            if lane is not None and (refusal := refusal_of(line, lane, asked["address"].decode(errors="replace"))):
                self._count(refusal, now_ns)

    def _count(self, refusal: Refusal, now_ns: int) -> None:
        alike = replace(refusal, message="")
        if alike not in self._counted and len(self._counted) >= KINDS_MAX:
            alike = Refusal(refusal.lane, refusal.address, None, None, None, refusal.reason, "")
        told = self._counted.setdefault(alike, _Counted(0, now_ns, now_ns, refusal.message))
        told.count += 1
        told.last_ns = now_ns


FIELDS: Final = ("lane", "address", "api_key", "api", "version", "reason")


def refusal_of(line: bytes, lane: int, address: str) -> Refusal | None:
    """Returns what the line under the broker's complaint says; None where that is no refusal of a request."""
    text = line.decode(errors="replace").strip()
    cause = CAUSE.match(text)
    if cause is None:
        return None
    message = text[cause.end() :]
    for reason, pattern in PATTERNS:
        if found := pattern.match(message):
            told = found.groupdict()
            key, version = told.get("key"), told.get("v")
            numbers = (None if key is None else int(key), told.get("api"), None if version is None else int(version))
            return Refusal(lane, address, *numbers, reason, message[:QUOTED_MAX])
    return Refusal(lane, address, None, None, None, UNPARSABLE, message[:QUOTED_MAX])

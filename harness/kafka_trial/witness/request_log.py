"""The witness of the request log: who asked the brokers what, and what was refused.

A process of its own. It follows the `requests.log` of every broker, keeps the lines of the trial's lanes and every
other line that names one of its groups (an operator's commit, say), and writes one `request` event per request to
`history/requests-b<n>.jsonl`, fetches and metadata kept thin, and one `api_version` event for each version of an API
that a client is first seen to speak. A broker that is started again appends to its log. What a broker refused to read
stands in its `server.log` alone, which is read beside, as evidence that no verdict waits for.

A client that asks (ApiVersions, KIP-35) sends the highest version that both know; so a lower one than the broker offers
is the highest that the client knows, or is made to send. One that does not ask sends fixed versions.

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

import argparse
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import orjson

from kafka_trial.errors import UnjudgeableError
from kafka_trial.history.recorder import Recorder
from kafka_trial.process.waiting import pause
from kafka_trial.witness.request_events import Requests
from kafka_trial.witness.request_lines import LINE_START, Line, LineError, parse_line
from kafka_trial.witness.rpc_server import BEHIND, COMPLETE, UNDECODABLE, Answer, deadline_s, serve

IDLE_S: Final = 0.05
READ_BYTES_MAX: Final = 1 << 20
QUOTED_BYTES: Final = 4096
TORN_AFTER_S: Final = 1.0
BUFFER_EVENTS: Final = 500
# A torn or strange line of these says nothing that a verdict rests on.
HARMLESS: Final = tuple(
    f'"requestApiKeyName":"{api}"'.encode()
    for api in ("FETCH", "METADATA", "API_VERSIONS", "LIST_OFFSETS", "FIND_COORDINATOR")
)
ASKS: Final = "API_VERSIONS"
REMEMBERED_MAX: Final = 10_000  # connections: a client that is cut off again and again makes many
Fields = dict[str, Any]
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


class RequestLog:
    """Follows one broker's log and records what concerns the trial."""

    def __init__(
        self, path: Path, recorder: Recorder, requests: Requests, *, wanted: Sequence[bytes], position: int = 0
    ) -> None:
        self.position = position
        self.undecodable = 0
        self._path = path
        self._recorder = recorder
        self._requests = requests
        self._api_versions = ApiVersionsSeen()
        self._wanted = wanted
        self._line = 0
        self._rest = b""

    @property
    def size(self) -> int:
        """The log's size in bytes now; 0 before the broker has made it."""
        return self._path.stat().st_size if self._path.exists() else 0

    def step(self) -> bool:
        """Reads what was appended (up to a bound); returns whether there was anything.

        Raises:
            UnjudgeableError: the log has become shorter: lines are lost.
        """
        size = self.size
        if size < self.position:
            raise UnjudgeableError(
                f"{self._path} had {self.position} bytes, now {size}: it was replaced or truncated, and lines of the "
                "request log are lost. Brokers must append (no rolling appender) and nobody may clean up in a trial."
            )
        if size == self.position:
            return False
        with self._path.open("rb") as log:
            log.seek(self.position)
            data = log.read(READ_BYTES_MAX)
        self.position += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)
        self._recorder.flush()
        return True

    @property
    def torn(self) -> bool:
        """Whether the log ends in the middle of a line: it is being written, or its broker was killed there."""
        return bool(self._rest)

    def give_up_torn(self) -> None:
        """Takes the unfinished last line as it is: the broker that wrote it is gone."""
        rest, self._rest = self._rest, b""
        self._take(rest)
        self._recorder.flush()

    def _take(self, raw: bytes) -> None:
        self._line += 1
        for line in _unmerged(raw):
            if any(text in line for text in self._wanted) or not line.endswith(b"}}"):
                self._event(line)

    def _event(self, raw: bytes) -> None:
        try:
            line = parse_line(raw)
            for fields in self._api_versions.events(line):
                self._recorder.record("api_version", line=self._line, **fields)
            for fields in self._requests.events(line):
                self._recorder.record("request", line=self._line, **fields)
        except (LineError, KeyError, TypeError, AttributeError) as error:
            harmless = any(api in raw for api in HARMLESS)
            self.undecodable += not harmless
            quoted = raw[:QUOTED_BYTES].decode(errors="replace")
            kind = "unreadable" if harmless else "undecodable"
            self._recorder.record(kind, line=self._line, message=f"{error!r}: {quoted}")


def _unmerged(raw: bytes) -> Iterator[bytes]:
    """Splits a line that a killed broker left unfinished from the one that its next life appended to it."""
    start = 0
    while (following := raw.find(LINE_START, start + 1)) > 0:
        yield raw[start:following]
        start = following
    if raw[start:]:
        yield raw[start:]


class RequestLogs:
    """Follows the logs of all brokers."""

    def __init__(self, logs: Sequence[RequestLog], server_logs: Sequence[ServerLog] = ()) -> None:
        self._logs = logs
        self._server_logs = server_logs

    def step(self) -> None:
        """Reads on in each log; lets a little time pass when none has grown."""
        grown = [log.step() for log in self._logs] + [log.step() for log in self._server_logs]
        if not any(grown):
            pause(IDLE_S)

    def snapshot(self, *, within_s: float) -> Answer:
        """Reads every log up to its size as of now, and lines that are being written to their end."""
        until_s = deadline_s(within_s)
        ends = [log.size for log in self._logs]
        while self._behind(ends) and time.monotonic() < until_s:
            self.step()
        self._finish_lines(min(until_s, deadline_s(TORN_AFTER_S)))
        self._finish_server_logs(until_s)
        position = sum(min(log.position, end) for log, end in zip(self._logs, ends, strict=True))
        if self._behind(ends):
            message = f"not at the end of the request logs within {within_s:g} s"
            return Answer(BEHIND, message, position, sum(ends))
        undecodable = sum(log.undecodable for log in self._logs)
        if undecodable:
            message = f"{undecodable} lines of the request logs could not be read"
            return Answer(UNDECODABLE, message, position, sum(ends))
        return Answer(COMPLETE, None, position, sum(ends))

    def _behind(self, ends: Sequence[int]) -> bool:
        return any(log.position < end for log, end in zip(self._logs, ends, strict=True))

    def _finish_lines(self, until_s: float) -> None:
        while any(log.torn for log in self._logs) and time.monotonic() < until_s:
            self.step()
        for log in self._logs:
            if log.torn:
                log.give_up_torn()

    def _finish_server_logs(self, until_s: float) -> None:
        """Reads them to their end as of now; one that grows faster than that is not waited for."""
        ends = [log.size for log in self._server_logs]
        for log, end in zip(self._server_logs, ends, strict=True):
            while log.position < end and time.monotonic() < until_s:
                log.step()
            log.tell()


def wanted_texts(lanes: Sequence[int], groups: Sequence[str]) -> list[bytes]:
    """Returns the texts of which a line of the trial holds at least one: a lane's listener, or a group as JSON."""
    return [f'"listener":"LANE{lane}"'.encode() for lane in lanes] + [orjson.dumps(group) for group in groups]


def end_of(path: Path) -> int:
    """Returns the position after the last whole line of a log; 0 where there is no log yet."""
    if not path.exists():
        return 0
    with path.open("rb") as log:
        size = log.seek(0, os.SEEK_END)
        while size:
            start = max(0, size - READ_BYTES_MAX)
            log.seek(start)
            found = log.read(size - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            size = start
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The process: follows the logs until it is told to stop."""
    parser = argparse.ArgumentParser(prog="python -m kafka_trial.witness.request_log", description=__doc__)
    parser.add_argument("--log", action="append", required=True, help="NAME=PATH of a broker's requests.log, b0=…")
    parser.add_argument("--server-log", action="append", default=[], help="NAME=PATH of a broker's server.log")
    parser.add_argument("--listener", action="append", default=[], help="NAME=PORT:LANE of a lane on a broker")
    parser.add_argument("--history", type=Path, required=True, help="the run folder's history")
    parser.add_argument("--group", action="append", default=[], help="a group of the trial (repeatable)")
    parser.add_argument("--lanes", required=True, help="the lanes leased to the trial: 0,1,2")
    parser.add_argument("--from-start", action="store_true", help="read the logs from their start, not their end")
    options = parser.parse_args(arguments)
    wanted = wanted_texts([int(lane) for lane in options.lanes.split(",") if lane], options.group)
    topics: dict[str, str] = {}
    with ExitStack() as stack:
        logs, recorders = [], {}
        for name, _, path in (text.partition("=") for text in options.log):
            recorder = stack.enter_context(Recorder(options.history, f"requests-{name}", buffer_events=BUFFER_EVENTS))
            recorders[name] = recorder
            position = 0 if options.from_start else end_of(Path(path))
            logs.append(RequestLog(Path(path), recorder, Requests(topics), wanted=wanted, position=position))
        server_logs = [
            ServerLog(
                Path(path),
                recorders[name],
                _lanes_by_port(options.listener, name),
                position=0 if options.from_start else end_of(Path(path)),
            )
            for name, _, path in (text.partition("=") for text in options.server_log)
        ]
        return serve(RequestLogs(logs, server_logs), [*recorders.values()])


def _lanes_by_port(listeners: Sequence[str], broker: str) -> dict[int, int]:
    """Returns the lane of each port of a broker: `b0=20103:1` says that lane 1 has port 20103 on b0."""
    told = [text.partition("=") for text in listeners]
    pairs = [place.partition(":") for name, _, place in told if name == broker]
    return {int(port): int(lane) for port, _, lane in pairs}


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


if __name__ == "__main__":
    sys.exit(main())

"""Brokers' request logs that somebody saved: which client sent which version of which API.

Brokers write a line for each request where the logger `kafka.request.logger` is at DEBUG. How it is laid out is
theirs: the pattern of Kafka's log4j.properties or log4j2.yaml (a date, the level, the request as JSON, the logger), a
JSON layout with the request inside it, quoted once more, and before 2.7 the request as text. So a line is not parsed as
a whole: only the request's header, the connection, the client's information, and of ApiVersions what was offered.

A line that names no request is another logger's, and passed over. One that does and cannot be read is counted; the last
line of a file may be cut off.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final, cast

import orjson

from kafka_trial.compatibility.clients import ASKS, Client, Sighting, api_named
from kafka_trial.errors import InputError, reason

REQUESTS: Final = re.compile(r"request", re.IGNORECASE)  # in the name of a file of request logs
LOGS: Final = re.compile(r"\.(log|json|jsonl|txt|out)\b")
HEADER: Final = re.compile(rb'"requestHeader":(\{(?:[^{}"]|"(?:\\.|[^"\\])*")*\})')
OFFER: Final = re.compile(rb'"apiKeys":(\[[^\]]*\])')
CONNECTION: Final = re.compile(rb'"connection":"([^"]*)"')
SOFTWARE: Final = re.compile(rb'"softwareName":"([^"]*)","softwareVersion":"([^"]*)"')
TEXT_HEADER: Final = re.compile(
    rb"RequestHeader\(apiKey=(\w+), apiVersion=(\d+), clientId=(.*?), correlationId=-?\d+(?:, headerVersion=\d+)?\)"
)
TEXT_TAIL: Final = re.compile(rb" from connection ([^;]*);")
TEXT_SOFTWARE: Final = re.compile(rb"softwareName=([^,)]*), softwareVersion=([^)]*)\)")
PEER: Final = re.compile(r"-(?P<host>[^-]+):\d+(?:-\d+)+$")  # a connection is local:port-peer:port-numbers
UNKNOWN: Final = "unknown"
SHOWN: Final = 100


@dataclass(frozen=True)
class LoggedRequest:
    """What a line says of one request; `offer` of ApiVersions: the highest version of each API, by its key."""

    key: int
    api: str
    version: int
    client_id: str
    connection: str
    library: str | None
    deprecated: bool = False
    offer: tuple[tuple[int, int], ...] = ()


@dataclass
class LogsRead:
    """What request logs said: the sightings, how many requests, and the lines that could not be read."""

    sightings: list[Sighting] = field(default_factory=list)
    files: int = 0
    requests: int = 0
    unread: list[str] = field(default_factory=list)


def read_request_logs(places: Sequence[Path]) -> LogsRead:
    """Returns which client was seen to send which version of which API, in files and in folders of request logs.

    In a folder, and below it, those files are read whose name says "request"; where there are none, all logs.

    Raises:
        InputError: a place cannot be read, or none of its files has a request.
    """
    read = LogsRead()
    seen: dict[Sighting, None] = {}
    for place in places:
        before = read.requests
        files = list(_files(place))
        for file in files:
            for sighting in _sightings(file, read):
                seen.setdefault(sighting)
        if read.requests == before:
            raise InputError(f"--request-log {place}", _without_requests(files, read))
    asking = {sighting.client for sighting in seen if sighting.asks}
    read.sightings = list(dict.fromkeys(replace(sighting, asks=sighting.client in asking) for sighting in seen))
    return read


def _files(place: Path) -> Iterator[Path]:
    if not place.is_dir():
        yield place
        return
    try:
        files = [file for file in sorted(place.rglob("*")) if file.is_file()]
    except OSError as error:
        raise InputError(f"--request-log {place}", f"cannot be read: {reason(error)}") from error
    named = [file for file in files if REQUESTS.search(file.name)]
    yield from named or (file for file in files if LOGS.search(file.name))


def _without_requests(files: Sequence[Path], read: LogsRead) -> str:
    if not files:
        return "holds no file whose name says request, and no other log"
    told = f"no request in {len(files)} file{'s' if len(files) > 1 else ''} (the first: {files[0].name})"
    if read.unread:
        told += f"; {len(read.unread)} lines cannot be read, the first: {read.unread[0]}"
    return f"{told}. Brokers write them where the logger kafka.request.logger is at DEBUG"


def _sightings(file: Path, read: LogsRead) -> Iterator[Sighting]:
    """Yields what each line of a file says; the offer is what its broker last answered before."""
    offer: dict[int, int] = {}
    read.files += 1
    try:
        with _opened(file) as lines:
            for number, raw in enumerate(lines, 1):
                try:
                    request = request_of(raw)
                except ValueError as error:
                    if raw.endswith(b"\n"):  # else the broker is writing it, or it was cut off there
                        read.unread.append(f"{file.name}, line {number}: {error}")
                    continue
                if request is not None:
                    read.requests += 1
                    offer.update(request.offer)
                    yield _sighting(request, offer)
    except (OSError, EOFError) as error:
        raise InputError(f"--request-log {file}", f"cannot be read: {reason(error)}. Check the path") from error


def _opened(file: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(file, "rb")) if file.suffix == ".gz" else file.open("rb")


def _sighting(request: LoggedRequest, offer: dict[int, int]) -> Sighting:
    peer = PEER.search(request.connection)
    name = f"{request.client_id or 'a client without an id'} at {peer['host'] if peer else 'an unknown address'}"
    api = api_named(request.key, request.api)
    asks = api == ASKS or request.library is not None  # only ApiVersions tells a library (KIP-511)
    client = Client(name, request.library)
    return Sighting(client, api, request.version, offer.get(request.key), asks, request.deprecated)


def request_of(raw: bytes) -> LoggedRequest | None:
    """Returns the request of a line; None where the line names none.

    Raises:
        ValueError: it names one that cannot be read; quotes its beginning.
    """
    line = _unquoted(raw) if rb"\"requestHeader\"" in raw else raw
    if b'"requestHeader"' in line:
        return _of_json(line)
    if b"RequestHeader(apiKey=" in line:
        return _of_text(line)
    return None


def _unquoted(raw: bytes) -> bytes:
    """Returns the text inside a JSON line that holds the request quoted once more."""
    try:
        outer = orjson.loads(raw)
    except ValueError as error:
        raise ValueError(f"a JSON line that is none: {_quoted(raw)}") from error
    texts = [text for text in outer.values() if isinstance(text, str)] if isinstance(outer, dict) else []
    return next((text.encode() for text in texts if '"requestHeader"' in text), b"")


def _of_json(line: bytes) -> LoggedRequest:
    found = HEADER.search(line)
    if found is None:
        raise ValueError(f"the request's header is cut off: {_quoted(line)}")
    header: dict[str, Any] = orjson.loads(found[1])
    tail = _after(b'"connection":"', line)
    connection, software = CONNECTION.match(tail), SOFTWARE.search(tail)
    try:
        key, api = int(header["requestApiKey"]), str(header.get("requestApiKeyName", ""))
        return LoggedRequest(
            key,
            api,
            int(header["requestApiVersion"]),
            str(header.get("clientId") or ""),
            connection[1].decode() if connection else "",
            _library(software),
            bool(header.get("requestApiVersionDeprecated", False)),
            _offer(line) if api_named(key, api) == ASKS else (),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"the request's header lacks {error}: {_quoted(line)}") from error


def _of_text(line: bytes) -> LoggedRequest:
    found = TEXT_HEADER.search(line)
    if found is None:
        raise ValueError(f"the request's header is cut off: {_quoted(line)}")
    tail = _after(b" from connection ", line)
    connection, software = TEXT_TAIL.match(tail), TEXT_SOFTWARE.search(tail)
    api, client_id = found[1].decode(), found[3].decode(errors="replace")
    return LoggedRequest(
        -1, api, int(found[2]), client_id, connection[1].decode() if connection else "", _library(software)
    )


def _after(start: bytes, line: bytes) -> bytes:
    """Returns a line's tail from the last place of `start` on: what a request or its answer holds comes before."""
    return line[max(0, line.rfind(start)) :]


def _library(software: re.Match[bytes] | None) -> str | None:
    if software is None or software[1].decode() in ("", UNKNOWN):
        return None
    return f"{software[1].decode()} {software[2].decode()}".rstrip()


def _offer(line: bytes) -> tuple[tuple[int, int], ...]:
    found = OFFER.search(line)
    if found is None or b'"errorCode":0' not in line:
        return ()
    return tuple((api["apiKey"], api["maxVersion"]) for api in orjson.loads(found[1]))


def _quoted(line: bytes) -> str:
    return repr(line[:SHOWN].decode(errors="replace"))

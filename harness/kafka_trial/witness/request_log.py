"""The witness of the request log: who asked the brokers what, and what was refused.

A process of its own. It follows the `requests.log` of every broker, keeps the lines of the trial's lanes and every
other line that names one of its groups (an operator's commit, say), and writes one `request` event per request to
`history/requests-b<n>.jsonl`, fetches and metadata kept thin, and one `api_version` event for each version of an API
that a client is first seen to speak. A broker that is started again appends to its log. What a broker refused to read
stands in its `server.log` alone: `server_log.py` reads that beside, as evidence that no verdict waits for.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import orjson

from kafka_trial.errors import UnjudgeableError
from kafka_trial.history.recorder import Recorder
from kafka_trial.process.waiting import pause
from kafka_trial.witness.api_versions import ApiVersionsSeen
from kafka_trial.witness.request_events import Requests
from kafka_trial.witness.request_lines import LINE_START, LineError, parse_line
from kafka_trial.witness.rpc_server import BEHIND, COMPLETE, UNDECODABLE, Answer, deadline_s, serve
from kafka_trial.witness.server_log import ServerLog

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


if __name__ == "__main__":
    sys.exit(main())

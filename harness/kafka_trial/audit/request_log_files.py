"""The brokers' request logs of an audit: files that somebody saved, read twice.

Once to learn which connections and member ids are one client's, once to record the requests of the window with their
client. A file that begins after the window does, or ends before it, is told: what is not in it may have happened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from kafka_trial.audit.clients import Clients
from kafka_trial.audit.request import NS_PER_S, AuditRequest, stamp
from kafka_trial.history.recorder import Recorder
from kafka_trial.witness.request_events import Requests
from kafka_trial.witness.request_lines import LineError, answered_ns, parse_line

Fields = dict[str, Any]
EDGE_NS = 60 * NS_PER_S  # a log whose first or last line lies so near the window's edge covers it
OF_GROUPS = ("OFFSET_COMMIT", "OFFSET_FETCH", "JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "LEAVE_GROUP")
WANTED = (*OF_GROUPS, "CONSUMER_GROUP_HEARTBEAT", "TXN_OFFSET_COMMIT", "FETCH", "METADATA")


@dataclass
class Span:
    """What one file holds: from when to when, and how many lines of it nobody can read."""

    name: str
    first_ns: int = 0
    last_ns: int = 0
    bad: list[str] = field(default_factory=list)
    cut: bool = False

    def unread(self, asked: AuditRequest) -> list[str]:
        """Returns what of the window the file does not hold, as sentences."""
        found = [f"{len(self.bad)} lines of request log {self.name} (first: {self.bad[0]})"] if self.bad else []
        if not self.last_ns:
            return [*found, f"request log {self.name} holds no request that an audit looks at"]
        if self.cut:
            limit = f"{asked.limits.bytes_max / (1 << 20):g} MiB"
            found.append(f"request log {self.name} beyond its first {limit}; raise --max-mib")
        if self.first_ns > asked.from_ns + EDGE_NS:
            found.append(f"request log {self.name} begins only at {stamp(self.first_ns)}")
        if self.last_ns < asked.until_ns - EDGE_NS:
            found.append(f"request log {self.name} ends already at {stamp(self.last_ns)}")
        return found


def read_request_logs(asked: AuditRequest, history: Path) -> tuple[str, ...]:
    """Records the group's requests in the window, one source a file, and returns what is not covered."""
    clients, topics = Clients(asked.group), dict[str, str]()
    unread: list[str] = []
    for number, path in enumerate(asked.request_logs):
        span = Span(path.name)
        for event in _events(path, topics, span, asked):
            clients.learn(f"b{number}", event)
        unread += span.unread(asked)
    names = clients.settle()
    for number, path in enumerate(asked.request_logs):
        with Recorder(history, f"requests-b{number}", buffer_events=500) as recorder:
            if number == 0:
                for lane, name in names.items():
                    recorder.record("client_named", time_ns=asked.from_ns, lane=lane, member=name)
            for event in _events(path, dict(topics), Span(path.name), asked):
                _record(recorder, f"b{number}", event, clients, asked)
            recorder.record("witness", time_ns=asked.until_ns, state="complete")
    return tuple(unread)


def _record(recorder: Recorder, log: str, event: Fields, clients: Clients, asked: AuditRequest) -> None:
    wall_ns = event["source_wall_ns"]
    lane = clients.lane_of(log, event)
    ours = event.get("group") == asked.group or event["api"] == "METADATA" or lane is not None
    # Lines of members before the window tell whose an id is.
    if ours and (asked.from_ns <= wall_ns <= asked.until_ns or event["api"] in ("METADATA", "JOIN_GROUP")):
        recorder.record("request", time_ns=wall_ns, **(event | {"lane": lane}))


def _events(path: Path, topics: dict[str, str], span: Span, asked: AuditRequest) -> Iterator[Fields]:
    """Yields the requests of a file as events, up to the limit of bytes."""
    requests, left_bytes = Requests(topics), asked.limits.bytes_max
    with path.open("rb") as lines:
        for number, raw in enumerate(lines, 1):
            left_bytes -= len(raw)
            if left_bytes < 0:
                span.cut = True
                return
            if not any(_named(api) in raw for api in WANTED):
                continue
            try:
                line = parse_line(raw.rstrip(b"\n"))
                events: Sequence[Fields] = list(requests.events(line))
            except (LineError, KeyError, TypeError, AttributeError, orjson.JSONDecodeError) as error:
                if raw.endswith(b"\n") or (answered_ns(raw) or 0) <= asked.until_ns:  # else the broker is writing it
                    span.bad.append(f"line {number}: {str(error)[:100]}")
                continue
            span.first_ns = min(span.first_ns or line.source_wall_ns, line.source_wall_ns)
            span.last_ns = max(span.last_ns, line.source_wall_ns)
            yield from ({"line": number} | event for event in events)


def _named(api: str) -> bytes:
    return f'"requestApiKeyName":"{api}"'.encode()

"""The brokers' request logs of an audit: files that somebody saved, read twice.

Once to learn which connections and member ids are one client's, once to record the requests of the window with their
client. A file that begins after the window does, or ends before it, is told: what is not in it may have happened.

Which requests are one client's, where no lane tells? A member is one process's consumer. Its joins, heartbeats and
commits go over one connection at a time, and name its member id: whatever shares a connection or a member id is one
client. Fetches name neither; they belong to the member of the same address and client id where there is exactly one,
else to nobody. A request that no member's connection or id explains belongs to nobody either: an operator's tool, say.
Each client gets a number, which stands where trials have a lane.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from re import compile as pattern
from typing import Any

import orjson

from kafka_trial.audit.request import NS_PER_S, AuditRequest, stamp
from kafka_trial.history.recorder import Recorder
from kafka_trial.witness.request_events import Requests
from kafka_trial.witness.request_lines import LineError, answered_ns, parse_line

Fields = dict[str, Any]
PEER = pattern(r"-(?P<host>[^-]+):\d+(?:-\d+)+$")  # a connection is local:port-peer:port-numbers


@dataclass
class Clients:
    """Learns from all events first (`learn`), then says whose an event is (`lane_of`)."""

    group: str
    _parents: dict[Hashable, Hashable] = field(default_factory=dict)
    _addresses: dict[Hashable, tuple[str, str]] = field(default_factory=dict)
    _others: set[tuple[str, str]] = field(default_factory=set)
    _lanes: dict[Hashable, int] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)

    def learn(self, log: str, event: Fields) -> None:
        """Takes a request of a group's member into account; `log` is the broker's."""
        group, member_id = event.get("group"), event.get("member_id")
        if group is None or not member_id:
            return
        if group != self.group:
            self._others.add(address_of(event))
            return
        connection, member = ("connection", log, event["connection"]), ("member", member_id)
        self._addresses[connection] = address_of(event)
        self._join(connection, member)

    def settle(self) -> dict[int, str]:
        """Numbers the clients and returns the name of each: its address and client id, numbered where several share."""
        roots: dict[tuple[str, str], list[Hashable]] = defaultdict(list)
        for connection, address in self._addresses.items():
            root = self._root(connection)
            if root not in roots[address]:
                roots[address].append(root)
        for address, alike in sorted(roots.items()):
            for number, root in enumerate(alike, 1):
                if root not in self._lanes:
                    lane = self._lanes[root] = len(self._lanes)
                    self._names[lane] = " ".join([*address, *([f"#{number}"] if len(alike) > 1 else [])])
        self._alone = {
            address: self._lanes[alike[0]]
            for address, alike in roots.items()
            if len(alike) == 1 and address not in self._others
        }
        return dict(self._names)

    def lane_of(self, log: str, event: Fields) -> int | None:
        """Returns the number of the client that sent a request; None where nobody can tell."""
        for known in (("connection", log, event.get("connection")), ("member", event.get("member_id"))):
            if known in self._parents:
                return self._lanes.get(self._root(known))
        return self._alone.get(address_of(event)) if event.get("api") == "FETCH" else None

    def _join(self, one: Hashable, other: Hashable) -> None:
        first, second = self._root(one), self._root(other)
        self._parents[second] = first

    def _root(self, one: Hashable) -> Hashable:
        self._parents.setdefault(one, one)
        while self._parents[one] != one:
            self._parents[one] = self._parents[self._parents[one]]
            one = self._parents[one]
        return one


def address_of(event: Mapping[str, Any]) -> tuple[str, str]:
    """Returns where a request came from, and its client id."""
    peer = PEER.search(str(event.get("connection")))
    return peer["host"] if peer else "?", str(event.get("client_id", ""))


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

    def unread(self, request: AuditRequest) -> list[str]:
        """Returns what of the window the file does not hold, as sentences."""
        found = [f"{len(self.bad)} lines of request log {self.name} (first: {self.bad[0]})"] if self.bad else []
        if not self.last_ns:
            return [*found, f"request log {self.name} holds no request that an audit looks at"]
        if self.cut:
            limit = f"{request.limits.bytes_max / (1 << 20):g} MiB"
            found.append(f"request log {self.name} beyond its first {limit}; raise --max-mib")
        if self.first_ns > request.from_ns + EDGE_NS:
            found.append(f"request log {self.name} begins only at {stamp(self.first_ns)}")
        if self.last_ns < request.until_ns - EDGE_NS:
            found.append(f"request log {self.name} ends already at {stamp(self.last_ns)}")
        return found


def read_request_logs(request: AuditRequest, history: Path) -> tuple[str, ...]:
    """Records the group's requests in the window, one source a file, and returns what is not covered."""
    clients, topics = Clients(request.group), dict[str, str]()
    unread: list[str] = []
    for number, path in enumerate(request.request_logs):
        span = Span(path.name)
        for event in _events(path, topics, span, request):
            clients.learn(f"b{number}", event)
        unread += span.unread(request)
    names = clients.settle()
    for number, path in enumerate(request.request_logs):
        with Recorder(history, f"requests-b{number}", buffer_events=500) as recorder:
            if number == 0:
                for lane, name in names.items():
                    recorder.record("client_named", time_ns=request.from_ns, lane=lane, member=name)
            for event in _events(path, dict(topics), Span(path.name), request):
                _record(recorder, f"b{number}", event, clients, request)
            recorder.record("witness", time_ns=request.until_ns, state="complete")
    return tuple(unread)


def _record(recorder: Recorder, log: str, event: Fields, clients: Clients, request: AuditRequest) -> None:
    wall_ns = event["source_wall_ns"]
    lane = clients.lane_of(log, event)
    ours = event.get("group") == request.group or event["api"] == "METADATA" or lane is not None
    # Lines of members before the window tell whose an id is.
    if ours and (request.from_ns <= wall_ns <= request.until_ns or event["api"] in ("METADATA", "JOIN_GROUP")):
        recorder.record("request", time_ns=wall_ns, **(event | {"lane": lane}))


def _events(path: Path, topics: dict[str, str], span: Span, request: AuditRequest) -> Iterator[Fields]:
    """Yields the requests of a file as events, up to the limit of bytes."""
    requests, left_bytes = Requests(topics), request.limits.bytes_max
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
                if raw.endswith(b"\n") or (answered_ns(raw) or 0) <= request.until_ns:  # else the broker is writing it
                    span.bad.append(f"line {number}: {str(error)[:100]}")
                continue
            span.first_ns = min(span.first_ns or line.source_wall_ns, line.source_wall_ns)
            span.last_ns = max(span.last_ns, line.source_wall_ns)
            yield from ({"line": number} | event for event in events)


def _named(api: str) -> bytes:
    return f'"requestApiKeyName":"{api}"'.encode()

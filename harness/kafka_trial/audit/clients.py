"""Clients: which requests of a foreign cluster's request log are one client's, where no lane tells.

A member is one process's consumer. Its joins, heartbeats and commits go over one connection at a time, and name its
member id: whatever shares a connection or a member id is one client. Fetches name neither; they belong to the member
of the same address and client id where there is exactly one, else to nobody. A request that no member's connection or
id explains belongs to nobody either: an operator's tool, say. Each client gets a number, which stands where trials
have a lane.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from re import compile as pattern
from typing import Any

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
            self._others.add(_address(event))
            return
        connection, member = ("connection", log, event["connection"]), ("member", member_id)
        self._addresses[connection] = _address(event)
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
        return self._alone.get(_address(event)) if event.get("api") == "FETCH" else None

    def _join(self, one: Hashable, other: Hashable) -> None:
        first, second = self._root(one), self._root(other)
        self._parents[second] = first

    def _root(self, one: Hashable) -> Hashable:
        self._parents.setdefault(one, one)
        while self._parents[one] != one:
            self._parents[one] = self._parents[self._parents[one]]
            one = self._parents[one]
        return one


def _address(event: Fields) -> tuple[str, str]:
    """Returns where a request came from, and its client id."""
    peer = PEER.search(str(event.get("connection")))
    return peer["host"] if peer else "?", str(event.get("client_id", ""))

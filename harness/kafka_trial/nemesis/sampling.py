"""Taking samples: the kernel's socket table and /proc cut down to one target, and own probes through its proxies.

Reads, and judges nothing. A member's connections are found by its own source ports, which the kernel's table gives
for the descriptors of its process group: a socket on the proxy that belongs to anybody else is not the member's. One in
a container has a network address of its own instead.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kafka_trial.cluster.wiring import CONSUMER_SESSION_TIMEOUT_S
from kafka_trial.nemesis.context import WORKLOAD, FaultContext, OffsetsLog
from kafka_trial.nemesis.samples import (
    BROKER,
    CLIENT,
    REFUSED,
    GroupSnapshot,
    Half,
    LinkSnapshot,
    Probe,
    ProcessSnapshot,
)
from kafka_trial.process.control_groups import ContainerView
from kafka_trial.process.waiting import pause
from kafka_trial.witness import socket_table
from kafka_trial.witness.socket_table import Dump

HOST = "127.0.0.1"
FROZEN = "F"  # of a process whose control group is frozen; /proc has no letter for it that is the same everywhere
# ApiVersions v0, correlation id 7, client id "kt-probe": the one request a broker answers before anything else.
PROBE_REQUEST = struct.pack(">ihhih", 18, 18, 0, 7, 8) + b"kt-probe"
PROBE_SETTLE_S = 0.25
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class RoutePorts:
    """Where one route runs: the proxy's listening port at its host, and the broker's port behind it."""

    client: str
    broker: int
    proxy_port: int
    broker_port: int
    host: str = HOST


Routes = Mapping[tuple[str, int], RoutePorts]
Clients = Mapping[str, int | str]  # by name: its process group, or the network address that it alone has


def routes_of(context: FaultContext, wanted: Sequence[tuple[str, int]]) -> Routes:
    """Returns the ports of each (client, broker) route."""
    lanes = {member.name: member.lane for member in context.group.members}
    if context.workload_lane is not None:
        lanes[WORKLOAD] = context.workload_lane
    return {
        (client, broker): RoutePorts(
            client,
            broker,
            lanes[client].ports[broker],
            context.cluster.server_port(broker, lanes[client].index),
            context.cluster.host,
        )
        for client, broker in wanted
    }


def links(routes: Routes, clients: Clients, *, dump: Dump | None = None) -> LinkSnapshot:
    """Returns every established half of the clients' connections on `routes`, from one dump of the socket table.

    `dump` asks the kernel about the network of the proxies; None: that is ours. Members are told by their process
    groups or addresses; whoever uses the lane of the load is the load. The look's time is that of the dump: on a busy
    machine it takes a while to find whose sockets they are.
    """
    by_proxy = {route.proxy_port: route for route in routes.values()}
    by_broker = {route.broker_port: route for route in routes.values()}
    sample = partial(socket_table.sample, [socket_table.ESTABLISHED], ports=by_proxy.keys() | by_broker.keys())
    table, taken_ns = sample(dump=dump), time.monotonic_ns()
    process_groups = {client: place for client, place in clients.items() if isinstance(place, int)}
    own_inodes = socket_table.inodes_of_groups(process_groups.values())
    elsewhere = dump is not None and process_groups
    ours = sample() if elsewhere else table
    own_ports = {
        client: {entry.sport for entry in ours if entry.inode in own_inodes[pgid]}
        for client, pgid in process_groups.items()
    }

    def is_of(client: str, entry: socket_table.Socket) -> bool:
        return client == WORKLOAD or entry.dport in own_ports.get(client, ()) or entry.dst == clients.get(client)

    halves = []
    for entry in table:
        near, far = by_proxy.get(entry.sport), by_broker.get(entry.dport)
        if near is not None and is_of(near.client, entry):
            halves.append(_half(near, CLIENT, entry.dport, entry))
        elif far is not None:
            halves.append(_half(far, BROKER, entry.sport, entry))
    return LinkSnapshot(taken_ns, tuple(halves))


def probe(route: RoutePorts, *, within_s: float) -> Probe:
    """Makes one ApiVersions round trip through the route's proxy."""
    try:
        answer_s = socket_table.api_versions_round_trip(route.host, route.proxy_port, within_s)
    except ConnectionRefusedError:
        return Probe(route.client, route.broker, None, REFUSED)
    except OSError as error:
        return Probe(route.client, route.broker, None, str(error) or type(error).__name__)
    return Probe(route.client, route.broker, answer_s * 1000)


def requests_that_pass(routes: Sequence[RoutePorts], *, dump: Dump | None = None) -> set[tuple[str, int]]:
    """Returns the routes on which an own request reaches the broker: seen on the proxy's new socket towards it."""
    live = [socket_table.ESTABLISHED]
    old = {(entry.sport, entry.dport) for entry in socket_table.sample(live, dump=dump)}
    with ExitStack() as opened:
        for route in routes:
            with suppress(OSError):  # a route that refuses does not pass
                link = opened.enter_context(socket.create_connection((route.host, route.proxy_port), timeout=1.0))
                link.sendall(PROBE_REQUEST)
        pause(PROBE_SETTLE_S)
        new = [e for e in socket_table.sample(live, dump=dump) if (e.sport, e.dport) not in old]
    by_broker = {route.broker_port: (route.client, route.broker) for route in routes}
    return {by_broker[e.dport] for e in new if e.dport in by_broker and e.bytes_acked >= len(PROBE_REQUEST)}


def process(
    pid: int,
    exit_code: int | None,
    inodes: set[int],
    *,
    container: ContainerView | None = None,
    dump: Dump | None = None,
) -> ProcessSnapshot:
    """Returns a process group, or all of a container, at one instant; `inodes` are its sockets of old, counted while
    still established.

    A socket is told by its inode, which whoever inherited it shares; its port may be somebody else's within a second.
    `dump` asks the kernel about the network that they are in; None: ours.
    """
    states, cpu_s = [], 0.0
    frozen = container is not None and container.is_frozen()
    for state, used_s in _stats_of_group(pid) if container is None else _stats_in(container):
        if state not in "ZX":  # a zombie waits only for its parent
            states.append(FROZEN if frozen else state)
            cpu_s += used_s
    kept = sum(entry.inode in inodes for entry in socket_table.sample([socket_table.ESTABLISHED], dump=dump))
    return ProcessSnapshot(time.monotonic_ns(), pid, tuple(sorted(states)), cpu_s, exit_code, kept)


def inodes_of(pid: int, container: ContainerView | None = None, *, dump: Dump | None = None) -> set[int]:
    """Returns the inodes of every socket that a process group holds.

    Who else's descriptors may be looked into, only root would know. Of a container they are those of its connections as
    the network of the proxies has them: the proxies' own ends of a member's, a broker's ends of those that it accepted.
    When it has died they are established no longer.
    """
    if container is None:
        return socket_table.inodes_of_groups([pid])[pid]
    table = socket_table.sample([socket_table.ESTABLISHED], dump=dump)
    return {
        entry.inode
        for entry in table
        if entry.sport in container.ports or (container.address is not None and entry.dst == container.address)
    }


class GroupFold:
    """Folds the events of one group in the offsets log into its newest epoch and the member ids in it."""

    def __init__(self, log: OffsetsLog) -> None:
        self._log = log
        self._epoch: int | None = None
        self._member_ids: set[str] = set()
        self._records = 0
        self._sessions_ms: dict[str, int] = {}
        self._going_over: dict[str, int] = {}  # members of a classic group that becomes one of KIP-848, and since when
        self._rebalances_ms: dict[str, int] = {}  # clients tell their poll interval as the time for a rebalance
        # When the coordinator wrote the group down without each of these, the last time.
        self.removed_wall_ns: dict[str, int] = {}
        self.commits = 0

    def look(self) -> GroupSnapshot:
        """Reads on, and returns the group as of now."""
        for event in self._log.new_events():
            self._take(event.kind, event.details, event.source_wall_ns)
        return GroupSnapshot(time.monotonic_ns(), self._epoch, frozenset(self._member_ids), self._records)

    def session_s(self) -> float | None:
        """Returns the longest session of its members, as the coordinator wrote it down; None where it did not."""
        self.look()
        return max(self._sessions_ms.values()) / 1000 if self._sessions_ms else None

    def poll_interval_s(self) -> float | None:
        """Returns the longest time that a rebalance waits for a member's poll, as the coordinator wrote it down."""
        self.look()
        return max(self._rebalances_ms.values()) / 1000 if self._rebalances_ms else None

    def _take(self, kind: str, details: Mapping[str, Any], written_ns: int | None) -> None:
        if kind == "committed":
            self.commits += 1
            return
        self._records += 1
        if kind in ("group", "group_epoch"):
            self._epoch = details["epoch"]
            self.removed_wall_ns |= self._going_over
            self._going_over = {}
        if kind == "group":
            members = details.get("members", ())
            member_ids = {member["member_id"] for member in members}
            self._removed(self._member_ids - member_ids, written_ns)
            self._member_ids = member_ids
            self._sessions_ms = _told(members, "session_timeout_ms")
            self._rebalances_ms = _told(members, "rebalance_timeout_ms")
        elif kind == "member":
            self._member_ids.add(details["member_id"])
            self._going_over.pop(details["member_id"], None)
            own_ms = details.get("session_timeout_ms") or round(CONSUMER_SESSION_TIMEOUT_S * 1000)
            self._sessions_ms[details["member_id"]] = own_ms
            self._rebalances_ms |= _told([details], "rebalance_timeout_ms")
        elif kind == "group_tombstone" and details.get("record_type") == 5:
            self._removed(self._member_ids & {details.get("member_id", "")}, written_ns)
            self._member_ids.discard(details.get("member_id", ""))
            self._sessions_ms.pop(details.get("member_id", ""), None)
            self._rebalances_ms.pop(details.get("member_id", ""), None)

        elif kind == "group_tombstone" and details.get("record_type") == 2:  # it goes over: members are named anew
            self._going_over = {} if written_ns is None else dict.fromkeys(self._member_ids, written_ns)
            self._member_ids, self._sessions_ms, self._rebalances_ms = set(), {}, {}

    def _removed(self, member_ids: Collection[str], written_ns: int | None) -> None:
        if written_ns is not None:
            self.removed_wall_ns |= dict.fromkeys(member_ids, written_ns)


def _told(members: Sequence[Mapping[str, Any]], name: str) -> dict[str, int]:
    """What each member, by its id, told the coordinator; those that told nothing are left out."""
    told = ((member["member_id"], member.get(name)) for member in members)
    return {member_id: told_ms for member_id, told_ms in told if told_ms and told_ms > 0}


def _half(route: RoutePorts, side: str, port: int, entry: Any) -> Half:
    return Half(
        client=route.client,
        broker=route.broker,
        side=side,
        port=port,
        received_bytes=entry.bytes_received,
        sent_bytes=entry.bytes_acked,
        receive_queue_bytes=entry.receive_queue,
        send_queue_bytes=entry.send_queue,
    )


def _stats_of_group(pgid: int) -> list[tuple[str, float]]:
    """State letter and CPU seconds of each process of the group, from /proc."""
    stats = (_stat(stat) for stat in Path("/proc").glob("[0-9]*/stat"))
    return [(state, cpu_s) for state, group, cpu_s in (one for one in stats if one) if group == pgid]


def _stats_in(container: ContainerView) -> list[tuple[str, float]]:
    """State letter and CPU seconds of each process of a container."""
    stats = (_stat(Path(f"/proc/{pid}/stat")) for pid in container.processes())
    return [(state, cpu_s) for state, _, cpu_s in (one for one in stats if one)]


def _stat(stat: Path) -> tuple[str, int, float] | None:
    """State letter, process group and CPU seconds of one process; None when it ended while we looked."""
    with suppress(OSError):
        fields = stat.read_text().rpartition(")")[2].split()
        return fields[0], int(fields[2]), (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
    return None

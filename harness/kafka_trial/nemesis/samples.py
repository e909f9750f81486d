"""What a sample is: the frozen values that the code judging evidence sees, and what they come to in numbers.

`LinkSnapshot` is the kernel's socket table cut down to one target (S), `Probe` an own ApiVersions round trip through
the target's proxies (P), `ProcessSnapshot` a process group, `TopicSnapshot` what the brokers say of leaders,
`LogSnapshot` where leaders say that their logs start and end, `FeatureSnapshot` which level of a feature each broker
answers, `GroupSnapshot` the group as the offsets log has it (O),
`EffectsSnapshot` what came to the HTTP sink, `StaysSnapshot` when members left the group (R and O), and
`PageCacheSnapshot` what of the topic's rolled segments is in memory. They are taken by `injection.py`, written to the
history, and judged by `evidence.py`. Counters are as the *proxy's* sockets see them.
The functions are pure: by route, how far round trips rose, at which rates connections went, how many bytes were held
back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby, pairwise
from typing import Any

from kafka_trial.cluster.kafka_cut import LaneSeen

CLIENT, BROKER = "client", "broker"
REFUSED = "refused"  # how a probe ended: nobody listens
ANSWERS, REQUESTS = "answers", "requests"  # broker → client, client → broker


@dataclass(frozen=True, slots=True)
class Half:
    """One half of a proxied connection, the proxy's own socket: towards the client or towards the broker.

    `port` is the ephemeral one: on the client's side the client's own source port. Bytes sent are those the peer
    acknowledged; bytes received include what still waits in the receive queue.
    """

    client: str
    broker: int
    side: str
    port: int
    received_bytes: int
    sent_bytes: int
    receive_queue_bytes: int = 0
    send_queue_bytes: int = 0


@dataclass(frozen=True, slots=True)
class LinkSnapshot:
    """S: every live half of a target's connections at one instant."""

    time_ns: int
    halves: tuple[Half, ...] = ()

    def routes(self) -> list[tuple[str, int]]:
        """Returns the (client, broker) pairs with a live connection, sorted."""
        return sorted({(half.client, half.broker) for half in self.halves if half.side == CLIENT})

    def side(self, side: str, route: tuple[str, int]) -> dict[int, Half]:
        """Returns one side of one route's connections, by ephemeral port."""
        return {half.port: half for half in self.halves if half.side == side and (half.client, half.broker) == route}

    def ports(self) -> set[tuple[str, int, int]]:
        """Returns the clients' own connections as (client, broker, source port)."""
        return {(half.client, half.broker, half.port) for half in self.halves if half.side == CLIENT}


@dataclass(frozen=True, slots=True)
class Probe:
    """P: one ApiVersions round trip; `answer_ms` None means none came, and `error` says how that ended."""

    client: str
    broker: int
    answer_ms: float | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ProcessSnapshot:
    """A process group at one instant: the letters of /proc, CPU seconds, how it ended, and its sockets."""

    time_ns: int
    pid: int
    states: tuple[str, ...] = ()
    cpu_s: float = 0.0
    exit_code: int | None = None
    sockets: int = 0


@dataclass(frozen=True, slots=True)
class Leader:
    """Who leads a partition: broker, leader epoch, in-sync replicas."""

    partition: int
    broker: int
    epoch: int
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicSnapshot:
    """What the brokers say: leaders of the topic, coordinator of the group, controller."""

    time_ns: int
    leaders: tuple[Leader, ...] = ()
    coordinator: int | None = None
    controller: int | None = None


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """O: the newest generation (classic) or epoch (KIP-848) in the offsets log and the member ids in the group."""

    time_ns: int
    epoch: int | None = None
    member_ids: frozenset[str] = field(default_factory=frozenset)
    records: int = 0


@dataclass(frozen=True, slots=True)
class MemberEffects:
    """The effects of one member that came in since the fault began: how many were done, refused, still wait.

    `waited_s_max`: the longest that one had to wait, also of those that still do; `done_s_min`: the shortest of those
    that were done, None where there are none. `refused`: their records, the first ten.
    """

    member: str
    done: int = 0
    refused: int = 0
    waiting: int = 0
    waited_s_max: float = 0.0
    done_s_min: float | None = None
    refused_records: tuple[str, ...] = ()
    done_after_refusal: int = 0


@dataclass(frozen=True, slots=True)
class EffectsSnapshot:
    """The effects of a fault's members at one instant."""

    time_ns: int
    members: tuple[MemberEffects, ...] = ()


@dataclass(frozen=True, slots=True)
class MemberStay:
    """How one member stayed in its group while its effects waited, as the brokers tell; times of CLOCK_MONOTONIC.

    `alive`: its process has run all the time. `waits_since_ns`: when the effect came that had to wait longest.
    `left_ns`: when it was answered that it has left (LeaveGroup, or a heartbeat with a negative epoch); `removed_ns`:
    when the offsets log had the group without it. `kept_ns`: the last answer before that by which it is a member.
    """

    member: str
    alive: bool = True
    waits_since_ns: int | None = None
    kept_ns: int | None = None
    left_ns: int | None = None
    removed_ns: int | None = None

    @property
    def out_ns(self) -> int | None:
        return min((at_ns for at_ns in (self.left_ns, self.removed_ns) if at_ns is not None), default=None)


@dataclass(frozen=True, slots=True)
class StaysSnapshot:
    """R and O: how the members of a fault have stayed in their group up to one instant."""

    time_ns: int
    members: tuple[MemberStay, ...] = ()


@dataclass(frozen=True, slots=True)
class LogSpan:
    """Where the log of a partition starts, and the position after its last record."""

    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class LogSnapshot:
    """What the leaders of the topic say their logs hold."""

    time_ns: int
    spans: tuple[LogSpan, ...] = ()

    def of(self, partitions: Iterable[int]) -> LogSnapshot:
        """Returns the snapshot of some partitions alone."""
        wanted = set(partitions)
        return LogSnapshot(self.time_ns, tuple(span for span in self.spans if span.partition in wanted))

    @property
    def starts(self) -> dict[int, int]:
        return {span.partition: span.start for span in self.spans}

    @property
    def ends(self) -> dict[int, int]:
        return {span.partition: span.end for span in self.spans}


@dataclass(frozen=True, slots=True)
class FeatureAnswer:
    """The finalised level that a broker answers, 0 where it has none, and up to which change of features it knows (the
    offset of that change in the metadata log)."""

    broker: int
    level: int
    epoch: int


@dataclass(frozen=True, slots=True)
class FeatureSnapshot:
    """What each broker answers for one feature; a broker that does not answer is left out."""

    time_ns: int
    feature: str
    answers: tuple[FeatureAnswer, ...] = ()

    @property
    def levels(self) -> dict[int, int]:
        return {answer.broker: answer.level for answer in self.answers}


@dataclass(frozen=True, slots=True)
class BrokerReads:
    """The rolled segments of the topic at one broker: how many there are, how many bytes they have, and how many of
    those are in memory; and how many bytes its process has read from a disk since its start, of whatever file."""

    broker: int
    segments: int
    size_bytes: int
    cached_bytes: int
    disk_read_bytes: int


@dataclass(frozen=True, slots=True)
class PageCacheSnapshot:
    """The rolled segments of the topic at each broker; `errors`: why those of a broker, by its name, cannot be seen."""

    time_ns: int
    brokers: tuple[BrokerReads, ...] = ()
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        return sum(one.size_bytes for one in self.brokers)

    @property
    def cached_bytes(self) -> int:
        return sum(one.cached_bytes for one in self.brokers)

    def disk_read_since(self, earlier: PageCacheSnapshot) -> int:
        """Returns how many bytes brokers have read from disks since an earlier sample; one that was started anew since
        counts from its start."""
        before = {one.broker: one.disk_read_bytes for one in earlier.brokers}
        now = ((one.disk_read_bytes, before.get(one.broker, 0)) for one in self.brokers)
        return sum(bytes_ - was if bytes_ >= was else bytes_ for bytes_, was in now)


Sample = (
    LinkSnapshot
    | Probe
    | ProcessSnapshot
    | TopicSnapshot
    | GroupSnapshot
    | LogSnapshot
    | LaneSeen
    | EffectsSnapshot
    | StaysSnapshot
    | FeatureSnapshot
    | PageCacheSnapshot
)


def to_details(sample: Sample) -> dict[str, Any]:
    """Returns a sample as plain data, for the history."""
    table = asdict(sample)
    table.pop("time_ns", None)
    return {name: sorted(value) if isinstance(value, frozenset) else value for name, value in table.items()}


@dataclass(frozen=True, slots=True)
class Flow:
    """One direction of one route between two looks, over the connections that lived through both.

    `offered_bytes` reached the proxy, `passed_bytes` left it. `held_bytes` is what the proxy had taken and not passed
    on at the later look (None where halves cannot be paired: a connection is half-closed); `queue_bytes` waited
    before it in the kernel.
    """

    route: tuple[str, int]
    connections: int
    offered_bytes: int
    passed_bytes: int
    held_bytes: int | None
    queue_bytes: int

    @property
    def held(self) -> bool:
        return bool(self.held_bytes and self.held_bytes > 0) or self.queue_bytes > 0


def flow(first: LinkSnapshot, last: LinkSnapshot, route: tuple[str, int], direction: str) -> Flow:
    """Returns what one direction of `route` did between two looks."""
    source, sink = (BROKER, CLIENT) if direction == ANSWERS else (CLIENT, BROKER)
    taken, given = _kept(first, last, route, source), _kept(first, last, route, sink)
    # The proxy dialled the broker: an acknowledged SYN counts as one byte sent on that side.
    syns = len(given) if sink == BROKER else 0
    held = sum(end.received_bytes for _, end in taken) - (sum(end.sent_bytes for _, end in given) - syns)
    return Flow(
        route=route,
        connections=len(_kept(first, last, route, CLIENT)),
        offered_bytes=sum(end.received_bytes - start.received_bytes for start, end in taken),
        passed_bytes=sum(end.sent_bytes - start.sent_bytes for start, end in given),
        held_bytes=held if len(taken) == len(given) else None,
        queue_bytes=sum(end.receive_queue_bytes for _, end in taken),
    )


def flows(snapshots: Iterable[LinkSnapshot], direction: str) -> list[Flow]:
    """Returns the flow of every route between each look and the next."""
    snapshots = list(snapshots)
    return [flow(first, last, route, direction) for first, last in pairwise(snapshots) for route in first.routes()]


def _kept(first: LinkSnapshot, last: LinkSnapshot, route: tuple[str, int], side: str) -> list[tuple[Half, Half]]:
    start, end = first.side(side, route), last.side(side, route)
    return [(start[port], end[port]) for port in sorted(start.keys() & end.keys())]


Route = tuple[str, int]  # client, broker


def rises(before: Sequence[Probe], inside: Sequence[Probe]) -> dict[Route, float]:
    """Returns by how many ms each route's fastest round trip rose: a busy machine slows some, hardly the fastest."""
    calm, slow = _fastest(before), _fastest(inside)
    return {route: slow[route] - calm[route] for route in calm.keys() & slow.keys()}


def _fastest(probes: Sequence[Probe]) -> dict[Route, float]:
    fastest: dict[Route, float] = {}
    for probe in probes:
        if probe.answer_ms is not None:
            route = (probe.client, probe.broker)
            fastest[route] = min(fastest.get(route, probe.answer_ms), probe.answer_ms)
    return fastest


def kept_routes(inside: Sequence[LinkSnapshot]) -> set[Route]:
    """Returns the routes with a connection that lived from the first look to the last."""
    return {port[:2] for port in inside[0].ports() & inside[-1].ports()}


def _connection_rates(first: LinkSnapshot, last: LinkSnapshot, route: Route) -> list[float]:
    start, end = first.side("client", route), last.side("client", route)
    seconds = (last.time_ns - first.time_ns) / 1e9
    return [(end[p].sent_bytes - start[p].sent_bytes) / seconds for p in start.keys() & end.keys() if seconds > 0]


def all_rates(snapshots: Sequence[LinkSnapshot]) -> dict[Route, float]:
    """Returns the fastest connection of each route over the whole window, in bytes/s."""
    rates = {r: _connection_rates(snapshots[0], snapshots[-1], r) for r in snapshots[0].routes()} if snapshots else {}
    return {route: max(found) for route, found in rates.items() if found}


def saturated_rates(snapshots: Sequence[LinkSnapshot]) -> dict[Route, float]:
    """Returns the fastest connection of each route, in bytes/s, over its longest stretch that was full all along.

    Full is a stretch all of whose looks, two or more, found answers held by the proxy: a single one may have met bytes
    that were just being passed on, on a link that nobody slows.
    """
    rates: dict[Route, float] = {}
    for route in sorted({route for snapshot in snapshots for route in snapshot.routes()}):
        full = max(_held_throughout(snapshots, route), key=len, default=[])
        if len(full) > 1 and (found := _connection_rates(full[0], full[-1], route)):
            rates[route] = max(found)
    return rates


def _held_throughout(snapshots: Sequence[LinkSnapshot], route: Route) -> list[list[LinkSnapshot]]:
    runs = groupby(snapshots, key=lambda snapshot: flow(snapshot, snapshot, route, ANSWERS).held)
    return [list(run) for held, run in runs if held]


def figures(inside: Sequence[LinkSnapshot]) -> dict[str, object]:
    """Returns the bytes offered, passed and (at most) held in each direction, for the reader of the evidence."""
    table: dict[str, object] = {}
    for direction in (ANSWERS, REQUESTS):
        found = flows(inside, direction)
        table[direction] = {
            "offered_bytes": sum(f.offered_bytes for f in found),
            "passed_bytes": sum(f.passed_bytes for f in found),
            "held_bytes_max": max((f.held_bytes or 0 for f in found), default=0),
            "queue_bytes_max": max((f.queue_bytes for f in found), default=0),
        }
    return table


@dataclass(frozen=True)
class RemoteReads:
    """What brokers told of their reads of a topic's remote segments: how many were done, how many failed, and the
    longest that one of them waited between two that were done (s)."""

    read: int = 0
    failed: int = 0
    longest_wait_s: float = 0.0


@dataclass(frozen=True)
class FailOverOutcome:
    """How a group came to another cluster: when its members had left the one, and whether all were in their group on
    the other in time."""

    left_ns: int
    joined: bool

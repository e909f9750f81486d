"""The context: everything a fault may touch or ask in one trial, handed to the nemesis by the run.

Faults reach brokers, proxies and leaders through the Cluster protocol and members through the Group protocol; the
history is read back only for what witnesses of the brokers wrote into it (O and R).

Who leads and who coordinates is asked of the brokers one by one, with the three raw requests it takes. A client library
asks whichever node it likes, and hangs on a paused one; a broker cut off from the controllers goes on telling what was.
So each broker is asked for itself, over its observer's listener, and the highest leader epoch wins. Metadata v7 and
DescribeQuorum v1 (Kafka's protocol guide); both are understood from 3.7 to 4.x.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kafka_trial.errors import WaitTimeout
from kafka_trial.history.event import Event
from kafka_trial.history.store import HistoryTail
from kafka_trial.kafka_protocol.broker_features import broker_features
from kafka_trial.kafka_protocol.cluster_changes import FeatureUpdate, update_features
from kafka_trial.kafka_protocol.connection import Brokers, Connection, NoAnswerError
from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC, group_partition
from kafka_trial.nemesis.rolled_segments import RolledSegments, rolled_segments
from kafka_trial.nemesis.samples import (
    FailOverOutcome,
    FeatureAnswer,
    FeatureSnapshot,
    Leader,
    LogSnapshot,
    LogSpan,
    TopicSnapshot,
)

if TYPE_CHECKING:
    from kafka_trial.cluster.admin import Admin
    from kafka_trial.cluster.cluster import Cluster, Lane
    from kafka_trial.consumers.consumer import Group, Member
    from kafka_trial.consumers.sink import Sink
    from kafka_trial.history.recorder import EventWriter

CONSUMER_HEARTBEAT = "CONSUMER_GROUP_HEARTBEAT"
JOINS = ("JOIN_GROUP", CONSUMER_HEARTBEAT)
JOINS_WITHIN_S = 60.0
WORKLOAD = "workload"  # the load as a client, beside the members m0, m1, …


@dataclass(frozen=True)
class FaultContext:
    """What the nemesis may touch: `cluster` and its proxies, the `group` under trial; what it may ask: `admin`.

    `admin` is the nemesis's own (a short answer time, and not shared with other threads); `recorder` is the one of the
    source "nemesis"; `history` the folder the witnesses write to; `workload_lane` the lane of the load, hit together
    with the members' when a broker is cut off from its clients; `sink` where members ask at crash points, if it is
    there; `progress_in_kafka`: whether commits say how far the group is; `due_s` returns how long it may take, by its
    claim, until it has done all below some ends of the log, where somebody knows; `busier_s` how much longer members
    and brokers have waited for a processor since an instant than they did before. `later_topics`: those that come while
    the group is at work, by their names in the scenario; `create_later_topic` creates one and begins its load.
    """

    cluster: Cluster
    group: Group
    admin: Admin
    recorder: EventWriter
    topic: str
    group_name: str
    history: Path
    workload_lane: Lane | None = None
    sink: Sink | None = None
    progress_in_kafka: bool = True
    due_s: Callable[[Mapping[int, int]], float] | None = None
    mirror: MirrorTarget | None = None
    busier_s: Callable[[int], float] = field(default=lambda since_ns: 0.0, repr=False)
    later_topics: Mapping[str, str] = field(default_factory=dict)
    create_later_topic: Callable[[str], None] = field(default=lambda name: None, repr=False)
    _admin_turn: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def members(self) -> list[Member]:
        """Returns the members that run now, by index."""
        return sorted((member for member in self.group.members if member.alive), key=lambda member: member.index)

    def topic_snapshot(self, *, without: int | None = None) -> TopicSnapshot:
        """Asks every broker but `without` who leads and who coordinates; what nobody answers stays unknown."""
        asked = [broker for broker in sorted(self.cluster.brokers) if broker != without]
        return ask([self.cluster.observer_address(broker) for broker in asked], self.topic, self.group_name)

    def feature_snapshot(self, feature: str) -> FeatureSnapshot:
        """Asks every broker for itself which level of a feature is finalised."""
        answers = []
        for broker in sorted(self.cluster.brokers):
            address = self.cluster.observer_address(broker)
            with suppress(NoAnswerError), closing(Connection(address)) as connection:
                told = broker_features(connection)
                answers.append(FeatureAnswer(broker, told.finalized.get(feature, 0), told.epoch))
        return FeatureSnapshot(time.monotonic_ns(), feature, tuple(answers))

    def finalise(self, update: FeatureUpdate) -> list[str]:
        """Asks any broker, and so the controller, for a level of a feature; returns why it was refused, none: taken.

        Raises:
            NoAnswerError: none of the brokers answers for a controller.
        """
        with closing(Brokers(self.cluster.observer_bootstrap)) as brokers:
            return brokers.anyone(lambda at: update_features(at, [update]))

    def move_leader(self, partition: int, broker: int) -> None:
        """Makes `broker` the leader of a partition of the topic."""
        with self._admin_turn:
            self.admin.move_leader(self.topic, partition, broker)

    def move_replicas(self, old: int, new: int) -> dict[str, int]:
        """Moves all that a broker holds to another, and has the preferred replicas lead; returns how many partitions of
        each topic were moved."""
        with self._admin_turn:
            self.admin.await_brokers([new], within_s=JOINS_WITHIN_S)
            moved = self.admin.move_replicas(old, new)
            for topic in moved:
                self.admin.restore_leaders(topic)
        return moved

    def restore_leaders(self, *, within_s: float) -> None:
        """Has the preferred replicas lead every partition, as brokers do by themselves every five minutes
        (auto.leader.rebalance.enable): until then a broker that came back leads none."""
        with self._admin_turn:
            self.admin.restore_all_leaders(within_s=within_s)

    def caught_up_within(self, controller: int, *, since_wall_s: float, within_s: float) -> bool:
        """Waits until a controller has caught up with the quorum since an instant; False where that takes too long."""
        try:
            with self._admin_turn:
                self.admin.await_caught_up(controller, since_wall_s=since_wall_s, within_s=within_s)
        except WaitTimeout:
            return False
        return True

    def log_snapshot(self, *, local: bool = False) -> LogSnapshot:
        """Asks the leaders where the logs of the topic start and end; `local`: where those on their own disks start."""
        with self._admin_turn:
            starts = self.admin.local_log_starts(self.topic) if local else self.admin.log_starts(self.topic)
            ends = self.admin.log_ends(self.topic)
        spans = (LogSpan(partition, starts[partition], ends[partition]) for partition in sorted(starts.keys() & ends))
        return LogSnapshot(time.monotonic_ns(), tuple(spans))

    def delete_records(self, below: Mapping[int, int]) -> None:
        """Deletes the records of each partition of the topic below a position."""
        with self._admin_turn:
            self.admin.delete_records(self.topic, below)

    def add_partitions(self, partitions: int) -> None:
        """Makes the topic have so many partitions in all."""
        with self._admin_turn:
            self.admin.add_partitions(self.topic, partitions)

    def rolled_segments(self) -> AbstractContextManager[RolledSegments]:
        """Opens the rolled segments of the topic."""
        pids = {number: broker.pid for number, broker in self.cluster.brokers.items() if broker.alive}
        return rolled_segments(pids, self.topic)

    def committed_offsets(self) -> dict[int, int]:
        """Asks the coordinator for the committed offsets in effect, by partition; none where they tell nothing."""
        if not self.progress_in_kafka:
            return {}
        with self._admin_turn:
            return self.admin.committed_offsets(self.group_name, self.topic)

    def offsets_log(self) -> OffsetsLog:
        """Returns a reader of what the witness of the offsets log has written about this group."""
        return OffsetsLog(HistoryTail(self.history, "offsets.jsonl"), self.group_name)

    def request_log(self) -> RequestLog:
        """Returns a reader of what the witness of the request log will write from now on."""
        return RequestLog(HistoryTail(self.history, "requests-b*.jsonl"))


class MirrorTarget(Protocol):
    """The mirror, as the fault sees it."""

    def context_after(self, context: FaultContext, *, back: bool = False) -> FaultContext:
        """Returns what may be touched and asked since the group is there, or `back`."""
        ...

    def fail_over(self, way: str, *, planned: bool, margin_s: float) -> FailOverOutcome:
        """Ends the members, and starts them on the mirror."""
        ...

    def fail_back(self, way: str, *, margin_s: float) -> FailOverOutcome:
        """Ends the members on the mirror, and starts them on their first cluster."""
        ...


class OffsetsLog:
    """Events of one group in history/offsets.jsonl since the last look (O)."""

    def __init__(self, follower: HistoryTail, group: str) -> None:
        self._follower = follower
        self._group = group

    def new_events(self) -> Iterator[Event]:
        """Yields what was appended about the group."""
        return (event for event in self._follower.new_events() if event.details.get("group") == self._group)


class RequestLog:
    """Requests that brokers answered, counted by API, as history/requests-b*.jsonl has them (R)."""

    def __init__(self, follower: HistoryTail) -> None:
        self._follower = follower
        self.count(())

    def count(self, lanes: Collection[int]) -> dict[str, int]:
        """Returns how many requests of each API came over `lanes` since the last count."""
        return dict(sorted(Counter(event.details["api"] for event in self._new_requests(lanes)).items()))

    def asked_to_join(self, lane: int, group: str, *, since_wall_ns: int) -> list[tuple[str, int]]:
        """Returns by which APIs a client on `lane` asked to be in the group, in requests that it began since then, and
        how each was answered (Kafka's error codes); of those since the last call."""
        found = []
        for event in self._new_requests({lane}):
            about, took_ns = event.details, int((event.details.get("duration_ms") or 0) * 1_000_000)
            asks = about["api"] in JOINS and about.get("group") == group
            leaves = (
                about["api"] == CONSUMER_HEARTBEAT and (about.get("epoch") or 0) < 0
            )  # of a join it is the answer's
            if (
                asks
                and not leaves
                and event.source_wall_ns is not None
                and event.source_wall_ns - took_ns >= since_wall_ns
            ):
                found.append((str(about["api"]), int(about.get("error") or 0)))
        return found

    def _new_requests(self, lanes: Collection[int]) -> Iterator[Event]:
        events = (event for event in self._follower.new_events() if event.kind == "request")
        return (event for event in events if event.details.get("lane") in lanes)


ANSWER_WITHIN_S = 0.7
METADATA, DESCRIBE_QUORUM = 3, 55
ANSWER_BYTES_MAX = 16 * 1024 * 1024


def ask(addresses: Sequence[tuple[str, int]], topic: str, group: str) -> TopicSnapshot:
    """Returns what the brokers at `addresses` say; what none of them answers stays unknown.

    The coordinator of a group is the leader of its partition of `__consumer_offsets`.
    """
    answers: list[dict[str, list[Leader]]] = []
    controllers: list[int] = []
    for address in addresses:
        with suppress(OSError, struct.error):  # down, paused, or electing: others may know
            answers.append(_metadata(address, [topic, OFFSETS_TOPIC]))
        with suppress(OSError, struct.error):
            controllers += [] if controllers else _controller(address)
    offsets = _newest(answer.get(OFFSETS_TOPIC, []) for answer in answers)
    place = group_partition(group, partitions=len(offsets)) if offsets else 0
    coordinator = next((leader.broker for leader in offsets if leader.partition == place and leader.broker >= 0), None)
    return TopicSnapshot(
        time_ns=time.monotonic_ns(),
        leaders=_newest(answer.get(topic, []) for answer in answers),
        coordinator=coordinator,
        controller=controllers[0] if controllers else None,
    )


def _newest(tables: Iterable[list[Leader]]) -> tuple[Leader, ...]:
    best: dict[int, Leader] = {}
    for leader in (one for table in tables for one in table):
        if leader.partition not in best or leader.epoch > best[leader.partition].epoch:
            best[leader.partition] = leader
        elif leader.epoch == best[leader.partition].epoch and len(leader.isr) < len(best[leader.partition].isr):
            best[leader.partition] = leader  # who is left out of the ISR is known later to some than to others
    return tuple(best[partition] for partition in sorted(best))


def _metadata(address: tuple[str, int], topics: Sequence[str]) -> dict[str, list[Leader]]:
    body = struct.pack(">i", len(topics)) + b"".join(map(_string, topics)) + b"\x00"  # no auto-creation
    read = _Reader(_round_trip(address, _header(METADATA, 7) + body), at=8)  # correlation id, throttle time
    for _ in range(read.i32()):
        read.i32(), read.string(), read.i32(), read.string()
    read.string(), read.i32()  # cluster id, and a controller id that is any broker under KRaft
    table: dict[str, list[Leader]] = {}
    for _ in range(read.i32()):
        read.i16()
        name = read.string()
        read.skip(1)
        table[name] = [_partition(read) for _ in range(read.i32())]
    return table


def _partition(read: _Reader) -> Leader:
    read.i16()
    number, leader, epoch = read.i32(), read.i32(), read.i32()
    _, isr, _ = read.i32s(), read.i32s(), read.i32s()
    return Leader(number, leader, epoch, tuple(sorted(isr)))


def _controller(address: tuple[str, int]) -> list[int]:
    """The leader of the metadata quorum as this broker has it from the controllers, or nothing."""
    name = b"__cluster_metadata"
    body = b"\x02" + bytes([len(name) + 1]) + name + b"\x02" + struct.pack(">i", 0) + b"\x00\x00\x00"
    read = _Reader(_round_trip(address, _header(DESCRIBE_QUORUM, 0) + b"\x00" + body), at=5)  # correlation id, tags
    if read.i16() != 0 or read.u8() != 2:
        return []
    read.skip(read.u8() - 1)
    if read.u8() != 2:
        return []
    read.i32()
    error, leader = read.i16(), read.i32()
    return [leader] if error == 0 and leader >= 0 else []


def _round_trip(address: tuple[str, int], request: bytes) -> bytes:
    with socket.create_connection(address, timeout=ANSWER_WITHIN_S) as link:
        link.settimeout(ANSWER_WITHIN_S)
        link.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", _exactly(link, 4))
        if not 0 <= size <= ANSWER_BYTES_MAX:
            raise OSError(f"{address} answered with {size} bytes: not Kafka's protocol")
        return _exactly(link, size)


def _exactly(link: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        part = link.recv(size - len(got))
        if not part:
            raise OSError("the broker closed the connection")
        got += part
    return got


def _header(api: int, version: int) -> bytes:
    return struct.pack(">hhi", api, version, 1) + _string("kt-nemesis")


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


@dataclass
class _Reader:
    """Reads Kafka's plain encoding from `at` on."""

    body: bytes
    at: int

    def skip(self, size: int) -> bytes:
        self.at += size
        return self.body[self.at - size : self.at]

    def u8(self) -> int:
        return int.from_bytes(self.skip(1), "big")

    def i16(self) -> int:
        return int(struct.unpack(">h", self.skip(2))[0])

    def i32(self) -> int:
        return int(struct.unpack(">i", self.skip(4))[0])

    def i32s(self) -> list[int]:
        return [self.i32() for _ in range(self.i32())]

    def string(self) -> str:
        size = self.i16()
        return self.skip(size).decode() if size > 0 else ""

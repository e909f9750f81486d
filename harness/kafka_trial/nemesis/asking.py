"""Asking brokers one by one who leads and who coordinates, with the three raw requests it takes.

A client library asks whichever node it likes, and hangs on a paused one; a broker cut off from the controllers goes
on telling what was. So each broker is asked for itself, over its observer's listener, and the highest leader epoch
wins. Metadata v7 and DescribeQuorum v0 (Kafka's protocol guide); both are understood from 3.9 to 4.x.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC, group_partition
from kafka_trial.nemesis.samples import Leader, TopicSnapshot

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

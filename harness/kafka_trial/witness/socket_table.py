"""The kernel's socket table, and an own round trip to a broker: what the network did, as nobody's client tells it.

`sample` is one dump by netlink sock_diag (Linux, no privilege), with TCP's own counters for each connection, of this
machine's own network or of whichever another process asks the same from inside; the nemesis compares dumps from before,
inside and after a fault. `api_versions_round_trip` is the one request a broker
answers before anything else, sent on a fresh connection. Reads, and judges nothing.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv6Address

from kafka_trial.errors import UnjudgeableError

FAMILIES = (socket.AF_INET, socket.AF_INET6)
ESTABLISHED, LISTEN = 1, 10
STATES = {
    ESTABLISHED: "established",
    2: "syn-sent",
    3: "syn-received",
    4: "fin-wait-1",
    5: "fin-wait-2",
    6: "time-wait",
    7: "close",
    8: "close-wait",
    9: "last-ack",
    LISTEN: "listen",
    11: "closing",
    12: "new-syn-received",
}

# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h, linux/tcp.h
_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY = 4, 20
_REQUEST_DUMP = 0x301
_ERROR, _DONE = 2, 3
_INFO_ATTRIBUTE = 2
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBBI48x")
_MESSAGE_BYTES = 72
_LAST_DATA_RECEIVED, _BYTES_ACKED, _BYTES_RECEIVED = 52, 120, 128
_RECEIVE_BYTES = 1 << 18
_ANSWER_WITHIN_S = 5.0

_MAPPED_FROM_IPV4 = bytes(10) + b"\xff\xff"
_SOCKET_LINK = re.compile(r"socket:\[(\d+)\]")
# ApiVersions v0: api key 18, version 0, correlation id, client id; no body.
_PROBE_CLIENT = b"kafka-trial-probe"
_PROBE_CORRELATION = 7
_PROBE_ANSWER_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class Socket:
    """One TCP socket of this machine; `src`, `sport` are its own end. Addresses mapped from IPv4 read as IPv4.

    Queues in bytes: received and not read by the program, sent and not acknowledged. `bytes_acked` counts an
    acknowledged SYN as one byte (on the side that dialled). `last_data_received_ms` is how long ago data came.
    """

    src: str
    sport: int
    dst: str
    dport: int
    state: str
    inode: int
    uid: int
    receive_queue: int
    send_queue: int
    bytes_acked: int = 0
    bytes_received: int = 0
    last_data_received_ms: int = 0

    @property
    def established(self) -> bool:
        return self.state == STATES[ESTABLISHED]


Dump = Callable[[int], bytes]  # from a mask of states to sock_diag's messages, of IPv4 and then of IPv6


def sample(
    states: Collection[int] = STATES, *, ports: Collection[int] | None = None, dump: Dump | None = None
) -> list[Socket]:
    """Returns every TCP socket in one of `states`: IPv4, and IPv6, in which Java's sockets are.

    `ports`: only those with one of these at an end; None: all. `dump`: who asks the kernel, from inside the network
    that is wanted; None: we do, of our own.

    One dump for each family. A machine that opens a connection for each of many requests has thousands of sockets in
    time-wait: who needs only live ones asks for `[ESTABLISHED]`, and the kernel leaves the others out.

    Raises:
        UnjudgeableError: this system has no sock_diag, or refuses it; `dump` does not answer, or not with whole dumps.
    """
    messages = (dump or own_dump)(sum(1 << state for state in states))
    try:
        found: Iterable[memoryview] = _messages(memoryview(messages))
        if ports is not None:
            found = (message for message in found if any(port in ports for port in _ports(message)))
        return [_socket(message) for message in found]
    except (OSError, struct.error, IndexError) as error:
        raise UnjudgeableError(f"the kernel's socket table cannot be read by sock_diag: {error}") from error


def inodes_of_groups(pgids: Collection[int]) -> dict[int, set[int]]:
    """Returns the inodes of all sockets that the processes of each process group hold, after one walk over /proc."""
    inodes: dict[int, set[int]] = {pgid: set() for pgid in pgids}
    for pid, pgid in _processes() if inodes else ():
        if pgid in inodes:
            inodes[pgid].update(_socket_inodes(pid))
    return inodes


def api_versions_round_trip(host: str, port: int, timeout_s: float) -> float:
    """Returns the seconds from asking for a connection to the whole answer to an ApiVersions request.

    Raises:
        ConnectionRefusedError: nobody listens there (a disabled proxy, say).
        TimeoutError: no whole answer within `timeout_s` seconds in all.
        OSError: the connection ended, or what came is no answer to this request.
    """
    start_s = time.monotonic()
    deadline_s = start_s + timeout_s
    with socket.create_connection((host, port), timeout=timeout_s) as connection:
        connection.sendall(_probe_request())
        size = struct.unpack(">i", _received(connection, 4, deadline_s))[0]
        if not 6 <= size <= _PROBE_ANSWER_BYTES_MAX:
            raise ConnectionError(f"{host}:{port} answered ApiVersions with {size} bytes: no Kafka broker speaks there")
        answer = _received(connection, size, deadline_s)
    correlation, error = struct.unpack_from(">ih", answer)
    if correlation != _PROBE_CORRELATION or error != 0:
        raise ConnectionError(f"{host}:{port} answered ApiVersions {correlation} with error {error}")
    return time.monotonic() - start_s


def _probe_request() -> bytes:
    body = struct.pack(f">hhih{len(_PROBE_CLIENT)}s", 18, 0, _PROBE_CORRELATION, len(_PROBE_CLIENT), _PROBE_CLIENT)
    return struct.pack(">i", len(body)) + body


def _received(connection: socket.socket, size: int, deadline_s: float) -> bytes:
    taken = b""
    while len(taken) < size:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        connection.settimeout(left_s)
        part = connection.recv(size - len(taken))
        if not part:
            raise ConnectionResetError("the connection was closed before the whole answer came")
        taken += part
    return taken


def own_dump(states: int) -> bytes:
    """Asks the kernel for the sockets of our own network."""
    if not hasattr(socket, "AF_NETLINK"):
        raise UnjudgeableError("the kernel's socket table is read by netlink sock_diag, which only Linux has")
    try:
        return b"".join(_dump(family, states) for family in FAMILIES)
    except OSError as error:
        raise UnjudgeableError(f"the kernel's socket table cannot be read by sock_diag: {error}") from error


def _dump(family: int, states: int) -> bytes:
    """Returns the kernel's messages about one family, the last of which says that they are all."""
    request = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (_INFO_ATTRIBUTE - 1), 0, states)
    parts: list[bytes] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as netlink:
        netlink.settimeout(_ANSWER_WITHIN_S)
        netlink.send(_HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0) + request)
        while not parts or not _ended(parts[-1]):
            parts.append(netlink.recv(_RECEIVE_BYTES))
    return b"".join(parts)


def _ended(part: bytes) -> bool:
    return any(kind in (_DONE, _ERROR) for kind, _ in _headed(memoryview(part)))


def _messages(dumps: memoryview) -> Iterator[memoryview]:
    """Yields what each message about a socket holds.

    Raises:
        OSError: the kernel refused, or a dump has no end.
    """
    ends = 0
    for kind, body in _headed(dumps):
        if kind == _ERROR:
            number = -struct.unpack_from("=i", body)[0]
            raise OSError(number, os.strerror(number))
        if kind == _DONE:
            ends += 1
        else:
            yield body
    if ends != len(FAMILIES):
        raise OSError(f"{ends} dumps of {len(FAMILIES)} are whole")


def _headed(messages: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yields each message's kind and what follows its header."""
    place = 0
    while place < len(messages):
        size, kind, _, _, _ = _HEADER.unpack_from(messages, place)
        yield kind, messages[place + _HEADER.size : place + size]
        place += _aligned(max(size, _HEADER.size))


def _ports(message: memoryview) -> tuple[int, int]:
    """Returns both ports of a socket, its own first."""
    sport, dport = struct.unpack_from(">HH", message, 4)
    return sport, dport


def _socket(message: memoryview) -> Socket:
    family, state = message[0], message[1]
    sport, dport = _ports(message)
    _, receive_queue, send_queue, uid, inode = struct.unpack_from("=IIIII", message, 52)
    counters = (0, 0, 0) if state == LISTEN else _counters(message)
    return Socket(
        _address(family, message[8:24]),
        sport,
        _address(family, message[24:40]),
        dport,
        STATES.get(state, str(state)),
        inode,
        uid,
        receive_queue,
        send_queue,
        *counters,
    )


def _counters(message: memoryview) -> tuple[int, int, int]:
    """Acknowledged and received bytes, and the age of the last data, from the tcp_info attribute (if it is there)."""
    place = _MESSAGE_BYTES
    while place + 4 <= len(message):
        size, kind = struct.unpack_from("=HH", message, place)
        if kind == _INFO_ATTRIBUTE and size - 4 >= _BYTES_RECEIVED + 8:
            info = message[place + 4 : place + size]
            acked, received = struct.unpack_from("=QQ", info, _BYTES_ACKED)
            return acked, received, struct.unpack_from("=I", info, _LAST_DATA_RECEIVED)[0]
        if size < 4:
            break
        place += _aligned(size)
    return 0, 0, 0


def _address(family: int, raw: memoryview) -> str:
    if family == socket.AF_INET:
        return socket.inet_ntoa(raw[:4])
    return socket.inet_ntoa(raw[12:]) if raw[:12] == _MAPPED_FROM_IPV4 else str(IPv6Address(bytes(raw)))


def _aligned(size: int) -> int:
    return (size + 3) & ~3


def _processes() -> Iterator[tuple[int, int]]:
    """Every process with its process group."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):  # it may end while we look
                yield int(name), os.getpgid(int(name))


def _socket_inodes(pid: int) -> Iterator[int]:
    with suppress(OSError):  # it ended, or is not ours to look into
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                found = _SOCKET_LINK.fullmatch(os.readlink(entry.path))
                if found:
                    yield int(found[1])

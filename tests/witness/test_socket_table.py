"""The socket table and the probe, on sockets of this test's own."""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

import pytest

from kafka_trial.errors import UnjudgeableError
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import wait_until
from kafka_trial.witness import socket_table


@contextmanager
def connection(family: int = socket.AF_INET) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connected pair over loopback: (dialling end, accepted end)."""
    host = "127.0.0.1" if family == socket.AF_INET else "::ffff:127.0.0.1"
    with socket.socket(family) as listener:
        listener.bind((host, 0))
        listener.listen()
        with socket.socket(family) as near:
            near.connect(listener.getsockname()[:2])
            far, _ = listener.accept()
            with far:
                yield near, far


def _entry(end: socket.socket) -> socket_table.Socket:
    sport, dport = end.getsockname()[1], end.getpeername()[1]
    return next(entry for entry in socket_table.sample() if (entry.sport, entry.dport) == (sport, dport))


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6], ids=["ipv4", "ipv6 mapped"])
def test_a_connection_shows_both_halves_with_what_waits_and_what_was_acknowledged(family: int) -> None:
    """1000 bytes sent and not read wait in the receiver's queue, and the sender's kernel counts them acknowledged."""
    with connection(family) as (near, far):
        near.sendall(b"x" * 1000)
        wait_until(lambda: _entry(near).bytes_acked == 1001, within_s=5, what="the acknowledgement (and the SYN's)")
        received, sent = _entry(far), _entry(near)
    assert (received.src, received.dst, received.established) == ("127.0.0.1", "127.0.0.1", True)
    assert (received.receive_queue, received.bytes_received) == (1000, 1000)
    assert (sent.send_queue, sent.receive_queue) == (0, 0)


def test_only_sockets_with_certain_ports_are_asked_for() -> None:
    """At either end: both halves of one connection, and nothing of another."""
    with connection() as (near, _), connection():
        port = near.getsockname()[1]
        found = socket_table.sample(ports={port})
    assert sorted((entry.sport == port, entry.dport == port) for entry in found) == [(False, True), (True, False)]


def test_unread_data_piles_up_in_the_send_queue() -> None:
    """When the receiver reads nothing, what does not fit into its buffer stays in the sender's queue."""
    with connection() as (near, _):
        near.setblocking(False)
        with suppress(BlockingIOError):
            while near.send(b"x" * 65536):
                pass
        assert _entry(near).send_queue > 0


def test_a_closed_connection_is_no_longer_established() -> None:
    """After both ends closed, no established entry is left for the pair."""
    with connection() as (near, far):
        places = (near.getsockname()[1], near.getpeername()[1])
        near.close()
        far.close()
        left = [
            entry for entry in socket_table.sample() if {entry.sport, entry.dport} == set(places) and entry.established
        ]
    assert left == []


def test_only_the_states_asked_for_are_dumped() -> None:
    """A connection whose one end was closed is half there for who asks for established ones, and whole else."""
    with connection() as (near, far):
        sport, dport = near.getsockname()[1], near.getpeername()[1]
        assert {_state(sport, [socket_table.ESTABLISHED]), _state(dport, [socket_table.ESTABLISHED])} == {"established"}
        far.shutdown(socket.SHUT_WR)
        wait_until(lambda: _state(sport, socket_table.STATES) == "close-wait", within_s=5, what="the end to arrive")
        assert (_state(sport, [socket_table.ESTABLISHED]), _state(sport, [socket_table.LISTEN])) == (None, None)


@pytest.mark.parametrize(
    ("cut", "because"),
    [
        (slice(0, 0), "0 dumps of 2 are whole"),
        (slice(0, -20), "1 dumps of 2 are whole"),  # without the end of the second
        (slice(0, -30), "cannot be read"),
        (slice(7, None), "cannot be read"),
    ],
)
def test_a_dump_that_is_not_whole_is_an_error(cut: slice, because: str) -> None:
    """What somebody hands on is believed only as far as the kernel's own marks of the end say that it is all."""
    with connection(), connection(socket.AF_INET6):
        whole = socket_table.own_dump(1 << socket_table.ESTABLISHED)
    assert socket_table.sample(dump=lambda _: whole) != []
    with pytest.raises(UnjudgeableError, match=because):
        socket_table.sample(dump=lambda _: whole[cut])


def test_the_kernels_refusal_is_an_error() -> None:
    """It comes in the place of a dump: no table is no empty one."""
    refusal = struct.pack("=IHHIIi16x", 36, 2, 0, 1, 0, -errno.EPERM)
    with pytest.raises(UnjudgeableError, match="Operation not permitted"):
        socket_table.sample(dump=lambda _: refusal)


def _state(sport: int, states: Collection[int]) -> str | None:
    found = [entry.state for entry in socket_table.sample(states) if entry.sport == sport and entry.state != "listen"]
    return found[0] if found else None


def test_sockets_are_told_apart_by_process_group() -> None:
    """A child's connection belongs to the child's group, and to no other."""
    program = "import socket,sys; s=socket.create_connection(('127.0.0.1', int(sys.argv[1]))); sys.stdin.read()"
    with socket.create_server(("127.0.0.1", 0)) as listener, ChildProcesses("sockets") as child_processes:
        listener.settimeout(10)
        theirs, ours = os.pipe()
        child = child_processes.spawn(
            "dialler", [sys.executable, "-c", program, str(listener.getsockname()[1])], stdin=theirs
        )
        accepted, (_, port) = listener.accept()
        with accepted:
            inodes = socket_table.inodes_of_groups([child.pid, os.getpgid(0)])
            held = {
                pgid: [entry.sport for entry in socket_table.sample() if entry.inode in inodes[pgid]] for pgid in inodes
            }
            assert held[child.pid] == [port]
            assert port not in held[os.getpgid(0)]
        os.close(theirs)
        os.close(ours)


def test_a_group_that_is_gone_has_no_sockets() -> None:
    """A process group without processes holds nothing."""
    assert socket_table.inodes_of_groups([2**22 + 1]) == {2**22 + 1: set()}


def _answer(listener: socket.socket, reply: bytes) -> None:
    link, _ = listener.accept()
    with link:
        size = struct.unpack(">i", link.recv(4))[0]
        request = link.recv(size)
        assert struct.unpack_from(">hhi", request) == (18, 0, 7)
        link.sendall(reply)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (struct.pack(">iih4x", 10, 7, 0), None),
        (struct.pack(">iih4x", 10, 8, 0), "answered ApiVersions 8"),
        (struct.pack(">iih4x", 10, 7, 35), "error 35"),
        (b"HTTP/1.1 400 Bad Request\r\n", "no Kafka broker"),
        (struct.pack(">ii", 10, 7), "closed before the whole answer"),
    ],
    ids=["answer", "other request", "error", "no broker", "cut short"],
)
def test_the_probe_believes_only_a_whole_answer_to_its_own_request(reply: bytes, problem: str | None) -> None:
    """Only the answer with our correlation id and no error counts as a round trip."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadGroup("broker") as thread_group:
        thread_group.start("answer", _answer, listener, reply)
        port = listener.getsockname()[1]
        if problem is None:
            assert 0 < socket_table.api_versions_round_trip("127.0.0.1", port, 5) < 5
        else:
            with pytest.raises(ConnectionError, match=problem):
                socket_table.api_versions_round_trip("127.0.0.1", port, 5)


def test_the_probe_tells_refused_from_silent() -> None:
    """Nobody listening is refused; somebody who never answers is a time-out."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(TimeoutError):
            socket_table.api_versions_round_trip("127.0.0.1", port, 0.2)
    with pytest.raises(ConnectionRefusedError):
        socket_table.api_versions_round_trip("127.0.0.1", port, 1)


def test_the_table_can_be_read_from_several_threads() -> None:
    """Dumps do not share a netlink socket: each thread sees whole tables."""
    counts: list[int] = []
    with ThreadGroup("dumps") as thread_group:
        threads: list[threading.Thread] = [
            thread_group.start(f"dump {n}", lambda: counts.append(len(socket_table.sample()))) for n in range(4)
        ]
        for thread in threads:
            thread.join(10)
    assert len(counts) == 4

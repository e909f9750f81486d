"""What may come to the HTTP sink beside effects: junk, floods, whoever never ends; meanwhile effects are taken."""

from __future__ import annotations

import logging
import random
import select
import socket
import struct
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from kafka_trial.consumers import http_connection
from kafka_trial.consumers.http_connection import BODY_BYTES_MAX, CONNECTIONS_MAX, REFUSALS_MAX
from kafka_trial.consumers.sink import ACCEPTED_AT_ONCE_MAX
from kafka_trial.process.waiting import wait_until
from sink_world import ANSWER_WITHIN_S, World, running_sink

TLS_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) * 2
MANY_BYTES = 100_000_000


@pytest.fixture
def world(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[World]:
    """A running sink; at the end nothing was raised in its thread (asyncio would have logged it)."""
    with caplog.at_level(logging.DEBUG, logger="asyncio"), running_sink(tmp_path) as world:
        yield world
    logged = [*caplog.get_records("call"), *caplog.records]  # `records` alone are those of the teardown
    assert [record.getMessage() for record in logged if record.levelno >= logging.WARNING] == []


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink that waits for a head, and for the end of what it throws away, only briefly."""
    monkeypatch.setattr(http_connection, "HEAD_WITHIN_S", 0.3)
    monkeypatch.setattr(http_connection, "DISCARD_WITHIN_S", 0.3)


def connect(world: World) -> socket.socket:
    return socket.create_connection((world.sink.host, world.sink.port), timeout=ANSWER_WITHIN_S)


def junk(world: World) -> dict[str, bytes]:
    """Returns what is no request, each with its name."""
    effect = f"POST {world.path}/effect HTTP/1.1\r\nHost: x\r\nKT-Id: r1\r\n".encode()
    chunked = effect + b"Transfer-Encoding: chunked\r\n\r\n"
    return {
        "a TLS hello": TLS_HELLO,
        "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "no request line": b"\r\n\r\n",
        "a request line of words": b"hello out there\r\n\r\n",
        "HTTP/0.9": b"GET /\r\n\r\n",
        "no host": f"POST {world.path}/effect HTTP/1.1\r\nKT-Id: r1\r\n\r\n".encode(),
        "a header without a name": effect + b": x\r\n\r\n",
        "a NUL in a header": effect + b"X: a\0b\r\n\r\n",
        "a header of 1 MB": effect + b"X: " + b"x" * 1_000_000 + b"\r\n\r\n",
        "a target of 1 MB": b"POST /" + b"x" * 1_000_000,
        "100,000 headers": effect + b"X: y\r\n" * 100_000,
        "both lengths": effect + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "two lengths": effect + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "a negative length": effect + b"Content-Length: -1\r\n\r\n",
        "an encoding nobody knows": effect + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        "a chunk size in words": chunked + b"many\r\n",
        "a negative chunk size": chunked + b"-1\r\nx\r\n",
        "a chunk size of 40 digits": chunked + b"f" * 40 + b"\r\nx\r\n",
        "a chunk that is too long": chunked + b"1\r\nxxx\r\n0\r\n\r\n",
        "a chunk's line of 1 MB": chunked + b"1;" + b"x" * 1_000_000 + b"\r\n",
        "trailers of 1 MB": chunked + b"0\r\nX: " + b"x" * 1_000_000 + b"\r\n\r\n",
    }


def test_junk_is_answered_400_and_its_connection_closed(world: World) -> None:
    """Each kind of it, and effects are taken before and after it."""
    answers = {name: world.raw(sent)[:13] for name, sent in junk(world).items()}
    assert answers == dict.fromkeys(answers, b"HTTP/1.1 400 ")
    assert world.post("/effect", **{"KT-Id": "r2"}) == 204
    assert [event["id"] for event in world.events()] == ["r2"]


@pytest.mark.parametrize("begun", [b"SSH-2.0-OpenSSH_9.6\r\n", b"POST / HTTP/1.1\r\nHost: x\r\nX: y", b"G"])
@pytest.mark.usefixtures("hurried")
def test_whoever_does_not_end_a_head_is_cut_off(world: World, begun: bytes) -> None:
    """400, and why; one that sends nothing may stay."""
    with connect(world) as idle:
        told = world.raw(begun)
        assert told.startswith(b"HTTP/1.1 400 ")
        assert told.endswith(b"the request's head was not complete after 30 s")
        idle.sendall(f"GET {world.path} HTTP/1.0\r\n\r\n".encode())
        assert idle.recv(13) == b"HTTP/1.1 404 "


def test_of_100_mb_of_rubbish_little_is_read_and_nothing_kept(world: World) -> None:
    """Printable, so that it might become a head; a stranger's body; a member's that never says how long it is."""
    path = world.path.encode()
    heads = {
        b"400": b"",
        b"403": b"POST /guessed/m1/effect HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n",
        b"413": b"POST " + path + b"/effect HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5f5e100\r\n",
    }
    rubbish = b"r" * 1_000_000
    tracemalloc.start()
    for status, head in heads.items():
        sent, answer = 0, b""
        with connect(world) as link:
            link.sendall(head)
            with suppress(ConnectionError):  # it has closed
                for _ in range(MANY_BYTES // len(rubbish)):
                    link.sendall(rubbish)
                    sent += len(rubbish)
                    if select.select([link], [], [], 0)[0]:
                        answer += link.recv(1000)
        assert (answer[9:12], sent < MANY_BYTES) == (status, True)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 2 * BODY_BYTES_MAX
    assert world.events() == []


def test_random_bytes_never_end_it(world: World) -> None:
    """Requests with bytes changed, cut, doubled: whatever is answered, the next effect is recorded."""
    rng = random.Random(7)
    whole = (
        b"POST %s/effect HTTP/1.1\r\nHost: x\r\nKT-Id: r1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    )
    for _ in range(300):
        sent = bytearray(whole % world.path.encode())
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(sent))
            sent[at : at + rng.randint(0, 3)] = rng.randbytes(rng.randint(0, 3))
        with connect(world) as link:
            link.sendall(sent)
            link.shutdown(socket.SHUT_WR)
            if rng.random() < 0.2:  # a reset
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                with suppress(ConnectionResetError):
                    while link.recv(1000):
                        pass
    assert world.post("/effect", **{"KT-Id": "last"}) == 204
    assert world.events()[-1]["id"] == "last"


def test_idle_strangers_give_way_to_members(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """More idle connections than the sink has: it keeps its bound of descriptors, and a member is served at once.

    The bound is lowered: strangers and sink are one process here, which may have 1,024 descriptors.
    """
    bound = CONNECTIONS_MAX // 4
    monkeypatch.setattr(http_connection, "CONNECTIONS_MAX", bound)
    before = psutil.Process().num_fds()
    with ExitStack() as stack:
        refused = stack.enter_context(connect(world))  # and does not close, though it has been answered
        refused.sendall(TLS_HELLO)
        assert refused.recv(1000).startswith(b"HTTP/1.1 400 ")
        idle = [refused, *(stack.enter_context(connect(world)) for _ in range(2 * bound))]
        assert world.post("/effect", **{"KT-Id": "r1"}) == 204
        ours = psutil.Process().num_fds() - before - len(idle)
        assert ours <= bound + ACCEPTED_AT_ONCE_MAX + REFUSALS_MAX
        told = idle[1].recv(1000)
        assert (told[:13], told[-70:]) == (b"HTTP/1.1 503 ", http_connection.TOO_MANY.text.encode()[-70:])
    assert [event["id"] for event in world.events()] == ["r1"]


def test_above_its_bound_of_members_it_says_so(world: World) -> None:
    """Those who were let in stay; who comes then is told why, and may come again when one has gone."""
    with ExitStack() as stack:
        members = [stack.enter_context(connect(world)) for _ in range(CONNECTIONS_MAX)]
        ask = f"GET {world.path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        for member in members:
            member.sendall(ask)
            assert member.recv(1000).startswith(b"HTTP/1.1 404 ")
        assert world.sink.refusals_in_words == ""
        assert world.post("/effect", **{"KT-Id": "r1"}) == 503
        assert world.raw(ask).endswith(http_connection.TOO_MANY.text.encode())
        assert world.sink.refusals_in_words.startswith("the sink answered 503 to 2 connections above the 400 it has")
        members[0].close()
        wait_until(
            lambda: world.post("/effect", **{"KT-Id": "r2"}) == 204, within_s=ANSWER_WITHIN_S, what="room for one"
        )
        members[1].sendall(ask)
        assert members[1].recv(1000).startswith(b"HTTP/1.1 404 ")
    assert [event["id"] for event in world.events()] == ["r2"]


FLOOD = """
import selectors, socket, sys

host, port, path, connections, each = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
effect = "POST %s/effect HTTP/1.1\\r\\nHost: x\\r\\nKT-Id: r%d\\r\\n\\r\\n"
selector = selectors.DefaultSelector()
for number in range(connections):
    link = socket.create_connection((host, port))
    names = range(number * each, (number + 1) * each)
    link.sendall("".join(effect % (path, name) for name in names).encode())
    selector.register(link, selectors.EVENT_READ, bytearray())
while selector.get_map():
    for key, _ in selector.select(60):
        key.data.extend(key.fileobj.recv(65536))
        if key.data.count(b"204 No Content") == each:
            selector.unregister(key.fileobj)
"""


def test_a_flood_is_recorded_exactly_once(world: World) -> None:
    """20,000 effects over 200 connections at once, pipelined, while junk comes in: one event each."""
    words = [str(word) for word in (world.sink.host, world.sink.port, world.path, 200, 100)]
    with subprocess.Popen([sys.executable, "-c", FLOOD, *words]) as flood:
        answers = [world.raw(sent)[:13] for sent in junk(world).values()]
        assert flood.wait(ANSWER_WITHIN_S * 6) == 0
    assert set(answers) == {b"HTTP/1.1 400 "}
    assert Counter(event["id"] for event in world.events()) == Counter(f"r{number}" for number in range(20_000))


def test_a_member_that_goes_in_the_middle_leaves_nothing(world: World) -> None:
    """Half a body is no effect, however its connection ends."""
    half = f"POST {world.path}/effect HTTP/1.1\r\nHost: x\r\nKT-Id: r1\r\nContent-Length: 9\r\n\r\nhalf".encode()
    before = psutil.Process().num_fds()
    for linger in (struct.pack("ii", 1, 0), struct.pack("ii", 0, 0)):
        with connect(world) as link:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            link.sendall(half)
    wait_until(lambda: psutil.Process().num_fds() <= before, within_s=ANSWER_WITHIN_S, what="both to be closed")
    assert world.events() == []


@pytest.mark.usefixtures("hurried")
def test_who_was_refused_and_stays_is_closed(world: World) -> None:
    """Its client need not close for the sink to be rid of it."""
    before = psutil.Process().num_fds()
    with connect(world) as link:
        link.sendall(b"POST /guessed/m1/effect HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
        assert link.recv(1000).startswith(b"HTTP/1.1 403 ")
        wait_until(lambda: psutil.Process().num_fds() == before + 1, within_s=ANSWER_WITHIN_S, what="its end")


def test_it_ends_with_connections_open(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Idle, in a head, in a body, held: all are closed, and nothing is logged."""
    with ExitStack() as stack:
        with running_sink(tmp_path) as world:
            head = f"POST {world.path}/effect HTTP/1.1\r\nHost: x\r\n".encode()
            links = [stack.enter_context(connect(world)) for _ in range(4)]
            for link, sent in zip(links, (b"", head, head + b"Content-Length: 9\r\n\r\nx", b""), strict=True):
                link.sendall(sent)
            world.sink.arm("here")
            links[3].sendall(f"POST {world.path}/crash-point/here HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            wait_until(lambda: world.killed, within_s=ANSWER_WITHIN_S, what="the kill")
        for link in links:
            with suppress(ConnectionResetError):
                assert link.recv(1) == b""
    assert [record for record in caplog.records if record.name == "asyncio" and record.levelno >= logging.ERROR] == []

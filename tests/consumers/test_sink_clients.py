"""What clients may send to the HTTP sink: everything that RFC 9112 lets them, by real clients and by hand."""

from __future__ import annotations

import gzip
import http.client
import re
import shutil
import socket
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from kafka_trial.consumers.http_connection import BODY_BYTES_MAX
from kafka_trial.errors import StartError
from kafka_trial.history.record_ids import checksums
from requirements import missing
from sink_world import ANSWER_WITHIN_S, World, effect, running_sink

BODY = b'{"id": "r1", "pad": "x"}'
CURL = shutil.which("curl")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A running sink."""
    with running_sink(tmp_path) as world:
        yield world


def request(path: str, *lines: str, method: str = "POST", version: str = "1.1", body: bytes = b"") -> bytes:
    """Returns a request as bytes; its length, or how it comes, is among `lines`."""
    host = ["Host: sink"] if version == "1.1" else []
    return "\r\n".join([f"{method} {path} HTTP/{version}", *host, *lines, "", ""]).encode() + body


def last(path: str, *lines: str, **more: str) -> bytes:
    """Returns a request without a body, after which its client closes."""
    return request(path, "Connection: close", *lines, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("trailer", [b"", b"Digest: none\r\nX: y\r\n"])
def test_a_chunked_body_is_put_together(world: World, trailer: bytes) -> None:
    """Chunks of any size, with extensions, in pieces that cut them anywhere; trailers are read over."""
    chunks = b"5;a=b\r\n" + BODY[:5] + b"\r\n1\r\n" + BODY[5:6] + b"\r\n%X\r\n" % len(BODY[6:]) + BODY[6:] + b"\r\n"
    sent = request(world.path + "/effect", "Transfer-Encoding: Chunked", "Connection: close", body=chunks)
    whole = sent + b"0\r\n" + trailer + b"\r\n"
    answer = world.raw(*(whole[at : at + 7] for at in range(0, len(whole), 7)))
    assert answer.startswith(b"HTTP/1.1 204 ")
    assert world.events() == [effect("r1", **checksums(BODY))]


def test_a_client_of_the_library_may_stream(world: World) -> None:
    """http.client sends an iterable in chunks."""
    connection = world.connect()
    connection.request("POST", world.path + "/effect", iter([BODY[:9], BODY[9:]]), encode_chunked=True)
    assert connection.getresponse().status == 204
    assert world.events() == [effect("r1", **checksums(BODY))]


def test_who_waits_for_100_continue_is_told_to_go_on(world: World) -> None:
    """The body is sent only after it; a stranger is refused without it."""
    head = request(world.path + "/effect", "Expect: 100-continue", f"Content-Length: {len(BODY)}", "Connection: close")
    with socket.create_connection(("127.0.0.1", world.sink.port), timeout=ANSWER_WITHIN_S) as link:
        link.sendall(head)
        assert link.recv(100) == b"HTTP/1.1 100 \r\n\r\n"
        link.sendall(BODY)
        assert link.recv(100).startswith(b"HTTP/1.1 204 ")
    stranger = request("/guessed/m1/effect", "Expect: 100-continue", "Content-Length: 24")
    assert world.raw(stranger, to_the_end=False).startswith(b"HTTP/1.1 403 ")


def test_pipelined_requests_are_answered_in_their_order(world: World) -> None:
    """Three at once, the second of them wrong: the third is still read."""
    requests = [request(f"{world.path}/{place}", f"KT-Id: {place}") for place in ("effect", "nowhere")]
    answer = world.raw(*requests, last(world.path + "/effect", "KT-Id: r3"))
    assert re.findall(rb"HTTP/1.1 (\d+) ", answer) == [b"204", b"404", b"204"]
    assert [event["id"] for event in world.events()] == ["effect", "r3"]


def test_http_1_0_is_spoken(world: World) -> None:
    """No Host is needed, and the connection ends with the answer; a body needs its length."""
    told = world.raw(
        request(world.path + "/effect", "KT-Id: r1", f"Content-Length: {len(BODY)}", version="1.0", body=BODY)
    )
    assert told == b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"
    assert world.raw(request(world.path + "/effect", version="1.0", body=BODY)).startswith(b"HTTP/1.1 411 ")
    assert world.events() == [effect("r1", **checksums(BODY))]


@pytest.mark.parametrize(
    ("method", "target", "headers"),
    [
        ("PUT", "{path}/effect", ("kt-ID: r1",)),
        ("POST", "http://somewhere:80{path}/effect", ("KT-Id: r1",)),
        ("POST", "{path}/effect?retry=1/2#top", ("KT-Id: r1",)),
        ("POST", "{encoded}/%65ffect", ("KT-Id: r1",)),
        ("POST", "{path}//effect/", ("KT-Id:r1  ",)),
        ("POST", "{path}/effect", ("KT-Id: r1", "Upgrade: h2c", "HTTP2-Settings: AAA")),
    ],
)
def test_a_request_may_be_written_in_many_ways(
    world: World, method: str, target: str, headers: tuple[str, ...]
) -> None:
    """PUT, a target with its host, a query, percent-encoding, needless slashes, headers in any case, an upgrade."""
    encoded = "".join(f"%{ord(letter):02x}" if letter != "/" else letter for letter in world.path)
    place = target.format(path=world.path, encoded=encoded)
    assert world.raw(last(place, *headers, method=method)).startswith(b"HTTP/1.1 204 ")
    assert world.events() == [effect("r1")]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_who_only_looks_is_told_politely(world: World, method: str) -> None:
    """404 at the root and at a member's, a text with GET only, and the member's connection stays open."""
    connection = world.connect()
    for place in (world.path, world.path + "/effect", "/"):
        connection.request(method, place)
        answer = connection.getresponse()
        assert (answer.status, bool(answer.read())) == (404, method == "GET")
        assert answer.getheader("Connection") == ("close" if place == "/" else None)
    assert (len(world.raw(last(world.path, method=method)).partition(b"\r\n\r\n")[2]) > 0) == (method == "GET")
    assert world.events() == []


def test_a_compressed_body_is_known_by_its_header_only(world: World) -> None:
    """Its bytes are not the value's: no checksum is recorded that would call them corrupt."""
    packed = {"Content-Encoding": "gzip"}
    assert [world.post("/effect", body, **packed) for body in (gzip.compress(BODY), BODY)] == [400, 400]
    assert world.post("/effect", gzip.compress(BODY), **packed, **{"KT-Id": "r1"}) == 204
    (event,) = world.events()
    assert (event.get("id"), event.get("checksum")) == ("r1", None)


def test_the_id_may_stand_in_another_header_or_deep_in_the_body(tmp_path: Path) -> None:
    """That of [identity] goes first, in any case, then KT-Id, then the path."""
    with running_sink(tmp_path, header="X-Order-Id", json_path="$.lines[1]['order-id']") as world:
        assert world.post("/effect", b"", **{"x-order-ID": "r1", "KT-Id": "other"}) == 204
        assert world.post("/effect", b"", **{"KT-Id": "r2"}) == 204
        assert world.post("/effect", b'{"lines": [{}, {"order-id": 3}]}') == 204
        assert world.post("/effect", b'{"lines": [{}], "id": "r4"}') == 400
        assert [event["id"] for event in world.events()] == ["r1", "r2", "3"]


def test_a_body_above_the_bound_is_refused_when_it_is_found_out(world: World) -> None:
    """In chunks, of which none says how many will come; what fits is taken to the last byte."""
    chunk = bytes(1024 * 1024)

    def post(count: int, more: bytes) -> int:
        connection = world.connect()
        parts = (chunk for _ in range(count))
        connection.request("POST", world.path + "/effect", (*parts, more), {"KT-Id": "r1"}, encode_chunked=True)
        return connection.getresponse().status

    whole = BODY_BYTES_MAX // len(chunk)
    assert (post(whole, b"x"), post(2 * whole, b"x"), post(whole - 1, chunk[1:] + b"x")) == (413, 413, 204)
    assert world.events() == [effect("r1", checksum=zlib.crc32(bytes(BODY_BYTES_MAX - 1) + b"x"))]


def test_it_listens_where_it_is_told_to(tmp_path: Path) -> None:
    """Another address of this machine, which its URLs name; one that is not this machine's is told."""
    with running_sink(tmp_path, host="127.0.0.2") as world:
        assert world.sink.url("m1").startswith(f"http://127.0.0.2:{world.sink.port}/")
        assert world.post("/effect", BODY) == 204
    for host in ("192.0.2.1", "nowhere"):
        (tmp_path / host).mkdir()
        said = f"cannot listen at {host}: .*; give an address of this machine"
        with pytest.raises(StartError, match=said), running_sink(tmp_path / host, host=host):
            pass


def test_curl_posts_as_it_likes(world: World, tmp_path: Path) -> None:
    """A body from a pipe (chunked), a large one (100-continue), a file by PUT, HTTP/1.0, nothing at all."""
    if CURL is None:
        missing("curl", "curl is not installed")
    large = tmp_path / "large"
    large.write_bytes(b'{"id": "r2", "pad": "' + b"x" * 2_000_000 + b'"}')
    url = world.sink.url("m1") + "/effect"
    calls = (
        (["-T", "-", "-X", "POST"], BODY),
        (["--data-binary", f"@{large}"], b""),
        (["-T", str(large)], b""),
        (["-0", "--data-binary", BODY.decode()], b""),
        (["-X", "POST", "-H", "KT-Id: r5"], b""),
    )
    for options, given in calls:
        done = subprocess.run(
            [str(CURL), "-sS", "-m", str(ANSWER_WITHIN_S), "-w", "%{http_code}", *options, url],
            input=given, capture_output=True, check=True,
        )  # fmt: skip
        assert (options, done.stdout) == (options, b"204")
    assert [event["id"] for event in world.events()] == ["r1", "r2", "r2", "r1", "r5"]


def test_the_name_of_a_crash_point_may_be_encoded(world: World) -> None:
    """As the consumer's client encodes a path."""
    world.sink.arm("before commit")
    with socket.create_connection(("127.0.0.1", world.sink.port), timeout=0.3) as link:
        link.sendall(request(f"{world.path}/crash-point/{quote('before commit')}"))
        with pytest.raises(TimeoutError):
            link.recv(1)
    assert world.killed == ["m1"]


def test_a_token_is_whole(world: World) -> None:
    """Its beginning, and nothing, are none."""
    token = world.path.split("/")[1]
    for place in (f"/{token[:-1]}/m1/effect", "/m1/effect", "//", "*"):
        assert world.raw(last(place, "KT-Id: r1")).startswith(b"HTTP/1.1 403 ")
    with pytest.raises(http.client.InvalidURL):  # a client that would cut a path in two sends nothing
        world.post("/effect\r\nKT-Id: r1")
    assert world.events() == []

"""Toxiproxy: every change is read back, and a server that does not do as told is found out."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from kafka_trial.cluster.toxiproxy import TOXIPROXY_VERSION, Toxiproxy, toxiproxy_server
from kafka_trial.cluster.wiring import block_of_ports
from kafka_trial.errors import UnjudgeableError
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import wait_until
from kafka_trial.witness import socket_table

STALL = {"rate": 0}


@pytest.fixture(scope="module")
def real() -> Iterator[tuple[Toxiproxy, range]]:
    """A real server with the proxies `a` and `b` in front of nothing, and its block of ports."""
    with block_of_ports(5) as ports, ChildProcesses("toxiproxy-test") as child_processes:
        child_processes.spawn("toxiproxy", [toxiproxy_server(), "-host", "127.0.0.1", "-port", str(ports[0])])
        server = Toxiproxy(ports[0])
        wait_until(lambda: _answers(server), within_s=10, what="Toxiproxy to answer")
        server.populate([("a", ports[1], ports[2]), ("b", ports[3], ports[4])])
        yield server, ports


@pytest.fixture
def toxiproxy(real: tuple[Toxiproxy, range]) -> Iterator[Toxiproxy]:
    """The real server, clean again after each test."""
    server, _ = real
    yield server
    server.reset(["a", "b"])


@pytest.mark.cluster
def test_the_server_is_the_pinned_version(toxiproxy: Toxiproxy) -> None:
    """What was provisioned says 2.12.0 itself."""
    assert toxiproxy.version() == TOXIPROXY_VERSION


@pytest.mark.cluster
def test_what_it_reaches_it_reaches_and_keeps_no_proxy_for_it(toxiproxy: Toxiproxy) -> None:
    """This machine's loopback, where it listens itself."""
    assert toxiproxy.reaches("127.0.0.1", within_s=10)
    assert sorted(toxiproxy.proxies()) == ["a", "b"]


@pytest.mark.cluster
def test_a_toxic_is_added_changed_and_removed(toxiproxy: Toxiproxy) -> None:
    """Each call leaves the server with what was asked, seen by asking again."""
    toxiproxy.add_toxic("a", "slow", "latency", "downstream", {"latency": 100, "jitter": 0})
    added = toxiproxy.proxy("a").toxics[0]["attributes"]["latency"]
    toxiproxy.update_toxic("a", "slow", {"latency": 200})
    changed = toxiproxy.proxy("a").toxics[0]["attributes"]["latency"]
    toxiproxy.remove_toxic("a", "slow")
    assert (added, changed, toxiproxy.proxy("a").toxics) == (100, 200, ())


@pytest.mark.cluster
def test_it_tells_of_its_sockets_what_the_kernel_tells_us(toxiproxy: Toxiproxy) -> None:
    """Here it is in our network: the same connections, with the same counters, in the states that were asked for."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
        with near, far:
            near.sendall(b"x" * 1000)
            ends = {near.getsockname()[1], listener.getsockname()[1]}
            wait_until(lambda: 1001 in [one.bytes_acked for one in _of(ends, None)], within_s=5, what="the answer")
            assert _of(ends, toxiproxy.sockets) == _of(ends, None)
            assert sorted(one.state for one in _of(ends, toxiproxy.sockets)) == ["established", "established", "listen"]
            listening = socket_table.sample([socket_table.LISTEN], dump=toxiproxy.sockets)
    assert {one.state for one in listening} == {"listen"}


def _of(ports: set[int], dump: socket_table.Dump | None) -> list[socket_table.Socket]:
    nobodys = 0  # at the other end of what listens; elsewhere a port may be anybody's besides
    found = [one for one in socket_table.sample(dump=dump) if one.sport in ports and one.dport in {*ports, nobodys}]
    return [replace(one, last_data_received_ms=0) for one in found]


@pytest.mark.cluster
def test_a_wrong_question_about_its_sockets_is_refused(toxiproxy: Toxiproxy) -> None:
    """No mask is no table of all."""
    with pytest.raises(UnjudgeableError, match=r"GET /sockets.*→ 400: states"):
        toxiproxy.sockets(-1)


def test_a_server_that_is_not_ours_is_told_by_its_sockets() -> None:
    """A plain one answers 404; this one answers something else than the kernel's messages."""
    with _forgetful_server() as server, pytest.raises(UnjudgeableError, match="cannot be read by sock_diag"):
        socket_table.sample(dump=server.sockets)


@pytest.mark.cluster
def test_a_disabled_proxy_refuses_and_an_enabled_one_listens(
    real: tuple[Toxiproxy, range], toxiproxy: Toxiproxy
) -> None:
    """Switching is seen from outside, not only in the server's answer."""
    port = real[1][1]
    toxiproxy.disable("a")
    while_disabled = _listens(port)
    toxiproxy.enable("a")
    assert (while_disabled, _listens(port)) == (False, True)


@pytest.mark.cluster
def test_a_reset_leaves_other_proxies_alone(toxiproxy: Toxiproxy) -> None:
    """A lane that comes back is made clean; the toxics of a trial beside it stay."""
    for proxy in ("a", "b"):
        toxiproxy.add_toxic(proxy, "stall", "bandwidth", "upstream", STALL)
    toxiproxy.disable("a")
    toxiproxy.reset(["a"])
    a, b = toxiproxy.proxy("a"), toxiproxy.proxy("b")
    assert (a.enabled, len(a.toxics), len(b.toxics)) == (True, 0, 1)


@pytest.mark.cluster
def test_later_toxics_are_those_behind_it_in_its_stream(toxiproxy: Toxiproxy) -> None:
    """The newest first; none behind the last one, nor behind one that is not there."""
    for name, stream in (("one", "upstream"), ("other", "downstream"), ("two", "upstream"), ("three", "upstream")):
        toxiproxy.add_toxic("a", name, "bandwidth", stream, STALL)
    behind = {name: toxiproxy.later_toxics("a", name) for name in ("one", "two", "three", "other", "nobody")}
    assert behind == {"one": ["three", "two"], "two": ["three"], "three": [], "other": [], "nobody": []}


@pytest.mark.cluster
def test_a_reset_under_load_loses_no_byte(real: tuple[Toxiproxy, range], toxiproxy: Toxiproxy) -> None:
    """Two stalls one behind the other on a link in use: taken away the oldest first, bytes were dropped after 5 s."""
    sent, port = bytes(range(251)) * 4000, real[1][1]
    with (
        socket.create_server(("127.0.0.1", real[1][2])) as upstream,
        ThreadGroup("upstream") as thread_group,
        socket.create_connection(("127.0.0.1", port), timeout=30) as client,
        upstream.accept()[0] as server,
    ):
        for name in ("older", "newer"):
            toxiproxy.add_toxic("a", name, "bandwidth", "downstream", STALL)
        thread_group.start("sends", _send_all, server, sent)
        wait_until(lambda: _taken(server) > 0, within_s=10, what="the proxy to take bytes")
        toxiproxy.reset(["a"])
        received = b"".join(iter(lambda: client.recv(1 << 16), b""))
    assert received == sent


def _send_all(link: socket.socket, sent: bytes) -> None:
    link.sendall(sent)
    link.shutdown(socket.SHUT_WR)


def _taken(link: socket.socket) -> int:
    """Bytes of ours that the other end's kernel has acknowledged."""
    port = link.getsockname()[1]
    return max((entry.bytes_acked for entry in socket_table.sample() if entry.sport == port), default=0)


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("proxy", "kind", "attributes"),
    [("nope", "latency", {"latency": 1}), ("a", "no-such-toxic", {}), ("a", "latency", {"latency": "x"})],
    ids=["no such proxy", "no such toxic", "wrong attribute"],
)
def test_what_the_server_refuses_is_an_error(
    toxiproxy: Toxiproxy, proxy: str, kind: str, attributes: dict[str, object]
) -> None:
    """The message quotes the server's status and words."""
    with pytest.raises(UnjudgeableError, match=r"POST .*→ 4\d\d"):
        toxiproxy.add_toxic(proxy, "t", kind, "downstream", attributes)


@pytest.mark.cluster
def test_populating_a_taken_port_is_an_error(real: tuple[Toxiproxy, range], toxiproxy: Toxiproxy) -> None:
    """A port that somebody else holds cannot silently stay without its proxy."""
    with pytest.raises(UnjudgeableError):
        toxiproxy.populate([("c", real[1][1], real[1][2])])


def test_a_server_that_forgets_is_found_out() -> None:
    """It answers 200 to every change and shows none of them: each call says what it expected and saw."""
    with _forgetful_server() as server:
        changes = [
            lambda: server.populate([("c", 1, 2)]),
            lambda: server.add_toxic("a", "stall", "bandwidth", "upstream", STALL),
            lambda: server.update_toxic("a", "stall", STALL),
            lambda: server.disable("a"),
            lambda: server.remove_toxic("a", "old"),
        ]
        for change in changes:
            with pytest.raises(UnjudgeableError, match="expected"):
                change()


def test_a_server_that_is_gone_is_an_error() -> None:
    """Nobody listens: the message names the port and the call."""
    with block_of_ports(1) as ports, pytest.raises(UnjudgeableError, match=rf"port {ports[0]} does not answer GET"):
        Toxiproxy(ports[0]).proxies()


class _Forgetful(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        old = {"name": "old", "type": "timeout", "stream": "upstream", "toxicity": 1.0, "attributes": {"timeout": 0}}
        proxy = {"name": "a", "listen": "x:1", "upstream": "x:2", "enabled": True, "toxics": [old]}
        body = json.dumps({"a": proxy} if self.path == "/proxies" else proxy).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - the names http.server calls

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def _forgetful_server() -> Iterator[Toxiproxy]:
    with HTTPServer(("127.0.0.1", 0), _Forgetful) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Toxiproxy(server.server_port)
        finally:
            server.shutdown()
            thread.join()


def _answers(server: Toxiproxy) -> bool:
    try:
        return bool(server.version())
    except UnjudgeableError:
        return False


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0

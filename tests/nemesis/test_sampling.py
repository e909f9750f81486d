"""Samples are read from the real kernel and from the history as witnesses write it."""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from signal import SIGKILL, SIGSTOP

import pytest

from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import HistoryTail
from kafka_trial.nemesis import sampling
from kafka_trial.nemesis.context import OffsetsLog, RequestLog
from kafka_trial.nemesis.samples import REFUSED
from kafka_trial.nemesis.sampling import GroupFold, RoutePorts
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.control_groups import ContainerView
from kafka_trial.process.waiting import wait_until
from kafka_trial.witness import socket_table


@pytest.fixture
def ports() -> Iterator[tuple[int, int, socket.socket]]:
    """A client of this process connected to a "proxy" that is connected to a "broker": their ports, and the client."""
    with ExitStack() as stack:
        proxy, broker = (stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2))
        client = stack.enter_context(socket.create_connection(proxy.getsockname()))
        stack.enter_context(proxy.accept()[0])
        stack.enter_context(socket.create_connection(broker.getsockname()))
        stack.enter_context(broker.accept()[0])
        yield proxy.getsockname()[1], broker.getsockname()[1], client


def test_links_are_the_members_own(ports: tuple[int, int, socket.socket]) -> None:
    """Both halves are found, by the source ports of the member's process group; bytes wait in the queue."""
    proxy_port, broker_port, client = ports
    client.sendall(b"12345")
    routes = {("m0", 1): RoutePorts("m0", 1, proxy_port, broker_port)}
    near, far = sorted(sampling.links(routes, {"m0": os.getpgrp()}).halves, key=lambda half: half.side, reverse=True)
    assert (near.side, near.port, near.received_bytes, near.receive_queue_bytes, far.side) == (
        "client",
        client.getsockname()[1],
        5,
        5,
        "broker",
    )


def test_a_look_is_of_the_instant_of_its_counters(
    ports: tuple[int, int, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine it takes a while to find whose sockets they are; rates must not be the lower for it."""
    proxy_port, broker_port, _ = ports
    found, looked_for_owners_ns = socket_table.inodes_of_groups, []

    def slowly(pgids: Collection[int]) -> dict[int, set[int]]:
        looked_for_owners_ns.append(time.monotonic_ns())
        return found(pgids)

    monkeypatch.setattr(socket_table, "inodes_of_groups", slowly)
    look = sampling.links({("m0", 1): RoutePorts("m0", 1, proxy_port, broker_port)}, {"m0": os.getpgrp()})
    assert look.routes() == [("m0", 1)]
    assert look.time_ns <= looked_for_owners_ns[0]


def test_somebody_elses_connection_is_not_the_members(ports: tuple[int, int, socket.socket]) -> None:
    """A connection to the proxy that another process group holds is left out."""
    proxy_port, broker_port, _ = ports
    routes = {("m0", 1): RoutePorts("m0", 1, proxy_port, broker_port)}
    with ChildProcesses("others") as child_processes:
        other = child_processes.spawn("other", ["sleep", "60"])
        assert sampling.links(routes, {"m0": other.pid}).routes() == []


def test_a_probe_that_is_refused_says_so() -> None:
    """A port where nobody listens is told from a silent one."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        unanswered = sampling.probe(RoutePorts("m0", 1, port, 0), within_s=0.2)
    refused = sampling.probe(RoutePorts("m0", 1, port, 0), within_s=0.2)
    assert (unanswered.answer_ms, refused.error) == (None, REFUSED)
    assert unanswered.error != REFUSED


def test_a_process_group_is_seen_running_stopped_and_gone() -> None:
    """The letters of /proc tell a stopped group from a running one, and the exit code how it ended."""
    with ChildProcesses("subjects") as child_processes:
        child = child_processes.spawn("subject", ["sleep", "60"])
        wait_until(lambda: sampling.process(child.pid, None, set()).states == ("S",), within_s=5, what="its sleep")
        child.signal(SIGSTOP)
        wait_until(lambda: sampling.process(child.pid, None, set()).states == ("T",), within_s=5, what="the stop")
        child.signal(SIGKILL)
        child.wait(within_s=5)
        gone = sampling.process(child.pid, child.exit_code, set())
        assert (gone.states, gone.exit_code) == ((), -9)


def test_a_port_of_the_dead_that_another_uses_is_not_their_connection() -> None:
    """Given a killed process whose source port another process took, then nothing of it is seen to live on."""
    with ExitStack() as stack:
        old, new = (stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2))
        port = _free_port_that_no_connection_is_given()
        source = f"source_address=('127.0.0.1', {port})"
        program = f"import socket, time; s = socket.create_connection({old.getsockname()}, {source}); time.sleep(60)"
        child_processes = stack.enter_context(ChildProcesses("subjects"))
        child = child_processes.spawn("subject", [sys.executable, "-c", program])
        accepted, _ = old.accept()
        inodes = sampling.inodes_of(child.pid)
        assert sampling.process(child.pid, None, inodes).sockets == 1
        child.signal(SIGKILL)
        child.wait(within_s=5)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset frees the port
        accepted.close()
        heir = stack.enter_context(socket.socket())
        heir.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def took_it() -> bool:
            with suppress(OSError):  # the kernel frees the port a moment after the reset
                heir.bind(("127.0.0.1", port))
                return True
            return False

        wait_until(took_it, within_s=5, what=f"port {port} of the dead to be free")
        heir.connect(new.getsockname())
        assert sampling.process(child.pid, child.exit_code, inodes).sockets == 0


def test_connections_of_a_container_are_told_by_its_address_or_its_ports() -> None:
    """Of a member the proxies' ends, of a broker its own ends of what it accepted; closed they are its no longer."""
    with socket.create_server(("127.0.0.2", 0)) as proxy, socket.create_server(("127.0.0.3", 0)) as broker:
        member = socket.create_connection(proxy.getsockname(), source_address=("127.0.0.9", 0))
        near, far = proxy.accept()[0], socket.create_connection(broker.getsockname())
        accepted = broker.accept()[0]
        here = Path("/nowhere")
        places = {
            "member": ContainerView(here, address="127.0.0.9"),
            "broker": ContainerView(here, ports=frozenset([broker.getsockname()[1]])),
            "neither": ContainerView(here),
        }

        def left() -> int:
            look = sampling.process(1, None, both, container=places["member"], dump=socket_table.own_dump)
            return look.sockets

        held = {name: sampling.inodes_of(1, place, dump=socket_table.own_dump) for name, place in places.items()}
        both = held["member"] | held["broker"]
        with near, far:
            assert held == {"member": {_inode(near)}, "broker": {_inode(accepted)}, "neither": set()}
            assert left() == 2
            member.close()
            accepted.close()
            wait_until(lambda: left() == 0, within_s=5, what="both to be closed")


def _inode(end: socket.socket) -> int:
    return os.fstat(end.fileno()).st_ino


def _free_port_that_no_connection_is_given() -> int:
    """Returns a port below those that the kernel gives to connections: of these another process may take one first."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in range(first - 1, 1024, -1):
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def test_a_connection_that_a_child_inherited_lives_on() -> None:
    """Given a killed process whose child holds its connection still, then it is counted."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        program = (
            f"import os, socket, time; s = socket.create_connection({server.getsockname()});"
            "os.fork() or os.setpgid(0, 0); s.send(b'x'); time.sleep(60)"
        )
        child_processes = stack.enter_context(ChildProcesses("subjects"))
        child = child_processes.spawn("subject", [sys.executable, "-c", program])
        accepted = stack.enter_context(server.accept()[0])
        wait_until(lambda: len(accepted.recv(2, socket.MSG_PEEK)) == 2, within_s=5, what="both processes to write")
        inodes = sampling.inodes_of(child.pid)
        child.signal(SIGKILL)
        child.wait(within_s=5)
        assert sampling.process(child.pid, child.exit_code, inodes).sockets == 1


def test_the_group_is_folded_from_the_offsets_log(tmp_path: Path) -> None:
    """Classic records name all members at once, KIP-848 records one each; other groups are left out."""
    with Recorder(tmp_path, "offsets") as log:
        fold = GroupFold(OffsetsLog(HistoryTail(tmp_path, "offsets.jsonl"), "g"))
        log.record("group", group="g", protocol="classic", epoch=3, members=[{"member_id": "a"}, {"member_id": "b"}])
        log.record("group", group="other", protocol="classic", epoch=9, members=[])
        log.record("committed", group="g", topic="t", partition=0, committed_offset=5)
        classic = fold.look()
        log.record("group_epoch", group="g", epoch=4)
        log.record("member", group="g", member_id="c")
        log.record("group_tombstone", group="g", record_type=5, member_id="a")
        consumer = fold.look()
    assert (classic.epoch, classic.member_ids, fold.commits) == (3, {"a", "b"}, 1)
    assert (consumer.epoch, consumer.member_ids) == (4, {"b", "c"})


def test_the_longest_poll_interval_of_the_members_is_known(tmp_path: Path) -> None:
    """They tell it as the time that a rebalance waits for them, in either protocol; who has gone does not count."""
    with Recorder(tmp_path, "offsets") as log:
        fold = GroupFold(OffsetsLog(HistoryTail(tmp_path, "offsets.jsonl"), "g"))
        seen = [fold.poll_interval_s()]
        told = [{"member_id": name, "rebalance_timeout_ms": ms} for name, ms in (("a", 300_000), ("b", 10_000))]
        for members in (told, told[1:], [{"member_id": "a", "rebalance_timeout_ms": -1}]):
            log.record("group", group="g", protocol="classic", epoch=3, members=members)
            seen.append(fold.poll_interval_s())
        log.record("member", group="g", member_id="c", rebalance_timeout_ms=60_000)
        seen.append(fold.poll_interval_s())
        log.record("group_tombstone", group="g", record_type=5, member_id="c")
        assert [*seen, fold.poll_interval_s()] == [None, 300.0, 10.0, None, 60.0, None]


def test_the_longest_session_of_the_members_is_known(tmp_path: Path) -> None:
    """Classic members ask for theirs; those of KIP-848 get the cluster's; who has gone does not count."""
    with Recorder(tmp_path, "offsets") as log:
        fold = GroupFold(OffsetsLog(HistoryTail(tmp_path, "offsets.jsonl"), "g"))
        seen = [fold.session_s()]
        asked = [{"member_id": name, "session_timeout_ms": ms} for name, ms in (("a", 45_000), ("b", 6_000))]
        for members in (asked, asked[1:], []):
            log.record("group", group="g", protocol="classic", epoch=3, members=members)
            seen.append(fold.session_s())
        log.record("member", group="g", member_id="c", rebalance_timeout_ms=300_000)
        assert [*seen, fold.session_s()] == [None, 45.0, 6.0, None, 3.0]


def test_when_a_member_was_last_written_out_of_the_group_is_known(tmp_path: Path) -> None:
    """In either protocol; who is in it again was out before."""
    with Recorder(tmp_path, "offsets") as log:
        fold = GroupFold(OffsetsLog(HistoryTail(tmp_path, "offsets.jsonl"), "g"))
        for at_ns, ids in ((1, "ab"), (2, "a"), (3, "ab"), (4, "a")):
            members = [{"member_id": member_id} for member_id in ids]
            log.record("group", group="g", protocol="classic", epoch=at_ns, members=members, source_wall_ns=at_ns)
        log.record("group_tombstone", group="g", record_type=5, member_id="a", source_wall_ns=5)
        log.record("group_tombstone", group="g", record_type=5, member_id="c", source_wall_ns=6)
        fold.look()
    assert fold.removed_wall_ns == {"b": 4, "a": 5}


def test_a_classic_group_that_goes_over_names_its_members_anew(tmp_path: Path) -> None:
    """Who left in the rebalance in which it went over is gone, though no record lists the others without it."""
    with Recorder(tmp_path, "offsets") as log:
        fold = GroupFold(OffsetsLog(HistoryTail(tmp_path, "offsets.jsonl"), "g"))
        members = [{"member_id": name, "session_timeout_ms": 45_000} for name in "ab"]
        log.record("group", group="g", protocol="classic", epoch=1, members=members, source_wall_ns=1)
        fold.look()
        log.record("group_tombstone", group="g", record_type=2, source_wall_ns=2)
        log.record("member", group="g", member_id="b", session_timeout_ms=6_000, source_wall_ns=2)
        log.record("group_epoch", group="g", epoch=1, source_wall_ns=2)
        log.record("member", group="g", member_id="new", source_wall_ns=3)
        look = fold.look()
    assert (look.epoch, look.member_ids, fold.removed_wall_ns) == (1, {"b", "new"}, {"a": 2})
    assert fold.session_s() == 6.0


def test_requests_are_counted_by_lane(tmp_path: Path) -> None:
    """Only what came over the target's lanes since the last count is counted."""
    with Recorder(tmp_path, "requests-b0") as log:
        log.record("request", api="HEARTBEAT", lane=1)
        requests = RequestLog(HistoryTail(tmp_path, "requests-b*.jsonl"))
        for lane, api in ((1, "HEARTBEAT"), (2, "HEARTBEAT"), (1, "OFFSET_COMMIT"), (1, "HEARTBEAT")):
            log.record("request", api=api, lane=lane)
        assert requests.count({1}) == {"HEARTBEAT": 2, "OFFSET_COMMIT": 1}

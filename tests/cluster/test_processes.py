"""A cluster of real processes: what it speaks, how it ends, and who has it; the rest is in `test_both_kinds.py`."""

import os
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from far_blocks import BOOTED_TWICE
from kafka_trial.cluster import processes, wiring
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.processes import Broker, process_cluster
from kafka_trial.cluster.versions import DEFAULT_VERSION, KNOWN
from kafka_trial.errors import InputError, StartError
from kafka_trial.kafka_protocol import cluster_queries
from kafka_trial.kafka_protocol.connection import Brokers
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import holds_for, wait_until
from topics import receive, send, topic_on

pytestmark = pytest.mark.cluster


def test_a_booted_cluster_listens_on_loopback_only(cluster: BootedCluster) -> None:
    """Nobody else on the network reaches it."""
    assert {_address(broker) for broker in cluster.brokers.values()} <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


@pytest.mark.parametrize("version", ["3.9.2", DEFAULT_VERSION])
def test_each_protocol_of_a_version_works_through_a_lane(cluster_pool: ClusterPool, version: str) -> None:
    """A record is sent and consumed, in a classic group and, where the version has it, in a KIP-848 group."""
    protocols = ["classic", "consumer"] if KNOWN[version].consumer_protocol else ["classic"]
    with cluster_pool.cluster_for(version) as cluster, cluster.lease_lanes(1) as (lane,), topic_on(cluster) as topic:
        send(lane.bootstrap, topic, b"a record")
        got = [receive(lane.bootstrap, topic, group=f"{protocol}-works", protocol=protocol) for protocol in protocols]
    assert got == [b"a record"] * len(protocols)


def test_records_of_ten_megabytes_pass(cluster: BootedCluster) -> None:
    """From a producer through its lane to all replicas, and back to a consumer."""
    value = os.urandom(10 * 1024 * 1024)
    with cluster.lease_lanes(1) as (lane,), topic_on(cluster) as topic:
        send(lane.bootstrap, topic, value)
        assert receive(lane.bootstrap, topic, group="large", protocol="classic") == value


def test_a_single_broker_boots_and_nothing_stays_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Any number of brokers; at the end its processes are gone, its folder is removed, its ports are free."""
    monkeypatch.setattr(wiring, "FIRST_PORT", BOOTED_TWICE)
    with process_cluster(DEFAULT_VERSION, brokers=1, lanes=2, folder=tmp_path / "one") as cluster:
        pids = [broker.pid for broker in cluster.brokers.values()]
        assert cluster.health() == []
    assert not any(map(psutil.pid_exists, pids))
    assert not (tmp_path / "one").exists()
    with process_cluster(DEFAULT_VERSION, brokers=1, lanes=2, folder=tmp_path / "two", keep=True) as again:
        assert again.wiring.ports == cluster.wiring.ports
    assert (tmp_path / "two" / "b0" / "server.log").exists()


def test_a_broker_that_dies_while_booting_ends_the_wait_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Status 3, with the exit code and the broker's last words instead of two minutes of waiting."""
    monkeypatch.setattr(processes, "JVM", ["-XX:NoSuchOption=1"])
    with pytest.raises(StartError, match=r"(?s)broker \d exited with 1.*NoSuchOption") as refused:
        process_cluster(DEFAULT_VERSION, folder=tmp_path / "c").__enter__()
    assert refused.value.exit_status == 3


def test_a_ruined_cluster_is_rebuilt_and_the_reason_told(tmp_path: Path) -> None:
    """The next one to ask gets another cluster; a whole one is lent again."""
    with ClusterPool() as pool:
        with pool.cluster_for(DEFAULT_VERSION, brokers=1) as first:
            pass
        with pool.cluster_for(DEFAULT_VERSION, brokers=1) as same:
            same.brokers[0].kill()
        with pool.cluster_for(DEFAULT_VERSION, brokers=1) as other:
            names = (first.name == same.name, other.name == first.name)
        assert names == (True, False)
        assert pool.rebuilt_because == [f"{first.name}: broker 0 is not running (exit -9)"]


def test_brokers_with_other_settings_or_another_heap_are_another_cluster() -> None:
    """The same settings get the same cluster, whose brokers have them; containers take none, and say so."""
    asked = {"message.max.bytes": "70000"}
    with ClusterPool(lanes=1) as pool:
        with pool.cluster_for(DEFAULT_VERSION, brokers=1, settings=asked, heap_mib=200) as first:
            with Brokers(first.observer_bootstrap) as brokers:
                told = brokers.anyone(lambda connection: cluster_queries.broker_configs(connection, 0, [*asked]))
            heap = [word for word in psutil.Process(first.brokers[0].pid).cmdline() if word.startswith("-Xmx")][-1]
        with pool.cluster_for(DEFAULT_VERSION, brokers=1, settings=asked, heap_mib=200) as same:
            pass
        with pool.cluster_for(DEFAULT_VERSION, brokers=1) as other:
            names = (first.name == same.name, other.name == first.name)
        with pytest.raises(InputError, match="neither settings nor a heap"):
            pool.cluster_for(DEFAULT_VERSION, containers=True, settings=asked).__enter__()
    assert (told, heap, names) == (asked, "-Xmx200m", (True, False))


def test_whoever_breaks_brokers_has_a_cluster_to_itself() -> None:
    """Two share one; a third that wants it alone gets another, and a fourth waits until that is free again."""
    with ClusterPool() as pool, ExitStack() as shared, ThreadGroup("fourth") as thread_group:
        first, second = (shared.enter_context(pool.cluster_for(DEFAULT_VERSION, brokers=1)) for _ in range(2))
        fourth: list[str] = []

        def also_alone() -> None:
            with pool.cluster_for(DEFAULT_VERSION, brokers=1, alone=True) as cluster:
                fourth.append(cluster.name)

        with pool.cluster_for(DEFAULT_VERSION, brokers=1, alone=True) as third:
            thread_group.start("asks", also_alone)
            assert holds_for(lambda: not fourth, for_s=0.5)
        wait_until(lambda: fourth, within_s=30, what="the fourth to get the cluster of the third")
        assert (first.name == second.name, third.name == first.name, fourth == [third.name]) == (True, False, True)
        pool.end_unused(alone=False)
        assert [one.brokers[0].alive for one in (first, third)] == [True, True]
        pool.end_unused(alone=True)
        assert [one.brokers[0].alive for one in (first, third)] == [True, False]
        with pool.cluster_for(DEFAULT_VERSION, brokers=1, alone=True) as fifth:
            assert (fifth.name == third.name, fifth.rebuilt_because) == (False, None)


def test_whoever_needs_more_lanes_than_are_left_waits_for_them() -> None:
    """Two that need 10 of 16 lanes each use the cluster one after the other; one that needs 6 joins the first."""
    with ClusterPool() as pool, ExitStack() as first, ThreadGroup("others") as thread_group:
        name = first.enter_context(pool.cluster_for(DEFAULT_VERSION, brokers=1, lanes=10)).name
        big: list[str] = []

        def needs_ten() -> None:
            with pool.cluster_for(DEFAULT_VERSION, brokers=1, lanes=10) as cluster, cluster.lease_lanes(10):
                big.append(cluster.name)

        thread_group.start("asks", needs_ten)
        assert holds_for(lambda: not big, for_s=0.5)
        with pool.cluster_for(DEFAULT_VERSION, brokers=1, lanes=6) as cluster, cluster.lease_lanes(6):
            assert cluster.name == name
        first.close()
        wait_until(lambda: big, within_s=10, what="the one that needs ten to get its lanes")
        assert big == [name]


def _address(broker: Broker) -> str:
    listening = [link for link in psutil.Process(broker.pid).net_connections("tcp") if link.status == "LISTEN"]
    addresses = {link.laddr.ip for link in listening}
    assert len(addresses) == 1, addresses
    return str(addresses.pop())

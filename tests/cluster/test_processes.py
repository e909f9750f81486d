"""A cluster of real processes: it boots, lends lanes, and each broker can be broken and mended."""

import json
import os
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer

from kafka_trial.cluster import processes
from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.processes import Broker, process_cluster
from kafka_trial.cluster.versions import DEFAULT_VERSION, KNOWN
from kafka_trial.cluster.wiring import RECORD_BYTES_MAX
from kafka_trial.errors import StartError, UnjudgeableError
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import holds_for, wait_until

pytestmark = pytest.mark.cluster


def test_a_booted_cluster_is_whole(cluster: BootedCluster) -> None:
    """Three brokers, no problems, and everything listens on loopback only."""
    assert (sorted(cluster.brokers), cluster.health()) == ([0, 1, 2], [])
    assert {_address(broker) for broker in cluster.brokers.values()} <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


@pytest.mark.parametrize("version", ["3.9.2", DEFAULT_VERSION])
def test_each_protocol_of_a_version_works_through_a_lane(cluster_pool: ClusterPool, version: str) -> None:
    """A record is sent and consumed, in a classic group and, where the version has it, in a KIP-848 group."""
    protocols = ["classic", "consumer"] if KNOWN[version].consumer_protocol else ["classic"]
    with cluster_pool.cluster_for(version) as cluster, cluster.lease_lanes(1) as (lane,), _topic(cluster) as topic:
        _send(lane.bootstrap, topic, b"a record")
        got = [_receive(lane.bootstrap, topic, group=f"{protocol}-works", protocol=protocol) for protocol in protocols]
    assert got == [b"a record"] * len(protocols)


def test_records_of_ten_megabytes_pass(cluster: BootedCluster) -> None:
    """From a producer through its lane to all replicas, and back to a consumer."""
    value = os.urandom(10 * 1024 * 1024)
    with cluster.lease_lanes(1) as (lane,), _topic(cluster) as topic:
        _send(lane.bootstrap, topic, value)
        assert _receive(lane.bootstrap, topic, group="large", protocol="classic") == value


def test_lanes_are_lent_once_and_come_back_clean(cluster: BootedCluster) -> None:
    """Two leases share no lane; one that was left toxic and disabled is reset."""
    with cluster.lease_lanes(2) as two, cluster.lease_lanes(3) as three:
        assert len({lane.index for lane in (*two, *three)}) == 5
        cluster.toxiproxy.add_toxic(two[0].proxies[0], "stall", "bandwidth", "upstream", {"rate": 0})
        cluster.toxiproxy.disable(two[1].proxies[2])
        dirty = len(cluster.health())
    assert (dirty, cluster.health()) == (2, [])


def test_more_lanes_than_there_are_is_a_start_error(cluster: BootedCluster) -> None:
    """The message says how many are free."""
    with cluster.lease_lanes(10), pytest.raises(StartError, match="7 lanes are needed, 6 of 16 are free"):
        cluster.lease_lanes(7).__enter__()


def test_a_cut_lane_leaves_its_neighbour_alone(cluster: BootedCluster) -> None:
    """One member's proxies are disabled; the member in the next lane goes on, and so does the observer."""
    with cluster.lease_lanes(2) as (cut, whole), _topic(cluster) as topic:
        for proxy in cut.proxies.values():
            cluster.toxiproxy.disable(proxy)
        _send(whole.bootstrap, topic, b"passes")
        assert _undelivered(cut.bootstrap, topic) == 1
        with Admin(cluster.observer_bootstrap) as admin:
            assert sum(admin.log_ends(topic).values()) == 1


def test_the_request_log_tells_lanes_apart_and_leaves_the_observer_out(cluster: BootedCluster) -> None:
    """Requests of a client stand under its lane's listener; ours and the brokers' own stand nowhere."""
    with cluster.lease_lanes(1) as (lane,), _topic(cluster) as topic:
        _send(lane.bootstrap, topic, b"x")
        _receive(lane.bootstrap, topic, group="logged", protocol="classic")
        listener = f"LANE{lane.index}"
        wait_until(
            lambda: {"JOIN_GROUP", "OFFSET_COMMIT"} <= _apis(cluster, listener),
            within_s=10,
            what=f"join and commit under {listener}",
            detail=lambda: str(_apis(cluster, listener)),
        )
    assert not {"OBSERVER", "INTERNAL", "CONTROLLER"} & _listeners(cluster)


def test_a_broker_is_killed_and_comes_back_on_its_own_data(cluster: BootedCluster) -> None:
    """After -9 its exit is the signal's, leaders move away; started again, it is in sync with what it had."""
    broker = cluster.brokers[1]
    with _topic(cluster, partitions=6) as topic, Admin(cluster.observer_bootstrap) as admin:
        _send(cluster.observer_bootstrap, topic, b"kept")
        first = broker.pid
        broker.kill()
        assert (broker.alive, broker.exit_code) == (False, -9)
        wait_until(lambda: 1 not in _leaders(admin, topic), within_s=20, what="leaders to move away from broker 1")
        broker.start()
        wait_until(lambda: not cluster.health(), within_s=30, what="the cluster to be whole again")
        assert broker.pid != first
        assert sum(admin.log_ends(topic).values()) == 1


def test_a_broker_is_paused_and_resumed(cluster: BootedCluster) -> None:
    """SIGSTOP is seen in the process's state; after SIGCONT the cluster is whole, by the same process."""
    broker = cluster.brokers[2]
    pid = broker.pid
    broker.pause()
    wait_until(lambda: _state(pid) == psutil.STATUS_STOPPED, within_s=5, what="the process to be stopped")
    broker.resume()
    wait_until(lambda: _state(pid) != psutil.STATUS_STOPPED, within_s=5, what="the process to go on")
    wait_until(lambda: not cluster.health(), within_s=30, what="the cluster to be whole again")
    assert broker.pid == pid


def test_a_broker_that_is_down_is_a_problem(cluster: BootedCluster) -> None:
    """`health` names the broker and how it ended."""
    cluster.brokers[0].terminate()
    wait_until(lambda: not cluster.brokers[0].alive, within_s=30, what="broker 0 to shut down")
    problems = cluster.health()
    cluster.brokers[0].start()
    wait_until(lambda: not cluster.health(), within_s=30, what="the cluster to be whole again")
    assert problems == ["broker 0 is not running (exit 143)"]


def test_a_single_broker_boots_and_nothing_stays_behind(tmp_path: Path) -> None:
    """Any number of brokers; at the end its processes are gone, its folder is removed, its ports are free."""
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


class _topic:  # noqa: N801 - reads like the function it is
    """A fresh topic, deleted at the end of the `with`."""

    drawn = 0

    def __init__(self, cluster: BootedCluster, *, partitions: int = 1) -> None:
        type(self).drawn += 1
        self.name = f"processes-{self.drawn}"
        self.partitions = partitions
        self.admin = Admin(cluster.observer_bootstrap)

    def __enter__(self) -> str:
        configs = {"max.message.bytes": str(RECORD_BYTES_MAX)}
        self.admin.create_topic(self.name, partitions=self.partitions, replication_factor=3, configs=configs)
        return self.name

    def __exit__(self, *_: object) -> None:
        with self.admin:
            self.admin.delete_topic(self.name)


def _send(bootstrap: str, topic: str, value: bytes) -> None:
    settings = {"bootstrap.servers": bootstrap, "message.max.bytes": RECORD_BYTES_MAX, "enable.idempotence": True}
    producer = Producer(settings)
    producer.produce(topic, value=value)
    assert producer.flush(30) == 0


def _undelivered(bootstrap: str, topic: str) -> int:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    producer.produce(topic, value=b"never")
    left = producer.flush(1)
    producer.purge()
    return left


def _receive(bootstrap: str, topic: str, *, group: str, protocol: str) -> bytes | None:
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol}
    consumer = Consumer(settings | {"auto.offset.reset": "earliest", "fetch.message.max.bytes": RECORD_BYTES_MAX})
    consumer.subscribe([topic])
    try:
        message = wait_until(lambda: consumer.poll(0.5), within_s=30, what=f"a record of {topic}")
        assert message.error() is None
        consumer.commit(asynchronous=False)
        return bytes(message.value())
    finally:
        consumer.close()


def _requests(cluster: BootedCluster) -> list[dict[str, object]]:
    lines = [line for broker in cluster.brokers.values() for line in broker.request_log.read_text().splitlines()[:-1]]
    return [json.loads(line)["r"] for line in lines]


def _apis(cluster: BootedCluster, listener: str) -> set[object]:
    return {
        request["requestHeader"]["requestApiKeyName"]  # type: ignore[index]
        for request in _requests(cluster)
        if request["listener"] == listener
    }


def _listeners(cluster: BootedCluster) -> set[object]:
    return {request["listener"] for request in _requests(cluster)}


def _leaders(admin: Admin, topic: str) -> set[int]:
    """Returns the leaders of a topic: all brokers as long as nobody answers, for the one just killed may be asked."""
    try:
        state = admin.describe(topic)
    except UnjudgeableError:
        return {0, 1, 2}
    assert state is not None
    return {part.leader for part in state.partitions}


def _state(pid: int) -> str:
    return str(psutil.Process(pid).status())


def _address(broker: Broker) -> str:
    listening = [link for link in psutil.Process(broker.pid).net_connections("tcp") if link.status == "LISTEN"]
    addresses = {link.laddr.ip for link in listening}
    assert len(addresses) == 1, addresses
    return str(addresses.pop())

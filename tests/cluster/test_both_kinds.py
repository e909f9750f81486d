"""What a trial asks of a cluster, of processes as of containers: whole, lanes apart, brokers broken and mended.

Those of containers share one cluster, and take turns with other dear tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.cluster import BrokerHandle
from kafka_trial.cluster.containers import container_cluster
from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.errors import StartError, UnjudgeableError
from kafka_trial.nemesis import evidence, sampling
from kafka_trial.process.waiting import wait_until
from topics import receive, send, topic_on, undelivered

pytestmark = pytest.mark.cluster

CONTAINERS = pytest.param("containers", marks=pytest.mark.rotates(together="dear"))


@pytest.fixture(scope="module", params=["processes", CONTAINERS])
def cluster(request: pytest.FixtureRequest, cluster_pool: ClusterPool) -> Iterator[BootedCluster]:
    """Lends a whole three-broker cluster of each kind; that of containers ends with these tests."""
    if request.param == "processes":
        with cluster_pool.cluster_for(DEFAULT_VERSION) as cluster:
            yield cluster
    else:
        request.getfixturevalue("engine")
        with container_cluster(DEFAULT_VERSION) as cluster:
            yield cluster


def test_a_booted_cluster_is_whole(cluster: BootedCluster) -> None:
    """Three brokers that run, no problems, and a client is answered through every proxy of a lane."""
    assert (sorted(cluster.brokers), cluster.health(), cluster.lost) == ([0, 1, 2], [], None)
    with cluster.lease_lanes(1) as (lane,), topic_on(cluster) as topic:
        send(lane.bootstrap, topic, b"a record")
        assert receive(lane.bootstrap, topic, group="whole", protocol="classic") == b"a record"
        routes = [
            sampling.RoutePorts("test", broker, port, cluster.server_port(broker, lane.index), cluster.host)
            for broker, port in lane.ports.items()
        ]
        assert [sampling.probe(route, within_s=5).error for route in routes] == [None] * 3


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
    with cluster.lease_lanes(2) as (cut, whole), topic_on(cluster) as topic:
        for proxy in cut.proxies.values():
            cluster.toxiproxy.disable(proxy)
        send(whole.bootstrap, topic, b"passes")
        assert undelivered(cut.bootstrap, topic) == 1
        with Admin(cluster.observer_bootstrap) as admin:
            assert sum(admin.log_ends(topic).values()) == 1


def test_the_request_log_tells_lanes_apart_and_leaves_the_observer_out(cluster: BootedCluster) -> None:
    """Requests of a client stand under its lane's listener; ours and the brokers' own stand nowhere."""
    with cluster.lease_lanes(1) as (lane,), topic_on(cluster) as topic:
        send(lane.bootstrap, topic, b"x")
        receive(lane.bootstrap, topic, group="logged", protocol="classic")
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
    with topic_on(cluster, partitions=6) as topic, Admin(cluster.observer_bootstrap) as admin:
        send(cluster.observer_bootstrap, topic, b"kept")
        first = broker.pid
        broker.kill()
        assert (broker.alive, broker.exit_code) == (False, -9)
        wait_until(lambda: 1 not in _leaders(admin, topic), within_s=20, what="leaders to move away from broker 1")
        broker.start()
        wait_until(lambda: not cluster.health(), within_s=30, what="the cluster to be whole again")
        assert broker.pid != first
        assert sum(admin.log_ends(topic).values()) == 1


def test_a_broker_is_paused_and_resumed(cluster: BootedCluster) -> None:
    """Stopped or frozen, as the kernel has it; afterwards the cluster is whole, by the same process."""
    broker = cluster.brokers[2]
    pid = broker.pid
    broker.pause()
    wait_until(
        lambda: _states(broker) and _states(broker) <= evidence.STOPPED, within_s=5, what="the process to be stopped"
    )
    broker.resume()
    wait_until(lambda: not _states(broker) & evidence.STOPPED, within_s=5, what="it to go on")
    wait_until(lambda: not cluster.health(), within_s=30, what="the cluster to be whole again")
    assert broker.pid == pid


def test_a_broker_that_is_down_is_a_problem(cluster: BootedCluster) -> None:
    """`health` names the broker and how it ended."""
    cluster.brokers[0].terminate()
    wait_until(lambda: not cluster.brokers[0].alive, within_s=30, what="broker 0 to shut down")
    problems = cluster.health()
    cluster.brokers[0].start()
    wait_until(lambda: not cluster.health(), within_s=30, what="the cluster to be whole again")
    # Java exits with 143, which an engine tells as what it stands for: the signal.
    assert problems in (["broker 0 is not running (exit 143)"], ["broker 0 is not running (exit -15)"])


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


def _states(broker: BrokerHandle) -> set[str]:
    """Returns the letters of a broker's processes."""
    return set(sampling.process(broker.pid, None, set(), container=broker.container_view).states)

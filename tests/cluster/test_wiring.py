"""Wiring: who listens where, and what each broker is told."""

import re
import subprocess
from pathlib import Path

import pytest

from kafka_trial.cluster.java import find_java
from kafka_trial.cluster.kafka_jars import class_path
from kafka_trial.cluster.versions import KNOWN, KafkaVersion
from kafka_trial.cluster.wiring import LANES, Wiring, hosts_file, logging_config, server_properties


@pytest.mark.parametrize(("brokers", "lanes"), [(1, 1), (3, LANES), (5, 64)])
def test_every_port_is_used_once_and_lies_in_the_block(brokers: int, lanes: int) -> None:
    """The layout fills exactly the block whose size it asked for."""
    block = range(20000, 20000 + Wiring.size(brokers, lanes))
    assert sorted(_ports(Wiring(block, brokers, lanes))) == list(block)


def test_clients_are_told_the_proxies_and_the_observer_the_broker() -> None:
    """A lane is advertised as its proxy's port; OBSERVER as the port it listens on."""
    wiring, told = _wiring(), _properties(1)
    listens = _listeners(told["listeners"])
    advertised = _listeners(told["advertised.listeners"])
    assert (listens["LANE5"], advertised["LANE5"]) == (
        f"127.0.0.1:{wiring.server_port(1, 5)}",
        f"127.0.0.1:{wiring.proxy_port(1, 5)}",
    )
    assert listens["OBSERVER"] == advertised["OBSERVER"]


def test_brokers_know_each_other_by_names_only() -> None:
    """INTERNAL and CONTROLLER are advertised by name, so that a proxy can be put between any two brokers."""
    wiring = _wiring()
    advertised = _listeners(_properties(2)["advertised.listeners"])
    assert (advertised["INTERNAL"], advertised["CONTROLLER"]) == (
        f"b2:{wiring.internal_port(2)}",
        f"b2:{wiring.controller_port(2)}",
    )
    assert {f"b{node}" for node in range(3)} <= set(hosts_file(3).split())


def test_every_lane_has_one_proxy_for_each_broker() -> None:
    """Proxy names carry the cluster's name, and each leads to the broker's listener of that lane."""
    wiring = _wiring()
    lane = wiring.lane(3, "kt1")
    proxies = {name: (listen, upstream) for name, listen, upstream in wiring.proxies("kt1")}
    assert {proxies[lane.proxies[broker]] for broker in range(3)} == {
        (lane.ports[broker], wiring.server_port(broker, 3)) for broker in range(3)
    }
    assert lane.bootstrap == ",".join(f"127.0.0.1:{port}" for port in lane.ports.values())


def test_an_older_version_is_not_told_what_it_does_not_know() -> None:
    """Kafka 3.7 and 3.9 have neither KIP-848 timings of ours nor share groups in their configuration."""
    for number in ("3.7.2", "3.9.2"):
        old = server_properties(_wiring(), KNOWN[number], 0, Path("/data"))
        assert "group.consumer." not in old
        assert "share." not in old


def test_a_controller_is_advertised_where_that_may_be() -> None:
    """A combined node of 3.8 or older refuses to start with its controller's listener among those for clients."""
    texts = [server_properties(_wiring(), KNOWN[number], 0, Path("/data")) for number in ("3.7.2", "3.9.2")]
    told = [next(line for line in text.splitlines() if line.startswith("advertised.listeners=")) for text in texts]
    assert ["CONTROLLER://" in line for line in told] == [False, True]


@pytest.mark.parametrize(
    ("number", "told"), [("4.2.99", False), ("4.3.0", True), ("4.10.0", True), ("10.0.0", True), ("3.10.0", False)]
)
def test_releases_are_compared_as_numbers(number: str, told: bool) -> None:
    """4.10 is newer than 4.3, and 10.0 newer than both: what came with 4.3 is told to them."""
    text = server_properties(_wiring(), KafkaVersion(number), 0, Path("/data"))
    assert ("group.consumer.assignment.interval.ms=0" in text) is told


@pytest.mark.lengthy
@pytest.mark.rotates(every=10)
@pytest.mark.parametrize("number", KNOWN)
def test_brokers_know_every_setting_they_are_given(number: str) -> None:
    """What Kafka prints of its own settings has all of ours: one that is unknown would be ignored without a word."""
    command = [find_java(), "-cp", class_path(number), "kafka.server.KafkaConfig"]
    page = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    known = set(re.findall(r'id="(?:brokerconfigs_)?([a-z][\w.]+)"', page))
    text = server_properties(_wiring(), KNOWN[number], 0, Path("/data"))
    given = {line.partition("=")[0] for line in text.splitlines()}
    assert (len(known) > 200, given - known) == (True, set())


@pytest.mark.parametrize("version", ["3.9.2", "4.3.1"])
def test_the_request_log_drops_only_traffic_of_ours(version: str, tmp_path: Path) -> None:
    """INTERNAL, CONTROLLER and OBSERVER are left out; no lane is."""
    flag, text = logging_config(KNOWN[version], tmp_path)
    assert str(tmp_path / "logging.xml") in flag
    assert "OBSERVER" in text
    assert "LANE" not in text


@pytest.mark.lengthy
@pytest.mark.rotates(every=10)
@pytest.mark.parametrize("number", KNOWN)
def test_a_node_of_each_version_takes_its_settings(number: str, tmp_path: Path) -> None:
    """It refuses none, alone or together: what it misses is a formatted data folder."""
    flag, logging = logging_config(KNOWN[number], tmp_path)
    (tmp_path / "logging.xml").write_text(logging)
    properties = tmp_path / "server.properties"
    properties.write_text(server_properties(_wiring(), KNOWN[number], 0, tmp_path / "data"))
    command = [find_java(), flag, "-cp", class_path(number), "kafka.Kafka", properties]
    subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert "No readable meta.properties files found" in (tmp_path / "server.log").read_text()


def _wiring() -> Wiring:
    return Wiring(range(20000, 20000 + Wiring.size(3)), 3)


def _properties(broker: int) -> dict[str, str]:
    text = server_properties(_wiring(), KNOWN["4.3.1"], broker, Path("/data"))
    return {line.partition("=")[0]: line.partition("=")[2] for line in text.splitlines()}


def _listeners(text: str) -> dict[str, str]:
    return {one.partition("://")[0]: one.partition("://")[2] for one in text.split(",")}


def _ports(wiring: Wiring) -> list[int]:
    nodes = range(wiring.brokers)
    pairs = [wiring.pair_port(near, far) for near in nodes for far in nodes if near != far]
    own = [
        port(node) for node in nodes for port in (wiring.controller_port, wiring.internal_port, wiring.observer_port)
    ]
    lanes = [
        port(node, lane)
        for node in nodes
        for lane in range(wiring.lanes)
        for port in (wiring.proxy_port, wiring.server_port)
    ]
    return [wiring.toxiproxy_port, *pairs, *own, *lanes]

"""Containers must reach this machine, where the sink listens: behind a firewall a trial is not begun."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from docker import DockerClient

from kafka_trial.cluster.containers import FIRST_PORT, _toxiproxy
from kafka_trial.cluster.images import image_for_toxiproxy
from kafka_trial.cluster.toxiproxy import Toxiproxy
from kafka_trial.containers.network import ContainerNetwork, container_network, own_labels
from kafka_trial.errors import StartError, UnjudgeableError
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import wait_until
from kafka_trial.trial import setup
from requirements import missing

Reached = tuple[Toxiproxy, ContainerNetwork]  # a server in a container, and its network


@pytest.fixture
def reached(engine: DockerClient) -> Iterator[Reached]:
    """Lends a network with a Toxiproxy on it, and no brokers."""
    name = f"kafka-trial-{secrets.token_hex(4)}"
    with ThreadGroup("way back") as threads, container_network(engine, name, own_labels()) as network:
        container = _toxiproxy(image_for_toxiproxy(engine), network, FIRST_PORT, threads)
        try:
            toxiproxy = Toxiproxy(FIRST_PORT, host=str(container.address))
            wait_until(lambda: _answers(toxiproxy), within_s=30, what="Toxiproxy", detail=container.last_words)
            yield toxiproxy, network
        finally:
            container.remove()


def test_where_the_way_is_free_a_trial_may_begin(reached: Reached) -> None:
    """Nothing stays of the question."""
    toxiproxy, network = reached
    setup._require_way_back(toxiproxy, network.gateway)
    assert toxiproxy.proxies() == {}


def test_behind_a_firewall_it_is_told_what_to_let_in(reached: Reached, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that drops what comes new from containers, as ufw does unless it is told otherwise."""
    if os.geteuid() != 0 or shutil.which("iptables") is None:
        missing("dockerd", "a firewall's rule needs root and iptables")
    toxiproxy, network = reached
    monkeypatch.setattr(setup, "REACHED_WITHIN_S", 1.0)
    refusal = f"do not reach this machine at {network.gateway}.*firewall"
    with _dropped(network), pytest.raises(StartError, match=refusal):
        setup._require_way_back(toxiproxy, network.gateway)


@contextmanager
def _dropped(network: ContainerNetwork) -> Iterator[None]:
    """Drops what would begin a connection from a network to this machine.

    The rule names the network's bridge, whose name never comes again: what is left of a test that was killed hits
    nobody. (One that named the address did: a later network had the same.)
    """
    bridge = f"br-{network.client.networks.get(network.name).id[:12]}"
    rule = ["INPUT", "--in-interface", bridge, "--protocol", "tcp", "--syn", "--jump", "DROP"]
    subprocess.run(["iptables", "--wait", "--insert", *rule], check=True)
    try:
        yield
    finally:
        subprocess.run(["iptables", "--wait", "--delete", *rule], check=True)


def _answers(toxiproxy: Toxiproxy) -> bool:
    with suppress(UnjudgeableError):
        return bool(toxiproxy.version())
    return False

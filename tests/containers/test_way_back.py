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
from kafka_trial.containers.network import container_network, own_labels
from kafka_trial.errors import StartError, UnjudgeableError
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import wait_until
from kafka_trial.trial import setup
from requirements import missing

Reached = tuple[Toxiproxy, str]  # a server in a container, and this machine's address on its network


@pytest.fixture
def reached(engine: DockerClient) -> Iterator[Reached]:
    """Lends a network with a Toxiproxy on it, and no brokers."""
    name = f"kafka-trial-{secrets.token_hex(4)}"
    with ThreadGroup("way back") as threads, container_network(engine, name, own_labels()) as network:
        container = _toxiproxy(image_for_toxiproxy(engine), network, FIRST_PORT, threads)
        try:
            toxiproxy = Toxiproxy(FIRST_PORT, host=str(container.address))
            wait_until(lambda: _answers(toxiproxy), within_s=30, what="Toxiproxy", detail=container.last_words)
            yield toxiproxy, network.gateway
        finally:
            container.remove()


def test_where_the_way_is_free_a_trial_may_begin(reached: Reached) -> None:
    """Nothing stays of the question."""
    toxiproxy, host = reached
    setup._require_way_back(toxiproxy, host)
    assert toxiproxy.proxies() == {}


def test_behind_a_firewall_it_is_told_what_to_let_in(reached: Reached, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that drops what comes new from containers, as ufw does unless it is told otherwise."""
    if os.geteuid() != 0 or shutil.which("iptables") is None:
        missing("dockerd", "a firewall's rule needs root and iptables")
    toxiproxy, host = reached
    monkeypatch.setattr(setup, "REACHED_WITHIN_S", 1.0)
    with _dropped(host), pytest.raises(StartError, match=f"do not reach this machine at {host}.*firewall"):
        setup._require_way_back(toxiproxy, host)


@contextmanager
def _dropped(host: str) -> Iterator[None]:
    """Drops what would begin a connection to one address of this machine."""
    rule = ["INPUT", "--destination", host, "--protocol", "tcp", "--syn", "--jump", "DROP"]
    subprocess.run(["iptables", "--wait", "--insert", *rule], check=True)
    try:
        yield
    finally:
        subprocess.run(["iptables", "--wait", "--delete", *rule], check=True)


def _answers(toxiproxy: Toxiproxy) -> bool:
    with suppress(UnjudgeableError):
        return bool(toxiproxy.version())
    return False

"""A cluster of containers is no cluster for trials where nobody sees what becomes of it."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_trial.cluster import containers
from kafka_trial.cluster.images import NAMED, image_for_kafka, require_named_apart
from kafka_trial.cluster.toxiproxy import Toxiproxy
from kafka_trial.cluster.wiring import block_of_ports
from kafka_trial.errors import InputError, StartError


def test_processes_that_cannot_be_seen_are_a_start_error() -> None:
    """The number is another process's here, as in a container beside the others: it says what to do."""
    ours: Any = SimpleNamespace(pid=os.getpid(), id="f" * 64)
    with pytest.raises(StartError, match=r"processes of containers cannot be seen .*ffffffffffff.* not in a container"):
        containers._require_sight(ours)


def test_connections_that_nobody_tells_of_are_a_start_error() -> None:
    """A Toxiproxy that is not ours, or none."""
    with block_of_ports(1) as ports:
        cluster: Any = SimpleNamespace(toxiproxy=Toxiproxy(ports[0]))
        with pytest.raises(StartError, match=r"connections of containers .*unset KAFKA_TRIAL_TOXIPROXY"):
            containers._require_sockets(cluster)


def test_the_brokers_image_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it stands, or one for each version; it is nobody's business here whether an engine has it."""
    nobody: Any = None
    for named in ("registry.team/kafka:7", "registry.team/kafka:{version}-hardened"):
        monkeypatch.setenv(NAMED, named)
        assert image_for_kafka(nobody, "4.2.1") == named.replace("{version}", "4.2.1")


def test_one_image_for_two_versions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers would be restarted as what they are, and nothing would be upgraded."""
    monkeypatch.setenv(NAMED, "registry.team/kafka:7")
    require_named_apart(["3.9.2", "3.9.2"])
    with pytest.raises(InputError, match=r"names one image, registry.team/kafka:7, for Kafka 3\.9\.2 and 4\.3\.1"):
        require_named_apart(["3.9.2", "4.3.1"])
    for named in ("registry.team/kafka:{version}", ""):
        monkeypatch.setenv(NAMED, named)
        require_named_apart(["3.9.2", "4.3.1"])


@pytest.mark.parametrize(
    ("said", "fits"), [("4.2.1", True), ("4.2.1-hardened", True), ("4.2.10", False), ("4.3.1", False), ("", True)]
)
def test_brokers_of_another_version_are_a_start_error(said: str, fits: bool, tmp_path: Path) -> None:
    """A verdict names the version that was asked for; a log that does not say it is no contradiction."""
    log = tmp_path / "server.log"
    log.write_text(f"[2026-11-26 04:00:35,714] INFO Kafka version: {said} (org.apache.kafka)\n" if said else "up\n")
    cluster: Any = SimpleNamespace(kafka_version="4.2.1", brokers={0: SimpleNamespace(server_log=log)})
    if fits:
        containers._require_version(cluster, "team/kafka:7")
        return
    with pytest.raises(StartError, match=rf"image team/kafka:7 are Kafka {said}, and Kafka 4.2.1 was .*--kafka {said}"):
        containers._require_version(cluster, "team/kafka:7")

"""A team's own tests start containers with testcontainers, in the process whose trials start ours: they do not meet."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from docker import DockerClient
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from kafka_trial.containers.container import Container, ContainerSpec
from kafka_trial.containers.network import LABEL, container_network, own_labels, remove_leftovers
from kafka_trial.process.threads import ThreadGroup
from shell_image import shell_image

SLEEPS = ["sh", "-c", "sleep 600"]


@pytest.fixture
def theirs(engine: DockerClient, engine_host: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[DockerContainer]:
    """A team's container, started as its fixture would; its reaper is an image of a registry, and is left out."""
    monkeypatch.setenv("DOCKER_HOST", engine_host)
    monkeypatch.setattr(testcontainers_config, "ryuk_disabled", True)
    with DockerContainer(shell_image(engine)).with_command(SLEEPS) as started:
        yield started


def test_each_removes_what_is_its_own(engine: DockerClient, theirs: DockerContainer) -> None:
    """Ours go with their network and leave the team's alone; and testcontainers' reaper, which goes by its labels,
    would find none of ours."""
    labels = own_labels()
    name = f"kafka-trial-{secrets.token_hex(4)}"
    spec = ContainerSpec(f"{name}-m0", shell_image(engine), name, labels, command=SLEEPS)
    with ThreadGroup("test") as threads:
        with container_network(engine, name, labels):
            ours = Container(engine, spec, threads)
            ours.start()
            found = engine.containers.list(filters={"label": "org.testcontainers.session-id"})
            assert theirs.get_container_id() in {one.id for one in found}
            assert ours.id not in {one.id for one in found}
        remove_leftovers(engine)
        ours.wait(within_s=10)
    assert engine.containers.list(all=True, filters={"label": f"{LABEL}={labels[LABEL]}"}) == []
    assert engine.containers.get(theirs.get_container_id()).status == "running"

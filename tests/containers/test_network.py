"""What is put on a network of ours has an owner; when that is gone, it is taken away by whoever comes next."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from docker import DockerClient

from engines import left_of
from kafka_trial.containers import network
from kafka_trial.containers.network import LABEL, container_network, own_labels, owner_is_gone, remove_leftovers
from kafka_trial.process.waiting import wait_until
from shell_image import shell_image

OWNER = """
import sys, threading
from kafka_trial.containers.engine import connect
from kafka_trial.containers.container import Container, ContainerSpec
from kafka_trial.containers.network import container_network, own_labels
from kafka_trial.process.threads import ThreadGroup
image, name = sys.argv[1:]
with ThreadGroup("owner") as threads, container_network(connect(), name, own_labels()) as network:
    spec = ContainerSpec(f"{name}-m0", image, name, network.labels, ["sleep", "600"])
    Container(network.client, spec, threads).start()
    print("up", flush=True)
    threading.Event().wait()
"""


@pytest.mark.parametrize(
    ("label", "value", "gone"),
    [
        ("", "", False),
        ("started", "1", True),  # the number is another's by now
        ("pid", "4194305", True),  # above every pid
        ("boot", "another", True),
        ("pids", "pid:[1]", False),  # in a container, say: we cannot see whether it runs
    ],
)
def test_an_owner_is_known_by_its_process(label: str, value: str, gone: bool) -> None:
    """Its number, when it began in ticks since boot, the boot, and the pid namespace that the number is of."""
    assert owner_is_gone(own_labels() | ({f"{LABEL}.{label}": value} if label else {})) is gone


def test_an_owner_that_nobody_has_reaped_is_gone() -> None:
    """A killed harness stays a zombie as long as its parent does not ask for its end."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as owner:
        labels = {f"{LABEL}.pid": str(owner.pid), f"{LABEL}.started": str(network._started(owner.pid))}
        assert not owner_is_gone(own_labels() | labels)
        owner.kill()
        wait_until(lambda: owner_is_gone(own_labels() | labels), within_s=10, what="the owner to be gone")


def test_leftovers_of_the_dead_go_and_what_is_used_stays(engine: DockerClient) -> None:
    """A killed owner's container and network are named and gone; ours, on the same engine, are there."""
    with container_network(engine, f"kafka-trial-{secrets.token_hex(4)}", own_labels()) as ours:
        with _owner(engine) as owner:
            remove_leftovers(engine)
            before = left_of(engine, owner.pid)
            owner.kill()
        assert len(before) == 2
        assert set(before) <= set(remove_leftovers(engine))
        assert (left_of(engine, owner.pid), left_of(engine, os.getpid())) == ([], [ours.name])
    assert left_of(engine, os.getpid()) == []


def test_the_command_of_the_supervisor_takes_away_what_one_run_left(engine: DockerClient) -> None:
    """Whether its harness lives or not: its time has come."""
    with _owner(engine) as owner:
        (one,) = engine.containers.list(filters={"label": f"{LABEL}.pid={owner.pid}"})
        owner.kill()
        assert network.main([one.labels[LABEL]]) == 0
        assert left_of(engine, owner.pid) == []


def test_without_an_engine_the_command_says_what_may_be_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a sentence: nobody is there any more who would read a traceback."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nowhere.sock")
    assert network.main(["12345678"]) == 3
    assert capsys.readouterr().err.startswith("containers of 12345678 may be left: no container engine answers where")


@contextmanager
def _owner(engine: DockerClient) -> Iterator[subprocess.Popen[str]]:
    """Runs a process that has a container on a network of its own."""
    arguments = [shell_image(engine), f"kafka-trial-{secrets.token_hex(4)}"]
    owner = subprocess.Popen([sys.executable, "-c", OWNER, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        yield owner
    finally:
        owner.kill()
        owner.communicate()

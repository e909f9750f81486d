"""A container engine for tests: one that runs, else a private one, where this user and this machine can; a plugin."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest
from docker import DockerClient

from kafka_trial.cluster.user_cache import cache_folder
from kafka_trial.containers.engine import DEFAULT_SOCKET, client_of
from kafka_trial.containers.engine_folder import engine_folder, holder_of, host_of
from kafka_trial.containers.network import LABEL
from kafka_trial.containers.private_engine import private_engine
from kafka_trial.errors import StartError
from requirements import missing


@pytest.fixture(scope="session")
def engine_host() -> Iterator[str]:
    """Returns the DOCKER_HOST of an engine: one that runs, else a private one, which ends with the session; the harness
    finds the same.

    Its images are kept for the next session, unless another session has it now.
    """
    with ExitStack() as stack:
        if (host := _running()) is None:
            host = _private(stack)
            stack.enter_context(pytest.MonkeyPatch.context()).setenv("DOCKER_HOST", host)
        yield host


@pytest.fixture(scope="session")
def engine(engine_host: str) -> Iterator[DockerClient]:
    """Returns a client of that engine."""
    with closing(client_of(engine_host)) as client:
        yield client


@pytest.fixture(scope="session")
def can_start_engines() -> None:
    """Skips where no private engine can be started."""
    try:
        with private_engine():
            pass
    except StartError as error:
        missing("dockerd", str(error))


def _running() -> str | None:
    """Returns where the engine answers that trials would take; None where none does."""
    given = os.environ.get("DOCKER_HOST")
    for host in [given] if given else [DEFAULT_SOCKET, host_of(engine_folder())]:
        with suppress(StartError):
            client_of(host).close()
            return host
    return None


def _private(stack: ExitStack) -> str:
    try:
        return stack.enter_context(private_engine(kept=cache_folder() / "engine-of-tests"))
    except StartError:
        try:
            return stack.enter_context(private_engine())
        except StartError as error:
            missing("docker", f"no container engine runs, and {error}")


def left_of(engine: DockerClient, pid: int) -> list[str]:
    """Returns the containers and networks that a process has made for clusters."""
    label = {"label": f"{LABEL}.pid={pid}"}
    found = [
        *engine.containers.list(all=True, filters=label, ignore_removed=True),
        *engine.networks.list(filters=label),
    ]
    return [str(one.name) for one in found]


@contextmanager
def small_disk(size: str) -> Iterator[Path]:
    """Lends a folder with little room, in memory, for the engine of a test; `size` as `mount` takes it."""
    with tempfile.TemporaryDirectory(prefix="kafka-trial-") as folder:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


def kill_engine(host: str) -> None:
    """Kills the dockerd of a private engine with -9, and waits for its holder to have cleared up."""
    holder = holder_of(Path(host.removeprefix("unix://")).parent)
    assert holder is not None
    next(child for child in holder.children(recursive=True) if child.name() == "dockerd").kill()
    holder.wait(30)

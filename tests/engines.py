"""A container engine for tests: one that runs, else a private one, where this user and this machine can; a plugin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from docker import DockerClient

from kafka_trial.cluster.user_cache import cache_folder
from kafka_trial.containers.engine import client_of, connect
from kafka_trial.containers.engine_folder import holder_of
from kafka_trial.containers.network import LABEL
from kafka_trial.containers.private_engine import private_engine
from kafka_trial.errors import StartError


@pytest.fixture(scope="session")
def engine() -> Iterator[DockerClient]:
    """Returns a client of an engine: one that runs, else a private one, which ends with the session; the harness finds
    the same.

    Its images are kept for the next session, unless another session has it now.
    """
    with ExitStack() as stack:
        try:
            client = connect()
        except StartError:
            host = _private(stack)
            stack.enter_context(pytest.MonkeyPatch.context()).setenv("DOCKER_HOST", host)
            client = client_of(host)
        stack.callback(client.close)
        yield client


def _private(stack: ExitStack) -> str:
    try:
        return stack.enter_context(private_engine(kept=cache_folder() / "engine-of-tests"))
    except StartError:
        try:
            return stack.enter_context(private_engine())
        except StartError as error:
            pytest.skip(f"no container engine runs, and {error}")


@pytest.fixture(scope="session")
def can_start_engines() -> None:
    """Skips where no private engine can be started."""
    try:
        with private_engine():
            pass
    except StartError as error:
        pytest.skip(str(error))


def left_of(engine: DockerClient, pid: int) -> list[str]:
    """Returns the containers and networks that a process has made for clusters."""
    label = {"label": f"{LABEL}.pid={pid}"}
    found = [
        *engine.containers.list(all=True, filters=label, ignore_removed=True),
        *engine.networks.list(filters=label),
    ]
    return [str(one.name) for one in found]


def kill_engine(host: str) -> None:
    """Kills the dockerd of a private engine with -9, and waits for its holder to have cleared up."""
    holder = holder_of(Path(host.removeprefix("unix://")).parent)
    assert holder is not None
    next(child for child in holder.children(recursive=True) if child.name() == "dockerd").kill()
    holder.wait(30)

"""A container engine for these tests: one that runs, else a private one, where this user and this machine can."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from docker import DockerClient

from kafka_trial.cluster.user_cache import cache_folder
from kafka_trial.containers.engine import client_of, connect
from kafka_trial.containers.private_engine import private_engine
from kafka_trial.errors import StartError


@pytest.fixture(scope="session")
def engine() -> Iterator[DockerClient]:
    """Returns a client of an engine: one that runs, else a private one, which ends with the session.

    Its images are kept for the next session, unless another session has it now.
    """
    with ExitStack() as stack:
        try:
            client = connect()
        except StartError:
            host = _private(stack)
            stack.enter_context(pytest.MonkeyPatch.context()).setenv("DOCKER_HOST", host)  # for trials too
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

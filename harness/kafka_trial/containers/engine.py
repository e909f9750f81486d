"""The container engine: the one that is named, the machine's own, or the private one of `make dockerd`.

It is named by DOCKER_HOST, else as testcontainers has it: `tc.host` of ~/.testcontainers.properties, or the current
context of Docker's command line. The libraries are an extra and imported where they are used, so that who needs no
containers needs none of them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kafka_trial.containers.engine_folder import engine_folder, host_of
from kafka_trial.errors import StartError

if TYPE_CHECKING:
    from docker import DockerClient

DEFAULT_SOCKET = "unix:///var/run/docker.sock"
PING_WITHIN_S = 10
ANSWER_WITHIN_S = 600  # a build says nothing while it copies
BY_TESTCONTAINERS = "tc.host of ~/.testcontainers.properties, or the current docker context"
MISSING = "a library for containers is missing: `pip install 'kafka-trial[containers]'`"
REMEDY = (
    "Start Docker and let this user at its socket, set DOCKER_HOST, or as root start a private engine: `make dockerd`, "
    "or `python -m kafka_trial.containers.private_engine start`"
)


def connect() -> DockerClient:
    """Returns a client of the container engine. Where one is named, it is that one or none.

    Raises:
        StartError: a library is missing, or no engine answers; with everything that was tried.
    """
    given = os.environ.get("DOCKER_HOST")
    by = "DOCKER_HOST" if given else BY_TESTCONTAINERS
    if given := given or _named_for_testcontainers():
        try:
            return client_of(given)
        except StartError as error:
            remedy = f"Start that engine, correct {by}, or unset it to try the machine's own and a private one."
            raise StartError(f"no container engine answers where {by} says: {error}. {remedy}") from error
    tried = []
    for whose, host in (("the machine's own", DEFAULT_SOCKET), ("the private one", host_of(engine_folder()))):
        try:
            return client_of(host)
        except StartError as error:
            tried.append(f"{whose}: {error}")
    raise StartError(f"no container engine: DOCKER_HOST is not set; {'; '.join(tried)}. {REMEDY}.")


def client_of(host: str) -> DockerClient:
    """Returns a client of the engine at `host`, which has answered.

    TLS and its certificates come from DOCKER_TLS_VERIFY and DOCKER_CERT_PATH, as Docker's own tools take them.

    Raises:
        StartError: a library is missing, or the engine does not answer.
    """
    try:
        import docker
        from docker.errors import DockerException
    except ImportError as error:
        raise StartError(MISSING) from error
    try:
        client = docker.from_env(environment=os.environ | {"DOCKER_HOST": host}, timeout=PING_WITHIN_S)
        client.ping()
    except (DockerException, OSError, ValueError) as error:
        raise StartError(f"{host} ({innermost(error)})") from error
    client.api.timeout = ANSWER_WITHIN_S
    return client


def _named_for_testcontainers() -> str | None:
    """Returns where the engine is that the team's own tests with testcontainers use; None where nothing names one."""
    try:
        from testcontainers.core.docker_client import get_docker_host
    except ImportError as error:
        raise StartError(MISSING) from error
    return get_docker_host()


def innermost(error: BaseException) -> str:
    """Returns what was wrong in the end: the library wraps a missing socket three times."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    return getattr(error, "strerror", None) or str(error)

"""The network of a container cluster, and whose it is: where containers of a run are put, and found again."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from kafka_trial.containers.container import engine_errors
from kafka_trial.containers.engine import connect
from kafka_trial.errors import StartError, UnjudgeableError

if TYPE_CHECKING:
    import docker

LABEL = "kafka-trial"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class ContainerNetwork:
    """A bridge network of our own. `gateway`: the address of this machine in it; `labels` for all that is put on it;
    `images`: the digest of each image that its containers are made of, by name."""

    client: docker.DockerClient
    name: str
    gateway: str
    labels: Mapping[str, str]
    images: dict[str, str]


def own_labels() -> dict[str, str]:
    """Returns labels that say which process has made something, so that what is left of a dead one can be told."""
    return {
        LABEL: secrets.token_hex(4),
        f"{LABEL}.pid": str(os.getpid()),
        f"{LABEL}.boot": BOOT_ID.read_text().strip(),
        f"{LABEL}.started": str(psutil.Process().create_time()),
    }


def owner_is_gone(labels: Mapping[str, str]) -> bool:
    """Tells whether the process that made what has these labels has ended, or the machine was booted since."""
    if labels.get(f"{LABEL}.boot") != BOOT_ID.read_text().strip():
        return True
    with suppress(psutil.Error, ValueError):
        process = psutil.Process(int(labels.get(f"{LABEL}.pid", "")))
        return str(process.create_time()) != labels.get(f"{LABEL}.started")
    return True


def require_image(client: docker.DockerClient, name: str) -> str:
    """Returns the digest of an image; one that the engine does not have is pulled.

    Raises:
        StartError: there is none of that name, here or where the engine pulls from.
    """
    from docker.errors import ImageNotFound

    with engine_errors(f"image {name} is not there and cannot be pulled", kind=StartError):
        try:
            image = client.images.get(name)
        except ImageNotFound:
            image = client.images.pull(name)
    return str(image.id)


@contextmanager
def container_network(client: docker.DockerClient, name: str, labels: Mapping[str, str]) -> Iterator[ContainerNetwork]:
    """Makes a bridge network and takes it away at the end, with all containers that have its labels.

    Raises:
        StartError: the engine refuses; it is not on this machine.
    """
    with engine_errors(f"network {name} cannot be made", kind=StartError):
        made = client.networks.create(name, driver="bridge", labels=dict(labels))
        try:
            made.reload()
            gateway = str(made.attrs["IPAM"]["Config"][0]["Gateway"])
        except BaseException:
            made.remove()
            raise
    try:
        yield ContainerNetwork(client, name, gateway, labels, images={})
    finally:
        remove_labelled(client, f"{LABEL}={labels[LABEL]}")


def remove_labelled(client: docker.DockerClient, label: str) -> list[str]:
    """Removes every container and network with a label, and returns their names; what cannot be removed is left."""
    removed = []
    with suppress(UnjudgeableError), engine_errors("leftovers cannot be listed"):
        for container in client.containers.list(all=True, filters={"label": label}):
            with suppress(UnjudgeableError), engine_errors(f"container {container.name} cannot be removed"):
                container.remove(force=True, v=True)
                removed.append(str(container.name))
        for network in client.networks.list(filters={"label": label}):
            with suppress(UnjudgeableError), engine_errors(f"network {network.name} cannot be removed"):
                network.remove()
                removed.append(str(network.name))
    return removed


def remove_leftovers(client: docker.DockerClient) -> list[str]:
    """Removes the containers and networks of runs whose harness is gone, and returns their names."""
    removed = []
    with engine_errors("leftovers of earlier runs cannot be listed", kind=StartError):
        containers = client.containers.list(all=True, filters={"label": LABEL}, ignore_removed=True)
        networks = client.networks.list(filters={"label": LABEL})
    labelled = [*(one.labels for one in containers), *(one.attrs["Labels"] for one in networks)]
    found = {labels[LABEL]: labels for labels in labelled}
    for run, labels in found.items():
        if owner_is_gone(labels):
            removed += remove_labelled(client, f"{LABEL}={run}")
    return removed


if __name__ == "__main__":  # what takes containers away where the harness could not: `process/supervisor.py`
    for run in sys.argv[1:]:
        remove_labelled(connect(), f"{LABEL}={run}")

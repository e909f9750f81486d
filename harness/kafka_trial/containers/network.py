"""The network of a container cluster, and whose it is: where containers of a run are put, and found again."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_trial.containers.container import engine_errors
from kafka_trial.containers.engine import connect
from kafka_trial.errors import StartError, UnjudgeableError
from kafka_trial.process.steps import step
from kafka_trial.process.waiting import pause

if TYPE_CHECKING:
    import docker

LABEL = "kafka-trial"
LATE_S = 0.5
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
        f"{LABEL}.pids": os.readlink("/proc/self/ns/pid"),
        f"{LABEL}.boot": BOOT_ID.read_text().strip(),
        f"{LABEL}.started": str(_started(os.getpid())),
    }


def owner_is_gone(labels: Mapping[str, str]) -> bool:
    """Tells whether the process that made what has these labels has ended, or the machine was booted since.

    Of one in another pid namespace nobody here can tell: it is taken to be there.
    """
    if labels.get(f"{LABEL}.boot") != BOOT_ID.read_text().strip():
        return True
    if labels.get(f"{LABEL}.pids") != os.readlink("/proc/self/ns/pid"):
        return False
    return str(_started(labels.get(f"{LABEL}.pid", ""))) != labels.get(f"{LABEL}.started")


def _started(pid: int | str) -> int | None:
    """Returns when a process began, in clock ticks since boot, which no change of the wall clock moves; None: it is
    gone, be it that its parent has not asked for its end."""
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{int(pid)}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] in "ZX" else int(fields[19])
    return None


def require_image(client: docker.DockerClient, name: str) -> str:
    """Returns the digest of an image; one that the engine does not have is pulled.

    Raises:
        StartError: there is none of that name, here or where the engine pulls from.
    """
    from docker.errors import ImageNotFound

    with engine_errors(f"image {name} is not there (docker image ls) and cannot be pulled", kind=StartError):
        try:
            image = client.images.get(name)
        except ImageNotFound:
            with step(f"pulling the image {name}", about="once: as long as its registry takes"):
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
        except (KeyError, IndexError, TypeError) as error:
            made.remove()
            raise StartError(
                f"network {name} has no gateway: {made.attrs.get('IPAM')}; see docker network ls"
            ) from error
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
        for container in client.containers.list(all=True, filters={"label": label}, ignore_removed=True):
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


def main(runs: Sequence[str]) -> int:
    """Takes away what is left of some runs: what `process/supervisor.py` calls when their harness has ended.

    What a harness that was killed had just asked for may come yet: it looks until there is nothing new.
    """
    try:
        client = connect()
    except StartError as error:
        print(f"containers of {', '.join(runs)} may be left: {error}", file=sys.stderr)
        return error.exit_status
    for run in runs:
        while remove_labelled(client, f"{LABEL}={run}"):
            pause(LATE_S)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

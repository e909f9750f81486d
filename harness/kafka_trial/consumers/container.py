"""Members of a container image: each incarnation is a container of its own, with limits, on the cluster's network."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from kafka_trial.consumers.spec import ImageLimits
from kafka_trial.containers.container import Container, ContainerSpec
from kafka_trial.containers.network import ContainerNetwork
from kafka_trial.process.threads import ThreadGroup


class ContainerLauncher:
    """Starts containers of one image; made by `container_launcher`, which also removes them."""

    def __init__(self, image: str, limits: ImageLimits, network: ContainerNetwork, threads: ThreadGroup) -> None:
        self._image = image
        self._limits = limits
        self._network = network
        self._threads = threads
        self._drawn = secrets.token_hex(2)  # other trials may have members of the same names on this network
        self._started: list[Container] = []

    def spawn(
        self, name: str, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, stdout: int, stderr: int
    ) -> Container:
        """Starts one. `argv` stands for the image's own command, where it is not empty; `cwd` is where mounts are.

        Raises:
            StartError: the image is missing, its command is not in it, a limit is refused.
        """
        spec = ContainerSpec(
            name=f"{self._network.name}-{self._drawn}-{name}-{len(self._started)}",
            image=self._image,
            network=self._network.name,
            labels=self._network.labels,
            command=argv or None,
            env=env,
            mounts={str((cwd / place).resolve()): inside for place, inside in self._limits.mounts.items()},
            memory_bytes=self._limits.memory_bytes,
            cpus=self._limits.cpus,
            init=self._limits.init,
            logged=False,  # the run folder has it
        )
        container = Container(self._network.client, spec, self._threads)
        self._started.append(container)
        container.start(stdout=stdout, stderr=stderr)
        return container

    def close(self) -> None:
        """Removes every container, those that still run too."""
        for container in self._started:
            container.remove()


@contextmanager
def container_launcher(
    image: str, limits: ImageLimits, network: ContainerNetwork, threads: ThreadGroup
) -> Iterator[ContainerLauncher]:
    """Yields what starts containers of an image; removes them at the end."""
    launcher = ContainerLauncher(image, limits, network, threads)
    try:
        yield launcher
    finally:
        launcher.close()

"""Namespaces of containers on this machine: whose processes and sockets are whose, as the kernel has it.

A container's processes share a pid namespace, its sockets lie in a network namespace; neither is ours, and no process
group holds them together. Only root may look into those of others (namespaces(7), setns(2)).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kafka_trial.errors import UnjudgeableError

T = TypeVar("T")

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
CLONE_NEWNET = 0x40000000
OWN_NETWORK = Path("/proc/thread-self/ns/net")
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Namespaces:
    """Those of one container: the number of its pid namespace, and the file of the network namespace it is in.

    The number outlasts the container's first process, and is another's at once unless somebody holds the namespace; the
    file is there as long as the process that it is named by.
    """

    pids: int
    network: Path


NO_LONGER = Namespaces(0, PROC / "0" / "ns" / "net")  # of a container that has ended: nothing is in them


def hold_pid_namespace(pid: int) -> int:
    """Returns a descriptor that keeps the pid namespace of a process, and so its number, from being another's.

    Raises:
        UnjudgeableError: the process is gone, or we are not root.
    """
    try:
        return os.open(PROC / str(pid) / "ns" / "pid", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise UnjudgeableError(f"the namespaces of process {pid} cannot be seen: {error}") from error


def namespaces_of(pid: int, *, network_of: int | None = None) -> Namespaces:
    """Returns those of the process `pid`, the first of a container; its network is that of `network_of` where it has
    joined another's.

    Raises:
        UnjudgeableError: the process is gone, or we are not root.
    """
    try:
        pids = (PROC / str(pid) / "ns" / "pid").stat().st_ino
        network = PROC / str(network_of or pid) / "ns" / "net"
        network.stat()
    except OSError as error:
        raise UnjudgeableError(f"the namespaces of process {pid} cannot be seen: {error}") from error
    return Namespaces(pids, network)


def processes_in(pids: int) -> Iterator[int]:
    """Yields every process of the pid namespace of that number."""
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it ended while we looked, or is not ours to look into
                if (entry / "ns" / "pid").stat().st_ino == pids:
                    yield int(entry.name)


def in_network(network: Path | None, make: Callable[[], T]) -> T:
    """Returns what `make` returns, called in a network namespace; None is ours. A socket stays where it was made.

    Only the calling thread moves, and comes back.

    Raises:
        OSError: the namespace is gone, or we are not root.
    """
    if network is None:
        return make()
    there = os.open(network, os.O_RDONLY | os.O_CLOEXEC)
    try:
        back = os.open(OWN_NETWORK, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _enter(there)
            try:
                return make()
            finally:
                _enter(back)
        finally:
            os.close(back)
    finally:
        os.close(there)


def is_frozen(pid: int) -> bool:
    """Tells whether the control group of a process is frozen, as the kernel's freezer says (cgroups(7), v1 and v2)."""
    with suppress(OSError):
        for line in (PROC / str(pid) / "cgroup").read_text().splitlines():
            _, controllers, place = line.split(":", 2)
            if controllers == "freezer":
                state = CGROUPS / "freezer" / place.lstrip("/") / "freezer.state"
                return state.read_text().strip() == "FROZEN"
            if not controllers and place != "/":
                with suppress(OSError):
                    events = (CGROUPS / place.lstrip("/") / "cgroup.events").read_text().split("\n")
                    return "frozen 1" in events
    return False


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

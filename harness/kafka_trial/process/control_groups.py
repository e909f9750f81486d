"""Control groups of containers on this machine: which processes a container has, and whether it is frozen.

No process group holds a container's processes together: its control group does. The kernel tells everybody who may see
processes at all of it (cgroups(7), v1 and v2), so that nothing here asks for privileges.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kafka_trial.errors import UnjudgeableError, reason

PROC = Path("/proc")
FREEZER = "freezer"  # of v1, the controller of that name has groups of its own


@dataclass(frozen=True)
class ContainerView:
    """What this machine sees of a container: its processes, by the folder of its control group, and its connections, by
    the network address that it alone has, or by the ports at which it alone listens.

    An engine names the folder by the container's id, so that it is nobody else's once that has ended.
    """

    control_group: Path
    address: str | None = None
    ports: frozenset[int] = frozenset()

    def processes(self) -> list[int]:
        """Returns its processes, those in control groups below its own too; none when it has ended."""
        return sorted({pid for group in (self.control_group, *_below(self.control_group)) for pid in _processes(group)})

    def is_frozen(self) -> bool:
        """Tells whether the kernel's freezer says that all of it is frozen."""
        with suppress(OSError):
            return (self.control_group / "freezer.state").read_text().strip() == "FROZEN"
        with suppress(OSError):
            return "frozen 1" in (self.control_group / "cgroup.events").read_text().splitlines()
        return False


NO_LONGER = ContainerView(PROC / "0")  # of a container that has ended: nothing is in it


def others_are_hidden() -> bool:
    """Tells whether processes of other users are hidden from this one, containers' too (proc(5), hidepid)."""
    try:
        (PROC / "1" / "stat").read_text()
    except OSError:
        return True
    return False


def control_group_of(pid: int, *, container: str) -> Path:
    """Returns the folder of the control group of a process, the first of the container with that id.

    Raises:
        UnjudgeableError: the process is gone or hidden, is no such container's, or control groups cannot be seen here.
    """
    try:
        joined = [line.split(":", 2) for line in (PROC / str(pid) / "cgroup").read_text().splitlines()]
        groups = {controller: place for _, named, place in joined for controller in named.split(",")}
        mounts = list(_mounts())
    except (OSError, ValueError) as error:
        raise UnjudgeableError(f"the control group of process {pid} cannot be seen: {reason(error)}") from error
    for controller in (FREEZER, ""):  # of the one hierarchy of v2 no controller is named
        place = groups.get(controller, "")
        for known, root, mounted in mounts:
            if known == controller and container in place and PurePosixPath(place).is_relative_to(root):
                folder = mounted / PurePosixPath(place).relative_to(root)
                if (folder / "cgroup.procs").exists():
                    return folder
    raise UnjudgeableError(f"process {pid} is in no control group of container {container[:12]} that can be seen here")


def _mounts() -> Iterator[tuple[str, str, Path]]:
    """Yields each mounted hierarchy that may freeze: its controller, which part of it is mounted, and where."""
    for line in (PROC / "self" / "mountinfo").read_text().splitlines():
        mounted, _, kind = line.partition(" - ")
        root, folder = mounted.split()[3:5]
        if kind.startswith("cgroup2 "):
            yield "", root, Path(folder)
        elif kind.startswith("cgroup ") and FREEZER in kind.split()[2].split(","):
            yield FREEZER, root, Path(folder)


def _below(group: Path) -> Iterator[Path]:
    with suppress(OSError):  # it goes with the last process in it
        yield from (one.parent for one in group.glob("*/**/cgroup.procs"))


def _processes(group: Path) -> Iterator[int]:
    with suppress(OSError):
        yield from map(int, (group / "cgroup.procs").read_text().split())

"""A control group with a limit of memory, and what the kernel says of the processes in it (cgroups(7), v1 and v2).

The kernel's own documentation: `admin-guide/cgroup-v1/memory.rst` and `admin-guide/cgroup-v2.rst`. Its limits are the
only ones of resident memory: RLIMIT_RSS has no effect since Linux 2.4.30 (getrlimit(2)), RLIMIT_AS counts what was
only reserved. A group asks for root.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafka_trial.errors import StartError
from kafka_trial.process.waiting import wait_until

MOUNTS: Final = Path("/proc/self/mountinfo")
GONE_WITHIN_S: Final = 10.0
# The shell joins the group, then becomes the program: it is in there from its first page on.
JOIN: Final = 'echo $$ > "$0" && exec "$@"'


@dataclass(frozen=True)
class MemoryGroup:
    """A group's folder, and its files: of the limits, of the most that was taken, and of the kernel's kills."""

    folder: Path
    limits: tuple[str, ...]
    peak: str
    kills_in: str

    def command(self, command: Sequence[str]) -> list[str]:
        """Returns a command that runs another one within the group."""
        return ["sh", "-c", JOIN, str(self.folder / "cgroup.procs"), *command]

    def limit(self, limit_bytes: int) -> None:
        """Sets how much memory its processes may take, swap included where the kernel counts it."""
        first, *others = self.limits
        (self.folder / first).write_text(str(limit_bytes))
        for name in others:
            with suppress(OSError):  # a kernel without swap accounting has no such file
                (self.folder / name).write_text("0" if "swap.max" in name else str(limit_bytes))

    @property
    def peak_bytes(self) -> int:
        """The most that its processes took, page cache of their own reading included."""
        return int((self.folder / self.peak).read_text())

    @property
    def kills(self) -> int:
        """How many of its processes the kernel killed for want of memory."""
        return kills_told((self.folder / self.kills_in).read_text())


def kills_told(text: str) -> int:
    """Returns the figure of `oom_kill` in memory.events (v2) or memory.oom_control (v1, since Linux 4.13).

    Raises:
        StartError: it is not there, as in an older kernel.
    """
    told = dict(line.split() for line in text.splitlines())
    if "oom_kill" not in told:
        raise StartError(
            "this kernel does not tell how many processes it killed in a control group: 4.13 or later does"
        )
    return int(told["oom_kill"])


@contextmanager
def memory_group() -> Iterator[MemoryGroup]:
    """Makes a group, without a limit yet, and removes it in the end.

    Raises:
        StartError: there are no control groups of memory here, or they may not be made.
    """
    root, v2 = _root(MOUNTS.read_text())
    folder = root / f"kafka-trial-{secrets.token_hex(4)}"
    try:
        folder.mkdir()
    except OSError as error:
        raise StartError(f"no control group can be made in {root}: {error.strerror}. Run it as root") from error
    try:
        if v2:
            yield MemoryGroup(folder, ("memory.max", "memory.swap.max"), "memory.peak", "memory.events")
        else:
            limits = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
            yield MemoryGroup(folder, limits, "memory.max_usage_in_bytes", "memory.oom_control")
    finally:
        wait_until(lambda: _removed(folder), within_s=GONE_WITHIN_S, what=f"the control group {folder} to be empty")


def _root(mounts: str) -> tuple[Path, bool]:
    """Returns where groups of memory are made, and whether they are of v2."""
    for line in mounts.splitlines():
        mounted, _, kind = line.partition(" - ")
        folder = Path(mounted.split()[4])
        if kind.startswith("cgroup ") and "memory" in kind.split()[2].split(","):
            return folder, False
        control = folder / "cgroup.subtree_control"
        if kind.startswith("cgroup2 ") and control.exists() and "memory" in control.read_text().split():
            return folder, True
    raise StartError("no control groups of memory are mounted here: neither v1's controller `memory` nor v2 with it")


def _removed(folder: Path) -> bool:
    with suppress(OSError):
        folder.rmdir()
    return not folder.exists()

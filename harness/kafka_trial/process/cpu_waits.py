"""How long threads have been ready to run and had no processor, by the kernel's count: a file for each thread."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
FRESH_NS: Final = 900_000_000  # who looks once a second finds a new reading each time, if nobody else looks
SCHEDSTAT_BYTES: Final = 64

Thread = tuple[int, int]  # the ids of its process, and its own


def cpu_waits_ns(pids: Iterable[int], proc: Path = PROC) -> dict[Thread, int]:
    """Returns how long each thread of some processes has been ready to run and had no processor ("time spent waiting on
    a runqueue", the second number of schedstat), in nanoseconds; none where the kernel does not count it.
    """
    found = {}
    for pid in pids:
        tasks = f"{proc}/{pid}/task"  # strings and descriptors: paths and file objects cost more than the reading
        with suppress(OSError):
            for thread in os.listdir(tasks):
                with suppress(OSError, ValueError, IndexError):
                    found[pid, int(thread)] = int(_read(f"{tasks}/{thread}/schedstat").split()[1])
    return found


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, SCHEDSTAT_BYTES)
    finally:
        os.close(descriptor)


def longest_wait_ns(before: Mapping[Thread, int], now: Mapping[Thread, int]) -> int:
    """Returns how long the thread waited meanwhile that waited longest; one that has begun since counts whole."""
    return max((waited_ns - before.get(thread, 0) for thread, waited_ns in now.items()), default=0)


@dataclass
class SharedCpuWaits:
    """How long some processes wait, read at most once in FRESH_NS, whoever asks: a broker has some hundred threads, and
    the trials side by side on a cluster share its brokers. `pids` returns which run now.
    """

    pids: Callable[[], Iterable[int]]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _read_ns: int = -FRESH_NS
    _waits_ns: Mapping[Thread, int] = field(default_factory=dict)
    _share: float | None = None

    def share(self) -> float | None:
        """Returns which part of the time between the last two readings that thread waited which waited longest; None:
        the kernel does not count it, or nothing runs."""
        with self._lock:
            now_ns = time.monotonic_ns()
            if (over_ns := now_ns - self._read_ns) >= FRESH_NS:
                before, self._waits_ns, self._read_ns = self._waits_ns, cpu_waits_ns(self.pids()), now_ns
                self._share = longest_wait_ns(before, self._waits_ns) / over_ns if self._waits_ns else None
            return self._share

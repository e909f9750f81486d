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
        tasks = f"{proc}/{pid}/task"  # strings and descriptors: paths and file objects cost thrice the reading
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


@dataclass
class SharedCpuWaits:
    """The waits of some processes, read at most once a second, whoever asks: a broker has some hundred threads, and the
    trials side by side on a cluster share its brokers. `processes` returns which run now.
    """

    processes: Callable[[], Iterable[int]]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _read_ns: int = -FRESH_NS
    _waits_ns: Mapping[Thread, int] = field(default_factory=dict)

    def read(self) -> Mapping[Thread, int]:
        """Returns how long each thread has waited, as it was less than a second ago."""
        with self._lock:
            now_ns = time.monotonic_ns()
            if now_ns - self._read_ns >= FRESH_NS:
                self._waits_ns, self._read_ns = cpu_waits_ns(self.processes()), now_ns
            return self._waits_ns

"""Samples the members: what members take of memory and processor, and whom the kernel killed for want of memory.

Written once a second beside the clocks (`clock_sampler.py`), by a thread of the run's group. A process that cannot be
looked at (gone, another user's) is left out: nothing is written that was not seen.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import psutil

from kafka_trial.history.recorder import Recorder
from kafka_trial.process.waiting import pause

EVERY_S = 1.0
VMSTAT = Path("/proc/vmstat")


class Sampled(Protocol):
    """What is looked at: an incarnation of a member; `pid` leads its processes."""

    @property
    def name(self) -> str: ...
    @property
    def incarnation(self) -> int: ...
    @property
    def pid(self) -> int: ...
    @property
    def alive(self) -> bool: ...


def sample_resources(
    record: Recorder, members: Callable[[], Sequence[Sampled]], stop: threading.Event, *, vmstat: Path = VMSTAT
) -> None:
    """Writes `resources` of every living member and the kernel's `oom_kills`, once a second, until `stop` is set."""
    while True:
        oom_kills = read_oom_kills(vmstat)
        if oom_kills is not None:
            record.record("oom_kills", count=oom_kills)
        for member in members():
            if member.alive:
                _sample(record, member)
        if pause(EVERY_S, stop=stop):
            return


def read_oom_kills(vmstat: Path = VMSTAT) -> int | None:
    """Returns how many processes the kernel has killed for want of memory since boot; None where it does not say."""
    with suppress(OSError, ValueError):
        for line in vmstat.read_text(encoding="ascii").splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return None


def _sample(record: Recorder, member: Sampled) -> None:
    """Writes one sample of a member's process tree; nothing where its leader cannot be looked at."""
    with suppress(psutil.Error, OSError):
        leader = psutil.Process(member.pid)
        tree = [leader, *leader.children(recursive=True)]
        cpu_s = sum(_cpu_s(process) for process in tree)
        rss_bytes = leader.memory_info().rss if len(tree) == 1 else shared_once(tree)
        if not member.alive:
            return  # its pid may be somebody else's by now
        record.record(
            "resources",
            member=member.name,
            incarnation=member.incarnation,
            cpu_s=round(cpu_s, 3),
            rss_bytes=rss_bytes,
            processes=len(tree),
        )


def shared_once(tree: Iterable[psutil.Process]) -> int:
    """Returns the memory of several processes, pages they share counted once (PSS); where the kernel does not tell, the
    largest one's: too little rather than too much.
    """
    sizes, largest = [], 0
    for process in tree:
        with suppress(psutil.Error, OSError):
            largest = max(largest, process.memory_info().rss)
            sizes.append(getattr(process.memory_full_info(), "pss", 0))
    return max(sum(sizes), largest)


def _cpu_s(process: psutil.Process) -> float:
    with suppress(psutil.Error, OSError):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0

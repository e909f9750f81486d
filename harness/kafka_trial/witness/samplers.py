"""Samples of the run itself, by two threads of its group: its clocks, and what members take of the machine.

The clocks: pairs of them, wall-clock jumps and scheduling delays. Once a second, memory and processor of the members,
how long they and the brokers waited for a processor, and whom the kernel killed for want of memory. A process that
cannot be looked at (gone, another user's) is left out: nothing is written that was not seen.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import psutil

from kafka_trial.history.recorder import Recorder
from kafka_trial.process.cpu_waits import PROC, Thread, cpu_waits_ns, longest_wait_ns
from kafka_trial.process.oom_kills import VMSTAT, read_oom_kills
from kafka_trial.process.waiting import pause

EVERY_S = 0.25  # a stall that none of these beats shows is shorter than the tolerance between sources
TELL_EVERY = 4
LATE_NS = 100_000_000  # told at once
EVERY_NS = int(EVERY_S * 1e9)
WALL_JUMP_NS = 50_000_000
NEAR_NS = 100_000  # two readings of one clock this near leave nothing between them
READINGS = 20


def sample_clock(record: Recorder, stop: threading.Event) -> None:
    """Writes a `clock` pair (monotonic, wall) a second, every wall jump, and how late it was itself, until `stop`.

    A beat is late by what lies between the one before and it, the time that writing took included. Told is the latest
    of four, and one that was late by a tenth of a second at once.
    """
    offset_ns = _offset_ns(*read_clocks())
    beaten_ns, latest_ns = time.monotonic_ns(), 0
    while True:
        read_ns, wall_ns = read_clocks()
        record.record("clock", read_ns=read_ns, wall_ns=wall_ns)
        jump_ns = _offset_ns(read_ns, wall_ns) - offset_ns
        if abs(jump_ns) > WALL_JUMP_NS:
            record.record("wall_jump", size_ns=jump_ns)
            offset_ns += jump_ns
        for beat in range(1, TELL_EVERY + 1):
            stopped = pause(EVERY_S, stop=stop)
            now_ns = time.monotonic_ns()
            latest_ns, beaten_ns = max(latest_ns, now_ns - beaten_ns - EVERY_NS), now_ns
            if latest_ns > LATE_NS or beat == TELL_EVERY:
                record.record("scheduling_delay", delay_ns=latest_ns, every_ns=EVERY_NS)
                latest_ns = 0
            if stopped:
                return


def read_clocks() -> tuple[int, int]:
    """Returns the monotonic and the wall clock of one moment, in nanoseconds.

    A process that is put aside between two readings would see a jump that was none: the wall is read between two
    readings of the other clock, again until those are near each other, and of all the nearest count.
    """
    readings = []
    for _ in range(READINGS):
        before_ns, wall_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        readings.append((after_ns - before_ns, (before_ns + after_ns) // 2, wall_ns))
        if after_ns - before_ns <= NEAR_NS:
            break
    _, read_ns, wall_ns = min(readings)
    return read_ns, wall_ns


def _offset_ns(read_ns: int, wall_ns: int) -> int:
    return wall_ns - read_ns


RESOURCES_EVERY_S = 1.0


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
    record: Recorder,
    members: Callable[[], Sequence[Sampled]],
    stop: threading.Event,
    *,
    brokers: Callable[[], float | None] = lambda: None,
    vmstat: Path = VMSTAT,
) -> None:
    """Writes `resources` of every living member, `cpu_wait` and the kernel's `oom_kills`, once a second, until `stop`.

    `brokers`: which part of the last second or so a thread of them waited; None: nobody counts it.
    """
    before: tuple[int, Mapping[Thread, int]] | None = None
    while True:
        oom_kills = read_oom_kills(vmstat)
        if oom_kills is not None:
            record.record("oom_kills", count=oom_kills)
        pids = [pid for member in members() if member.alive for pid in _sample(record, member)]
        read_ns, waits_ns, share = time.monotonic_ns(), cpu_waits_ns(pids), brokers()
        if before is not None and (waits_ns or share is not None):
            over_ns = read_ns - before[0]
            record.record(
                "cpu_wait",
                member_ns=longest_wait_ns(before[1], waits_ns),
                broker_ns=round((share or 0.0) * over_ns),
                over_ns=over_ns,
            )
        before = read_ns, waits_ns
        if pause(RESOURCES_EVERY_S, stop=stop):
            return


def _sample(record: Recorder, member: Sampled) -> list[int]:
    """Writes one sample of a member's process tree, and returns its processes; none where its leader cannot be looked
    at."""
    with suppress(psutil.Error, OSError):
        leader = psutil.Process(member.pid)
        tree = [leader, *descendants(leader)]
        cpu_s = sum(_cpu_s(process) for process in tree)
        rss_bytes = leader.memory_info().rss if len(tree) == 1 else shared_once(tree)
        if not member.alive:
            return []  # its pid may be somebody else's by now
        record.record(
            "resources",
            member=member.name,
            incarnation=member.incarnation,
            cpu_s=round(cpu_s, 3),
            rss_bytes=rss_bytes,
            processes=len(tree),
        )
        return [process.pid for process in tree]
    return []


def descendants(leader: psutil.Process, proc: Path = PROC) -> list[psutil.Process]:
    """Returns the processes below one. Each thread's own list of children is asked where the kernel has them: psutil
    looks at every process of the machine."""
    if not (proc / f"{leader.pid}/task/{leader.pid}/children").exists():
        return list(leader.children(recursive=True))
    found, left = [], [leader.pid]
    while left:
        pid = left.pop()
        with suppress(OSError):
            for thread in os.listdir(f"{proc}/{pid}/task"):
                with suppress(OSError), open(f"{proc}/{pid}/task/{thread}/children", "rb", buffering=0) as file:
                    left += map(int, file.read().split())
        if pid != leader.pid:
            with suppress(psutil.Error):
                found.append(psutil.Process(pid))
    return found


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

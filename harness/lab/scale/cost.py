"""What a process costs, with everything it starts: seconds, processor seconds of its whole tree, peak memory.

Processor time is the kernel's own account of all that was reaped: the supervisor of children adopts orphans (a JVM
outlives the Python that started it) and is reaped by us; its own few hundredths of a second are in it. Memory is
sampled, so a peak shorter than the distance of two samples may be missed.
"""

from __future__ import annotations

import os
import resource
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from kafka_trial.errors import UnjudgeableError
from kafka_trial.process.children import Child, ChildProcesses
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import pause
from kafka_trial.witness.samplers import shared_once

SAMPLED_EVERY_S = 0.2
OUTPUT_MAX = 2000


@dataclass(frozen=True)
class Cost:
    """What a process took: `cpu_s` and `peak_bytes` of its whole tree, pages that are shared counted once."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    output: str


def cost_of(name: str, argv: Sequence[str | Path], *, scratch: Path, within_s: float) -> Cost:
    """Runs `argv` in a process of its own, its temporary files in `scratch`, and returns what that cost.

    Nothing else may end a child of this process meanwhile.

    Raises:
        UnjudgeableError: it ended with another status than 0.
        WaitTimeout: it did not end in time, and was killed.
    """
    environment = os.environ | {"TMPDIR": str(scratch)}
    before_s = _reaped_s()
    with (
        tempfile.TemporaryFile(dir=scratch) as output,
        ChildProcesses(name) as child_processes,
        ThreadGroup(name) as thread_group,
    ):
        began_s = time.monotonic()
        child = child_processes.spawn(name, argv, env=environment, stdout=output, stderr=output)
        peak = Peak()
        thread_group.start("memory", peak.watch, child, thread_group.stop)
        status = child.wait(within_s=within_s)
        wall_s = time.monotonic() - began_s
        thread_group.join()
        child_processes.close()
        output.seek(0)
        said = output.read().decode(errors="replace")
    if status:
        raise UnjudgeableError(f"{name} ended with status {status}: {said[-OUTPUT_MAX:]}")
    return Cost(wall_s, _reaped_s() - before_s, peak.size_bytes, said)


class Peak:
    """The most memory that a process tree was seen to have."""

    def __init__(self) -> None:
        self.size_bytes = 0

    def watch(self, child: Child, stop: threading.Event) -> None:
        """Samples until `stop` is set or the child is gone."""
        while child.alive:
            with suppress(psutil.Error, OSError):
                leader = psutil.Process(child.pid)
                self.size_bytes = max(self.size_bytes, shared_once([leader, *leader.children(recursive=True)]))
            if pause(SAMPLED_EVERY_S, stop=stop):
                return


def _reaped_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

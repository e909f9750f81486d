"""The run's pulse: both clocks of one moment, whatever keeps the writer waiting."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest

from kafka_trial.history.recorder import Recorder
from kafka_trial.process.children import Child, ChildProcesses
from kafka_trial.process.cpu_waits import SharedCpuWaits
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import pause, wait_until
from kafka_trial.witness.samplers import WALL_JUMP_NS, descendants, sample_clock, sample_resources


class Kept(Recorder):
    """A recorder that a busy machine keeps waiting before every other line; ends the pulse after some."""

    def __init__(self, folder: Path, *, lines: int, stop: threading.Event, by_s: float) -> None:
        super().__init__(folder, "run")
        self._left = lines
        self._stop = stop
        self._by_s = by_s

    def record(self, kind: str, *, time_ns: int | None = None, **fields: Any) -> int:
        """Writes one event, late."""
        self._left -= 1
        if self._left == 0:
            self._stop.set()
        pause(self._by_s if self._left % 4 else 0)
        return super().record(kind, time_ns=time_ns, **fields)


def test_a_pulse_that_is_written_late_shows_no_jump(tmp_path: Path) -> None:
    """The pair is of the moment it was read at, not of the one it was written at."""
    stop = threading.Event()
    with Kept(tmp_path, lines=9, stop=stop, by_s=2 * WALL_JUMP_NS / 1e9) as run:
        sample_clock(run, stop)
    lines = [orjson.loads(line) for line in (tmp_path / "run.jsonl").read_bytes().splitlines()]
    pulses = [line for line in lines if line["kind"] == "clock"]
    assert len(pulses) >= 3
    assert not [line for line in lines if line["kind"] == "wall_jump"]
    apart = [pulse["wall_ns"] - pulse["read_ns"] for pulse in pulses]
    assert all(abs(later - before) < WALL_JUMP_NS / 10 for before, later in pairwise(apart))
    written = [pulse["wall_ns"] - pulse["time_ns"] for pulse in pulses]
    assert max(abs(later - before) for before, later in pairwise(written)) > WALL_JUMP_NS  # they were written late


def test_a_pulse_that_is_kept_from_writing_tells_that_it_stood_still(tmp_path: Path) -> None:
    """What keeps it from writing keeps it from hearing."""
    stop = threading.Event()
    with Kept(tmp_path, lines=2, stop=stop, by_s=0.6) as run:
        sample_clock(run, stop)
    lines = [orjson.loads(line) for line in (tmp_path / "run.jsonl").read_bytes().splitlines()]
    assert [line["kind"] for line in lines] == ["clock", "scheduling_delay"]
    assert lines[1]["delay_ns"] >= 600_000_000


def test_a_pulse_that_stood_still_until_it_was_stopped_tells_so(tmp_path: Path) -> None:
    """The last thing that was heard may have been heard late."""
    stop = threading.Event()
    with Kept(tmp_path, lines=3, stop=stop, by_s=0.6) as run:
        stopper = threading.Timer(0.3, stop.set)
        stopper.start()
        sample_clock(run, stop)
        stopper.join()
    kinds = [orjson.loads(line)["kind"] for line in (tmp_path / "run.jsonl").read_bytes().splitlines()]
    assert kinds == ["clock", "scheduling_delay"]


FAT = "import time; held = bytearray(64 * 1024 * 1024); time.sleep(60)"
FORKED = "import os, time; held = bytearray(b'x') * (64 * 1024 * 1024); os.fork(); os.fork(); time.sleep(60)"


@dataclass(frozen=True)
class Subject:
    """A child as a member."""

    child: Child
    name: str = "m0"
    incarnation: int = 1

    @property
    def pid(self) -> int:
        return self.child.pid

    @property
    def alive(self) -> bool:
        return self.child.alive


def sampled(folder: Path, program: str, *, processes: int) -> dict[str, object]:
    """Returns the last sample of a process that runs a program, once all its processes are there."""
    with ChildProcesses("test") as child_processes, Recorder(folder, "run") as run, ThreadGroup("test") as thread_group:
        member = Subject(child_processes.spawn("m0", [sys.executable, "-c", program]))
        vmstat = folder / "vmstat"
        vmstat.write_text("nr_free_pages 9\noom_kill 3\n")
        thread_group.start(
            "resource-sampler", lambda: sample_resources(run, lambda: [member], thread_group.stop, vmstat=vmstat)
        )

        def whole() -> dict[str, object] | None:
            lines = [orjson.loads(line) for line in run.path.read_bytes().splitlines()]
            grown = [
                line
                for line in lines
                if line["kind"] == "resources"
                and line["processes"] == processes
                and line["rss_bytes"] > 64 * 1024 * 1024
            ]
            return grown[-1] if grown else None

        return wait_until(whole, within_s=30, what="a sample of the whole tree")


def test_a_members_memory_is_sampled(tmp_path: Path) -> None:
    """64 MB held: a little more than that, under its name and incarnation."""
    sample = sampled(tmp_path, FAT, processes=1)
    size = int(str(sample["rss_bytes"]))
    assert (sample["member"], sample["incarnation"], size < 128 * 1024 * 1024) == ("m0", 1, True)


FAMILY = """
import subprocess, sys, threading
wait = [sys.executable, "-c", "input()"]
threading.Thread(target=lambda: subprocess.run(wait)).start()
subprocess.run([sys.executable, "-c", f"import subprocess; subprocess.run({wait!r})"])
"""


def test_the_whole_family_of_a_process_is_found(tmp_path: Path) -> None:
    """Children of other threads, and grandchildren; the same where the kernel keeps no lists of children."""
    with ChildProcesses("test") as child_processes:
        asks, stays_open = os.pipe()
        leader = psutil.Process(child_processes.spawn("family", [sys.executable, "-c", FAMILY], stdin=asks).pid)
        wait_until(lambda: len(leader.children(recursive=True)) == 3, within_s=30, what="a family of four")
        found = [{one.pid for one in descendants(leader, proc)} for proc in (Path("/proc"), tmp_path)]
        os.close(asks)
        os.close(stays_open)
    assert [len(one) for one in found] == [3, 3]
    assert found[0] == found[1]


def test_what_forked_processes_share_is_counted_once(tmp_path: Path) -> None:
    """Four processes share the same 64 MB: far less than four times that."""
    size = int(str(sampled(tmp_path, FORKED, processes=4)["rss_bytes"]))
    assert size < 160 * 1024 * 1024


BUSY = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); os.fork()\nwhile True: pass"


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the kernel does not count waits (schedstats)")
def test_waiting_for_a_processor_is_told(tmp_path: Path) -> None:
    """Four processes that never rest on one processor: the longest of each two waits for a good part of the time."""
    stop = threading.Event()
    with ChildProcesses("test") as child_processes, Recorder(tmp_path, "run") as run, ThreadGroup("test") as group:
        member, broker = (child_processes.spawn(name, [sys.executable, "-c", BUSY]) for name in ("m0", "broker"))
        told = Subject(member)
        waits = SharedCpuWaits(lambda: [broker.pid])
        group.start("resource-sampler", lambda: sample_resources(run, lambda: [told], stop, brokers=waits.share))
        try:
            sample = wait_until(lambda: busy_sample(run.path), within_s=30, what="a sample of waits")
        finally:
            stop.set()
    assert all(sample["over_ns"] / 10 < sample[name] < 1.1 * sample["over_ns"] for name in ("member_ns", "broker_ns"))


def busy_sample(path: Path) -> dict[str, int] | None:
    """Returns the first sample of a second in which all were there."""
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    samples = [line for line in lines if line["kind"] == "cpu_wait"]
    return next((one for one in samples if one["member_ns"] > one["over_ns"] / 10), None)


def test_the_counter_is_written(tmp_path: Path) -> None:
    """Also where nobody lives."""
    vmstat, stop = tmp_path / "vmstat", threading.Event()
    vmstat.write_text("oom_kill 3\n")
    stop.set()
    with Recorder(tmp_path, "run") as run:
        sample_resources(run, list, stop, vmstat=vmstat)
    assert [orjson.loads(line)["count"] for line in run.path.read_bytes().splitlines()] == [3]

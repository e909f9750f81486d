"""The run's pulse: both clocks of one moment, whatever keeps the writer waiting."""

from __future__ import annotations

import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from kafka_trial.history.recorder import Recorder
from kafka_trial.process.waiting import pause
from kafka_trial.witness.clock_sampler import WALL_JUMP_NS, sample_clock


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

"""The run's pulse: both clocks of one moment, whatever keeps the writer waiting."""

from __future__ import annotations

import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from kafka_trial.clockwork import WALL_JUMP_NS, keep_time
from kafka_trial.history.recorder import Recorder
from kafka_trial.waiting import pause


class Kept(Recorder):
    """A recorder that a busy machine keeps waiting before every other line; ends the pulse after some."""

    def __init__(self, folder: Path, *, lines: int, stop: threading.Event) -> None:
        super().__init__(folder, "run")
        self._left = lines
        self._stop = stop

    def record(self, kind: str, *, time_ns: int | None = None, **fields: Any) -> int:
        """Writes one event, late."""
        self._left -= 1
        if self._left == 0:
            self._stop.set()
        pause(2 * WALL_JUMP_NS / 1e9 if self._left % 4 else 0)
        return super().record(kind, time_ns=time_ns, **fields)


def test_a_pulse_that_is_written_late_shows_no_jump(tmp_path: Path) -> None:
    """The pair is of the moment it was read at, not of the one it was written at."""
    stop = threading.Event()
    with Kept(tmp_path, lines=5, stop=stop) as run:
        keep_time(run, stop)
    lines = [orjson.loads(line) for line in (tmp_path / "run.jsonl").read_bytes().splitlines()]
    pulses = [line for line in lines if line["kind"] == "clock"]
    assert len(pulses) == 3
    assert not [line for line in lines if line["kind"] == "wall_jump"]
    apart = [pulse["wall_ns"] - pulse["read_ns"] for pulse in pulses]
    assert all(abs(later - before) < WALL_JUMP_NS / 10 for before, later in pairwise(apart))
    written = [pulse["wall_ns"] - pulse["time_ns"] for pulse in pulses]
    assert max(abs(later - before) for before, later in pairwise(written)) > WALL_JUMP_NS  # they were written late

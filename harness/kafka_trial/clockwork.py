"""The run's own pulse: pairs of clocks, wall-clock jumps and scheduling delays, written every second."""

from __future__ import annotations

import threading
import time

from kafka_trial.history.recorder import Recorder
from kafka_trial.waiting import pause

EVERY_S = 1.0
WALL_JUMP_NS = 50_000_000


def keep_time(record: Recorder, stop: threading.Event) -> None:
    """Writes a `clock` pair (monotonic, wall) a second, how late it was, and every wall jump, until `stop` is set."""
    offset_ns = _offset_ns()
    while True:
        asked_ns = time.monotonic_ns()
        record.record("clock", wall_ns=time.time_ns())
        jump_ns = _offset_ns() - offset_ns
        if abs(jump_ns) > WALL_JUMP_NS:
            record.record("wall_jump", size_ns=jump_ns)
            offset_ns += jump_ns
        if pause(EVERY_S, stop=stop):
            return
        late_ns = time.monotonic_ns() - asked_ns - int(EVERY_S * 1e9)
        record.record("scheduling_delay", delay_ns=max(0, late_ns))


def _offset_ns() -> int:
    return time.time_ns() - time.monotonic_ns()

"""The run's own pulse: pairs of clocks, wall-clock jumps and scheduling delays, written every second."""

from __future__ import annotations

import threading
import time

from kafka_trial.history.recorder import Recorder
from kafka_trial.process.waiting import pause

EVERY_S = 0.25  # a standstill that none of these beats shows is shorter than the tolerance between sources
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

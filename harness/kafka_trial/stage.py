"""The stage: everything one trial opens, in one place, closed in reverse order whatever happens.

Opened by `set_stage`: the household of child processes, the `run` recorder with its clock, leased lanes, a fresh topic
and group, the sink, the members, the producer. `run.py` tells the story on it.
"""

from __future__ import annotations

import dataclasses
import platform
import random
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_trial import __version__
from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.cluster import Cluster, Lane
from kafka_trial.concurrency import Crew, Household
from kafka_trial.consumers.consumer import ConsumerSpec
from kafka_trial.consumers.process import Group, start_group
from kafka_trial.consumers.sink import Sink, start_sink
from kafka_trial.errors import WaitTimeout
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RUN_SCHEMA, RunFolder
from kafka_trial.invariants.liveness import Timing
from kafka_trial.narrator import Narrator
from kafka_trial.progress import Progress
from kafka_trial.scenario import Burst, Scenario, scenario_to_table
from kafka_trial.waiting import holds_for, pause, wait_until

CLOCK_EVERY_S = 1.0
WALL_JUMP_NS = 50_000_000


@dataclass(frozen=True)
class Question:
    """What one trial asks: every word checked before anything starts."""

    scenario: Scenario
    consumer: ConsumerSpec
    kafka_version: str
    seed: int
    schedule: Path | None = None
    exact: bool = False


class Clockwork:
    """Writes a pair of clocks and a scheduling-delay sample every second; a wall-clock jump becomes an event."""

    def __init__(self, record: Recorder) -> None:
        self._record = record

    def run(self, crew: Crew) -> None:
        """Ticks until the crew stops."""
        offset_ns = time.time_ns() - time.monotonic_ns()
        while True:
            asked = time.monotonic_ns()
            self._record.record("clock", wall_ns=time.time_ns())
            jump_ns = time.time_ns() - time.monotonic_ns() - offset_ns
            if abs(jump_ns) > WALL_JUMP_NS:
                self._record.record("wall_jump", size_ns=jump_ns)
                offset_ns += jump_ns
            if pause(CLOCK_EVERY_S, stop=crew.stop):
                return
            late_ns = time.monotonic_ns() - asked - int(CLOCK_EVERY_S * 1e9)
            self._record.record("scheduling_delay", delay_ns=max(0, late_ns))

"""What recording costs: the workload at full speed with both events of each send in the history, and without."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic

import psutil

from kafka_trial.history.store import create_run_folder
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.waiting import pause
from kafka_trial.scenario import Load
from kafka_trial.workload.handle import start_producer
from kafka_trial.workload.workload import TopicLoad

ACKNOWLEDGED_WITHIN_S = 120.0
SETTLE_S = 1.0  # the client fetches its producer id and metadata meanwhile


@dataclass(frozen=True)
class Throughput:
    """One measured burst at full speed: from the command to the last acknowledgement; CPU of the sending process."""

    recorded: bool
    records: int
    seconds: float
    cpu_s: float

    @property
    def per_s(self) -> float:
        return self.records / self.seconds


def bench_producer(
    *, bootstrap: str, topic: str, folder: Path, records: int = 200_000, size_bytes: int = 100, rounds: int = 3
) -> tuple[list[Throughput], float]:
    """Returns each measured burst, recorded and unrecorded in turn, and the ratio of their medians (1: free).

    `bootstrap` is a lane's, `topic` exists, `folder` gets one run folder a burst.

    Raises:
        UnjudgeableError: a record was not acknowledged, so the figures mean nothing.
    """
    load = Load(opening_burst=records, records_max=records + 1, size_bytes_min=size_bytes, size_bytes_max=size_bytes)
    bursts = list(_bursts(load, bootstrap, topic, folder, rounds))
    speeds = {kind: median(one.per_s for one in bursts if one.recorded is kind) for kind in (True, False)}
    return bursts, speeds[True] / speeds[False]


def _bursts(load: Load, bootstrap: str, topic: str, folder: Path, rounds: int) -> Iterator[Throughput]:
    for number in range(rounds):
        for recorded in (True, False) if number % 2 == 0 else (False, True):
            place = folder / f"{number}-{'recorded' if recorded else 'unrecorded'}"
            yield _burst(load, bootstrap, topic, place, recorded=recorded)


def _burst(load: Load, bootstrap: str, topic: str, place: Path, *, recorded: bool) -> Throughput:
    folder = create_run_folder(place, "bench", "producer")
    with (
        ChildProcesses("bench") as child_processes,
        start_producer(
            child_processes,
            bootstrap=bootstrap,
            topic_loads=[TopicLoad(topic, load)],
            folder=folder,
            seed=1,
            recorded=recorded,
        ) as producer,
    ):
        pause(SETTLE_S)
        process = psutil.Process(producer.child.pid)
        cpu_before_s, began_s = _cpu_s(process), monotonic()
        records = producer.opening_burst(within_s=ACKNOWLEDGED_WITHIN_S)
        seconds, cpu_s = monotonic() - began_s, _cpu_s(process) - cpu_before_s
        producer.stop(within_s=1)
    return Throughput(recorded, records, seconds, cpu_s)


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)

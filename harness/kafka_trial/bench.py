"""The measurements of `make bench`: minimum, median, maximum and ratios within one run, with the machine they ran on.

Absolute figures of a shared machine wander; the ratios are of pairs measured in turn. Every figure is appended to
`reports/bench.jsonl` with the commit it was measured at.
"""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import orjson
import psutil

from kafka_trial import registry
from kafka_trial.calibrate import commit
from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.processes import ProcessCluster, process_cluster
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.errors import PASS, InputError, unknown_name
from kafka_trial.narrator import Narrator
from kafka_trial.session import Session


@dataclass(frozen=True)
class Figure:
    """One measured quantity: its values in the order they were taken."""

    name: str
    unit: str
    values: tuple[float, ...]

    def line(self) -> str:
        """Returns it as one line: minimum, median, maximum."""
        low, middle, high = min(self.values), median(self.values), max(self.values)
        return f"{self.name:52} {low:10.2f} {middle:10.2f} {high:10.2f} {self.unit}"


def measure(names: list[str], *, runs: int) -> int:
    """Runs the named measurements (all by default), prints and keeps their figures.

    Raises:
        InputError: a name that does not exist.
    """
    unknown = [unknown_name("measurement", name, MEASUREMENTS) for name in names if name not in MEASUREMENTS]
    if unknown:
        raise InputError("bench", unknown)
    print(machine())
    print(f"{'':52} {'min':>10} {'median':>10} {'max':>10}")
    for name in names or MEASUREMENTS:
        for figure in MEASUREMENTS[name](runs):
            print(figure.line(), flush=True)
            _keep(name, figure)
    return PASS


def machine() -> str:
    """Returns the machine in a line."""
    memory_gb = psutil.virtual_memory().total / 1e9
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} cores, {memory_gb:.0f} GB, {platform.system()} {platform.release()}, load {load:.1f}"


def bench_cluster(runs: int) -> Iterator[Figure]:
    """From nothing (warm cache) to a topic with full ISR."""
    seconds = []
    for _ in range(runs):
        began_s = time.monotonic()
        with process_cluster(DEFAULT_VERSION) as cluster, Admin(cluster.observer_bootstrap) as admin:
            admin.create_topic("bench", partitions=6, replication_factor=3)
            seconds.append(time.monotonic() - began_s)
    yield Figure("cluster from nothing to a topic with full ISR", "s", tuple(seconds))


def bench_trial(runs: int) -> Iterator[Figure]:
    """One member-kill trial, judged: on a cluster made for it, and on a warm one."""
    cold: list[float] = []
    warm: list[float] = []
    for _ in range(runs):
        began_s = time.monotonic()
        with Session(narrator=Narrator(quiet=True)) as session:
            for seconds in (cold, warm):
                session.try_one(
                    registry.find_scenario("member-killed"),
                    registry.find_consumer("python-at-least-once"),
                    seed=1,
                    out=Path(tempfile.mkdtemp(prefix="kafka-trial-bench-")) / "run",
                )
                seconds.append(time.monotonic() - began_s)
                began_s = time.monotonic()
    yield Figure("member-killed trial, cluster and Spark cold", "s", tuple(cold))
    yield Figure("member-killed trial, cluster and Spark warm", "s", tuple(warm))


def bench_producer(runs: int) -> Iterator[Figure]:
    """The workload through a lane, with both events of each send in the history, against without."""
    from kafka_trial.workload.bench import bench_producer as bursts_of

    with _topic() as (cluster, topic), cluster.lease_lanes(1) as lanes, tempfile.TemporaryDirectory() as folder:
        bursts, ratio = bursts_of(bootstrap=lanes[0].bootstrap, topic=topic, folder=Path(folder), rounds=runs)
    for recorded, name in ((True, "with recording"), (False, "without")):
        yield Figure(
            f"producer, 100 B, acks=all, RF 3, {name}", "/s", tuple(b.per_s for b in bursts if b.recorded is recorded)
        )
    yield Figure("producer: with recording ÷ without", "×", (ratio,))


def bench_check(runs: int) -> Iterator[Figure]:
    """`check` of 10^5 and 10^6 events, cold (a process of its own) and warm."""
    from kafka_trial.judge.bench import bench_check as check_of

    for events in (100_000, 1_000_000):
        cold, warm = check_of(events, runs=runs)
        yield Figure(f"check of {events:.0e} events, cold process", "s", cold)
        yield Figure(f"check of {events:.0e} events, warm", "s", warm)


MEASUREMENTS: Mapping[str, Callable[[int], Iterator[Figure]]] = {
    "cluster": bench_cluster,
    "trial": bench_trial,
    "producer": bench_producer,
    "check": bench_check,
}


@contextmanager
def _topic() -> Iterator[tuple[ProcessCluster, str]]:
    with process_cluster(DEFAULT_VERSION) as cluster, Admin(cluster.observer_bootstrap) as admin:
        admin.create_topic("bench", partitions=6, replication_factor=3)
        yield cluster, "bench"


def _keep(name: str, figure: Figure) -> None:
    folder = registry.CHECKOUT / "reports"
    if not folder.is_dir():
        return
    row = {
        "measurement": name,
        "figure": figure.name,
        "unit": figure.unit,
        "values": figure.values,
        "machine": machine(),
        "commit": commit(),
    }
    with (folder / "bench.jsonl").open("ab") as rows:
        rows.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))

"""The measurements of `make bench`, each a generator of figures; `figures.py` keeps and shows them.

What is compared is measured in turn within one run, in changing order: on a shared machine only such ratios mean much.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from kafka_trial import registry
from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.cluster import Lane
from kafka_trial.cluster.processes import process_cluster
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.errors import PASS, InputError, UnjudgeableError, unknown_name
from kafka_trial.history.event import Event
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.process.children import ChildProcesses
from kafka_trial.report.row_files import append_row
from kafka_trial.scenario import Load
from kafka_trial.trial.console import Console
from kafka_trial.trial.session import Session
from kafka_trial.witness.witness import snapshot_all, start_witnesses
from kafka_trial.workload.handle import ProducerHandle, start_producer
from kafka_trial.workload.workload import TopicLoad
from lab.bench.cuts import lane_throughput
from lab.bench.figures import PAGE_NAME, ROWS_NAME, Figure, Row, machine, page_of, ratios
from lab.bench.reader import start_reader
from lab.bench.upgrades import bench_upgrade
from lab.repository import git_revision, reports_folder
from lab.scale.campaign import run_campaign
from lab.scale.cases import cases
from lab.scale.samples import SAMPLES_NAME

READ_RECORDS = 1_000_000
WITNESSED_RECORDS = 400_000
RECORD_BYTES = 100
ACKNOWLEDGED_WITHIN_S = 120.0
RUNS, SCALE_RUNS = 3, 7


def measure(names: list[str], *, runs: int | None = None, huge: bool = False, events_max: int | None = None) -> int:
    """Runs the named measurements (all by default), prints and keeps their figures, and writes the page.

    `runs` is how often each (by default 3 times, the scale campaign 7). `huge` adds 10^8 events to that campaign,
    `events_max` leaves out its greater histories.

    Raises:
        InputError: a name that does not exist, or this is no checkout.
        StartError: the disk has no room for the histories of the campaign.
    """
    unknown = [unknown_name("measurement", name, NAMES) for name in names if name not in NAMES]
    if unknown:
        raise InputError("bench", unknown)
    reports = reports_folder()
    print(machine())
    figures = [name for name in names or NAMES if name in MEASUREMENTS]
    if figures:
        print(f"{'':56} {'min':>11} {'median':>11} {'max':>11}")
    for name in figures:
        for figure in MEASUREMENTS[name](runs or RUNS):
            print(figure.line(), flush=True)
            append_row(reports / ROWS_NAME, Row(name, figure, machine(), git_revision()))
    try:
        if SCALE in (names or NAMES):
            asked = cases(huge=huge, events_max=events_max)
            run_campaign(reports / SAMPLES_NAME, asked, runs=runs or SCALE_RUNS)
    finally:
        (reports / PAGE_NAME).write_text(page_of(reports))
    return PASS


def bench_cluster(runs: int) -> Iterator[Figure]:
    """From nothing (warm cache) to a topic with full ISR."""
    seconds = []
    for _ in range(runs):
        began_s = time.monotonic()
        with process_cluster(DEFAULT_VERSION) as cluster, Admin(cluster.observer_bootstrap) as admin:
            admin.create_topic("bench", partitions=6, replication_factor=3)
            seconds.append(time.monotonic() - began_s)
    yield Figure("cluster from nothing to a topic with full ISR", "s", tuple(seconds), "4.5 idle")


def bench_trial(runs: int) -> Iterator[Figure]:
    """One member-kill trial, judged: on a cluster made for it, and on a warm one; where the warm one's time goes."""
    took: dict[str, list[float]] = {"cold": [], "warm": []}
    phases: dict[str, list[float]] = defaultdict(list)
    for _ in range(runs):
        began_s = time.monotonic()
        with tempfile.TemporaryDirectory() as place, Session(console=Console(quiet=True)) as session:
            for name, seconds in took.items():
                trial_outcome = session.try_one(
                    registry.find_scenario("member-killed"),
                    registry.find_consumer("python-at-least-once"),
                    seed=1,
                    out=Path(place) / name,
                )
                if trial_outcome.verdict.verdict != "pass":
                    raise UnjudgeableError(f"only a trial that passes is measured, this one: {trial_outcome.text}")
                seconds.append(time.monotonic() - began_s)
                began_s = time.monotonic()
            for phase, phase_s in _phases(trial_outcome.folder, seconds[-1]):
                phases[phase].append(phase_s)
    yield Figure("member-killed trial, cluster and Spark cold", "s", tuple(took["cold"]), "28, must 34")
    yield Figure("member-killed trial, cluster and Spark warm", "s", tuple(took["warm"]), "20, must 24")
    for phase, values in phases.items():
        yield Figure(f"of the warm trial: {phase}", "s", tuple(values))


def bench_topics(runs: int) -> Iterator[Figure]:
    """A trial of two topics against one of a single topic with as many partitions and the same load, both warm."""
    two = registry.find_scenario("several-topics")
    one = replace(
        two,
        topic=replace(two.topic, partitions=sum(topic.partitions for topic in two.topics)),
        load=replace(
            two.load,
            opening_burst=sum(load.opening_burst for load in two.loads),
            rate_per_s=sum(load.rate_per_s for load in two.loads),
        ),
        further_topics=(),
    )
    asked, took = {"one": one, "two": two}, dict[str, list[float]](one=[], two=[])
    with tempfile.TemporaryDirectory() as place, Session(console=Console(quiet=True)) as session:
        for number, name in [(-1, "one"), *_turns(runs, *asked)]:  # the first one warms cluster and judge
            out, began_s = Path(place) / f"{number}-{name}", time.monotonic()
            tried = session.try_one(asked[name], registry.find_consumer("python-at-least-once"), seed=1, out=out)
            if tried.verdict.verdict != "pass":
                raise UnjudgeableError(f"only a trial that passes is measured, this one: {tried.text}")
            if number >= 0:
                took[name].append(time.monotonic() - began_s)
    yield Figure("trial of one topic, warm", "s", tuple(took["one"]))
    yield Figure("trial of two topics, warm", "s", tuple(took["two"]))
    yield ratios("trial: two topics ÷ one, the same load", took["two"], took["one"], aim="must 1.15")


def bench_producer(runs: int) -> Iterator[Figure]:
    """The workload through a lane, with both events of each send in the history, against without."""
    from lab.bench.producer import bench_producer as bursts_of

    with ExitStack() as stack:
        cluster, _ = stack.enter_context(_cluster_with_topics(topics=["bench"]))
        (lane,) = stack.enter_context(cluster.lease_lanes(1))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bursts, _ = bursts_of(bootstrap=lane.bootstrap, topic="bench", folder=folder, rounds=runs)
    speeds = {kind: [burst.per_s for burst in bursts if burst.recorded is kind] for kind in (True, False)}
    yield Figure("producer, 100 B, acks=all, RF 3, with recording", "/s", tuple(speeds[True]), "50000, must 20000")
    yield Figure("producer, 100 B, acks=all, RF 3, without", "/s", tuple(speeds[False]))
    yield ratios("producer: with recording ÷ without", speeds[True], speeds[False])


def bench_cuts(runs: int) -> Iterator[Figure]:
    """Frames through a proxy that follows them, against a bare one."""
    for size, speeds in lane_throughput(runs).items():
        yield Figure(f"frames of {size} through a bare proxy", "MB/s", tuple(speeds["bare"]))
        yield ratios(f"frames of {size}: followed ÷ bare", speeds["cuts"], speeds["bare"], aim="0.9")


def bench_consumer(runs: int) -> Iterator[Figure]:
    """A plain consumer of 100-byte records through a lane, against directly at the brokers."""
    speeds: dict[str, list[float]] = {"through a lane": [], "direct": []}
    with _cluster_with_topics(topics=["bench"]) as (cluster, _), cluster.lease_lanes(2) as lanes, ExitStack() as stack:
        child_processes = stack.enter_context(ChildProcesses("bench"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with _producer(child_processes, lanes[0], "bench", folder / "fill", READ_RECORDS, recorded=False) as producer:
            producer.opening_burst(within_s=ACKNOWLEDGED_WITHIN_S)
        bootstraps = {"through a lane": lanes[1].bootstrap, "direct": cluster.observer_bootstrap}
        for number, name in _turns(runs, *bootstraps):
            given = {"bootstrap": bootstraps[name], "group": f"bench-{number}-{name.split()[-1]}"}
            with start_reader(child_processes, topic="bench", records=READ_RECORDS, **given) as reader:
                reader.ready()
                began_s = time.monotonic()
                speeds[name].append(READ_RECORDS / (reader.done() - began_s))
    for name, values in speeds.items():
        yield Figure(f"consumer of {READ_RECORDS} records of 100 B, {name}", "/s", tuple(values))
    yield ratios(
        f"consumer of {READ_RECORDS} records: through a lane ÷ direct", speeds["through a lane"], speeds["direct"]
    )


def bench_witnesses(runs: int) -> Iterator[Figure]:
    """Producer and consumer together, through lanes, with all witnesses on, against off.

    The brokers write their request log in both cases, as they are told to at boot; off means that nobody reads it, nor
    the offsets log, and nobody asks the brokers anything.
    """
    speeds: dict[str, list[float]] = {"on": [], "off": []}
    topics = [f"bench-{number}-{name}" for number, name in _turns(runs, *speeds)]
    with _cluster_with_topics(topics=topics) as (cluster, _), cluster.lease_lanes(2) as lanes, ExitStack() as stack:
        child_processes = stack.enter_context(ChildProcesses("bench"))
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for topic in topics:
            folder = create_run_folder(place / topic, "bench", "witnesses")
            with _witnessed(child_processes, cluster, folder, topic, lanes, on=topic.endswith("-on")):
                given = {"bootstrap": lanes[1].bootstrap, "topic": topic, "group": topic}
                with start_reader(child_processes, records=WITNESSED_RECORDS, **given) as reader:
                    reader.ready()
                    with _producer(
                        child_processes, lanes[0], topic, place / f"{topic}-load", WITNESSED_RECORDS
                    ) as producer:
                        began_s = time.monotonic()
                        producer.opening_burst(within_s=ACKNOWLEDGED_WITHIN_S)
                        took_s = reader.done() - began_s
            speeds[topic.rpartition("-")[2]].append(WITNESSED_RECORDS / took_s)
    for name, values in speeds.items():
        yield Figure(f"producer and consumer of {WITNESSED_RECORDS} records, witnesses {name}", "/s", tuple(values))
    yield ratios(
        f"producer and consumer of {WITNESSED_RECORDS} records: witnesses on ÷ off",
        speeds["on"],
        speeds["off"],
        aim="0.95",
    )


def bench_check(runs: int) -> Iterator[Figure]:
    """`check` of 10^5 and 10^6 events, cold (a process of its own) and warm."""
    from lab.bench.check import bench_check as check_of

    for events, cold_aim, warm_aim in ((100_000, "", "0.5"), (1_000_000, "12", "")):
        cold, warm = check_of(events, runs=runs)
        yield Figure(f"check of {events:.0e} events, cold process", "s", cold, cold_aim)
        yield Figure(f"check of {events:.0e} events, warm", "s", warm, warm_aim)


MEASUREMENTS: Mapping[str, Callable[[int], Iterator[Figure]]] = {
    "cluster": bench_cluster,
    "trial": bench_trial,
    "topics": bench_topics,
    "producer": bench_producer,
    "consumer": bench_consumer,
    "witnesses": bench_witnesses,
    "check": bench_check,
    "cuts": bench_cuts,
    "upgrade": bench_upgrade,
}
SCALE = "scale"  # a campaign of its own: hours, not minutes, and resumable
NAMES = (*MEASUREMENTS, SCALE)


@contextmanager
def _cluster_with_topics(*, topics: list[str]) -> Iterator[tuple[BootedCluster, Admin]]:
    with process_cluster(DEFAULT_VERSION) as cluster, Admin(cluster.observer_bootstrap) as admin:
        for topic in topics:
            admin.create_topic(topic, partitions=6, replication_factor=3)
        yield cluster, admin


@contextmanager
def _witnessed(
    child_processes: ChildProcesses,
    cluster: BootedCluster,
    folder: RunFolder,
    topic: str,
    lanes: list[Lane],
    *,
    on: bool,
) -> Iterator[None]:
    if not on:
        yield
        return
    witnesses = start_witnesses(child_processes, cluster, folder=folder, topics=[topic], group=topic, lanes=lanes)
    for witness in witnesses:
        witness.ready()
    yield
    seen = snapshot_all(witnesses, within_s=ACKNOWLEDGED_WITHIN_S)
    assert set(seen.values()) == {"complete"}, f"witnesses that saw not all are not measured: {seen}"
    for witness in witnesses:
        witness.stop()


@contextmanager
def _producer(
    child_processes: ChildProcesses, lane: Lane, topic: str, place: Path, records: int, *, recorded: bool = True
) -> Iterator[ProducerHandle]:
    """Yields a workload that is up, and whose opening burst are so many records at full speed."""
    load = Load(
        opening_burst=records, records_max=records + 1, size_bytes_min=RECORD_BYTES, size_bytes_max=RECORD_BYTES
    )
    with start_producer(
        child_processes,
        bootstrap=lane.bootstrap,
        topic_loads=[TopicLoad(topic, load)],
        folder=create_run_folder(place, "bench", "load"),
        seed=1,
        recorded=recorded,
    ) as producer:
        yield producer
        producer.stop(within_s=10)


def _turns(runs: int, *names: str) -> Iterator[tuple[int, str]]:
    """Yields each name once a round, in changing order."""
    for number in range(runs):
        yield from ((number, name) for name in (names if number % 2 == 0 else names[::-1]))


def _phases(folder: RunFolder, total_s: float) -> Iterator[tuple[str, float]]:
    """Yields how long each phase of a trial took, and what lies outside of them: opening, judging, telling."""
    told: list[Event] = [event for event in folder.events() if event.source == "run"]
    marks = [(str(event.details["phase"]), event.time_ns) for event in told if event.kind == "phase"]
    end_ns = max(event.time_ns for event in told)
    for (name, begins_ns), (_, ends_ns) in pairwise([*marks, ("", end_ns)]):
        yield name, (ends_ns - begins_ns) / 1e9
    yield "opening, judging, telling", total_s - (end_ns - marks[0][1]) / 1e9

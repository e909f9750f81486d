"""A history to measure with: a run folder of about so many events, in the files and fields that a real trial writes.

One member-and-broker world (`shapes.py`) told by everybody who would tell of it: the workload, the members, both
witnesses inside the brokers, the observer with its control read, and the run. Written stretch by stretch of time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import numpy as np

from kafka_trial.history.store import RUN_SCHEMA, RunFolder
from lab.scale.group import Group
from lab.scale.lines import Events, Source
from lab.scale.names import BROKERS, DRAIN_NS, GROUP, TOPIC, TOPIC_ID, WALL_NS
from lab.scale.planted import Planted, places
from lab.scale.shapes import BEGIN_NS, LATENCY_NS, SECOND_NS, Ints, Shape, World, ranges

STRETCH_RECORDS = 25_000
ANSWERED_NS = 2_000_000
ENDS_READ = 10  # how often the observer asks for the ends of the partitions while the load lasts
CONSUMER = """schema = 1
name = "scale"
command = ["true"]
members = {members}

[kafka]
session_timeout_s = 6
poll_interval_s = 10

[progress]
kind = "kafka"

[evidence]
events = "jsonl"

[claim]
delivery = "at-least-once"
order = "partition"
commits = "settling"
"""


def write_history(path: Path, shape: Shape) -> RunFolder:
    """Writes the run folder of a shape into a new folder; the same shape gives the same bytes."""
    folder = RunFolder(path.absolute())
    folder.history.mkdir(parents=True)
    folder.write_json("run.json", {"schema": RUN_SCHEMA, "seed": shape.seed, "kafka": "none: generated"})
    scenario = {"schema": RUN_SCHEMA, "name": "scale", "summary": str(asdict(shape))}
    folder.write_json("scenario.json", scenario | {"topic": {"partitions": shape.partitions}})
    folder.write_json("schedule.json", {"schema": RUN_SCHEMA, "seed": shape.seed, "faults": []})
    (folder.path / "consumer.toml").write_text(CONSUMER.format(members=shape.members))
    world = World(shape)
    planted = Planted(world)
    _write_run(folder.history, world)
    _write_workload(folder.history, world)
    _write_group(folder.history, world, planted)
    _write_observer(folder.history, world, planted)
    return folder


def stretches(world: World, begin_ns: int, end_ns: int) -> Iterator[tuple[Ints, Ints]]:
    """Yields (partition, index) of the records sent from `begin_ns` to before `end_ns`, a bounded number at a time."""
    low, high = world.sent_before(begin_ns), world.sent_before(end_ns)
    parts = max(1, int((high - low).sum()) // STRETCH_RECORDS)
    for edge in np.linspace(begin_ns, end_ns, parts + 1).astype(np.int64)[1:].tolist():
        until = high if edge >= end_ns else world.sent_before(edge)
        yield ranges(low, until)
        low = until


def _write_run(folder: Path, world: World) -> None:
    phases = {"prepare": SECOND_NS, "steady": BEGIN_NS, "heal": world.end_ns, "drain": world.end_ns + SECOND_NS}
    phases |= {"snapshot": world.end_ns + DRAIN_NS, "stop": world.end_ns + DRAIN_NS + 2 * SECOND_NS}
    with Source(folder, "run") as run:
        run.tell("topic_named", 0, topic=TOPIC)
        run.tell("group_named", 0, group=GROUP)
        last_s = (world.end_ns + DRAIN_NS) // SECOND_NS + 6
        for at_s in range(last_s):
            at_ns = at_s * SECOND_NS
            run.tell("clock", at_ns, wall_ns=WALL_NS + at_ns)
            for phase, begins_ns in phases.items():
                if at_ns <= begins_ns < at_ns + SECOND_NS:
                    run.tell("phase", begins_ns, phase=phase)
            run.tell("scheduling_delay", at_ns + SECOND_NS - 2, delay_ns=1_000_000)
            run.tell("oom_kills", at_ns + SECOND_NS - 2, count=0)
            for member in range(world.shape.members if at_s < last_s - 6 else 0):
                used = {"cpu_s": at_s / 10, "rss_bytes": 28_000_000, "processes": 1}
                run.tell("resources", at_ns + SECOND_NS - 1, member=f"m{member}", incarnation=0, **used)
        run.tell("calibrated", last_s * SECOND_NS, count=2000, seconds=4.0, rate=500.0, all_drained=True)
        run.tell("end", last_s * SECOND_NS, outcome="ok")


def _write_workload(folder: Path, world: World) -> None:
    fixed = f'"topic":"{TOPIC}","id":"%d-%d","key":"k%d","size_bytes":1024,"checksum":%d'
    with Source(folder, "workload") as workload:
        for partition, index in stretches(world, BEGIN_NS, world.end_ns):
            sent_ns = world.sent_ns(partition, index)
            # An answer is told in the stretch of its question, which may end before it could have come.
            answered_ns = np.minimum(sent_ns + ANSWERED_NS, sent_ns.max(initial=0) + 1)
            said = (partition, index, world.keys_of(partition, index), world.checksums_of(partition, index))
            offset = index + world.shape.first_offset
            workload.write(
                Events("send", sent_ns * 2, sent_ns, f'"outcome":"invoke",{fixed}', said),
                Events(
                    "send",
                    answered_ns * 2 + 1,
                    answered_ns,
                    f'"outcome":"ok",{fixed},"partition":%d,"offset":%d,"op":%d',
                    (*said, partition, offset),
                    completes=0,
                ),
            )


def _write_group(folder: Path, world: World, planted: Planted) -> None:
    with ExitStack() as stack:
        group = Group(world, planted, lambda name: stack.enter_context(Source(folder, name)))
        group.begin()
        for generation in range(world.shape.handovers + 1):
            group.take_over(generation)
            for partition, index in stretches(
                world, world.handover_ns(generation) - LATENCY_NS, _until_ns(world, generation)
            ):
                group.work(generation, partition, index)
        group.end()


def _until_ns(world: World, generation: int) -> int:
    """Returns from when on what is sent is delivered to the owners after these."""
    last = generation == world.shape.handovers
    return world.end_ns if last else world.handover_ns(generation + 1) - LATENCY_NS


def _write_observer(folder: Path, world: World, planted: Planted) -> None:
    shape = world.shape
    with Source(folder, "observer") as observer:
        topic = {"topic": TOPIC, "topic_id": TOPIC_ID}
        observer.tell("topic", SECOND_NS, **topic, partitions=shape.partitions, cleanup_policy="delete")
        observer.tell("witness", SECOND_NS, state="ready")
        for partition in range(shape.partitions):
            of = topic | {"partition": partition}
            replicas = {"replicas": [0, 1, 2], "isr": [0, 1, 2]}
            observer.tell("leader", SECOND_NS, **of, leader=partition % BROKERS, epoch=0, **replicas)
            observer.tell("log_start", SECOND_NS, **of, offset=shape.first_offset)
        for at_ns in np.linspace(BEGIN_NS, world.end_ns, ENDS_READ).astype(np.int64).tolist():
            _tell_ends(observer, world, at_ns)
        read_ns = world.end_ns + DRAIN_NS + SECOND_NS
        _tell_ends(observer, world, read_ns)
        count = sum(_tell_records(observer, world, *part, read_ns) for part in _log_of(world, planted))
        observer.tell("control_read", read_ns + SECOND_NS, **topic, state="complete", count=count)
        observer.tell("witness", read_ns + SECOND_NS, state="complete")


def _log_of(world: World, planted: Planted) -> Iterator[tuple[Ints, Ints]]:
    """Yields (partition, index) of the records that the log holds, a bounded number at a time."""
    step = max(1, STRETCH_RECORDS // world.shape.partitions)
    for low in range(0, int(world.counts.max()), step):
        partition, index = ranges(np.minimum(low, world.counts), np.minimum(low + step, world.counts))
        kept = ~np.isin(places(partition, index), planted.lost)
        yield partition[kept], index[kept]


def _tell_ends(observer: Source, world: World, at_ns: int) -> None:
    partition = np.arange(world.shape.partitions)
    times = np.full(len(partition), at_ns)
    end = world.sent_before(at_ns) + world.shape.first_offset
    fields = f'"topic":"{TOPIC}","topic_id":"{TOPIC_ID}","partition":%d,"offset":%d,"asked_ns":%d'
    observer.write(Events("log_end", partition, times, fields, (partition, end, times - 1_000_000)))


def _tell_records(observer: Source, world: World, partition: Ints, index: Ints, read_ns: int) -> int:
    """Writes records of the control read, and returns how many."""
    fields = (
        f'"topic":"{TOPIC}","partition":%d,"offset":%d,"id":"%d-%d","key":"k%d","checksum":%d,"size_bytes":1024,'
        '"source_wall_ns":%d'
    )
    columns = (
        partition,
        index + world.shape.first_offset,
        partition,
        index,
        world.keys_of(partition, index),
        world.checksums_of(partition, index),
        world.sent_ns(partition, index) // 1_000_000 * 1_000_000 + WALL_NS,
    )
    observer.write(Events("record", np.arange(len(index)), np.full(len(index), read_ns), fields, columns))
    return len(index)

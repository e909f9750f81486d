"""How long `check` takes: a generated history of n events, judged in a process of its own and again in a warm session.

The history is that of a sound consumer: three members, six partitions, every record delivered, handled, and committed
in batches, commits in both witnesses' logs. `python -m lab.bench.check FOLDER` judges one run folder.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.judge import judge
from kafka_trial.process.children import ChildProcesses

SECOND_NS = 1_000_000_000
STEP_NS = 100_000  # between two records of a partition
MEMBERS, PARTITIONS, BATCH = 3, 6, 50
EVENTS_PER_RECORD = 3.1  # control read, delivered, processed; commits come in batches
COLD_WITHIN_S = 600
Fields = dict[str, Any]


def bench_check(events: int, *, runs: int = 3) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Returns the seconds of `check` on a history of about `events` events: cold (a process each) and warm."""
    with tempfile.TemporaryDirectory(prefix="kafka-trial-bench-") as place:
        folder = RunFolder(Path(place))
        write_history(folder, events)
        cold = tuple(_cold(folder) for _ in range(runs))
        judge(folder)  # the first one warms the session and makes the cache
        warm = tuple(_timed(folder) for _ in range(runs))
    return cold, warm


def write_history(folder: RunFolder, events: int) -> None:
    """Writes the history of a sound consumer, of about that many events, into a run folder."""
    folder.history.mkdir(parents=True)
    records = int(events / EVENTS_PER_RECORD) // PARTITIONS
    end_ns = SECOND_NS + records * STEP_NS * 3
    with Recorder(folder.history, "run", buffer_events=1000) as run:
        run.record("group_named", time_ns=0, group="g")
        run.record("topic_named", time_ns=0, topic="t")
        for at_s in range(end_ns // SECOND_NS + 30):
            run.record("clock", time_ns=at_s * SECOND_NS, wall_ns=at_s * SECOND_NS)
        for phase, at_ns in _phases(end_ns):
            run.record("phase", time_ns=at_ns, phase=phase)
        run.record("end", time_ns=end_ns + 30 * SECOND_NS, outcome="ok")
    _write_observer(folder, records, end_ns)
    for member in range(MEMBERS):
        _write_member(folder, member, records)
    _write_witnesses(folder, records)


def _phases(end_ns: int) -> Iterator[tuple[str, int]]:
    yield "prepare", 0
    yield "steady", SECOND_NS
    yield "heal", end_ns
    yield "drain", end_ns + SECOND_NS
    yield "snapshot", end_ns + 20 * SECOND_NS


def _write_observer(folder: RunFolder, records: int, end_ns: int) -> None:
    with Recorder(folder.history, "observer", buffer_events=1000) as observer:
        for partition in range(PARTITIONS):
            for offset in range(records):
                observer.record(
                    "record",
                    time_ns=end_ns + 21 * SECOND_NS,
                    topic="t",
                    partition=partition,
                    offset=offset,
                    id=f"{partition}-{offset}",
                    key=f"key-{offset % 97}",
                    source_wall_ns=SECOND_NS + offset * STEP_NS,
                )
            observer.record("log_end", time_ns=end_ns + 21 * SECOND_NS, topic="t", partition=partition, offset=records)
        observer.record("control_read", time_ns=end_ns + 22 * SECOND_NS, topic="t", state="complete", count=0)
        observer.record("witness", time_ns=end_ns + 22 * SECOND_NS, state="complete")


def _owned(member: int) -> list[int]:
    return [partition for partition in range(PARTITIONS) if partition % MEMBERS == member]


def _write_member(folder: RunFolder, member: int, records: int) -> None:
    who = {"member": f"m{member}", "incarnation": 0}
    entries = [{"topic": "t", "partition": partition} for partition in _owned(member)]
    with Recorder(folder.history, f"consumer-m{member}-0", buffer_events=1000) as said:
        said.record("started", time_ns=0, pid=1, lane=member, **who)
        said.record("assigned", time_ns=SECOND_NS // 2, entries=entries, **who)
        for offset in range(records):
            at_ns = SECOND_NS + offset * STEP_NS * 2
            for number, partition in enumerate(_owned(member)):
                place = {"topic": "t", "partition": partition, "offset": offset, **who}
                said.record("delivered", time_ns=at_ns + number * 2, **place)
                said.record("processed", time_ns=at_ns + number * 2 + 1, outcome="done", **place)
            if (offset + 1) % BATCH == 0 or offset + 1 == records:
                positions = [entry | {"committed_offset": offset + 1} for entry in entries]
                said.record("commit", time_ns=at_ns + 10, outcome="invoke", entries=positions, **who)
        said.record("exited", time_ns=SECOND_NS * 60 + records * STEP_NS * 3, code=0, **who)


def _write_witnesses(folder: RunFolder, records: int) -> None:
    with (
        Recorder(folder.history, "offsets", buffer_events=1000) as offsets,
        Recorder(folder.history, "requests-b1", buffer_events=1000) as requests,
    ):
        owners = [
            {"topic": "t", "partition": partition, "member_id": f"id-{partition % MEMBERS}"}
            for partition in range(PARTITIONS)
        ]
        log = {"group": "g", "log_partition": 0}
        offsets.record(
            "group", time_ns=SECOND_NS // 3, protocol="classic", epoch=1, entries=owners, log_offset=0, **log
        )
        place = 1
        for _, value in pairwise([*range(0, records, BATCH), records]):
            at_ns = SECOND_NS + value * STEP_NS * 2 + 1_000_000
            for partition in range(PARTITIONS):
                committed = {"topic": "t", "partition": partition, "committed_offset": value}
                offsets.record(
                    "committed", time_ns=at_ns, commit_time_ms=at_ns // 1_000_000, log_offset=place, **log, **committed
                )
                requests.record(
                    "request", time_ns=at_ns, source_wall_ns=at_ns + 1_000_000, **_asked(partition), entries=[committed]
                )
                place += 1
        for witness in (offsets, requests):
            witness.record("witness", time_ns=SECOND_NS * 100, state="complete")


def _asked(partition: int) -> Mapping[str, Any]:
    member = partition % MEMBERS
    return {"api": "OFFSET_COMMIT", "lane": member, "member_id": f"id-{member}", "group": "g", "duration_ms": 2.0}


def _timed(folder: RunFolder) -> float:
    began_s = time.monotonic()
    judge(folder)
    return time.monotonic() - began_s


def _cold(folder: RunFolder) -> float:
    """Judges in a process of its own, which finds no cache."""
    (folder.cache / "trial_context.json").unlink(missing_ok=True)
    began_s = time.monotonic()
    with ChildProcesses("bench") as child_processes:
        child = child_processes.spawn("check", [sys.executable, "-m", "lab.bench.check", folder.path])
        status = child.wait(within_s=COLD_WITHIN_S)
    took_s = time.monotonic() - began_s
    if status:
        raise RuntimeError(f"judging {folder.path} in a process of its own ended with status {status}")
    return took_s


def main() -> None:
    """Judges one run folder and prints what it took."""
    folder = RunFolder(Path(sys.argv[1]))
    judgement = judge(folder)
    memory_mb = psutil.Process().memory_info().rss // 1_000_000
    found = {name: finding.count for name, finding in judgement.findings.items() if finding.count}
    print(f"{judgement.coverage.records} records, {memory_mb} MB in the driver's Python, found: {found}")


if __name__ == "__main__":
    main()

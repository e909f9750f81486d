"""Case 4, large records: what a consumer holds, as preflight predicts it, and as it is measured in a process.

A rung of the ladder is a size of records; on each, two libraries with a few settings of what they fetch ahead take
from a backlog of one broker, which is larger than what they may hold (`drained_bytes`). Prediction and tolerance stand
here and in `kafka_trial/preflight`, and are part of what a row is made by: a changed formula asks for new rows.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer

from kafka_trial import registry
from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.java import find_java
from kafka_trial.cluster.kafka_jars import class_path
from kafka_trial.cluster.processes import process_cluster
from kafka_trial.cluster.user_cache import run_tool
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.errors import StartError
from kafka_trial.preflight.answer import Answer, answer
from kafka_trial.preflight.plan import make_plans
from kafka_trial.preflight.size_settings import JAVA, LIBRDKAFKA
from kafka_trial.preflight.sizes import parse_size
from kafka_trial.report.row_files import append_row, rows_in
from lab.repository import git_revision, reports_folder

CASE: Final = 4
ROWS_NAME: Final = "large_records.jsonl"
PROBES: Final = registry.CHECKOUT / "fixtures" / "large-records"
LADDER: Final = ("1kB", "10kB", "100kB", "1MB", "5MB", "10MB")
LIBRARIES: Final = (LIBRDKAFKA, JAVA)
MIB: Final = 1 << 20
# What a consumer fetches ahead, by its own settings. A bomb is only met with the narrow one: with any other it may take
# 4 GB.
PREFETCH: Final[Mapping[str, Mapping[str, Mapping[str, int]]]] = {
    LIBRDKAFKA: {
        "default": {},
        "small": {"queued.max.messages.kbytes": 8192},
        "wide": {
            "queued.max.messages.kbytes": 32768,
            "max.partition.fetch.bytes": 8 * MIB,
            "fetch.max.bytes": 32 * MIB,
        },
        "few": {"queued.min.messages": 1000},
        "narrow": {"max.partition.fetch.bytes": 65536},
    },
    JAVA: {
        "default": {},
        "wide": {"max.partition.fetch.bytes": 8 * MIB},
        "capped": {"max.partition.fetch.bytes": 8 * MIB, "fetch.max.bytes": 8 * MIB},
        "one-record": {"max.partition.fetch.bytes": 8 * MIB, "max.poll.records": 1},
        "narrow": {"max.partition.fetch.bytes": 65536},
    },
}
LEVELS: Final = {LIBRDKAFKA: ("default", "small", "wide"), JAVA: ("default", "wide", "one-record")}
OTHER_BOUNDS: Final = {(LIBRDKAFKA, "few"): ("1kB",), (JAVA, "capped"): ("1MB", "10MB")}  # on some rungs only
PLAIN, TEXT, ZEROS = "plain", "text", "zeros"  # what is in the records; the last two are compressed
COMPRESSED: Final = {(TEXT, "default"): ("1MB", "10MB"), (ZEROS, "narrow"): ("10MB",)}
CODEC: Final = "gzip"
PARTITIONS: Final = 4
BACKLOG_BYTES: Final = 160_000_000
BACKLOG_RECORDS_MIN: Final = 24  # of the largest
BOMBS_BYTES: Final = 800_000_000  # decompressed
LARGE_BYTES: Final = 1_000_000  # from here on one record is about as large as what a partition gives by default
OTHERS_BYTES: Final = 100_000  # in batches, which leave room in a response that the queue still has
RECORD_BYTES_MAX: Final = 12 * MIB
BROKER_HEAP_MIB: Final = 640
# A full collection leaves dead objects of up to 5 % of the old generation where they are, if it is not told otherwise:
# 12 MB were measured.
JVM: Final = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:MarkSweepDeadRatio=0", "-XX:TieredStopAtLevel=1")
TOLERANCE: Final = 0.30  # of the prediction, either way
TOLD_BYTES_MIN: Final = 4 * MIB  # a smaller prediction drowns in what a process takes by itself
AGREES, OFF, TOO_SMALL, NOT_MEASURED = "agrees", "off", "too small to tell", "not measured"


@dataclass(frozen=True)
class MemoryCell:
    """One measurement that is asked for: a size of records, a library, what it fetches ahead, and what records hold."""

    size: str
    library: str
    prefetch: str
    content: str = PLAIN

    @property
    def name(self) -> str:
        """How the command line calls it."""
        return "/".join((self.size, self.library, self.prefetch, *(() if self.content == PLAIN else (self.content,))))

    @property
    def record_bytes(self) -> int:
        return parse_size(self.size)

    @property
    def settings(self) -> Mapping[str, int]:
        return PREFETCH[self.library][self.prefetch]

    @property
    def backlog(self) -> Mapping[int, tuple[bytes, int]]:
        """What is in each partition: a value, and how many of them.

        Beside large records the other partitions have smaller ones: that is the worst of what a response may hold.
        A broker leaves out of it what does not fit into what a partition may give (max.partition.fetch.bytes), but for
        the first batch; and where a response holds just as many records as librdkafka's queue takes, one is gone
        whenever the next is asked for. Text is larger than that compressed, too; a bomb fits.
        """
        largest = value_of(self.content, self.record_bytes)
        others = largest if self.record_bytes < LARGE_BYTES or self.content == ZEROS else largest[:OTHERS_BYTES]
        in_all = max(BACKLOG_BYTES, BACKLOG_RECORDS_MIN * self.record_bytes) if self.content != ZEROS else BOMBS_BYTES
        values = [largest, *[others] * (PARTITIONS - 1)]
        return {number: (value, in_all // PARTITIONS // len(value)) for number, value in enumerate(values)}

    @property
    def backlog_bytes(self) -> int:
        """How much that is in all, before compression."""
        return sum(len(value) * count for value, count in self.backlog.values())


@dataclass(frozen=True)
class ProbePlace:
    """Where a probe runs: the folder of Java's, the brokers, an empty topic and a full one."""

    classes: Path
    bootstrap: str
    empty: str
    full: str


@dataclass(frozen=True)
class MemoryRow:
    """One measurement, in bytes. `base_bytes`: idle, assigned to an empty topic; `peak_bytes`: at most, to the end of
    the backlog. Of librdkafka the resident memory of its process; of Java what is left in the heap after a collection,
    and the buffers outside of it (`outside_bytes`). `resident_bytes` is that of the process in both cases. `ratio`: by
    which the records are compressed. `told` says why nothing was measured."""

    cell: str
    size_bytes: int
    library: str
    prefetch: str
    content: str
    ratio: float
    predicted_bytes: int
    base_bytes: int = 0
    peak_bytes: int = 0
    outside_bytes: int = 0
    resident_bytes: int = 0
    told: str = ""
    tolerance: float = TOLERANCE
    kafka: str = DEFAULT_VERSION
    digest: str = ""
    commit: str = ""

    @property
    def held_bytes(self) -> int:
        """What it took over its idle base."""
        return self.peak_bytes - self.base_bytes

    @property
    def verdict(self) -> str:
        """Whether the prediction holds."""
        if self.told or not self.base_bytes:
            return NOT_MEASURED
        return verdict_of(self.predicted_bytes, self.held_bytes, self.tolerance)


def verdict_of(predicted_bytes: int, held_bytes: int, tolerance: float = TOLERANCE) -> str:
    """Tells whether what was held agrees with its prediction."""
    if predicted_bytes < TOLD_BYTES_MIN:
        return TOO_SMALL
    return AGREES if abs(held_bytes - predicted_bytes) <= tolerance * predicted_bytes else OFF


def predicted(cell: MemoryCell) -> Answer:
    """Returns what preflight says of a cell: its `process_bytes` are what is predicted over the idle base."""
    words: dict[str, Any] = {
        "record_max": cell.record_bytes,
        "partitions_per_consumer": PARTITIONS,
        "brokers": 1,
        "consumer_library": cell.library,
        "consumer": dict(cell.settings),
    }
    if cell.content != PLAIN:
        words |= {"compression": CODEC, "compression_ratio": round(ratio(cell), 3)}
    (plan,) = make_plans(words, where=cell.name)
    return answer(plan)


def ratio(cell: MemoryCell) -> float:
    """Returns how many times smaller the codec makes a record of the cell."""
    value = value_of(cell.content, cell.record_bytes)
    return 1.0 if cell.content == PLAIN else len(value) / len(gzip.compress(value))


def drained_bytes(cell: MemoryCell) -> int:
    """Returns how much of the backlog a process takes: several times what it is predicted to hold.

    librdkafka fetches ahead all the time, so that all of it must be there, and as much again as a full queue is taken;
    Java only what the next polls hand out.
    """
    if cell.library == LIBRDKAFKA:
        return min(cell.backlog_bytes, predicted(cell).process_bytes)
    return min(cell.backlog_bytes, max(BACKLOG_BYTES // 3, 3 * predicted(cell).process_bytes))


def ladder() -> Iterator[MemoryCell]:
    """Yields every cell, the smallest records first."""
    for size in LADDER:
        for library in LIBRARIES:
            yield from (MemoryCell(size, library, prefetch) for prefetch in LEVELS[library])
        yield from (MemoryCell(size, *bound) for bound, sizes in OTHER_BOUNDS.items() if size in sizes)
        for (content, prefetch), sizes in COMPRESSED.items():
            yield from (MemoryCell(size, library, prefetch, content) for library in LIBRARIES if size in sizes)


@cache
def digest() -> str:
    """Returns what a row is made by: the formulas, the probes and this module."""
    files = [Path(__file__), PROBES / "memory_probe.py", PROBES / "MemoryProbe.java"]
    files += sorted((registry.PACKAGE / "preflight").glob("*.py"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]


def measure_missing(cells: Sequence[MemoryCell], *, until_s: float | None, say: Callable[[str], object]) -> None:
    """Measures what has no row of today yet, one after the other, and appends its rows; begins none after `until_s`."""
    file = reports_folder() / ROWS_NAME
    done = {row.cell for row in read_rows(file) if row.digest == digest() and not row.told}
    todo = [cell for cell in cells if cell.name not in done]
    if not todo:
        return
    with probe_bench() as place_of:
        for number, cell in enumerate(todo, start=1):
            if until_s is not None and time.monotonic() > until_s:
                return
            row = _row(cell, *run_tool("memory probe", probe_command(cell, place_of(cell))))
            append_row(file, row)
            say(
                f"{number}/{len(todo)} {cell.name}: {row.verdict}, {row.held_bytes} of {row.predicted_bytes} {row.told}"
            )


def read_rows(file: Path) -> list[MemoryRow]:
    """Returns the rows of a file, see `row_files.py`."""
    return rows_in(file, lambda table: MemoryRow(**table))


@contextmanager
def probe_bench() -> Iterator[Callable[[MemoryCell], ProbePlace]]:
    """Boots one broker, compiles the probe, and yields what makes the backlog of a cell there, once."""
    topics: dict[tuple[str, str], str] = {}
    with (
        tempfile.TemporaryDirectory(prefix="kafka-trial-probe-") as classes,
        process_cluster(DEFAULT_VERSION, brokers=1, lanes=1, heap_mib=BROKER_HEAP_MIB) as cluster,
        Admin(cluster.observer_bootstrap) as admin,
    ):
        compile_probe(Path(classes))
        empty = make_topic(admin)

        def place_of(cell: MemoryCell) -> ProbePlace:
            backlog = cell.size, cell.content
            if backlog not in topics:
                topics[backlog] = make_topic(admin)
                fill_topic(cluster.observer_bootstrap, topics[backlog], cell)
            return ProbePlace(Path(classes), cluster.observer_bootstrap, empty, topics[backlog])

        yield place_of


def _row(cell: MemoryCell, status: int, said: str) -> MemoryRow:
    about: dict[str, Any] = {
        "cell": cell.name,
        "size_bytes": cell.record_bytes,
        "library": cell.library,
        "prefetch": cell.prefetch,
        "content": cell.content,
        "ratio": round(ratio(cell), 3),
        "predicted_bytes": predicted(cell).process_bytes,
        "digest": digest(),
        "commit": git_revision(),
    }
    lines = [line for line in said.splitlines() if line.startswith("{")]
    if status or not lines:
        return MemoryRow(told=f"status {status}: {said[-300:]}", **about)
    measured = json.loads(lines[-1])
    taken = measured.pop("taken")
    if taken < drained_bytes(cell):
        return MemoryRow(told=f"only {taken} of {drained_bytes(cell)} bytes came in time", **about)
    return MemoryRow(**about, **measured)


def probe_command(cell: MemoryCell, place: ProbePlace, *, jvm: Sequence[str] = JVM, idle: bool = False) -> list[str]:
    """Returns the command of a probe; of an idle one, which takes nothing."""
    full, take_bytes = (place.empty, 0) if idle else (place.full, drained_bytes(cell))
    if cell.library == LIBRDKAFKA:
        asked = {"bootstrap": place.bootstrap, "empty": place.empty, "full": full, "partitions": PARTITIONS}
        asked |= {"take_bytes": take_bytes, "settings": dict(cell.settings)}
        return [sys.executable, str(PROBES / "memory_probe.py"), json.dumps(asked)]
    java = [str(find_java()), *jvm, "-cp", f"{place.classes}:{class_path(DEFAULT_VERSION)}", "MemoryProbe"]
    settings = [f"{name}={value}" for name, value in cell.settings.items()]
    return [*java, place.bootstrap, place.empty, full, str(PARTITIONS), str(take_bytes), *settings]


def compile_probe(classes: Path) -> None:
    """Compiles Java's probe into a folder."""
    compiler = find_java().resolve().with_name("javac")
    if not compiler.exists():
        raise StartError(f"there is no {compiler} to compile the probe with: set JAVA_HOME to a JDK")
    source = PROBES / "MemoryProbe.java"
    status, said = run_tool("javac", [compiler, "-d", classes, "-cp", class_path(DEFAULT_VERSION), source])
    if status:
        raise StartError(f"javac ended with {status}: {said[-2000:]}")


def make_topic(admin: Admin) -> str:
    """Makes a topic for large records, and returns its name."""
    name = f"large-{secrets.token_hex(4)}"
    configs = {"max.message.bytes": str(RECORD_BYTES_MAX), "min.insync.replicas": "1"}
    admin.create_topic(name, partitions=PARTITIONS, replication_factor=1, configs=configs)
    return name


def fill_topic(bootstrap: str, topic: str, cell: MemoryCell) -> None:
    """Sends the backlog of a cell, the same to each partition in turn."""
    settings = {"bootstrap.servers": bootstrap, "message.max.bytes": RECORD_BYTES_MAX, "linger.ms": 5}
    producer = Producer(settings | ({} if cell.content == PLAIN else {"compression.type": CODEC}))
    refused: list[object] = []
    for partition, (value, count) in cell.backlog.items():
        for _ in range(count):
            while len(producer) * len(value) > BACKLOG_BYTES // 4:
                producer.poll(0.1)
            producer.produce(topic, value, partition=partition, on_delivery=lambda error, _: refused.append(error))
            producer.poll(0)
    left = producer.flush(120)
    if left or any(refused):
        raise StartError(f"the backlog of {cell.name} was not stored: {left} records left, {set(map(str, refused))}")


@cache
def value_of(content: str, size_bytes: int) -> bytes:
    """Returns what a record holds: the same each time."""
    rng = random.Random(size_bytes)
    if content == ZEROS:
        return bytes(size_bytes)
    if content == PLAIN:
        return rng.randbytes(size_bytes)
    line = b'{"customer":"%s","state":"shipped, not paid for","items":[]}\n'
    lines = b"".join(line % rng.randbytes(8).hex().encode() for _ in range(size_bytes // 60 + 1))
    return lines[:size_bytes]

"""Case 4, large records: at each refusing hop the largest record that preflight lets through, and the one above it.

One broker has limits that are far apart, and topics and clients have theirs, so that of each way another hop is the
narrowest. What refused is known by the words of whoever did: an exception of a client, an error code of the broker, or
a line in its log, or in the client's, where only the connection is dropped.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from kafka_trial import registry
from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.java import find_java
from kafka_trial.cluster.kafka_jars import class_path
from kafka_trial.cluster.processes import process_cluster
from kafka_trial.cluster.user_cache import run_tool
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.errors import UnjudgeableError
from kafka_trial.preflight.answer import Answer, answer, name_of
from kafka_trial.preflight.plan import make_plans
from kafka_trial.preflight.size_settings import JAVA, LIBRDKAFKA
from kafka_trial.report.row_files import append_row, rows_in
from lab.repository import git_revision, reports_folder

ROWS_NAME: Final = "refusing_hops.jsonl"
BROKER: Final = {"message.max.bytes": "200000", "socket.request.max.bytes": "2000000"}
WIDE: Final = {"max.message.bytes": "3000000"}  # of a topic whose own limit is not in question
GENEROUS: Final = {"message.max.bytes": 5_000_000}  # of a producer
SLACK_BYTES: Final = 600  # above the limit, sizes of requests and responses are upper bounds
STORED = "stored"
SEND_WITHIN_S: Final = 4.0  # while the broker hangs up, librdkafka sends it again
READ_WITHIN_S: Final = 15.0
# What only the one who refused says → the setting that it names.
SAYS: Final = {
    "max.request.size configuration": "producer: max.request.size",
    "buffer.memory configuration": "producer: buffer.memory",
    "produce() refused: MSG_SIZE_TOO_LARGE": "producer: message.max.bytes",
    "produce() refused: _QUEUE_FULL": "producer: queue.buffering.max.kbytes",
    "broker refused: RECORD_LIST_TOO_LARGE": "broker, batch: segment.bytes",
    "larger than 2000000": "broker, request: socket.request.max.bytes",
    "increase receive.message.max.bytes": "consumer: receive.message.max.bytes",
}
TOO_LARGE: Final = "broker refused: MSG_SIZE_TOO_LARGE"  # of its own limit, or of the topic's where there is one


@dataclass(frozen=True)
class HopCell:
    """One way on which a certain hop is the narrowest. `slack_bytes`: how far above what preflight says a record may
    still pass; 0: not a byte."""

    hop: str
    library: str = LIBRDKAFKA
    producer: Mapping[str, int] = field(default_factory=lambda: GENEROUS)
    topic: Mapping[str, str] = field(default_factory=lambda: WIDE)
    consumer: Mapping[str, int] = field(default_factory=dict)
    slack_bytes: int = 0

    @property
    def reads(self) -> bool:
        """Whether it is the consumer that refuses."""
        return bool(self.consumer)


CELLS: Final = (
    HopCell("producer: max.request.size", JAVA, {"max.request.size": 50_000}),
    HopCell(
        "producer: buffer.memory", JAVA, {"buffer.memory": 60_000, "batch.size": 1000, "max.request.size": 1_000_000}
    ),
    HopCell("producer: message.max.bytes", producer={"message.max.bytes": 50_000}),
    HopCell("producer: queue.buffering.max.kbytes", producer={**GENEROUS, "queue.buffering.max.kbytes": 50}),
    HopCell("broker, request: socket.request.max.bytes", slack_bytes=SLACK_BYTES),
    HopCell("broker, batch: message.max.bytes", topic={}),
    HopCell("broker, batch: max.message.bytes", topic={"max.message.bytes": "100000"}),
    HopCell("broker, batch: segment.bytes", topic={**WIDE, "segment.bytes": "1048576"}),
    HopCell(
        "consumer: receive.message.max.bytes",
        consumer={"message.max.bytes": 1000, "fetch.max.bytes": 4000, "receive.message.max.bytes": 8000},
        slack_bytes=SLACK_BYTES,
    ),
)


@dataclass(frozen=True)
class HopRow:
    """What became of records around the limit of a hop, in bytes. `passes_bytes`: the largest that preflight lets
    through, which passed (`passed`); `refused_bytes`: the smallest above it that was refused, by `refused_by`, which
    `said` so; preflight names `predicted_by` for it."""

    hop: str
    library: str
    passes_bytes: int
    passed: bool
    refused_bytes: int
    refused_by: str
    predicted_by: str
    said: str
    kafka: str = DEFAULT_VERSION
    digest: str = ""
    commit: str = ""

    @property
    def agrees(self) -> bool:
        """Whether preflight was right about both records, and about the hop."""
        return self.passed and self.hop == self.refused_by == self.predicted_by


def predicted(cell: HopCell, record_bytes: int = 1000) -> Answer:
    """Returns what preflight says of a record on the way of a cell."""
    words = {
        "record_max": record_bytes,
        "partitions_per_consumer": 1,
        "brokers": 1,
        "producer_library": cell.library,
        "consumer_library": LIBRDKAFKA,
        "producer": dict(cell.producer),
        "broker": BROKER,
        "topic": dict(cell.topic),
        "consumer": dict(cell.consumer),
    }
    (plan,) = make_plans(words, where=cell.hop)
    return answer(plan)


@contextmanager
def way_of(cluster: BootedCluster) -> Iterator[Callable[[HopCell, int], str]]:
    """Yields what sends a record of a size on the way of a cell, to a topic of the cell's own, and says what became of
    it: `STORED`, or the words of who refused it."""
    topics: dict[str, str] = {}
    with Admin(cluster.observer_bootstrap) as admin:

        def send(cell: HopCell, record_bytes: int) -> str:
            if cell.hop not in topics:
                topics[cell.hop] = f"hop-{secrets.token_hex(4)}"
                configs = {**cell.topic, "min.insync.replicas": "1"}
                admin.create_topic(topics[cell.hop], partitions=1, replication_factor=1, configs=configs)
            at = cluster.observer_bootstrap, topics[cell.hop]
            if cell.library == JAVA:
                return _by_java(at, cell, record_bytes)
            log = cluster.brokers[0].server_log
            known = log.stat().st_size
            became, offset = _by_librdkafka(at, cell, record_bytes)
            if became != STORED:
                return f"{became}; {_hung_up(log, known)}"
            return _read(at, cell, offset) if cell.reads else STORED

        yield send


def boundary(cell: HopCell, send: Callable[[HopCell, int], str]) -> HopRow:
    """Finds the smallest record that is refused, between the largest that preflight lets through and the slack."""
    passes_bytes = predicted(cell).record_limit_bytes
    passed = send(cell, passes_bytes) == STORED
    low, high = passes_bytes, passes_bytes + cell.slack_bytes + 1
    said = send(cell, high)
    while high - low > 1 and said != STORED:
        middle = (low + high) // 2
        became = send(cell, middle)
        low, high, said = (middle, high, said) if became == STORED else (low, middle, became)
    refused_by = predicted(cell, passes_bytes + 1).refused_by
    return HopRow(
        hop=cell.hop,
        library=cell.library,
        passes_bytes=passes_bytes,
        passed=passed,
        refused_bytes=high,
        refused_by=refusing(cell, said),
        predicted_by=name_of(refused_by) if refused_by else "",
        said=said[:300],
        digest=digest(),
        commit=git_revision(),
    )


def refusing(cell: HopCell, said: str) -> str:
    """Returns the hop whose words these are; nothing where none refused, or none that is known."""
    if TOO_LARGE in said:
        own = "max.message.bytes" if "max.message.bytes" in cell.topic else "message.max.bytes"
        return f"broker, batch: {own}"
    return next((hop for words, hop in SAYS.items() if words in said), "")


@cache
def digest() -> str:
    """Returns what a row is made by: preflight's limits, and this module."""
    files = [Path(__file__), *sorted((registry.PACKAGE / "preflight").glob("*.py"))]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]


def find_missing(cells: Sequence[HopCell], *, until_s: float | None, say: Callable[[str], object]) -> None:
    """Finds the boundary of each hop that has no row of today yet, and appends its row; begins none after `until_s`."""
    file = reports_folder() / ROWS_NAME
    done = {row.hop for row in read_rows(file) if row.digest == digest()}
    todo = [cell for cell in cells if cell.hop not in done]
    if not todo:
        return
    with one_broker() as cluster, way_of(cluster) as send:
        for cell in todo:
            if until_s is not None and time.monotonic() > until_s:
                return
            row = boundary(cell, send)
            append_row(file, row)
            say(f"{cell.hop}: {row.passes_bytes} passes, {row.refused_bytes} refused by {row.refused_by or 'nobody'}")


@contextmanager
def one_broker() -> Iterator[BootedCluster]:
    """Boots the broker with the limits."""
    with process_cluster(DEFAULT_VERSION, brokers=1, lanes=1, settings=BROKER) as cluster:
        yield cluster


def read_rows(file: Path) -> list[HopRow]:
    """Returns the rows of a file, see `row_files.py`."""
    return rows_in(file, lambda table: HopRow(**table))


def _by_java(at: tuple[str, str], cell: HopCell, record_bytes: int) -> str:
    """Sends one record by Kafka's own producer, as its performance tool does; an exception is printed, the status 0."""
    settings = [f"{name}={value}" for name, value in cell.producer.items()]
    command = [str(find_java()), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += ["-cp", class_path(DEFAULT_VERSION), "org.apache.kafka.tools.ProducerPerformance", "--topic", at[1]]
    command += ["--num-records", "1", "--throughput", "-1", "--record-size", str(record_bytes), "--producer-props"]
    status, said = run_tool("java producer", [*command, f"bootstrap.servers={at[0]}", *settings])
    refused = [line for line in said.splitlines() if "Exception" in line]
    if refused:
        return refused[0]
    if status or "1 records sent" not in said:
        raise UnjudgeableError(f"the Java producer ended with {status}: {said[-500:]}")
    return STORED


def _by_librdkafka(at: tuple[str, str], cell: HopCell, record_bytes: int) -> tuple[str, int]:
    """Sends one record; returns what became of it, and its offset."""
    own = {"bootstrap.servers": at[0], "linger.ms": 0, "log_level": 0}
    producer = Producer({**own, "message.timeout.ms": round(SEND_WITHIN_S * 1000), **cell.producer})
    told: list[tuple[str, int]] = []

    def delivered(error: Any, record: Any) -> None:
        told.append((f"broker refused: {error.name()}" if error else STORED, record.offset()))

    try:
        producer.produce(at[1], b"v" * record_bytes, partition=0, on_delivery=delivered)
    except BufferError:
        return "produce() refused: _QUEUE_FULL", -1
    except KafkaException as error:
        return f"produce() refused: {error.args[0].name()}", -1
    producer.flush(SEND_WITHIN_S * 3)
    if not told:
        raise UnjudgeableError(f"{cell.hop}: librdkafka did not say what became of a record")
    return told[0]


def _hung_up(log: Path, known: int) -> str:
    """Returns the last line that a broker wrote about a request that was too large; empty where it did not."""
    with log.open("rb") as lines:
        lines.seek(known)
        told = [line for line in lines.read().decode(errors="replace").splitlines() if "Invalid receive" in line]
    return told[-1].strip() if told else ""


def _read(at: tuple[str, str], cell: HopCell, offset: int) -> str:
    """Reads the record at an offset; returns `STORED`, or what librdkafka says where it drops the connection."""
    said: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    logger = logging.getLogger(f"{__name__}.{at[1]}")
    logger.propagate = False
    logger.addHandler(lines := Lines())
    consumer = Consumer({"bootstrap.servers": at[0], "group.id": at[1], **cell.consumer}, logger=logger)
    try:
        consumer.assign([TopicPartition(at[1], 0, offset)])
        until_s = time.monotonic() + READ_WITHIN_S
        while time.monotonic() < until_s:
            record = consumer.poll(0.2)
            if record is not None and record.error() is None:
                return STORED
            if any("receive.message.max.bytes" in line for line in said):
                return next(line for line in said if "receive.message.max.bytes" in line)
    finally:
        consumer.close()
        logger.removeHandler(lines)
    raise UnjudgeableError(f"{cell.hop}: a record of offset {offset} came neither, nor was it refused: {said[-3:]}")

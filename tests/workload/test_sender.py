"""Between client and log: what each error of the client means, and that a full queue loses and reorders nothing."""

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kafka_trial.history.event import from_line
from kafka_trial.workload.producer import Sender
from kafka_trial.workload.send_log import SendLog
from kafka_trial.workload.workload import Op

OPS = [Op(f"r{n}", n, "k0", None, 100, 0.0, "steady") for n in range(5)]


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, "fail"),
        (KafkaError.RECORD_LIST_TOO_LARGE, "fail"),
        (KafkaError.INVALID_RECORD, "fail"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "fail"),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, "fail"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "fail"),
        (KafkaError._MSG_TIMED_OUT, "info"),
        (KafkaError.REQUEST_TIMED_OUT, "info"),
        (KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, "info"),
        (KafkaError.NOT_LEADER_FOR_PARTITION, "info"),
        (KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "info"),
        (KafkaError._TRANSPORT, "info"),
        (KafkaError._PURGE_INFLIGHT, "info"),
        (KafkaError._FATAL, "info"),
    ],
)
@pytest.mark.parametrize("at", ["report", "hand-over"])
def test_only_the_listed_errors_are_fail(tmp_path: Path, code: int, outcome: str, at: str) -> None:
    """`fail` means definitely not in Kafka; every other error is `info`, whether reported or raised."""
    client = _Client(room=1, reports=code) if at == "report" else _Client(room=1, raises=code)
    sender = _sender(client, tmp_path)
    sender.send(OPS[:1])
    sender.poll(0)
    assert _outcomes(sender) == [("r0", "invoke"), ("r0", outcome)]


def test_a_full_queue_loses_and_reorders_nothing(tmp_path: Path) -> None:
    """Records that found no room go first when there is some; each is invoked once."""
    client = _Client(room=2)
    sender = _sender(client, tmp_path)
    sender.send(OPS)
    full = []
    while sender.full:
        full.append(len(client.taken))
        client.room += 2
        sender.push()
    assert (full, client.taken) == ([2, 4], ["r0", "r1", "r2", "r3", "r4"])
    assert _outcomes(sender) == [(op.id, "invoke") for op in OPS]


def test_invokes_are_written_before_the_client_has_a_record(tmp_path: Path) -> None:
    """When the first record is handed over, the invokes of the whole batch are in the file."""
    client = _Client(room=5)
    sender = _sender(client, tmp_path)
    client.on_first = lambda: seen.append(len(sender.log.path.read_bytes().splitlines()))
    seen: list[int] = []
    sender.send(OPS)
    assert seen == [5]


def test_a_record_without_a_value_is_sent_without_one(tmp_path: Path) -> None:
    """None, not nothing: an empty value would delete no key. Its checksum is that of an empty body at a sink."""
    client = _Client(room=2)
    sender = _sender(client, tmp_path)
    sender.send([OPS[0]._replace(null_value=True), OPS[1]])
    assert [value is None for value in client.values] == [True, False]
    first = from_line(sender.log.path.read_bytes().splitlines()[0])
    assert (first.details["size_bytes"], first.details["checksum"]) == (0, zlib.crc32(b""))


def test_an_unreadable_value_is_sent_as_it_was_told(tmp_path: Path) -> None:
    """Its checksum is that of the bytes that went out; a record without a value stays one."""
    client = _Client(room=2)
    sender = _sender(client, tmp_path)
    sender.send([OPS[0]._replace(unreadable=True), OPS[1]._replace(unreadable=True, null_value=True)])
    assert client.values[0] is not None
    assert (client.values[0][:1], client.values[1]) == (b"\xff", None)
    first = from_line(sender.log.path.read_bytes().splitlines()[0])
    assert first.details["checksum"] == zlib.crc32(client.values[0])


class _Client:
    """Takes records while it has `room`; reports or raises one error code for all, or acknowledges."""

    def __init__(self, *, room: int, reports: int | None = None, raises: int | None = None) -> None:
        self.room = room
        self.taken: list[str] = []
        self.values: list[bytes | None] = []
        self.on_first: Callable[[], None] = lambda: None
        self._reports = reports
        self._raises = raises
        self._callbacks: list[Callable[[KafkaError | None, Any], None]] = []

    def produce(self, topic: str, value: bytes | None, key: bytes, partition: int, **options: Any) -> None:
        if len(self.taken) >= self.room:
            raise BufferError
        if self._raises is not None:
            raise KafkaException(KafkaError(self._raises))
        if not self.taken:
            self.on_first()
        self.values.append(value)
        self.taken.append(options["headers"][0][1].decode())
        self._callbacks.append(options["on_delivery"])

    def poll(self, within_s: float) -> None:
        while self._callbacks and self._reports is not None:
            self._callbacks.pop(0)(KafkaError(self._reports), None)


def _sender(client: _Client, folder: Path) -> Sender:
    return Sender(client, SendLog(folder, ["t"]), lambda op: op.id.encode(), ["t"])


def _outcomes(sender: Sender) -> list[tuple[str | None, str | None]]:
    sender.log.write()
    events = [from_line(line) for line in sender.log.path.read_bytes().splitlines()]
    return [(event.id, event.outcome) for event in events]

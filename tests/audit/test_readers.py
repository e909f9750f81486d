"""Readers of an audit: side by side, each record once, never more than allowed; leaders answer literal batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kafka_trial.audit import bounded_reading as reading
from kafka_trial.audit import readers
from kafka_trial.audit.bounded_reading import Budget
from kafka_trial.audit.readers import Reading, ReadRecord, Taken, read_records
from kafka_trial.audit.request import AuditRequest, Identity, Limits
from kafka_trial.kafka_protocol.batches import Fetched, batches, records
from kafka_trial.kafka_protocol.connection import NoAnswerError
from kafka_trial.process.threads import ThreadGroup
from witness.literal_batches import ABORT, COMMIT, TRANSACTIONAL, batch_of, marker_of

PARTITIONS, BATCHES, SIZE = range(4), range(5), 10
LOG_APPEND_TIME = 0x08
WHOLE = [batch_of(at * SIZE, [(b"k", b"v")] * SIZE, name=f"r{at}-") for at in BATCHES]
BATCH_BYTES = len(next(batches(WHOLE[0])).payload)
RANGES = dict.fromkeys(PARTITIONS, (0, len(BATCHES) * SIZE))


class Leader:
    """Answers fetches of any partition with the batches from a position on, two at a time; None: it does not answer."""

    def __init__(self, log: Sequence[bytes] | None) -> None:
        self._log = log
        self.connections = 0
        self.fetches = 0

    def connect(self, _: AuditRequest) -> Leader:
        """Stands for a new connection."""
        self.connections += 1
        return self

    def broker(self, _: int, question: Any) -> Fetched:
        """Answers a fetch."""
        self.fetches += 1
        if self._log is None:
            raise NoAnswerError("nobody is there")
        position = question.keywords["position"]
        rest = [one for one in self._log if next(batches(one)).next_offset > position]
        return Fetched(10**6, 10**6, b"".join(rest[:2]))

    def __enter__(self) -> Leader:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class EventCounter:
    """Counts records that are told."""

    count = 0

    def record(self, kind: str, *, time_ns: int | None = None, **fields: Any) -> int:
        """Takes one event."""
        self.count += kind == "record"
        return self.count


Read = Callable[..., tuple[list[ReadRecord], Reading, Leader]]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    """Returns how to read all partitions under some limits, from a leader with a log."""

    def reads(
        limits: Limits, *, log: Sequence[bytes] | None = WHOLE, within_s: float = 30.0, ranges: Any = RANGES
    ) -> tuple[list[ReadRecord], Reading, Leader]:
        leader, found = Leader(log), list[ReadRecord]()
        monkeypatch.setattr(readers, "connect", leader.connect)
        monkeypatch.setattr(reading, "leaders_of", lambda *_: dict.fromkeys(PARTITIONS, 0))
        asked = AuditRequest("h:1", "t", "g", 0, 1, limits=limits)
        budget = Budget(limits, until_s=time.monotonic() + within_s)
        done = read_records(asked, "t", ranges, budget, found.append, identity=Identity())
        return found, done, leader

    return reads


@pytest.mark.parametrize(("limit", "connections"), [(1, 1), (3, 3), (9, 4)])
def test_each_record_is_read_once_by_so_many_readers(read: Read, limit: int, connections: int) -> None:
    """Each has a connection of its own; there are no more of them than partitions."""
    found, done, leader = read(Limits(readers=limit))
    places = sorted((one.partition, one.offset) for one in found)
    assert places == [(partition, offset) for partition in PARTITIONS for offset in range(50)]
    assert (done.count, done.unread, leader.connections) == (200, [], connections)


@pytest.mark.parametrize(
    ("limits", "records_read"),
    [
        (Limits(records_max=95), 90),
        (Limits(records_max=9), 0),
        (Limits(bytes_max=3 * BATCH_BYTES + 1), 30),
        (Limits(bytes_max=3 * BATCH_BYTES), 30),
    ],
)
def test_all_readers_together_take_no_batch_beyond_a_limit(read: Read, limits: Limits, records_read: int) -> None:
    """The batch that is not covered any more is left, and every partition that is not whole is told."""
    found, done, _ = read(limits)
    whole = {partition for partition in PARTITIONS if done.positions[partition] == 50}
    assert (len(found), len(done.unread) + len(whole)) == (records_read, len(PARTITIONS))
    assert [told for told in done.unread if "raise --max-" not in told] == []


def test_nothing_is_asked_once_the_time_is_up(read: Read) -> None:
    """Not even a first fetch."""
    found, done, leader = read(Limits(), within_s=0.0)
    told = [one for one in done.unread if "raise --max-minutes" in one]
    assert (found, leader.fetches, len(told)) == ([], 0, len(PARTITIONS))


def test_a_leader_that_does_not_answer_is_asked_no_longer_than_allowed(read: Read) -> None:
    """What it has is told as not read, which is no error of anybody's."""
    began_s = time.monotonic()
    found, done, _ = read(Limits(), log=None, within_s=0.2)
    took_s = time.monotonic() - began_s
    assert (found, len(done.unread), took_s < reading.TRIES * reading.RETRY_S / 3) == ([], len(PARTITIONS), True)


def test_a_budget_that_many_share_is_never_overdrawn() -> None:
    """However they come in between each other."""
    budget, taken, lock = Budget(Limits(records_max=1000), until_s=time.monotonic() + 30), [], threading.Lock()

    def take() -> None:
        while budget.take(size_bytes=1, records=7):
            with lock:
                taken.append(7)

    with ThreadGroup("takers") as thread_group:
        for number in range(8):
            thread_group.start(str(number), take)
    assert (sum(taken), budget.records_left) == (994, 6)


def test_what_a_transaction_took_back_is_no_record_and_an_open_one_is_told(read: Read) -> None:
    """Committed, aborted, and still open."""
    log = [
        batch_of(0, [(b"k", b"v")], attributes=TRANSACTIONAL, producer_id=1, name="a"),
        batch_of(1, [(b"k", b"v")], attributes=TRANSACTIONAL, producer_id=2, name="b"),
        marker_of(2, 1, COMMIT),
        marker_of(3, 2, ABORT),
        batch_of(4, [(b"k", b"v")], attributes=TRANSACTIONAL, producer_id=1, name="c"),
    ]
    found, done, _ = read(Limits(), log=log, ranges={0: (0, 5)})
    assert ([one.id for one in found], done.unread) == (
        ["a0"],
        ["t-0: 1 records of transactions whose end lies beyond what was read"],
    )


def test_a_records_time_is_the_brokers_where_the_topic_says_so() -> None:
    """Of a batch with LogAppendTime only the broker's time counts (Kafka, message.timestamp.type)."""
    times = [
        [one.time_ms for one in records(next(batches(batch_of(0, [(None, b"v")] * 2, attributes=attributes))))]
        for attributes in (0, LOG_APPEND_TIME)
    ]
    assert times == [[1000, 1001], [1000, 1000]]


def test_the_earliest_record_and_those_without_an_id_are_known() -> None:
    """By them it is known from when on the sink must be read, and what it cannot tell."""
    event_writer = EventCounter()
    taken = Taken(AuditRequest("h:1", "t", "g", 0, 100), event_writer)
    for time_ns, name in ((50, "a"), (7, None), (60, "b")):
        taken.take(ReadRecord(0, 0, time_ns, None, name, 1))
    assert (event_writer.count, taken.earliest_ns, taken.nameless) == (3, 7, 1)


@pytest.mark.parametrize(
    ("attributes", "whose"),
    [
        ([LOG_APPEND_TIME] * 2, "LogAppendTime"),
        ([0, LOG_APPEND_TIME], "CreateTime"),  # it was set when some were there
        ([0], "CreateTime"),
        ([], "as configured"),
    ],
    ids=["brokers", "both", "producers", "none read"],
)
def test_whose_the_times_are_is_told_by_the_batches(read: Read, attributes: list[int], whose: str) -> None:
    """A topic's config says what is written from now on; what lies in it may be older."""
    log = [batch_of(place, [(None, b"v")], attributes=each) for place, each in enumerate(attributes)]
    found, _, _ = read(Limits(), log=log, ranges={0: (0, len(log))})
    taken = Taken(AuditRequest("h:1", "t", "g", 0, 100), EventCounter())
    for one in found:
        taken.take(one)
    assert taken.common_timestamp_type("as configured") == whose

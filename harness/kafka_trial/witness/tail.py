"""Tails: partitions followed from their first record on, control records included, wherever their leader moves.

Used by the witnesses that read logs (`offsets_log.py`, `transactions.py`). What a record means is the reader's to say;
a tail brings whole batches in their order, and knows at the snapshot whether it has come to the end.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kafka_trial.errors import UnjudgeableError
from kafka_trial.kafka_protocol import cluster_queries
from kafka_trial.kafka_protocol.batches import Batch, Fetched, batches, fetch
from kafka_trial.kafka_protocol.connection import Brokers, NoAnswerError
from kafka_trial.kafka_protocol.primitives import DecodeError
from kafka_trial.process.waiting import pause, wait_until
from kafka_trial.witness.rpc_server import BEHIND, COMPLETE, UNDECODABLE, Answer, deadline_s

OFFSET_OUT_OF_RANGE: Final = 1
FETCH_WAIT_MS: Final = 100
RETRY_S: Final = 0.1
FOUND_WITHIN_S: Final = 30.0
ENDS_MAX: Final = 64


class Reading(Protocol):
    """What is made of the batches of one partition; no cluster."""

    @property
    def partition(self) -> int: ...

    @property
    def undecodable(self) -> int:
        """How much of it could not be read."""
        ...

    def take(self, batch: Batch, position: int) -> None:
        """Records what one batch says from `position` on (a batch may begin before it)."""
        ...

    def not_decoded(self, offset: int, error: DecodeError) -> None:
        """Records that something in the log could not be read."""
        ...

    def record_open(self) -> None:
        """Records, at the snapshot, what is open there."""
        ...


@dataclass
class Tail:
    """Follows one partition: where it is, and how far the log is known to go.

    `may_expire`: its records may be deleted unread; then it goes on where the log starts.
    """

    brokers: Brokers
    topic: str
    reader: Reading
    position: int
    leader: int
    high_watermark: int = -1
    failure: str | None = field(default=None)
    may_expire: bool = False
    _ends: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=ENDS_MAX))  # and when asked for

    def step(self, *, wait_ms: int) -> None:
        """Fetches once; a failure makes it look for the leader again and is told at the snapshot, if it lasts."""
        asked_ns = time.monotonic_ns()
        try:
            self._take(self.brokers.broker(self.leader, self._fetch(wait_ms)))
            self._ends.append((self.high_watermark, asked_ns))
            self.failure = None
        except NoAnswerError as error:
            if error.code == OFFSET_OUT_OF_RANGE:
                self._cut(error)
            self.failure = str(error)
            self._find_leader()
            pause(RETRY_S)

    def absent_ns(self, offset: int) -> int | None:
        """Returns when the log was last asked and did not reach an offset yet; None where it was not asked before."""
        return next((asked_ns for end, asked_ns in reversed(self._ends) if end <= offset), None)

    def _fetch(self, wait_ms: int) -> Any:
        place = self.reader.partition, self.position
        return lambda connection: fetch(connection, self.topic, *place, wait_ms=wait_ms)

    def _take(self, fetched: Fetched) -> None:
        try:
            for batch in batches(fetched.data):
                if batch.next_offset > self.position:
                    self.reader.take(batch, self.position)
                    self.position = batch.next_offset
        except DecodeError as error:
            self.reader.not_decoded(self.position, error)
            raise UnjudgeableError(f"{self._name} cannot be followed past {self.position}: {error}") from error
        self.high_watermark = fetched.high_watermark

    def _find_leader(self) -> None:
        try:
            found = self.brokers.anyone(lambda connection: cluster_queries.metadata(connection, [self.topic]))
        except NoAnswerError as error:
            self.failure = str(error)
            return
        self.brokers.by_id = dict(found.brokers)
        self.brokers.ask_another()
        partitions = found.topics[self.topic].partitions if self.topic in found.topics else ()
        self.leader = next((part.leader for part in partitions if part.partition == self.reader.partition), -1)

    def _cut(self, error: NoAnswerError) -> None:
        """The log no longer holds the position."""
        if not self.may_expire:
            raise UnjudgeableError(
                f"{self._name} was cut under the witness: it had read up to {self.position}, and the broker has "
                f"nothing there ({error}). Was the topic deleted, or records in it?"
            ) from error
        try:
            self.position = max(
                self.position, first_offset(self.brokers, self.topic, self.reader.partition, self.leader)
            )
        except NoAnswerError as later:
            self.failure = str(later)

    @property
    def _name(self) -> str:
        return f"{self.topic}-{self.reader.partition}"


class Following:
    """Follows several partitions."""

    def __init__(self, tails: Sequence[Tail]) -> None:
        self._tails = list(tails)

    def step(self) -> None:
        """Fetches once from each partition."""
        for tail in self._tails:
            tail.step(wait_ms=max(1, FETCH_WAIT_MS // len(self._tails)))

    def snapshot(self, *, within_s: float) -> Answer:
        """Reads up to the high watermarks that the leaders answer with from now on."""
        until_s = deadline_s(within_s)
        for tail in self._tails:
            tail.high_watermark = -1
        while any(self._behind()) and time.monotonic() < until_s:
            self.step()
        position = sum(tail.position for tail in self._tails)
        end = sum(max(tail.position, tail.high_watermark) for tail in self._tails)
        if any(self._behind()):
            topics = ", ".join(sorted({tail.topic for tail in self._tails}))
            failures = "; ".join(filter(None, (tail.failure for tail in self._tails)))
            message = f"not at the end of {topics} within {within_s:g} s. {failures}".rstrip()
            return Answer(BEHIND, message, position, end)
        return self._complete(position, end)

    def _behind(self) -> list[bool]:
        return [tail.high_watermark < 0 or tail.position < tail.high_watermark for tail in self._tails]

    def _complete(self, position: int, end: int) -> Answer:
        for tail in self._tails:
            tail.reader.record_open()
        undecodable = sum(tail.reader.undecodable for tail in self._tails)
        if undecodable:
            message = f"{undecodable} records or batches could not be decoded"
            return Answer(UNDECODABLE, message, position, end)
        return Answer(COMPLETE, None, position, end)


def open_tails(
    brokers: Brokers,
    topic: str,
    recorded: Callable[[int], Sequence[Reading]],
    *,
    may_expire: bool = False,
) -> list[Tail]:
    """Finds the leaders and first offsets of the partitions to follow: those of the readings that `recorded` returns
    for a number of partitions.

    Raises:
        WaitTimeout: nobody could say in time.
    """
    failures: list[str] = []

    def found() -> list[Tail]:
        try:
            return tails_of(brokers, topic, recorded, may_expire=may_expire)
        except NoAnswerError as error:
            failures[:] = [str(error)]
            return []

    what = f"the leaders of {topic}"
    return wait_until(found, within_s=FOUND_WITHIN_S, what=what, every_s=RETRY_S, detail=lambda: " ".join(failures))


def tails_of(
    brokers: Brokers, topic: str, recorded: Callable[[int], Sequence[Reading]], *, may_expire: bool
) -> list[Tail]:
    """Returns the tails of a topic, each at the first offset of its partition.

    Raises:
        NoAnswerError: the topic is not there yet, or no broker says who leads it.
    """
    found = brokers.anyone(lambda connection: cluster_queries.metadata(connection, [topic]))
    brokers.by_id = dict(found.brokers)
    if topic not in found.topics:
        raise NoAnswerError(f"{topic} does not exist yet")
    leaders = {part.partition: part.leader for part in found.topics[topic].partitions}
    return [
        Tail(
            brokers,
            topic,
            reading,
            first_offset(brokers, topic, reading.partition, leaders[reading.partition]),
            leaders[reading.partition],
            may_expire=may_expire,
        )
        for reading in recorded(len(leaders))
    ]


def first_offset(brokers: Brokers, topic: str, partition: int, leader: int) -> int:
    """Returns where a partition's log starts.

    Raises:
        NoAnswerError: the broker does not answer, or does not lead it.
    """
    offsets = brokers.broker(
        leader,
        lambda connection: cluster_queries.list_offsets(connection, topic, [partition], which=cluster_queries.EARLIEST),
    )
    if partition not in offsets:
        raise NoAnswerError(f"broker {leader} does not lead {topic}-{partition}")
    return offsets[partition]

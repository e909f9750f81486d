"""Bounded reading: the batches of one partition from one position to another, and not a byte more than allowed.

Reads as a replica-less client does that belongs to no group: Metadata, ListOffsets and Fetch are all it ever sends.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from kafka_trial.audit.request import AuditRequest, Limits
from kafka_trial.errors import InputError, UnjudgeableError
from kafka_trial.kafka_protocol import cluster_queries
from kafka_trial.kafka_protocol.batches import Batch, Fetched, batches, fetch
from kafka_trial.kafka_protocol.connection import Brokers, NoAnswerError
from kafka_trial.process.waiting import pause

T = TypeVar("T")
CLIENT_ID = "kafka-trial-audit"
ANSWER_WITHIN_S = 10.0
WAIT_MS = 100
TRIES = 30
RETRY_S = 0.5
OUT_OF_RANGE, NOT_AUTHORISED = 1, 29


class Budget:
    """What may still be read of one log; shared by its readers. Nothing is taken that it does not cover."""

    def __init__(self, limits: Limits, *, until_s: float) -> None:
        self.bytes_left = limits.bytes_max
        self.records_left = limits.records_max
        self._until_s = until_s
        self._limits = limits
        self._lock = threading.Lock()
        self._spent: str | None = None

    def take(self, *, size_bytes: int, records: int) -> bool:
        """Takes so much off; False, and from then on nothing more, where less is left."""
        with self._lock:
            if self._spent is None:
                self._spent = self._short_of(size_bytes, records)
            if self._spent is None:
                self.bytes_left -= size_bytes
                self.records_left -= records
            return self._spent is None

    @property
    def spent(self) -> str | None:
        """Which limit was reached, and how to raise it; None while there is something left."""
        with self._lock:
            return self._spent or self._short_of(1, 1)

    @property
    def left_s(self) -> float:
        """How much time is left, in seconds."""
        return max(0.0, self._until_s - time.monotonic())

    def _short_of(self, size_bytes: int, records: int) -> str | None:
        if size_bytes > self.bytes_left:
            return f"the limit of {self._limits.bytes_max / (1 << 20):g} MiB was reached; raise --max-mib"
        if records > self.records_left:
            return f"the limit of {self._limits.records_max} records was reached; raise --max-records"
        if not self.left_s:
            return f"the limit of {self._limits.minutes_max:g} minutes was reached; raise --max-minutes"
        return None


@dataclass
class Log:
    """One topic's partitions, through connections of one reader's own."""

    brokers: Brokers
    topic: str
    leaders: Mapping[int, int]

    @classmethod
    def of(cls, brokers: Brokers, topic: str) -> Log:
        """Returns the log of a topic, its leaders looked up.

        Raises:
            NoAnswerError: no broker answered, or there is no such topic.
        """
        return cls(brokers, topic, leaders_of(brokers, topic))

    def batches(self, partition: int, position: int, end: int, budget: Budget) -> Iterator[Batch]:
        """Yields the batches that hold what lies from `position` to `end`; ends early when the budget is spent.

        Raises:
            InputError: we are not allowed to read it.
            UnjudgeableError: the leader could not be reached for long, or has not got it any more.
        """
        while position < end and budget.spent is None:
            question = partial(fetch, topic=self.topic, partition=partition, position=position, wait_ms=WAIT_MS)
            fetched = self._ask(partition, question, budget)
            if fetched is None:
                return
            before = position
            for batch in batches(fetched.data):
                if batch.next_offset > position:
                    if not budget.take(size_bytes=len(batch.payload), records=batch.count):
                        return
                    yield batch
                    position = batch.next_offset
                if position >= end:
                    return
            if position == before and not fetched.data and position >= fetched.high_watermark:
                return

    def starts(self) -> dict[int, int]:
        """Returns where each partition begins."""
        return self._offsets(cluster_queries.EARLIEST)

    def ends(self) -> dict[int, int]:
        """Returns the last stable offset of each partition: what a committed reader could read up to."""
        return self._offsets(cluster_queries.LATEST, committed=True)

    def log_ends(self) -> dict[int, int]:
        """Returns the position after the last record of each partition."""
        return self._offsets(cluster_queries.LATEST)

    def at(self, time_ns: int) -> dict[int, tuple[int, int]]:
        """Returns offset and time (ms) of the first record of each partition that is no older than that; -1: none."""
        return self._each(
            partial(cluster_queries.offsets_for_time, topic=self.topic, time_ms=max(0, time_ns // 1_000_000))
        )

    def _offsets(self, which: int, *, committed: bool = False) -> dict[int, int]:
        return self._each(partial(cluster_queries.list_offsets, topic=self.topic, which=which, committed=committed))

    def _each(self, question: Callable[..., dict[int, T]]) -> dict[int, T]:
        """Asks each leader about its partitions, again where one has moved meanwhile."""
        found: dict[int, T] = {}
        for _ in range(TRIES):
            for leader, parts in self._by_leader(found).items():
                with suppress(NoAnswerError):
                    found |= self.brokers.broker(leader, partial(question, partitions=parts))
            if len(found) == len(self.leaders):
                return found
            self._look_again()
        missing = sorted(set(self.leaders) - set(found))
        raise UnjudgeableError(f"no leader answered for partitions {missing} of {self.topic}")

    def _by_leader(self, done: Mapping[int, object]) -> dict[int, list[int]]:
        by_leader: dict[int, list[int]] = defaultdict(list)
        for partition, leader in self.leaders.items():
            if partition not in done:
                by_leader[leader].append(partition)
        return by_leader

    def _ask(self, partition: int, question: Callable[..., Fetched], budget: Budget) -> Fetched | None:
        """Asks the leader, again where it has moved meanwhile; None once the time is up."""
        problem = ""
        for _ in range(TRIES):
            try:
                return self.brokers.broker(self.leaders.get(partition, -1), question)
            except NoAnswerError as error:
                problem = str(error)
                if error.code == NOT_AUTHORISED:
                    raise InputError(
                        "audit", f"we may not read topic {self.topic} ({problem}): give us READ on it"
                    ) from error
                if error.code == OUT_OF_RANGE:
                    break  # retention or a truncation has taken it: asking again changes nothing
                if not budget.left_s:
                    return None
                self._look_again()
        raise UnjudgeableError(f"{self.topic}-{partition} could not be read: {problem}")

    def _look_again(self) -> None:
        pause(RETRY_S)
        with suppress(NoAnswerError):
            self.leaders = leaders_of(self.brokers, self.topic)


def leaders_of(brokers: Brokers, topic: str) -> dict[int, int]:
    """Returns the leader of each partition of a topic, and learns the brokers' addresses."""
    found = brokers.anyone(lambda connection: cluster_queries.metadata(connection, [topic]))
    brokers.by_id = dict(found.brokers)
    if topic not in found.topics:
        raise NoAnswerError(f"topic {topic} is not in the metadata")
    return {part.partition: part.leader for part in found.topics[topic].partitions}


def connect(request: AuditRequest) -> Brokers:
    """Returns connections of one reader's own, secured as was asked; a `with` closes them."""
    return Brokers(request.bootstrap, answer_within_s=ANSWER_WITHIN_S, client_id=CLIENT_ID, security=request.security)


def shares(partitions: Sequence[int], readers: int) -> list[list[int]]:
    """Returns the partitions dealt out to at most so many readers."""
    count = max(1, min(readers, len(partitions)))
    return [list(partitions[first::count]) for first in range(count)]

"""Shapes: what a generated history looks like, and the small world behind it: what was sent and delivered when.

Everything follows from the shape and its seed, as numbers: `history.py` asks for one stretch of time after the other
and makes lines of it, so that memory does not grow with the history. Indexes count a partition's records from 0;
offsets are indexes plus `first_offset`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kafka_trial.errors import InputError

Ints = np.ndarray[Any, np.dtype[np.int64]]
SECOND_NS = 1_000_000_000
BATCH = 50  # records of a partition between two commits
EVENTS_PER_RECORD = 5.1  # sent and acknowledged, read by the observer, delivered, processed; commits come in batches
RATE_PER_S = 1000  # of all records together
BEGIN_NS = 5 * SECOND_NS  # when the first record was sent
LATENCY_NS = 3_000_000  # from sent to delivered
PAUSE_NS = SECOND_NS // 2  # of a rebalance, in which nobody is delivered anything
PARTITION_RECORDS_MIN = 10
REDELIVERED_PARTITIONS = 3  # at each handover: what was delivered and not yet committed comes again


@dataclass(frozen=True)
class Shape:
    """What is asked for: about so many events, of a sound group of consumers that hand their partitions on.

    `hot` is partition 0's share of the records (None: all alike). Each partition changes its owner `handovers` times;
    more than 4 would be a storm. `planted` anomalies of each kind make the history that of a faulty consumer.
    """

    events: int
    partitions: int = 6
    keys: int = 1000
    hot: float | None = None
    first_offset: int = 0
    members: int = 3
    handovers: int = 4
    planted: int = 0
    seed: int = 1

    def __post_init__(self) -> None:
        problems = []
        if self.hot is not None and not (0 < self.hot < 1 and self.partitions > 1):
            problems.append(f"hot is a share between 0 and 1, of several partitions; this is {self.hot}")
        elif _counts(self).min() < PARTITION_RECORDS_MIN:
            problems.append(f"{self.events} events are too few for {self.partitions} partitions")
        if self.keys < self.partitions:
            problems.append(f"{self.keys} keys are too few: every partition has one at least")
        if problems:
            raise InputError("shape", problems)

    @property
    def records(self) -> int:
        """How many records there are."""
        return round(self.events / EVENTS_PER_RECORD)


class World:
    """The numbers behind a shape; partitions and indexes come and go as arrays of equal length."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.counts = _counts(shape)
        self.span_ns = shape.records * SECOND_NS // RATE_PER_S
        self._gap_ns = self.span_ns // self.counts
        self._keys = (shape.keys - np.arange(shape.partitions) + shape.partitions - 1) // shape.partitions

    @property
    def end_ns(self) -> int:
        """When all has been sent, and delivered."""
        return BEGIN_NS + self.span_ns + SECOND_NS

    def handover_ns(self, number: int) -> int:
        """Returns when the owners change for the `number`-th time; 0 is the first assignment."""
        return BEGIN_NS + self.span_ns * number // (self.shape.handovers + 1)

    def owners(self, generation: int) -> Ints:
        """Returns the owner of each partition between two handovers."""
        return (np.arange(self.shape.partitions) + generation) % self.shape.members

    def sent_ns(self, partition: Ints, index: Ints) -> Ints:
        """Returns when each record was sent: in the order of a partition's indexes, at uneven distances."""
        gap = self._gap_ns[partition]
        return BEGIN_NS + index * gap + self._hash(partition, index) % gap

    def delivered_ns(self, partition: Ints, index: Ints) -> Ints:
        """Returns when each record is delivered: soon after it was sent, but for the pause after a handover."""
        raw = self.sent_ns(partition, index) + LATENCY_NS
        begins = np.array([self.handover_ns(number) for number in range(1, self.shape.handovers + 1)], np.int64)
        latest = np.searchsorted(begins, raw, side="right") - 1
        since = raw - np.where(latest >= 0, begins[latest.clip(0)] if len(begins) else 0, -(2**60))
        waiting = (latest >= 0) & (since < PAUSE_NS)
        return np.where(waiting, raw - since + PAUSE_NS * 4 // 5 + since // 5, raw)

    def sent_before(self, at_ns: int) -> Ints:
        """Returns how many records of each partition were sent before that time."""
        partitions = np.arange(self.shape.partitions)
        whole = np.clip((at_ns - BEGIN_NS) // self._gap_ns, 0, self.counts)
        last = np.minimum(whole, self.counts - 1)
        return np.where((whole < self.counts) & (self.sent_ns(partitions, last) < at_ns), whole + 1, whole)

    @cached_property
    def taken_over(self) -> Ints:
        """How many records of each partition were delivered before each handover: (handovers + 2, partitions)."""
        marks = [self.sent_before(self.handover_ns(at) - LATENCY_NS) for at in range(1, self.shape.handovers + 1)]
        return np.array([np.zeros_like(self.counts), *marks, self.counts])

    @cached_property
    def commits_on_revoke(self) -> Any:
        """Whether each partition's owner commits when it is taken away, for each handover and the end."""
        made = np.ones(self.taken_over.shape, np.bool_)
        rng = np.random.default_rng([self.shape.seed, 1])
        for number in range(1, self.shape.handovers + 1):
            made[number, rng.permutation(self.shape.partitions)[:REDELIVERED_PARTITIONS]] = False
        return made

    @cached_property
    def committed_at(self) -> Ints:
        """The position of each partition that is committed at each handover: where its next owner begins."""
        standing = [np.zeros_like(self.counts)]
        for done, all_of_it in zip(self.taken_over[1:], self.commits_on_revoke[1:], strict=True):
            standing.append(np.maximum(standing[-1], np.where(all_of_it, done, done // BATCH * BATCH)))
        return np.array(standing)

    def keys_of(self, partition: Ints, index: Ints) -> Ints:
        """Returns the number of each record's key; a key belongs to one partition."""
        return partition + self.shape.partitions * ((self._hash(partition, index) >> 20) % self._keys[partition])

    def checksums_of(self, partition: Ints, index: Ints) -> Ints:
        """Returns the checksum of each record's value."""
        return self._hash(partition, index) & 0xFFFFFFFF

    def _hash(self, partition: Ints, index: Ints) -> Ints:
        """Returns a number of 62 bits for each record (the mixing of splitmix64)."""
        seeded = np.uint64(self.shape.seed * 0x9E3779B97F4A7C15 % 2**64)
        mixed = seeded + partition.astype(np.uint64) * np.uint64(0xD1B54A32D192ED03)
        mixed += index.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(2)).astype(np.int64)


def ranges(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Returns (partition, index) of the records from `low` to before `high` of each partition."""
    sizes = np.maximum(high - low, 0)
    partition = np.repeat(np.arange(len(sizes)), sizes)
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return partition, within + low[partition]


def _counts(shape: Shape) -> Ints:
    """Returns how many records each partition has."""
    shares = np.full(shape.partitions, 1 / shape.partitions)
    if shape.hot is not None:
        shares = np.full(shape.partitions, (1 - shape.hot) / (shape.partitions - 1))
        shares[0] = shape.hot
    edges = np.round(np.cumsum(shares) * shape.records).astype(np.int64)
    return np.diff(edges, prepend=0)

"""Compacts the offsets log now, and proves it: what a coordinator reads at its next load is a log without tombstones.

The cleaner takes closed segments alone, and a tombstone in two passes: the first one keeps it and notes from when on it
may go (here at once), the second one takes it. So the topic gets settings under which a segment is closed by the next
append and is clean enough never; a commit of a group of our own in each partition, again and again, is that append.
Nothing is inferred from time gone by: each replica is read from the beginning, since each broker cleans its own, and
any of them may coordinate after a restart.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.errors import UnjudgeableError
from kafka_trial.kafka_protocol.batches import Record, batches, fetch_replica, records
from kafka_trial.kafka_protocol.cluster_queries import all_topic_configs
from kafka_trial.kafka_protocol.connection import Brokers, Connection, NoAnswerError
from kafka_trial.kafka_protocol.group_membership import commit
from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC, draw_group_name
from kafka_trial.kafka_protocol.primitives import DecodeError
from kafka_trial.process.waiting import wait_until
from kafka_trial.upgrade.side_groups import CLIENT_ID, TOPIC, ask_coordinator, offsets_log

SETTINGS: Final[Mapping[str, str]] = {
    "delete.retention.ms": "0",  # a tombstone may go at the pass after the one that met it
    "min.cleanable.dirty.ratio": "0",  # whatever was written since the last pass is reason for the next
    "segment.ms": "100",  # a segment is closed by the next append, and only closed ones are cleaned
}
OF_THE_TOPIC: Final = 1  # ConfigSource.DYNAMIC_TOPIC_CONFIG: set for the topic itself
COMPACTED_WITHIN_S: Final = 60.0
TOUCH_EVERY_S: Final = 0.5
Replica = tuple[int, int]  # a partition of the offsets log, and the broker that has it


@dataclass(frozen=True)
class Compaction:
    """What was compacted: every replica that was read to prove it, and how many tombstones each partition had had."""

    replicas: tuple[Replica, ...]
    tombstones: Mapping[int, int]


@dataclass
class _Cleaning:
    """Partitions that are being cleaned: `ends`, by partition, is where each log ended when it began."""

    brokers: Brokers
    ends: Mapping[int, int]
    touch_groups: Sequence[str]
    left: dict[Replica, str] = field(default_factory=dict)  # why a replica is not clean yet

    def step(self) -> bool:
        """Touches each partition and reads again what was not clean; True once all is."""
        for group in self.touch_groups:
            with suppress(NoAnswerError):  # it is asked again: without it the log stays as it is, and is read so
                ask_coordinator(self.brokers, group, partial(commit, group=group, topic=TOPIC, positions={0: 0}))
        for partition, broker in list(self.left):
            try:
                found = not_clean(replica_records(self.brokers, partition, broker, end=self.ends[partition]))
            except (NoAnswerError, DecodeError) as error:
                found = str(error)
            if found is None:
                del self.left[partition, broker]
            else:
                self.left[partition, broker] = found
        return not self.left

    def told(self) -> str:
        """Returns what is not clean, as a sentence."""
        return "; ".join(
            f"{OFFSETS_TOPIC}-{partition} on broker {broker}: {why}" for (partition, broker), why in self.left.items()
        )


def compact(
    cluster: BootedCluster, partitions: Sequence[int], *, seed: int, within_s: float = COMPACTED_WITHIN_S
) -> Compaction:
    """Has these partitions of the offsets log compacted as far as they were written, on every broker that has one.

    The side groups' topic is there (`side_groups.py`). The settings of the offsets log are as before afterwards,
    whatever happened. A tombstone that the cleaner has met before stays for as long as the settings said then, by
    default a day: a second attempt after one that was given up does not come to an end.

    Raises:
        UnjudgeableError: a partition had no tombstone, so that nothing would be proven; or no broker answers.
        WaitTimeout: a replica was not clean in time: which one, and what is left in it.
    """
    with (
        Brokers(cluster.observer_bootstrap, client_id=CLIENT_ID) as brokers,
        Admin(cluster.observer_bootstrap) as admin,
    ):
        described = offsets_log(brokers).partitions
        whole = {part.partition: part for part in described if part.partition in partitions}
        ends = {partition: end for partition, end in admin.log_ends(OFFSETS_TOPIC).items() if partition in whole}
        tombstones = {
            partition: count_tombstones(replica_records(brokers, partition, part.leader, end=ends[partition]))
            for partition, part in whole.items()
        }
        if without := sorted(partition for partition, count in tombstones.items() if not count):
            raise UnjudgeableError(
                f"no tombstone lies in the partitions {without} of {OFFSETS_TOPIC}: nothing to prove"
            )
        replicas = tuple((partition, broker) for partition, part in whole.items() for broker in part.replicas)
        rng = random.Random(seed)
        touched = [
            draw_group_name(rng, "kt-touch-", partition=partition, partitions=len(described)) for partition in whole
        ]
        cleaning = _Cleaning(brokers, ends, touched, dict.fromkeys(replicas, "not read yet"))
        with _settings(admin, brokers):
            wait_until(
                cleaning.step,
                within_s=within_s,
                what=f"two cleaning passes over {OFFSETS_TOPIC}",
                every_s=TOUCH_EVERY_S,
                detail=cleaning.told,
            )
        return Compaction(replicas, tombstones)


def not_clean(written: Iterable[Record]) -> str | None:
    """Returns why records were not cleaned in two passes: a tombstone, or a key that is there again; None: they were.

    One pass takes all records of a key but the last. A second one takes the tombstones too.
    """
    known: dict[bytes | None, int] = {}
    for record in written:
        if record.value is None:
            return f"a tombstone at offset {record.offset}"
        if record.key in known:
            return f"one key at the offsets {known[record.key]} and {record.offset}"
        known[record.key] = record.offset
    return None


def count_tombstones(written: Iterable[Record]) -> int:
    """Returns how many records are tombstones."""
    return sum(record.value is None for record in written)


def replica_records(brokers: Brokers, partition: int, broker: int, *, end: int) -> Iterator[Record]:
    """Yields what a broker's own replica of a partition holds below `end`, from the beginning; no control records.

    Raises:
        NoAnswerError: it does not answer, or does not have all of it yet.
        DecodeError: it cannot be read.
    """
    position = 0
    while position < end:
        fetched = brokers.broker(
            broker, partial(fetch_replica, topic=OFFSETS_TOPIC, partition=partition, position=position)
        )
        before = position
        for batch in batches(fetched.data):
            position = max(position, batch.next_offset)
            if not batch.control:
                yield from (record for record in records(batch) if before <= record.offset < end)
        if position == before:
            raise NoAnswerError(f"it has nothing from offset {position} on, of {end}")


@contextmanager
def _settings(admin: Admin, brokers: Brokers) -> Iterator[None]:
    """Gives the offsets log the settings for as long as the `with` lasts."""

    def asked(at: Connection) -> dict[str, str | None]:
        configs = all_topic_configs(at, OFFSETS_TOPIC)
        return {config.name: config.value for config in configs if config.source == OF_THE_TOPIC}

    own = brokers.anyone(asked)
    try:
        admin.set_topic_configs(OFFSETS_TOPIC, SETTINGS)
        yield
    finally:
        admin.set_topic_configs(OFFSETS_TOPIC, {name: own.get(name) for name in SETTINGS})

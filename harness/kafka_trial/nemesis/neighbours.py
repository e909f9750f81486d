"""Faults of neighbours: other groups that use the same brokers, which excuses nobody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kafka_trial.history.consequences import Consequence
from kafka_trial.nemesis import evidence
from kafka_trial.nemesis.cold_reader import cold_reader
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.fault import fault
from kafka_trial.nemesis.injection import Injection
from kafka_trial.nemesis.rolled_segments import RolledSegments
from kafka_trial.nemesis.samples import PageCacheSnapshot


def _problems(options: Mapping[str, Any]) -> list[str]:
    return ["bytes_per_s must be 1 or more"] if options.get("bytes_per_s", 1) < 1 else []


@fault(
    "cold-reads",
    targets=("all",),
    scope="brokers",
    heals=True,
    consequences=[Consequence.LOADS_BROKERS, Consequence.HARMLESS],
    check=_problems,
)
def cold_reads(injection: Injection, *, bytes_per_s: float = 4_000_000) -> Iterator[Evidence]:
    """Has another group read the topic's rolled segments from the disks, over and over, and never commit.

    "In Kafka, tail reads leverage OS's page cache to serve the data instead of disk reads. Older data is typically read
    from the disk for backfill or failure recovery purposes" (KIP-405). Rolled segments are made cold: written to the
    disk (fsync) and dropped by the kernel (posix_fadvise), at the beginning and after every sample, so that brokers
    read them again. It hinders no member, and excuses none.
    """
    context = injection.context
    stderr = context.history.parent / "logs" / f"cold-reader-{injection.no}.stderr"
    with context.rolled_segments() as segments:
        segments.make_cold()
        before = injection.keep("before", segments.sample())
        injection.injecting()
        with cold_reader(
            context.cluster.observer_bootstrap,
            context.topic,
            f"{context.topic}-neighbour-{injection.no}",
            bytes_per_s=int(bytes_per_s),
            stderr=stderr,
        ) as reader:
            inside = injection.hold(lambda: _sample_and_make_cold(injection, segments))
    yield evidence.cold_reads(before, inside, consumed_bytes=reader.consumed_bytes)


def _sample_and_make_cold(injection: Injection, segments: RolledSegments) -> PageCacheSnapshot:
    seen = injection.keep("inside", segments.sample())
    segments.make_cold()
    return seen

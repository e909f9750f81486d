"""The rolled segments of a topic: files of the brokers that take no more records, and that only the disk may hold.

They are found, and opened, by the descriptors that a broker itself has open, so that this works for containers too.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafka_trial.cluster.cluster import node_name
from kafka_trial.errors import UnjudgeableError
from kafka_trial.nemesis.samples import BrokerReads, PageCacheSnapshot
from kafka_trial.process.page_cache import cached_bytes, disk_read_bytes, make_cold

SEGMENT: Final = ".log"


@dataclass(frozen=True)
class RolledSegments:
    """Open descriptors of the rolled segments of each broker, and its process; `errors`: why those of a broker, by its
    name, cannot be opened."""

    descriptors: Mapping[int, list[int]]
    pids: Mapping[int, int]
    errors: Mapping[str, str]

    def make_cold(self) -> None:
        """Has the kernel drop what it has of them in memory.

        Raises:
            UnjudgeableError: one cannot be written to its disk.
        """
        try:
            for descriptor in (one for of_broker in self.descriptors.values() for one in of_broker):
                make_cold(descriptor)
        except OSError as error:
            raise UnjudgeableError(f"a segment cannot be written to its disk: {error}") from error

    def sample(self) -> PageCacheSnapshot:
        """Returns how much of them is in memory, and how much their brokers have read from disks."""
        found, errors = [], dict(self.errors)
        for broker, descriptors in self.descriptors.items():
            try:
                found.append(
                    BrokerReads(
                        broker,
                        segments=len(descriptors),
                        size_bytes=sum(os.fstat(one).st_size for one in descriptors),
                        cached_bytes=sum(map(cached_bytes, descriptors)),
                        disk_read_bytes=disk_read_bytes(self.pids[broker]),
                    )
                )
            except OSError as error:
                errors[node_name(broker)] = str(error)
        return PageCacheSnapshot(time.monotonic_ns(), tuple(found), errors)


@contextmanager
def rolled_segments(pids: Mapping[int, int], topic: str) -> Iterator[RolledSegments]:
    """Opens the rolled segments of a topic, as of now; `pids`: the process of each broker."""
    descriptors, errors = dict[int, list[int]](), dict[str, str]()
    with ExitStack() as stack:
        for broker, pid in sorted(pids.items()):
            try:
                descriptors[broker] = [_opened(stack, link) for link in _rolled_segment_links(pid, topic)]
            except OSError as error:
                errors[node_name(broker)] = str(error)
        yield RolledSegments(descriptors, pids, errors)


def _opened(stack: ExitStack, link: Path) -> int:
    descriptor = os.open(link, os.O_RDONLY)
    stack.callback(os.close, descriptor)
    return descriptor


def _rolled_segment_links(pid: int, topic: str) -> list[Path]:
    """Returns the links in /proc/<pid>/fd to segments of a topic, without the active one, the last, of each partition.

    Raises:
        OSError: the process is another user's, or has ended.
    """
    segments: dict[str, dict[int, Path]] = defaultdict(dict)
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            path = Path(os.readlink(link))
            if path.suffix == SEGMENT and path.parent.name.rpartition("-")[0] == topic:
                segments[path.parent.name][int(path.stem)] = link
    return [of_partition[base] for of_partition in segments.values() for base in sorted(of_partition)[:-1]]

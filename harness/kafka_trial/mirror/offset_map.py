"""Which offsets of a mirror are of which records of its source: by the ids of the records, read on both sides.

A mirror copies the records of a partition in their order, to a partition of the same number, at other offsets. What it
says of that itself is not asked: it is on trial too. A record that a mirror holds twice has two offsets there.

What the source had and has no longer (retention, truncation) is known by where it was acknowledged: a mirror may have
it still, and need not.

A position on the mirror is the source's position of a group that has read as far: after the furthest record that lies
before it. Between two records of the source there may be offsets without any (markers, compaction); positions among
them are all the same to a reader.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple


class ReadRecord(NamedTuple):
    """A record that was read: its partition, its offset there, and its id, which both sides have."""

    partition: int
    offset: int
    id: str


@dataclass(frozen=True)
class _Partition:
    """The records of a partition that both sides have, in the order of the mirror: the offset there, that on the
    source, and the furthest on the source so far."""

    there: tuple[int, ...]
    here: tuple[int, ...]
    furthest: tuple[int, ...]


@dataclass(frozen=True)
class OffsetMap:
    """What the offsets of one mirrored topic are on its source.

    `missing`: records of the source, by partition and offset, that the mirror has not. `duplicates`: how often it holds
    a record that it held before already. `unexpected`: offsets of the mirror, by partition, whose record the source
    never had, or not in that partition.
    """

    missing: tuple[tuple[int, int], ...]
    duplicates: int
    unexpected: tuple[tuple[int, int], ...]
    _partitions: Mapping[int, _Partition]

    @property
    def partitions(self) -> list[int]:
        """The partitions of which the mirror has records."""
        return sorted(self._partitions)

    def offset_of(self, partition: int, offset: int) -> int | None:
        """Returns the source's offset of the record that the mirror has at an offset; None: the source has none."""
        known = self._partitions.get(partition)
        if known is None:
            return None
        row = bisect_left(known.there, offset)
        return known.here[row] if row < len(known.there) and known.there[row] == offset else None

    def position_of(self, partition: int, position: int) -> int:
        """Returns the source's position of a group that has read the mirror's records before `position`; what is below
        none (-1, no position) stays as it is."""
        known = self._partitions.get(partition)
        if position < 0 or known is None or not known.there:
            return position if position < 0 else 0
        before = bisect_left(known.there, position)
        beyond = max(0, position - known.there[-1] - 1)  # of one past the end
        return known.here[0] if before == 0 else known.furthest[before - 1] + 1 + beyond


def offset_map(
    source: Iterable[ReadRecord], mirror: Iterable[ReadRecord], *, acknowledged: Iterable[ReadRecord] = ()
) -> OffsetMap:
    """Returns the map of a topic by what was read of it on both sides; records without an id are not in `source`.
    `acknowledged`: what was written to the source, there still or not."""
    there = {(one.partition, one.id): one.offset for one in source}
    places = {(one.partition, one.id): one.offset for one in acknowledged} | there
    rows: dict[int, list[tuple[int, int]]] = defaultdict(list)
    unexpected = []
    for one in mirror:
        here = places.get((one.partition, one.id))
        if here is None:
            unexpected.append((one.partition, one.offset))
        else:
            rows[one.partition].append((one.offset, here))
    copied = {(partition, here) for partition, pairs in rows.items() for _, here in pairs}
    missing = sorted(
        (partition, offset) for (partition, _), offset in there.items() if (partition, offset) not in copied
    )
    return OffsetMap(
        tuple(missing),
        sum(map(len, rows.values())) - len(copied),
        tuple(sorted(unexpected)),
        {partition: _partition(sorted(pairs)) for partition, pairs in rows.items()},
    )


def _partition(pairs: list[tuple[int, int]]) -> _Partition:
    there, here = zip(*pairs, strict=True)
    return _Partition(there, here, tuple(accumulate(here, max)))

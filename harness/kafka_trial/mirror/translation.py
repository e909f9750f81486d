"""From where a group may begin on a mirror whose MirrorMaker translates its positions: the bound of what is done again.

MirrorMaker writes down pairs of offsets, each of the same record on both sides, at least one for every offset.lag.max
records (KIP-382). It keeps the latest and, ever more thinly towards the beginning, some of those before it
(OffsetSyncStore: of the pairs that share the high bits of the latest offset, for each number of bits the first one;
KAFKA-12635, KAFKA-14666). A position is translated by the last kept pair at or below it: to the pair itself where it is
the very one, else to the record after it. So a group that is just below a power of two which the latest pair has
passed, is translated far back.

Positions are translated every so often, and written for groups without members on the mirror as often; neither goes
back. So where the group begins is at least what one such round has found: of every stretch of time that holds a whole
round, the least that it can have found in it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

BITS: Final = 64
LATE_MS: Final = 2000  # a round that is due begins so much later at most, on a machine with much else to do


class Pair(NamedTuple):
    """A pair of offsets, both of one record: when it was written (ms), on the source and on the mirror."""

    time_ms: int
    upstream: int
    downstream: int


class Position(NamedTuple):
    """A committed position of the group on the source, and when it was written (ms)."""

    time_ms: int
    offset: int


@dataclass
class KeptPairs:
    """The pairs that MirrorMaker keeps of one partition: the latest first."""

    _pairs: list[Pair] = field(default_factory=list)

    def take(self, pair: Pair) -> None:
        """Takes the next pair that was written down."""
        if not self._pairs or self._pairs[0].upstream > pair.upstream:
            self._pairs = [pair] * BITS
            return
        self._pairs[0] = pair
        for bits in range(1, BITS):
            if self._pairs[bits].upstream >> bits == pair.upstream >> bits:
                return
            self._pairs[bits] = pair

    def translated(self, offset: int) -> int | None:
        """Returns a position of the source as the last record of the source that is surely before it on the mirror, and
        the next one: the source's position from which the group would go on. None: it is not translated."""
        pair = next((one for one in self._pairs if one.upstream <= offset), None)
        if pair is None:
            return None
        return pair.upstream if pair.upstream == offset else pair.upstream + 1


def least_start(pairs: Iterable[Pair], positions: Sequence[Position], *, left_ms: int, every_s: float) -> int | None:
    """Returns the source's position at or after which a group begins that left at `left_ms`, by positions that were
    translated every `every_s`, and written as often; None: none had to be translated by then."""
    found = list(_found(pairs, positions))
    window_ms, written_ms = round(1000 * every_s) + LATE_MS, left_ms - round(1000 * every_s) - LATE_MS
    times = [time_ms for time_ms, _ in found]
    best: int | None = None
    for begin_ms in (*times, written_ms - window_ms):
        end_ms = begin_ms + window_ms
        if end_ms > written_ms:
            continue
        first = max(0, bisect_right(times, begin_ms) - 1)
        inside = [offset for _, offset in found[first : bisect_right(times, end_ms)]]
        if inside and times[first] <= begin_ms and None not in inside:
            least = min(offset for offset in inside if offset is not None)
            best = least if best is None else max(best, least)
    return best


def _found(pairs: Iterable[Pair], positions: Sequence[Position]) -> Iterator[tuple[int, int | None]]:
    """Yields what a round finds from each instant on at which that changes (ms): a position of the source."""
    kept = KeptPairs()
    committed: int | None = None
    events: list[Pair | Position] = [*pairs, *positions]
    for event in sorted(events, key=lambda one: one.time_ms):
        if isinstance(event, Pair):
            kept.take(event)
        else:
            committed = event.offset
        yield event.time_ms, None if committed is None else kept.translated(committed)

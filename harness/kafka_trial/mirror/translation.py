"""From where a group may begin on a mirror whose MirrorMaker translates its positions: the bound of what is done again.

MirrorMaker writes down pairs of offsets, each of the same record on both sides, at least one for every offset.lag.max
records (KIP-382). Of each partition it keeps 64 of them, in places of their own: the latest, and ever more thinly those
before it (KAFKA-14666; OffsetSyncStore of 4.3). A position is translated by the last kept pair at or below it: to the
pair itself where it is the very one, else to the record after it.

Positions are translated, and written for groups without members on the mirror, every so often; both only advance. So
any stretch of time that holds a whole round gives a lower bound: the least that a round in it can have found. The
highest bound counts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

PLACES: Final = 64
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
        """Takes the next pair that was written down. One that lies before the latest is of another log."""
        before = self._pairs
        if not before or before[0].upstream > pair.upstream:
            self._pairs = [pair] * PLACES
            return
        self._pairs, candidate, at = [pair, *before[1:]], pair, 0
        for place in range(1, PLACES):
            passes = True
            while passes:  # of those that were kept, the next that may stand here takes the place of the candidate
                waiting = before[at]
                fits = self._fits(waiting, place)
                candidate = waiting if fits else candidate
                passes = waiting is before[min(at + 1, PLACES - 1)] or not _is_apart(
                    self._pairs[place - 1], waiting, place - 1
                )
                at += fits or passes
                passes = passes and at < place
            if _is_recent(self._pairs[place - 1], self._pairs[place], place):
                return  # whoever stands here is near enough, and so are all behind it
            self._pairs[place] = candidate

    def _fits(self, pair: Pair, place: int) -> bool:
        newer, older = self._pairs[place - 1], self._pairs[min(place + 1, PLACES - 1)]
        room = place + 1 >= PLACES or _is_apart(pair, older, place)
        return room and _is_recent(newer, pair, place) and _is_apart(newer, pair, place - 1)

    def translated(self, offset: int) -> int | None:
        """Returns the source's position from which a group goes on that had committed `offset`; None: it is not
        translated."""
        pair = next((one for one in self._pairs if one.upstream <= offset), None)
        if pair is None:
            return None
        return pair.upstream if pair.upstream == offset else pair.upstream + 1


def _is_recent(newer: Pair, pair: Pair, place: int) -> bool:
    """Whether a pair is near enough to the newer one to stand at a place: at most 2 ** (place - 1) records behind."""
    return newer is pair or newer.upstream <= pair.upstream + 2 ** (place - 1)


def _is_apart(newer: Pair, pair: Pair, place: int) -> bool:
    """Whether a pair is far enough from the newer one at a place to be worth a place of its own."""
    return newer is pair or newer.upstream >= pair.upstream + 2 ** max(place - 2, 0)


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

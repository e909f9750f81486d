"""From where a group may begin on a mirror whose MirrorMaker translates its positions: the bound of what is done again.

MirrorMaker writes down offset syncs: the offsets of one record on both sides, one for every offset.lag.max records at
least (KIP-382). Of each partition it keeps 64 of them, in slots: the latest, and ever more thinly those before it
(KAFKA-14666; OffsetSyncStore of 4.3). A position is translated by the last kept sync at or below it: to the sync itself
where it is the very one, else to the record after it.

Positions are translated, and written for groups without members on the mirror, every so often; what is written only
advances. So each stretch of time that is long enough for a round gives a lower bound: the least that a round in it can
have found. The highest of these bounds counts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

SLOTS: Final = 64
LATE_MS: Final = 2000  # a round that is due begins so much later at most, on a machine with much else to do


class OffsetSync(NamedTuple):
    """An offset sync, the offsets of one record: when it was written (ms), on the source and on the mirror."""

    time_ms: int
    upstream: int
    downstream: int


class CommittedPosition(NamedTuple):
    """A committed position of the group on the source, and when it was written (ms)."""

    time_ms: int
    offset: int


@dataclass
class OffsetSyncStore:
    """The offset syncs that MirrorMaker keeps of one partition: the latest first."""

    _syncs: list[OffsetSync] = field(default_factory=list)

    def take(self, sync: OffsetSync) -> None:
        """Takes the next sync that was written down. One that lies before the latest is of another log."""
        before = self._syncs
        if not before or before[0].upstream > sync.upstream:
            self._syncs = [sync] * SLOTS
            return
        self._syncs, candidate, at = [sync, *before[1:]], sync, 0
        for slot in range(1, SLOTS):
            passes = True
            while passes:  # of those that were kept, the next that may stand here takes the place of the candidate
                waiting = before[at]
                fits = self._fits(waiting, slot)
                candidate = waiting if fits else candidate
                passes = waiting is before[min(at + 1, SLOTS - 1)] or not _is_apart(
                    self._syncs[slot - 1], waiting, slot - 1
                )
                at += fits or passes
                passes = passes and at < slot
            if _is_recent(self._syncs[slot - 1], self._syncs[slot], slot):
                return  # whoever stands here is near enough, and so are all behind it
            self._syncs[slot] = candidate

    def _fits(self, sync: OffsetSync, slot: int) -> bool:
        newer, older = self._syncs[slot - 1], self._syncs[min(slot + 1, SLOTS - 1)]
        room = slot + 1 >= SLOTS or _is_apart(sync, older, slot)
        return room and _is_recent(newer, sync, slot) and _is_apart(newer, sync, slot - 1)

    def translated(self, offset: int) -> int | None:
        """Returns the source's position from which a group goes on that had committed `offset`; None: it is not
        translated."""
        sync = next((one for one in self._syncs if one.upstream <= offset), None)
        if sync is None:
            return None
        return sync.upstream if sync.upstream == offset else sync.upstream + 1


def _is_recent(newer: OffsetSync, sync: OffsetSync, slot: int) -> bool:
    """Whether a sync is near enough to the newer one to stand at a slot: at most 2 ** (slot - 1) records behind."""
    return newer is sync or newer.upstream <= sync.upstream + 2 ** (slot - 1)


def _is_apart(newer: OffsetSync, sync: OffsetSync, slot: int) -> bool:
    """Whether a sync is far enough from the newer one at a slot to be worth a slot of its own."""
    return newer is sync or newer.upstream >= sync.upstream + 2 ** max(slot - 2, 0)


def earliest_start(
    syncs: Iterable[OffsetSync], positions: Sequence[CommittedPosition], *, left_ms: int, every_s: float
) -> int | None:
    """Returns the source's position at or after which a group begins that left at `left_ms`, by positions that were
    translated every `every_s`, and written as often; None: none had to be translated by then."""
    found = list(_found(syncs, positions))
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


def _found(syncs: Iterable[OffsetSync], positions: Sequence[CommittedPosition]) -> Iterator[tuple[int, int | None]]:
    """Yields what a round finds from each instant on at which that changes (ms): a position of the source."""
    kept = OffsetSyncStore()
    committed: int | None = None
    events: list[OffsetSync | CommittedPosition] = [*syncs, *positions]
    for event in sorted(events, key=lambda one: one.time_ms):
        if isinstance(event, OffsetSync):
            kept.take(event)
        else:
            committed = event.offset
        yield event.time_ms, None if committed is None else kept.translated(committed)

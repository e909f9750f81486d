"""Movements, seen live: how long partitions paused so far, since when none got further, and what is in hand.

Fed by `progress.py`, for the bounds of the drain. The judge finds the same in the whole history
(`model/movements.py`, which says what counts).
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_trial.history.event import Event
from kafka_trial.model.group_timeouts import TIMES_FURTHER, Movements

Place = tuple[int, int]  # partition, offset
Slice = tuple[str, int]  # topic, partition
SECOND_NS = 1_000_000_000
READ_LATE_NS_MAX = 60 * SECOND_NS  # whoever reads a log is not further behind; what seems to be is of another clock


@dataclass
class MovementWatch:
    """What moved on the partitions of one topic, and, by commits alone, on those of its intermediate topics."""

    topic: str
    progressed_ns: int = 0  # when any of them got further last
    _gap_ns: int | None = None
    _moved_ns: dict[Slice, int] = field(default_factory=dict)
    _peaks: dict[Slice, int] = field(default_factory=dict)
    _intermediate: set[str] = field(default_factory=set)
    _commits: list[tuple[Slice, int, int]] = field(default_factory=list)  # where, the offset, when
    _epochs: Counter[tuple[str, int]] = field(default_factory=Counter)
    _given: Counter[tuple[str, int, Place]] = field(default_factory=Counter)
    _times: Counter[tuple[str, Place]] = field(default_factory=Counter)
    _in_hand: dict[Place, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    _unplaced: list[Event] = field(default_factory=list)
    _new: list[tuple[int, Slice]] = field(default_factory=list)  # when, where

    def take(self, event: Event) -> None:
        """Takes one event into account; `settle` is called after the last of those that were read together."""
        if event.kind == "effect":
            self._unplaced.append(event)
        elif event.kind in ("assigned", "revoked", "lost", "stopped", "exited"):
            self._take_callback(event)
        elif event.kind == "through":
            self._intermediate.add(str(event.topic))
        elif event.topic is None or event.partition is None:
            return
        elif event.kind == "committed" and event.committed_offset is not None:
            self._commits.append(((event.topic, event.partition), event.committed_offset, written_ns(event)))
        elif event.kind in ("delivered", "processed") and event.topic == self.topic and event.offset is not None:
            self._take_work(event, (event.partition, event.offset))

    def settle(self, places: Mapping[str, Place]) -> None:
        """Counts what was read since the last time, in its order; `places` are those of the ids that effects bear."""
        waiting, self._unplaced = self._unplaced, []
        for event in waiting:
            if (place := places.get(str(event.id))) is not None:
                self._take_effect(event, place)
            else:
                self._unplaced.append(event)  # its send was not read yet, or it is of no record
        commits, self._commits = self._commits, []
        for where, committed_offset, time_ns in commits:
            if where[0] == self.topic or where[0] in self._intermediate:
                self._take_commit(where, committed_offset, time_ns)
            else:
                self._commits.append((where, committed_offset, time_ns))  # no record of that topic was read yet
        for time_ns, where in sorted(self._new):
            before_ns = self._moved_ns.get(where, time_ns)
            self._gap_ns = max(self._gap_ns or 0, time_ns - before_ns)
            self._moved_ns[where] = max(before_ns, time_ns)
        self._new.clear()

    @property
    def movements(self) -> Movements:
        """What partitions have shown of their pauses."""
        return Movements(None if self._gap_ns is None else self._gap_ns / SECOND_NS)

    def in_hand_since_ns(self) -> int | None:
        """Returns when the latest record that some member has in hand was delivered to it; None where none is."""
        few = (held for place, held in self._in_hand.items() if self._times["delivered", place] <= TIMES_FURTHER)
        return max((at_ns for held in few for at_ns in held.values()), default=None)

    def _take_callback(self, event: Event) -> None:
        """Who gets partitions begins anew with them; who loses some, or ends, has nothing of them in hand."""
        entries = event.details.get("entries", ())
        named = {entry.get("partition") for entry in entries if entry.get("topic", self.topic) == self.topic}
        if event.kind == "assigned":
            self._epochs.update((event.source, partition) for partition in named)
            return
        for place, held in self._in_hand.items():
            if event.kind in ("stopped", "exited") or place[0] in named:
                held.pop(event.source, None)

    def _take_commit(self, where: Slice, committed_offset: int, time_ns: int) -> None:
        if committed_offset > self._peaks.get(where, -1):
            self._peaks[where] = committed_offset
            self._new.append((time_ns, where))
            self.progressed_ns = max(self.progressed_ns, time_ns)

    def _take_work(self, event: Event, place: Place) -> None:
        if event.kind == "delivered":
            given = event.source, self._epochs[event.source, place[0]], place
            self._given[given] += 1
            self._in_hand[place][event.source] = event.time_ns
            if self._given[given] > TIMES_FURTHER:
                self._count(event.kind, place, event.time_ns)
                return
        else:
            self._put_down(place, event.source)
            if event.outcome == "failed":  # it will be tried again
                return
        self._move(place[0], event.time_ns)
        self._count(event.kind, place, event.time_ns)

    def _take_effect(self, event: Event, place: Place) -> None:
        held = self._in_hand.get(place, {})
        time_ns = written_ns(event)
        for source in [source for source, since_ns in held.items() if since_ns <= time_ns]:
            self._put_down(place, source)
        self._move(place[0], time_ns)
        self._count("effect", place, time_ns)

    def _put_down(self, place: Place, source: str) -> None:
        held = self._in_hand.get(place)
        if held is not None:
            held.pop(source, None)
            if not held:
                del self._in_hand[place]

    def _count(self, kind: str, place: Place, time_ns: int) -> None:
        self._times[kind, place] += 1
        if self._times[kind, place] <= TIMES_FURTHER:
            self.progressed_ns = max(self.progressed_ns, time_ns)

    def _move(self, partition: int, time_ns: int) -> None:
        self._new.append((time_ns, (self.topic, partition)))


def written_ns(event: Event) -> int:
    """Returns when what a witness read had been written, by the broker's clock where it says so: a witness may read it
    seconds later, on a busy machine."""
    taken_ms = event.details.get("commit_time_ms")  # the coordinator took it then, and wrote it later
    wall_ns = event.source_wall_ns if taken_ms is None else int(taken_ms) * 1_000_000
    if wall_ns is None:
        return event.time_ns
    at_ns = wall_ns + time.monotonic_ns() - time.time_ns()
    return at_ns if 0 <= event.time_ns - at_ns <= READ_LATE_NS_MAX else event.time_ns

"""How far a trial has come, seen live from the history: what the drain waits for, and whether a new group is fed.

The judge never uses this; it only decides how long a trial goes on. Positions come from the offsets log, handled
records from the consumers' own lines and from the sink. `FreshRecords` tells whether every partition got records since
the group under trial last changed.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_trial.history.event import Event
from kafka_trial.history.store import Follower, RunFolder
from kafka_trial.invariants.bounds import FRESH_MIN


@dataclass
class Progress:
    """Committed positions and handled records by partition of `topic`, fed from a run folder's history."""

    folder: RunFolder
    topic: str
    group: str
    by_sends: bool = False  # the log holds what no committed reader finds: what was acknowledged is all there is
    by_effects: bool = False  # what members say they did is no output yet: only effects count as handled
    committed: dict[int, int] = field(default_factory=dict)
    handled: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    effects: set[str] = field(default_factory=set)
    acknowledged: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    acknowledged_ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        history = self.folder.history
        self._followers = [
            Follower(history, pattern)
            for pattern in ("offsets.jsonl", "consumer-*.jsonl", "sink.jsonl", "workload.jsonl")
            if self.by_sends or pattern != "workload.jsonl"
        ]

    def update(self) -> Progress:
        """Reads what was appended since the last look."""
        for follower in self._followers:
            for event in follower.new_events():
                self._take(event)
        return self

    def ends(self, log_ends: Mapping[int, int]) -> Mapping[int, int]:
        """Returns the position after the last record of each partition that there is to read."""
        if not self.by_sends:
            return log_ends
        last = {partition: max(self.acknowledged[partition], default=-1) for partition in log_ends}
        return {partition: min(end, last[partition] + 1) for partition, end in log_ends.items()}

    def records(self, ends: Mapping[int, int]) -> int:
        """Returns how many records there are below `ends`."""
        return len(self.acknowledged_ids) if self.by_sends else sum(ends.values())

    def lag(self, ends: Mapping[int, int]) -> int:
        """Returns how many positions the commits are behind `ends` (position after the last record), all partitions."""
        return sum(max(0, end - self.committed.get(partition, 0)) for partition, end in ends.items())

    def unhandled(self, ends: Mapping[int, int]) -> int:
        """Returns how many offsets below `ends` no handler has finished, all partitions."""
        return sum(end - len(self.handled[partition]) for partition, end in ends.items())

    def handled_total(self) -> int:
        """Returns how many distinct records have been handled, by lines or by effects, whichever saw more.

        What was taken back is none of them, though there are readers that handle it.
        """
        handled: Mapping[int, set[int]] = self.handled
        effects = self.effects
        if self.by_sends:
            handled = {partition: offsets & self.acknowledged[partition] for partition, offsets in handled.items()}
            effects = effects & self.acknowledged_ids
        return len(effects) if self.by_effects else max(sum(map(len, handled.values())), len(effects))

    def _take(self, event: Event) -> None:
        if event.kind == "effect" and event.id is not None:
            self.effects.add(event.id)
        if event.topic != self.topic or event.partition is None:
            return
        if event.kind == "send" and event.outcome == "ok":
            self._take_acknowledged(event.id, event.partition, event.offset)
        elif event.kind == "committed" and event.committed_offset is not None:
            self.committed[event.partition] = event.committed_offset
        elif event.kind == "processed" and event.offset is not None:
            self.handled[event.partition].add(event.offset)

    def _take_acknowledged(self, name: str | None, partition: int, offset: int | None) -> None:
        if name is not None:
            self.acknowledged_ids.add(name)
        if offset is not None:
            self.acknowledged[partition].add(offset)


STILL_S = 5.0  # at rest, and without a record anywhere: the load has come to its own end
LONG_S = 10.0


@dataclass
class FreshRecords:
    """Where the partitions ended when the group had just come to rest, and whether anything is being written at all."""

    base: Mapping[int, int] | None = None
    changes: int | None = None
    began_s: float = field(default_factory=time.monotonic)
    moved_s: float = field(default_factory=time.monotonic)
    _total: int = -1

    def look(self, ends: Mapping[int, int], changes: int | None) -> bool:
        """Returns whether every partition got enough; `changes`: how often the group has changed, None while it is not
        at rest."""
        if sum(ends.values()) != self._total or changes is None:
            self._total, self.moved_s = sum(ends.values()), time.monotonic()
        if changes is None or changes != self.changes or self.base is None:
            self.base, self.changes = (None if changes is None else dict(ends)), changes
            return False
        return all(end - self.base.get(partition, 0) >= FRESH_MIN for partition, end in ends.items())

    def waits_long(self) -> bool:
        """Tells whether the group has been waited for so long that the load may be held."""
        return time.monotonic() - self.began_s > LONG_S

    def given_up(self) -> str | None:
        """Returns why nothing more will come; None while something does."""
        return "the load has ended" if time.monotonic() - self.moved_s > STILL_S else None

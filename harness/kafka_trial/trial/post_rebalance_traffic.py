"""Traffic after a rebalance: whether every partition got records since the group under trial last changed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_trial.invariants.bounds import FRESH_MIN

__all__ = ["FRESH_MIN", "FreshRecords"]

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

"""The drain's end: until when a trial waits for its group, by the same bounds as the judge's.

`TrialEnvironment.wait_converged` asks `DrainBounds` for them. They are reckoned again as more is read of the time
before the drain: a line that waited, or a request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kafka_trial.history.event import Slice
from kafka_trial.history.recorder import Recorder
from kafka_trial.model.liveness_bounds import DrainBound, Timing, drain_bound
from kafka_trial.trial.group_watch import GroupWatch
from kafka_trial.trial.progress import Progress

MARGIN_S = 2.0
SECOND_NS = 1_000_000_000


@dataclass
class DrainBounds:
    """The bounds of one drain. `timing` returns what they follow from, by what was read so far."""

    run: Recorder
    ends: Mapping[Slice, int]
    progress: Progress
    watch: GroupWatch
    timing: Callable[[], Timing]
    began_ns: int = field(default_factory=time.monotonic_ns)
    _told: DrainBound | None = None
    _poll_limit_s: float = 0.0

    def reckon(self) -> DrainBound:
        """Returns the bounds as they are now, and writes them down where they are others than before."""
        timing = self.timing()
        bound, self._poll_limit_s = drain_bound(timing), timing.poll_limit_s
        if bound != self._told:
            self.run.record(
                "drain_bound",
                converge_s=round(bound.converge_s, 3),
                stuck_s=round(bound.stuck_s, 3),
                message=bound.words,
            )
            self._told = bound
        return bound

    def within_s(self) -> float:
        """Returns for how long the drain goes on at most, where neither the machine nor a limit says otherwise."""
        return self.reckon().longest_s + MARGIN_S

    def makes_no_progress(self) -> bool:
        """Tells whether records are left, and nothing can change the verdict on them any more.

        As the judge sees it: nothing has got further for W, nothing is in hand that may be finished before its member
        must poll, and the drain and the time since the machine last stood still are long enough.
        """
        still_s = self._still_s()
        if still_s < self._least_s() or self._in_hand():
            return False
        return still_s >= self.reckon().no_progress_s + MARGIN_S and self.progress.is_left(self.ends)

    def _still_s(self) -> float:
        """Returns how long ago the drain began, or the group got further last, or the machine stood still."""
        last_ns = max(self.began_ns, self.progress.moves.progressed_ns)
        if (time.monotonic_ns() - last_ns) / SECOND_NS < self._least_s():
            return 0.0
        watch = self.watch.update()
        last_ns = max(last_ns, watch.fetched_ns, watch.stood_still_ns())
        return (time.monotonic_ns() - last_ns) / SECOND_NS

    def _least_s(self) -> float:
        """Returns how long nothing must have got further before it is worth to look closer: W as last reckoned."""
        return (self._told or self.reckon()).stuck_s

    def _in_hand(self) -> bool:
        since_ns = self.progress.moves.in_hand_since_ns()
        return since_ns is not None and time.monotonic_ns() - since_ns < self._poll_limit_s * SECOND_NS

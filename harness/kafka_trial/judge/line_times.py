"""Own times: when a member's lines were, by the times they bear themselves, and since when each can have been printed.

Stands beside `history_reader.py`, which makes the rows of a file: both end up in the rows of a member's own word. A
time that cannot be so (after the line was read, long before what was read before it, or far behind the lines before) is
not used, and counted. Only a file whose lines all bear times that can be so is placed by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.clocks import CLOCKS_NS
from kafka_trial.model.instants import at_earliest
from kafka_trial.model.kernels import NONE, Array, Bools, Ints
from kafka_trial.model.trial_context import TrialContext
from kafka_trial.model.wall_clock import monotonic

if TYPE_CHECKING:
    from kafka_trial.judge.columns import Columns
    from kafka_trial.judge.trial_context_builder import TrialContextBuilder

LINE_KINDS = ("assigned", "revoked", "lost", "delivered", "processed", "commit")


class OwnTimes:
    """What the lines of one file say of their times; called once for each block, in order."""

    def __init__(self, builder: TrialContextBuilder, source: int) -> None:
        self._builder = builder
        self._source = source
        self._read_ns: int | None = None  # when the last line of the blocks before was read
        self._before_ns = 0  # when the last line was read that was not read with it
        self._latest_ns = NONE
        self._untimed = False
        self._timed = False
        self._false: list[int] = []

    def take(self, columns: Columns, time_ns: Array) -> tuple[Ints, Ints]:
        """Returns the own time of each line on the harness's clock (NONE: it bears none that can be believed), and the
        time at which the lines before those that were read with it had been read.

        Of a file that is no member's: the wall times as they stand there, and 0.
        """
        wall_ns = columns["source_wall_ns"]
        if self._source not in self._builder.incarnations or not len(time_ns):
            return wall_ns, np.zeros(len(wall_ns), np.int64)
        since_ns = self._since(time_ns)
        told = wall_ns != NONE
        own_ns = self._believed(wall_ns, time_ns, since_ns) if told.any() else np.full(len(wall_ns), NONE)
        self._false += columns["seq"][told & (own_ns == NONE)].tolist()
        said = columns.is_kind(*LINE_KINDS)
        self._timed |= bool((said & (own_ns != NONE)).any())
        self._untimed |= bool((said & (own_ns == NONE)).any())
        return own_ns, since_ns

    def tell(self) -> None:
        """Notes of the whole file whether its lines bear times, all of them, and how many times were false."""
        if self._timed and not self._untimed:
            self._builder.timed.append(self._source)
        if self._false:
            self._builder.false_times.append((self._source, len(self._false), self._false[0]))

    def _since(self, time_ns: Array) -> Ints:
        first = np.ones(len(time_ns), np.bool_)
        first[1:] = time_ns[1:] != time_ns[:-1]
        first[0] = time_ns[0] != self._read_ns
        before = self._before_ns if not first[0] else self._read_ns
        heads = np.concatenate([[time_ns[0] if before is None else before], time_ns[:-1]])
        since = heads[np.maximum.accumulate(np.where(first, np.arange(len(time_ns)), 0))]
        self._read_ns, self._before_ns = int(time_ns[-1]), int(since[-1])
        return np.asarray(since, np.int64)

    def _believed(self, wall_ns: Array, time_ns: Array, since_ns: Ints) -> Ints:
        """Returns the own times that can be so, none of them before one that stands before it."""
        clocks = TrialContext(clocks=tuple(sorted(self._builder.clock_samples.clocks)))
        own_ns = monotonic(clocks, wall_ns, np.full(len(wall_ns), NONE))
        possible: Bools = (wall_ns != NONE) & (own_ns != NONE)
        possible &= (own_ns <= time_ns + CLOCKS_NS) & (own_ns >= at_earliest(since_ns))
        latest = np.maximum.accumulate(np.maximum(np.where(possible, own_ns, NONE), self._latest_ns))
        possible &= own_ns >= at_earliest(latest)
        self._latest_ns = int(latest[-1])
        return np.where(possible, np.minimum(latest, time_ns), NONE)

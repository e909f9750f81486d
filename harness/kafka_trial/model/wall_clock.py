"""The wall clock: when brokers did something, on the harness's monotonic clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.kernels import NONE, Array, Ints

if TYPE_CHECKING:
    from kafka_trial.model.trial_context import TrialContext


def monotonic(trial_context: TrialContext, wall_ns: Array, otherwise_ns: Array) -> Ints:
    """Returns wall times on the harness's monotonic clock by the nearest pair of clocks.

    Where there is no wall time, or there are no pairs, `otherwise_ns`.
    """
    pairs = np.array(trial_context.clocks, np.int64).reshape(-1, 2)
    if not len(pairs):
        return otherwise_ns
    walls = pairs[:, 0]
    after = np.searchsorted(walls, wall_ns).clip(0, len(walls) - 1)
    before = (after - 1).clip(0)
    near = np.where(wall_ns - walls[before] <= walls[after] - wall_ns, before, after)
    return np.where(wall_ns == NONE, otherwise_ns, wall_ns - walls[near] + pairs[near, 1])


def done_ns(trial_context: TrialContext, moments: Sequence[tuple[int | None, int]]) -> list[int]:
    """Returns when brokers did something, by their own clocks where they say so (wall time, when it was read).

    On a busy machine it is read late.
    """
    walls = np.array([NONE if wall is None else wall for wall, _ in moments], np.int64)
    read_ns = np.array([time_ns for _, time_ns in moments], np.int64)
    return [int(at_ns) for at_ns in np.minimum(monotonic(trial_context, walls, read_ns), read_ns)]

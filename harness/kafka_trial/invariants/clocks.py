"""Wall times of others on the harness's monotonic clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.kernels import NONE, Array, Ints

if TYPE_CHECKING:
    from kafka_trial.invariants.circumstances import Circumstances


def monotonic(circumstances: Circumstances, wall_ns: Array, otherwise_ns: Array) -> Ints:
    """Returns wall times on the harness's monotonic clock by the nearest pair of clocks.

    Where there is no wall time, or there are no pairs, `otherwise_ns`.
    """
    pairs = np.array(circumstances.clocks, np.int64).reshape(-1, 2)
    if not len(pairs):
        return otherwise_ns
    walls = pairs[:, 0]
    after = np.searchsorted(walls, wall_ns).clip(0, len(walls) - 1)
    before = (after - 1).clip(0)
    near = np.where(wall_ns - walls[before] <= walls[after] - wall_ns, before, after)
    return np.where(wall_ns == NONE, otherwise_ns, wall_ns - walls[near] + pairs[near, 1])

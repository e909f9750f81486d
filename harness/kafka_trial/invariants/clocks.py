"""Wall times of others on the harness's monotonic clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.circumstances import TOLERANCE_NS
from kafka_trial.invariants.kernels import NEVER, NONE, Array, Ints

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


def earliest(circumstances: Circumstances, heard_ns: Ints) -> Ints:
    """Returns when each event may have happened at the earliest; NEVER and NONE stay as they are.

    While the harness stood still it heard nothing, and what was said meanwhile bears the time at which it woke, or one
    soon after it.
    """
    if not circumstances.standstills:
        return heard_ns
    begins, ends = np.array(circumstances.standstills, np.int64).T
    place = np.searchsorted(begins, heard_ns, side="right") - 1
    inside = (place >= 0) & (heard_ns <= ends[place] + TOLERANCE_NS) & (heard_ns != NEVER) & (heard_ns != NONE)
    return np.where(inside, begins[place], heard_ns)

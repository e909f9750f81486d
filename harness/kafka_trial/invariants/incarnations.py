"""Incarnations: which one of a member a file is of, which one ran at some time, and which member runs in a lane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.kernels import Array, Ints, at_or_before, exactly, picked

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


def incarnation_of(batch: Batch, sources: Array) -> Ints:
    """Returns the place of each source's life in `batch.lives`, -1 where a source is no member's."""
    places = np.full(len(batch.trial_context.sources) + 1, -1, np.int64)
    places[batch.lives["source"]] = np.arange(len(batch.lives))
    return places[sources]


def incarnation_at(batch: Batch, members: Array, time_ns: Array) -> Ints:
    """Returns the incarnation of each member that had begun last at that time, -1 where there is none."""
    return at_or_before(batch.lives["member"], batch.lives["started_ns"], members, time_ns)


def file_of(batch: Batch, members: Array, at_ns: Array) -> Ints:
    """Returns the file of the incarnation that each member was by then, -1 where it was none."""
    lives = batch.lives  # sorted by (member, start)
    row = at_or_before(lives["member"], lives["started_ns"], members, at_ns)
    return np.where(members >= 0, picked(lives["source"], row, -1), -1)


def members_of(batch: Batch, lanes: Array, *, otherwise: int) -> Ints:
    """Returns the member that runs in each lane."""
    lanes_known = np.array(sorted(batch.trial_context.lanes), np.int64)
    members = np.array([batch.trial_context.lanes[lane] for lane in lanes_known.tolist()], np.int64)
    one = np.zeros(len(lanes_known), np.int64)
    return picked(members, exactly(one, lanes_known, np.zeros(len(lanes), np.int64), lanes), otherwise)

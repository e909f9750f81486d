"""Heartbeat runs: when the heartbeats and joins of each member were answered, as stretches without a long gap.

A client that hears nothing of its coordinator for a session takes its partitions to be lost. What says that it was
answered all the time is far more than the answers that say something new (`group_answers.py`): only where a stretch
began and ended is kept, so that nothing here grows with time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.kernels import NONE, Array, first_of, ordered, starts_of
from kafka_trial.invariants.trial_context import HeartbeatRun
from kafka_trial.judge.columns import Columns

if TYPE_CHECKING:
    from kafka_trial.judge.trial_context_builder import TrialContextBuilder

UNTOLD_GAP_NS = 2_000_000_000  # ends a stretch where nobody has been told of a session yet
APIS = {"HEARTBEAT": 1, "CONSUMERGROUPHEARTBEAT": 2, "JOINGROUP": 2, "SYNCGROUP": 2}
REBALANCE_IN_PROGRESS = 27  # as an answer to a heartbeat it keeps a session alive as well as any
Who = tuple[int, str]  # lane, member id


@dataclass
class HeartbeatRunCollector:
    """What has been gathered so far; a stretch is first and last (wall, time)."""

    _stretches: dict[tuple[int, Who], list[tuple[int, int, int, int]]] = field(default_factory=dict)

    def take(self, builder: TrialContextBuilder, source: int, columns: Columns) -> None:
        """Takes the requests of a block."""
        rows = _answered(builder, columns)
        if not len(rows):
            return
        names, codes = columns.encoded("member_id")
        rows = rows[np.array([*map(bool, names), False])[codes[rows]]]
        wall_ns, time_ns, lanes = (columns[name] for name in ("source_wall_ns", "time_ns", "lane"))
        rows = rows[ordered(lanes[rows], codes[rows], wall_ns[rows], time_ns[rows])]
        gap_ns = _gap_ns(builder)
        for mine in np.split(rows, first_of(_pairs(lanes[rows], codes[rows]))[1:]):
            if len(mine):
                who = int(lanes[mine[0]]), names[int(codes[mine[0]])]
                self._extend((source, who), wall_ns[mine], time_ns[mine], gap_ns)

    def all(self) -> tuple[HeartbeatRun, ...]:
        """Returns all stretches."""
        return tuple(
            HeartbeatRun(source, lane, _known(wall), time, _known(last_wall), last_time)
            for (source, (lane, _)), stretches in sorted(self._stretches.items())
            for wall, time, last_wall, last_time in stretches
        )

    def _extend(self, key: tuple[int, Who], wall_ns: Array, time_ns: Array, gap_ns: int) -> None:
        """Adds answers in their order: to the last stretch, or as further ones."""
        at_ns = np.where(wall_ns == NONE, time_ns, wall_ns)
        begins = np.flatnonzero(np.append(True, np.diff(at_ns) > gap_ns))
        ends = np.append(begins[1:], len(at_ns)) - 1
        found = self._stretches.setdefault(key, [])
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            first, last = ((int(wall_ns[at]), int(time_ns[at])) for at in (begin, end))
            before = found[-1][2:] if found else None
            if before is not None and _moment(*first) - _moment(*before) <= gap_ns:
                found[-1] = (*found[-1][:2], *max(before, last, key=lambda one: _moment(*one)))
            else:
                found.append((*first, *last))


def _answered(builder: TrialContextBuilder, columns: Columns) -> Array:
    """Returns which rows of a block are answers that tell a member that it is in the group."""
    apis = columns.codes("api", APIS, fold=True)
    if not apis.any():
        return np.empty(0, np.int64)
    ours = columns.absent("group")
    ours = ours | (columns.codes("group", {builder.group: 1}) == 1 if builder.group is not None else True)
    error = np.where(columns["error"] == NONE, 0, columns["error"])
    alive = (error == 0) | ((apis == APIS["HEARTBEAT"]) & (error == REBALANCE_IN_PROGRESS))
    return np.flatnonzero((apis > 0) & ours & alive & columns.is_kind("request") & (columns["lane"] != NONE))


def _gap_ns(builder: TrialContextBuilder) -> int:
    """Returns which gap ends a stretch: half the longest session that brokers were told so far."""
    sessions = [*builder.told.sessions_ms, builder.told.consumer_session_ms or 0]
    return max(sessions) * 1_000_000 // 2 or UNTOLD_GAP_NS


def _pairs(lanes: Array, codes: Array) -> Array:
    return np.cumsum(starts_of(lanes) | starts_of(codes))


def _moment(wall_ns: int, time_ns: int) -> int:
    return time_ns if wall_ns == NONE else wall_ns


def _known(wall_ns: int) -> int | None:
    return None if wall_ns == NONE else wall_ns

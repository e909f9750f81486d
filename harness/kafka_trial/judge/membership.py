"""Membership: when each member was answered by its coordinator, and when each member id was in the group.

A client that hears nothing of its coordinator for a session takes its partitions to be lost. What says that it was
answered all the time is far more than the answers that say something new (`group_answers.py`): only where a stretch of
answered heartbeats and joins began and ended is kept, and of each member id when it was first and last seen in the
group, so that nothing here grows with time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kafka_trial.judge.columns import Columns
from kafka_trial.judge.history_names import HistoryNames
from kafka_trial.model.kernels import NONE, Array, first_of, ordered, starts_of
from kafka_trial.model.trial_context import HeartbeatRun, MemberSpan

UNTOLD_GAP_NS = 2_000_000_000  # ends a stretch where nobody has been told of a session yet
APIS = {"HEARTBEAT": 1, "CONSUMERGROUPHEARTBEAT": 2, "JOINGROUP": 2, "SYNCGROUP": 2}
REBALANCE_IN_PROGRESS = 27  # as an answer to a heartbeat it keeps a session alive as well as any
Who = tuple[int, str]  # lane, member id


@dataclass
class HeartbeatRunCollector:
    """What has been gathered so far; a stretch is first and last (wall, time)."""

    _stretches: dict[tuple[int, Who], list[tuple[int, int, int, int]]] = field(default_factory=dict)

    def take(self, names: HistoryNames, source: int, columns: Columns, *, longest_session_ms: int) -> None:
        """Takes the requests of a block; a gap of half the longest session that brokers were told ends a stretch."""
        rows = _answered(names, columns)
        if not len(rows):
            return
        member_ids, codes = columns.encoded("member_id")
        wall_ns, time_ns, lanes = (columns[name] for name in ("source_wall_ns", "time_ns", "lane"))
        rows = rows[ordered(lanes[rows], codes[rows], wall_ns[rows], time_ns[rows])]
        gap_ns = longest_session_ms * 1_000_000 // 2 or UNTOLD_GAP_NS
        for mine in np.split(rows, first_of(_pairs(lanes[rows], codes[rows]))[1:]):
            if len(mine):
                who = int(lanes[mine[0]]), member_ids[int(codes[mine[0]])]
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


GRANTED = dict.fromkeys((*APIS, "OFFSETCOMMIT", "TXNOFFSETCOMMIT"), 1)
DURATION_MS_MAX = 1e9


@dataclass
class MemberSpanCollector:
    """What has been gathered so far; a span is the first and the last (wall, time)."""

    _spans: dict[tuple[int, int], tuple[int, int, int, int]] = field(default_factory=dict)

    def take(self, names: HistoryNames, columns: Columns) -> None:
        """Takes the requests of a block that only a member is granted; a goodbye may be logged when its client has been
        followed by the next one."""
        rows = _granted(names, columns)
        if not len(rows):
            return
        member_ids, codes = columns.encoded("member_id")
        lasted_ms = columns.reals("duration_ms")[rows]
        usable = (lasted_ms >= 0) & (lasted_ms < DURATION_MS_MAX)
        lasted_ns = np.where(usable, lasted_ms * 1_000_000, 0).astype(np.int64)
        wall_ns, time_ns = (
            np.where(columns[name][rows] == NONE, NONE, columns[name][rows] - lasted_ns)
            for name in ("source_wall_ns", "time_ns")
        )
        at_ns, lanes, codes = np.where(wall_ns == NONE, time_ns, wall_ns), columns["lane"][rows], codes[rows]
        for mine in np.split(order := ordered(lanes, codes, at_ns), first_of(_pairs(lanes[order], codes[order]))[1:]):
            first, last = ((int(wall_ns[at]), int(time_ns[at])) for at in (mine[0], mine[-1]))
            who = int(lanes[mine[0]]), names.member_id(member_ids[int(codes[mine[0]])])
            before = self._spans.get(who, (*first, *last))
            first = min(before[:2], first, key=lambda one: _moment(*one))
            last = max(before[2:], last, key=lambda one: _moment(*one))
            self._spans[who] = *first, *last

    def all(self) -> tuple[MemberSpan, ...]:
        """Returns the span of each member id on each lane."""
        return tuple(
            MemberSpan(lane, member_id, _known(wall), time, _known(last_wall), last_time)
            for (lane, member_id), (wall, time, last_wall, last_time) in sorted(self._spans.items())
        )


def _answered(names: HistoryNames, columns: Columns) -> Array:
    """Returns which rows of a block are answers that tell a member that it is in the group."""
    apis = columns.codes("api", APIS, fold=True)
    if not apis.any():
        return np.empty(0, np.int64)
    error = np.where(columns["error"] == NONE, 0, columns["error"])
    alive = (error == 0) | ((apis == APIS["HEARTBEAT"]) & (error == REBALANCE_IN_PROGRESS))
    return np.flatnonzero((apis > 0) & _of_members(names, columns) & alive)


def _granted(names: HistoryNames, columns: Columns) -> Array:
    """Returns which rows of a block are requests that were granted because a member id is in the group."""
    apis = columns.codes("api", GRANTED, fold=True)
    if not apis.any():
        return np.empty(0, np.int64)
    granted = (columns["error"] == NONE) | (columns["error"] == 0)
    leaves = (columns["epoch"] != NONE) & (columns["epoch"] < 0)
    return np.flatnonzero((apis > 0) & _of_members(names, columns) & granted & ~leaves)


def _of_members(names: HistoryNames, columns: Columns) -> Array:
    """Returns which rows are requests of the group on a lane that name a member id."""
    member_ids, codes = columns.encoded("member_id")
    named = np.array([*map(bool, member_ids), False])[codes]
    ours: Array = columns.is_kind("request") & names.of_group(columns) & (columns["lane"] != NONE) & named
    return ours


def _pairs(lanes: Array, codes: Array) -> Array:
    return np.cumsum(starts_of(lanes) | starts_of(codes))


def _moment(wall_ns: int, time_ns: int) -> int:
    return time_ns if wall_ns == NONE else wall_ns


def _known(wall_ns: int) -> int | None:
    return None if wall_ns == NONE else wall_ns

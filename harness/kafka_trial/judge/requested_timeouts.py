"""Declared timeouts: which times the brokers were told of a group, and how its members went round before the faults.

Gathered for the trial context (`trial_context_builder.py`): a handful of requests to join and of group records, and of
deliveries, fetches and heartbeats only the longest gap of each member. The run's own file is read first, so that its
phases say when the faults began.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kafka_trial.judge.columns import Columns
from kafka_trial.judge.history_names import HistoryNames
from kafka_trial.model.group_timeouts import DeclaredTimeouts

if TYPE_CHECKING:
    from kafka_trial.judge.lines import Block

Body = Mapping[str, Any]
SECOND_NS = 1_000_000_000
SEEN_MIN_NS = 3 * SECOND_NS  # who was seen for less has not shown how it goes round
LEFT_EPOCH = -1  # in a heartbeat of KIP-848: the member leaves for good
APIS = {"JOINGROUP": 1, "LEAVEGROUP": 2, "HEARTBEAT": 3, "CONSUMERGROUPHEARTBEAT": 4, "FETCH": 5}


@dataclass
class Gaps:
    """The longest gap between two events of each of several members; when the first and the last of them were."""

    seen: dict[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)

    def take(self, source: int, who: Any, time_ns: Any) -> None:
        """Takes a block of events in order; `who` numbers the members inside their file."""
        for one in np.unique(who).tolist():
            times = time_ns[who == one]
            first, last, longest = self.seen.get((source, one), (int(times[0]), int(times[0]), 0))
            gaps = np.diff(times, prepend=last)
            self.seen[source, one] = (first, int(times[-1]), max(longest, int(gaps.max())))

    def longest_s(self, *, least_ns: int = 1) -> float | None:
        """Returns the longest gap of all who were seen for so long; None where nobody was."""
        found = [longest for first, last, longest in self.seen.values() if last - first >= least_ns]
        return max(found) / SECOND_NS if found else None


@dataclass
class TimeoutCollector:
    """What has been gathered so far."""

    protocols: set[str] = field(default_factory=set)
    sessions_ms: set[int] = field(default_factory=set)
    rebalances_ms: set[int] = field(default_factory=set)
    consumer_session_ms: int | None = None
    leaves: list[tuple[int, int]] = field(default_factory=list)
    takeovers: list[tuple[int, int]] = field(default_factory=list)
    silent: bool = True  # no member prints its deliveries
    deliveries: Gaps = field(default_factory=Gaps)
    fetches: Gaps = field(default_factory=Gaps)
    heartbeats: Gaps = field(default_factory=Gaps)

    def take_member(self, body: Body) -> None:
        """Takes what a request to join, or a record of a member, says of its time-outs."""
        for name, known in (("session_timeout_ms", self.sessions_ms), ("rebalance_timeout_ms", self.rebalances_ms)):
            value = body.get(name)
            if type(value) is int and value > 0:
                known.add(value)

    def take(self, names: HistoryNames, source: int, block: Block, columns: Columns, time_ns: Any) -> None:
        """Takes a block of events."""
        delivered = columns.rows_of("delivered")
        if len(delivered) and names.incarnation(source) is not None:
            self.silent = False
            early = delivered[time_ns[delivered] < _faults_begin_ns(names.phases)]
            self.deliveries.take(source, np.zeros(len(early), np.int64), time_ns[early])
        if len(columns.rows_of("request")):
            self._take_requests(names, source, block, columns)

    def _take_requests(self, names: HistoryNames, source: int, block: Block, columns: Columns) -> None:
        ours = columns.is_kind("request") & names.of_group(columns)
        apis = np.where(ours, columns.codes("api", APIS, fold=True), 0)
        for body in block.bodies(np.flatnonzero(apis == APIS["JOINGROUP"])):
            self._take_join(body)
            if type(body.get("session_timeout_ms")) is int:
                self.protocols.add("classic")
                self.take_member(body)
        if (apis == APIS["CONSUMERGROUPHEARTBEAT"]).any():
            self.protocols.add("consumer")
        for body in block.bodies(np.flatnonzero((apis == APIS["CONSUMERGROUPHEARTBEAT"]) & (columns["epoch"] == 0))):
            self._take_join(body)
        times, lanes = columns["time_ns"], columns["lane"]
        goodbye = (apis == APIS["CONSUMERGROUPHEARTBEAT"]) & (columns["epoch"] == LEFT_EPOCH)
        left = np.flatnonzero(((apis == APIS["LEAVEGROUP"]) & (columns["error"] <= 0)) | goodbye)
        self.leaves += zip(lanes[left].tolist(), times[left].tolist(), strict=True)
        steady = (times >= names.phases.get("steady", 0)) & (times < _faults_begin_ns(names.phases)) & (lanes >= 0)
        beats = np.flatnonzero(steady & np.isin(apis, (APIS["HEARTBEAT"], APIS["CONSUMERGROUPHEARTBEAT"])))
        self.heartbeats.take(source, lanes[beats], times[beats])
        asks = np.flatnonzero(steady & (apis == APIS["FETCH"]))
        self.fetches.take(source, lanes[asks], times[asks])

    def _take_join(self, body: Body) -> None:
        if isinstance(body.get("instance_id"), str) and not body.get("error") and isinstance(body.get("lane"), int):
            self.takeovers.append((body["lane"], body["time_ns"]))

    def longest_session_ms(self) -> int:
        """Returns the longest session that brokers were told of so far; 0 where of none."""
        return max([*self.sessions_ms, self.consumer_session_ms or 0])

    def declared(self) -> DeclaredTimeouts:
        """Returns what all of it says."""
        consumer_ms = [self.consumer_session_ms] if self.consumer_session_ms and "consumer" in self.protocols else []
        return DeclaredTimeouts(
            protocol=next((name for name in ("classic", "consumer") if name in self.protocols), None),
            session_timeout_s=_longest_s([*self.sessions_ms, *consumer_ms]),
            rebalance_timeout_s=_longest_s(list(self.rebalances_ms)),
            heartbeat_s=self.heartbeats.longest_s(),
            poll_cycle_s=(self.fetches if self.silent else self.deliveries).longest_s(least_ns=SEEN_MIN_NS),
            leaves=tuple(sorted(self.leaves)),
            protocols=tuple(sorted(self.protocols)),
            takeovers=tuple(sorted(self.takeovers)),
        )


def _longest_s(values_ms: list[int]) -> float | None:
    return max(values_ms) / 1000 if values_ms else None


def _faults_begin_ns(phases: Mapping[str, int]) -> int:
    """Returns when the faults began, by the run's phases, which are read first."""
    return phases.get("faults", phases.get("drain", phases.get("heal", np.iinfo(np.int64).max)))


def _group(timeouts: TimeoutCollector, body: Body) -> None:
    for member in body.get("members") or ():
        if isinstance(member, Mapping) and type(member.get("session_timeout_ms")) is int:
            timeouts.protocols.add("classic")
            timeouts.take_member(member)


def _member(timeouts: TimeoutCollector, body: Body) -> None:
    if type(body.get("rebalance_timeout_ms")) is int:
        timeouts.protocols.add("consumer")
        timeouts.take_member(body)


def _group_named(timeouts: TimeoutCollector, body: Body) -> None:
    if type(body.get("consumer_session_timeout_ms")) is int:
        timeouts.consumer_session_ms = body["consumer_session_timeout_ms"]


_OF_KIND: Mapping[str, Callable[[TimeoutCollector, Body], None]] = {
    "group": _group,
    "member": _member,
    "group_named": _group_named,
}


def take_timeouts(timeouts: TimeoutCollector, names: HistoryNames, body: Body) -> None:
    """Takes an event that says something of the members' time-outs."""
    if names.is_of_group(body) or body["kind"] == "group_named":
        _OF_KIND[body["kind"]](timeouts, body)

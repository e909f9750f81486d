"""Availability: how long a stage of an upgrade kept partitions and groups waiting, and which brokers served them.

Read from the history of a consumer's trial, for each stage. Durations are of the time in which the stage's load was on:
from its first phase to its `heal`, after which the load is held; what goes on longer is cut there. Which brokers were
coordinator and controller is told up to the beginning of the next stage. What the history does not show is None, never
0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from kafka_trial.history.store import RunFolder
from kafka_trial.model.kernels import Ints
from kafka_trial.upgrade.availability_events import (
    NEVER,
    NS_PER_S,
    Observed,
    Sends,
    StageTimes,
    clocks_of,
    group_of,
    read_observed,
    read_sends,
    seconds,
    stage_times,
    within,
)
from kafka_trial.upgrade.coordinator_answers import Answers
from kafka_trial.upgrade.coordinator_loads import BrokerLogs, CoordinatorLoad

SHOWN_FROM_S: Final = 1.0  # shorter stretches are not drawn
STRETCHES_MAX: Final = 50  # of a partition or group in a stage: the longest

Stretch = tuple[float, float]  # from when to when, in seconds since the rehearsal began


@dataclass(frozen=True)
class PartitionAvailability:
    """How long a partition took no records, in seconds; each the longest such time in the stage.

    `unacknowledged_s`: without an acknowledged record of the load. `sends_apart_s`: without a send to it, which that
    makes at least. `unavailable_s`: with a record waiting and none acknowledged; the producer's own gathering (0.1 s)
    and one way there and back are in it. Records whose acknowledgement never came count where their key tells the
    partition. None: nothing was sent to it, or no load is recorded.

    `leaderless_s`: without a leader, as the observer saw it (error: `Availability.observed_every_s`). `stretches`: when
    it was unavailable for SHOWN_FROM_S or longer.
    """

    partition: int
    unacknowledged_s: float | None = None
    sends_apart_s: float | None = None
    unavailable_s: float | None = None
    leaderless_s: float | None = None
    stretches: Sequence[Stretch] = ()


@dataclass(frozen=True)
class GroupAvailability:
    """How long a group was not served, in seconds, and by whom it was.

    `unanswered_s`: the longest time in which its coordinator answered no heartbeat, join, sync or commit of it without
    an error, by the brokers' request logs (error: 1 ms; a request that a dying broker answered last may be missing).
    `answers_apart_s`: how far such answers to one member are apart as a rule (the median, of the member with the
    shortest): so long a silence is the members' own. None: no answer is recorded, or a witness of a request log had
    lost sight.

    `coordinatorless_s`: the longest time in which no broker named a coordinator to the observer (error:
    `Availability.observed_every_s`). `coordinators`: who was, in their order. `loads`: None where a log is missing.
    `stretches`: when it was unanswered for SHOWN_FROM_S or longer, and for twice `answers_apart_s`.
    """

    name: str
    unanswered_s: float | None = None
    answers_apart_s: float | None = None
    coordinatorless_s: float | None = None
    coordinators: Sequence[int] = ()
    loads: Sequence[CoordinatorLoad] | None = None
    stretches: Sequence[Stretch] = ()


@dataclass(frozen=True)
class Availability:
    """What one stage cost one consumer in availability.

    `from_s`, `until_s`: the time of its load, in seconds since the rehearsal began. `observed_every_s`: the longest
    time between two looks of the observer; what came and went in between, it has not seen. `controllers`: the nodes
    that were the active controller, in their order.
    """

    consumer: str
    from_s: float
    until_s: float
    group: GroupAvailability
    partitions: Sequence[PartitionAvailability] = ()
    observed_every_s: float | None = None
    controllers: Sequence[int] = ()


def availability(
    consumer: str, folder: RunFolder, logs: Path, stages: Sequence[str], *, base_ns: int
) -> dict[str, Availability]:
    """Returns what each stage cost a consumer, by the history in `folder` and the brokers' logs; without stages that
    the history has not whole. `base_ns`: when the rehearsal began, by the monotonic clock.

    Raises:
        ValueError: a line of the history is no event.
    """
    group, clocks = group_of(folder), clocks_of(folder)
    broker_logs = BrokerLogs(logs, group, clocks)
    answers = Answers(folder, group, clocks, broker_logs.spans)
    sends, observed = read_sends(folder), read_observed(folder)
    costs = {}
    for stage, time in stage_times(folder, stages).items():
        coordinators = _in_order(observed.coordinators, time)
        loads = broker_logs.loads(coordinators, time, base_ns=base_ns)
        costs[stage] = Availability(
            consumer,
            seconds(time.begin_ns - base_ns),
            seconds(time.heal_ns - base_ns),
            replace(_of_group(group, answers, observed, time, base_ns), coordinators=coordinators, loads=loads),
            [
                _of_partition(number, sends.get(number), observed, time, base_ns)
                for number in sorted({*sends, *observed.leaders})
            ],
            _observed_every_s(observed, time),
            _in_order(observed.controllers, time),
        )
    return costs


def _of_partition(
    number: int, sends: Sends | None, observed: Observed, time: StageTimes, base_ns: int
) -> PartitionAvailability:
    leaderless_s = _leaderless_s(number, observed, time)
    begun = within(np.array(sorted(sends.begun) if sends else [], np.int64), time)
    if sends is None or not len(begun):
        return PartitionAvailability(number, leaderless_s=leaderless_s)
    silences = _silences(within(np.array(sorted(sends.acknowledged), np.int64), time), time)
    waits = _waits(silences, sends)
    return PartitionAvailability(
        number,
        _longest_s(silences),
        _longest_s(_silences(begun, time)),
        _longest_s(waits),
        leaderless_s,
        _shown(waits, SHOWN_FROM_S, base_ns),
    )


def _of_group(name: str, answers: Answers, observed: Observed, time: StageTimes, base_ns: int) -> GroupAvailability:
    coordinatorless_s = _coordinatorless_s(observed, answers.served_ns, time)
    if not answers.complete(time):
        return GroupAvailability(name, coordinatorless_s=coordinatorless_s)
    silences = _silences(within(answers.served_ns, time), time)
    apart_s = answers.apart_s(time)
    shown = _shown(silences, max(SHOWN_FROM_S, 2 * (apart_s or 0.0)), base_ns)
    return GroupAvailability(name, _longest_s(silences), apart_s, coordinatorless_s, stretches=shown)


def _observed_every_s(observed: Observed, time: StageTimes) -> float | None:
    looks = within(np.array(observed.looks, np.int64), time)
    return _longest_s(_silences(looks, time)) if len(looks) else None


def _leaderless_s(number: int, observed: Observed, time: StageTimes) -> float | None:
    """Returns the longest time without a leader; None where the observer did not look, or was told nothing."""
    changes = [(at_ns, leader) for at_ns, leader in observed.leaders.get(number, ()) if at_ns < time.heal_ns]
    if not changes or _observed_every_s(observed, time) is None:
        return None
    ends = [*(at_ns for at_ns, _ in changes[1:]), time.heal_ns]
    without = [
        seconds(end_ns - max(at_ns, time.begin_ns))
        for (at_ns, leader), end_ns in zip(changes, ends, strict=True)
        if leader < 0 and end_ns > time.begin_ns
    ]
    blind = any(time.begin_ns <= at_ns < time.heal_ns for at_ns in observed.blind)
    return max(without, default=None if blind else 0.0)


def _coordinatorless_s(observed: Observed, answered_ns: Ints, time: StageTimes) -> float | None:
    """Returns the longest time without a coordinator: until one was named again, or answered."""
    if not observed.named or observed.named[0] >= time.heal_ns or _observed_every_s(observed, time) is None:
        return None
    again = np.sort(np.concatenate([np.array(observed.named, np.int64), answered_ns]))
    without = [0.0]
    for at_ns in observed.unnamed:
        after = np.searchsorted(again, at_ns, side="right")
        until_ns = min(int(again[after]) if after < len(again) else NEVER, time.heal_ns)
        without.append(seconds(max(0, until_ns - max(at_ns, time.begin_ns))))
    return max(without)


def _in_order(changes: Sequence[tuple[int, int]], time: StageTimes) -> list[int]:
    """Returns who it was at the beginning of a stage, and who after that, up to the next one."""
    before = [who for at_ns, who in changes if at_ns < time.begin_ns][-1:]
    since = [who for at_ns, who in changes if time.begin_ns <= at_ns < time.end_ns]
    told = [*before, *since]
    return [who for number, who in enumerate(told) if number == 0 or told[number - 1] != who]


def _silences(at_ns: Ints, time: StageTimes) -> list[tuple[int, int]]:
    """Returns the times between instants, and those before the first and after the last of the stage's load."""
    ends = [time.begin_ns, *at_ns.tolist(), time.heal_ns]
    return list(pairwise(ends))


def _waits(silences: Sequence[tuple[int, int]], sends: Sends) -> list[tuple[int, int]]:
    """Returns of each time without an acknowledgement that in which a record was waiting for one."""
    decided, begun = np.array(sends.decided, np.int64), np.array(sends.begun, np.int64)
    order = np.argsort(decided, kind="stable")
    decided, begun = decided[order], begun[order]
    earliest = np.minimum.accumulate(begun[::-1])[::-1]  # of those that were decided then or later
    waits = []
    for from_ns, until_ns in silences:
        after = np.searchsorted(decided, from_ns, side="right")
        since_ns = max(from_ns, int(earliest[after])) if after < len(earliest) else until_ns
        waits.append((min(since_ns, until_ns), until_ns))
    return waits


def _longest_s(stretches: Sequence[tuple[int, int]]) -> float:
    return seconds(max(until_ns - from_ns for from_ns, until_ns in stretches))


def _shown(stretches: Sequence[tuple[int, int]], from_s: float, base_ns: int) -> list[Stretch]:
    """Returns the longest of the stretches that are so long, in the order of time."""
    long = [one for one in stretches if one[1] - one[0] >= from_s * NS_PER_S]
    longest = sorted(sorted(long, key=lambda one: one[0] - one[1])[:STRETCHES_MAX])
    return [(seconds(from_ns - base_ns), seconds(until_ns - base_ns)) for from_ns, until_ns in longest]

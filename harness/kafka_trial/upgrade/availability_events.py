"""The events that availability is read from: the load of each stage, sends, and what the observer saw.

What they mean together says `availability.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from kafka_trial.history.event import Event
from kafka_trial.history.store import HistoryTail, RunFolder
from kafka_trial.model.kernels import Ints
from kafka_trial.model.trial_context import TrialContext

NS_PER_S: Final = 1e9
NEVER: Final = 2**63 - 1


@dataclass(frozen=True)
class StageTimes:
    """When the load of a stage was on, and when the next stage began (NEVER: there is none), by the monotonic clock."""

    begin_ns: int
    heal_ns: int
    end_ns: int


@dataclass
class Sends:
    """The sends to one partition: when each was acknowledged; when each began and ended, be it without."""

    acknowledged: list[int] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)
    decided: list[int] = field(default_factory=list)


@dataclass
class Observed:
    """What the observer saw, each with its time: looks, leaders, coordinators, controllers, and no answers."""

    looks: list[int] = field(default_factory=list)
    leaders: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    coordinators: list[tuple[int, int]] = field(default_factory=list)
    controllers: list[tuple[int, int]] = field(default_factory=list)
    named: list[int] = field(default_factory=list)  # somebody had named a coordinator by then
    unnamed: list[int] = field(default_factory=list)  # nobody did
    blind: list[int] = field(default_factory=list)  # no broker told of the topic


def stage_times(folder: RunFolder, stages: Sequence[str]) -> dict[str, StageTimes]:
    """Returns when each stage began and when its load was held, by a history; without stages that it has not whole."""
    begins, heals = dict[str, int](), dict[str, int]()
    for event in events_of(folder, "run"):
        stage, phase = str(event.details.get("stage")), str(event.details.get("phase"))
        if event.kind != "phase" or stage not in stages:
            continue
        if phase.partition(" of ")[0] == "faults":
            begins.setdefault(stage, event.time_ns)
        elif phase.partition(" of ")[0] == "heal":
            heals.setdefault(stage, event.time_ns)
    later = sorted(begins.values())
    return {
        stage: StageTimes(begin_ns, heals[stage], min((one for one in later if one > begin_ns), default=NEVER))
        for stage, begin_ns in begins.items()
        if stage in heals
    }


def group_of(folder: RunFolder) -> str:
    """Returns the group of a trial; "" where its history does not name it."""
    named = (event.details.get("group") for event in events_of(folder, "run") if event.kind == "group_named")
    return str(next(named, ""))


def clocks_of(folder: RunFolder) -> TrialContext:
    """Returns the pairs of both clocks that a history has."""
    pairs = (
        (event.details["wall_ns"], event.details.get("read_ns", event.time_ns))
        for event in events_of(folder, "run")
        if event.kind == "clock"
    )
    return TrialContext(clocks=tuple(sorted(pairs)))


def read_sends(folder: RunFolder) -> dict[int, Sends]:
    """Returns the sends to each partition. One that was not acknowledged lies where others with its key do; what was
    taken back, or was refused, is none."""
    begun: dict[int, tuple[int, str | None]] = {}
    places: dict[str, set[int]] = defaultdict(set)
    lost: list[tuple[int, str | None, int]] = []
    sends: dict[int, Sends] = defaultdict(Sends)
    for event in events_of(folder, "workload"):
        if event.kind != "send":
            continue
        if event.outcome == "invoke":
            begun[event.seq] = event.time_ns, event.key
            continue
        begun_ns, key = begun.pop(-1 if event.op is None else event.op, (event.time_ns, event.key))
        if event.outcome == "ok" and event.partition is not None:
            _add(sends[event.partition], begun_ns, event.time_ns)
            sends[event.partition].acknowledged.append(event.time_ns)
            if key is not None:
                places[key].add(event.partition)
        elif event.outcome == "info":
            lost.append((begun_ns, key, event.time_ns))
    for begun_ns, key, decided_ns in [*lost, *((begun_ns, key, NEVER) for begun_ns, key in begun.values())]:
        if key is not None and len(places[key]) == 1:
            _add(sends[next(iter(places[key]))], begun_ns, decided_ns)
    return sends


def _add(sends: Sends, begun_ns: int, decided_ns: int) -> None:
    sends.begun.append(begun_ns)
    sends.decided.append(decided_ns)


def read_observed(folder: RunFolder) -> Observed:
    seen = Observed()
    for event in events_of(folder, "observer"):
        at_ns, leader = event.time_ns, event.details.get("leader")
        if event.kind == "log_end":
            seen.looks.append(at_ns)
        elif event.kind == "leader" and event.partition is not None and leader is not None:
            seen.leaders[event.partition].append((at_ns, leader))
        elif event.kind == "coordinator" and leader is not None:
            seen.coordinators.append((at_ns, leader))
            seen.named.append(at_ns)
        elif event.kind == "controller" and leader is not None:
            seen.controllers.append((at_ns, leader))
        elif event.kind == "group_state":
            seen.named.append(at_ns)
        elif event.kind == "unanswered":
            _unanswered(seen, event)
    return seen


def _unanswered(seen: Observed, event: Event) -> None:
    about = event.details.get("name")
    for name, times in (("group", seen.named), ("coordinator", seen.unnamed), ("metadata", seen.blind)):
        if about == name:
            times.append(event.time_ns)


def within(at_ns: Ints, time: StageTimes) -> Ints:
    """Returns those of sorted instants at which the load of a stage was on."""
    return at_ns[(at_ns >= time.begin_ns) & (at_ns <= time.heal_ns)]


def seconds(ns: float) -> float:
    return round(ns / NS_PER_S, 2)


def events_of(folder: RunFolder, source: str) -> Iterator[Event]:
    yield from HistoryTail(folder.history, f"{source}.jsonl").new_events()

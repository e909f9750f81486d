"""Figures of one trial of case 0, read from its history: what a rebalance moved, and what was worked on twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kafka_trial.history.event import Event
from kafka_trial.history.store import HistoryTail, RunFolder

Place = tuple[str, int]  # a topic's name or id, and a partition


@dataclass(frozen=True)
class Figures:
    """What the faults phase and all after it came to, until members were stopped.

    `rebalances`: new generations or epochs of the group. `moved`: partitions that went from one member to another in
    them, counted each time. `done_twice`: handlers that ended beyond the first of their record. `wasted_s`: the seconds
    that those had run, `wasted_cpu_s`: those of the processor that they took, by the program's own count (its stderr).
    """

    rebalances: int
    moved: int
    done_twice: int
    wasted_s: float
    wasted_cpu_s: float


def figures_of(folder: RunFolder) -> Figures:
    """Returns the figures of a run.

    Raises:
        UnjudgeableError: its history cannot be read.
    """
    from_ns, until_ns = _window(HistoryTail(folder.history, "run.jsonl").new_events())
    epochs, moved = _moves(HistoryTail(folder.history, "offsets.jsonl").new_events(), from_ns, until_ns)
    repeats = list(_repeats(HistoryTail(folder.history, "consumer-*.jsonl").new_events()))
    cpu_s = _cpu_s(folder.logs)
    return Figures(
        epochs,
        moved,
        done_twice=len(repeats),
        wasted_s=round(sum(one.took_ns for one in repeats) / 1e9, 3),
        wasted_cpu_s=round(sum(cpu_s.get((*one.record, one.nth), 0.0) for one in repeats), 3),
    )


def _window(events: Iterable[Event]) -> tuple[int, int]:
    began = {event.details["phase"]: event.time_ns for event in events if event.kind == "phase"}
    if "faults" not in began:  # it ended before: nothing was moved by a fault
        return 0, 0
    return began["faults"], began.get("stop", 1 << 62)


def _moves(events: Iterable[Event], from_ns: int, until_ns: int) -> tuple[int, int]:
    """Counts new epochs and changes of hands; the owner of a partition stays its last one while nobody has it."""
    owners: dict[Place, str] = {}
    clients: dict[str, str] = {}
    epochs = moved = 0
    for event in events:
        clients |= _clients(event.details)
        inside = from_ns <= event.time_ns < until_ns
        if event.kind == "group_epoch" or (event.kind == "group" and event.details.get("protocol") == "classic"):
            epochs += inside
        for place, member_id in _given(event):
            owner = clients.get(member_id, member_id)
            moved += inside and owners.get(place, owner) != owner
            owners[place] = owner
    return epochs, moved


def _clients(details: Mapping[str, Any]) -> dict[str, str]:
    """Which client each member id is of: one that joins again under another id is the same member."""
    members = [*details.get("members", ()), details]
    return {one["member_id"]: one["client_id"] for one in members if one.get("member_id") and one.get("client_id")}


def _given(event: Event) -> Iterator[tuple[Place, str]]:
    """Yields which partitions a record of the group gives to whom."""
    if event.kind not in ("group", "member_assignment"):
        return
    for entry in event.details.get("entries", ()):
        topic = entry.get("topic") or entry.get("topic_id", "")
        yield (topic, entry["partition"]), entry.get("member_id") or event.details.get("member_id", "")


class _Repeat(NamedTuple):
    """A handler that ended beyond the first of its record: which, the how-manieth of that member, how long it ran."""

    record: tuple[str, int, int]  # member, partition, offset
    nth: int
    took_ns: int


def _repeats(events: Iterable[Event]) -> Iterator[_Repeat]:
    begun: dict[tuple[str, int, int], int] = {}
    ended, of_member = Counter[tuple[int, int]](), Counter[tuple[str, int, int]]()
    for event in sorted(events, key=lambda one: one.time_ns):
        if event.kind not in ("delivered", "processed") or event.partition is None or event.offset is None:
            continue
        record = str(event.member), event.partition, event.offset
        if event.kind == "delivered":
            begun[record] = event.time_ns
            continue
        ended[record[1:]] += 1
        of_member[record] += 1
        if ended[record[1:]] > 1:
            yield _Repeat(record, of_member[record], event.time_ns - begun.get(record, event.time_ns))


def _cpu_s(logs: Path) -> dict[tuple[str, int, int, int], float]:
    """Returns what each handler of a record took of the processor: by member, partition, offset, and the how-manieth
    time that this member handled it. A line that was cut off says nothing."""
    found: dict[tuple[str, int, int, int], float] = {}
    times = Counter[tuple[str, int, int]]()
    for file in sorted(logs.glob("m*.stderr")):
        for told in _HANDLED.finditer(file.read_text(errors="replace")):
            record = file.name.split("-")[0], int(told["partition"]), int(told["offset"])
            times[record] += 1
            found[(*record, times[record])] = float(told["seconds"])
    return found


_HANDLED = re.compile(r"^handled (?P<partition>\d+) (?P<offset>\d+) (?P<seconds>\d+\.\d+)$", re.MULTILINE)

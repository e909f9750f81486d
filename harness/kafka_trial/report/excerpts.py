"""Excerpts: the events around each anomaly, so that a stranger can see it in the history.

The line index says where the events lie that prove the shown anomalies (by name, `source#seq`). From these outwards,
one stretch of lines after the other, the nearest events of the same partition before and after are looked for, until no
further stretch can hold a nearer one. Memory is bounded. Order between files is by time of receipt, ties by file and
place, so that the same history gives the same page.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kafka_trial.history.event import Event
from kafka_trial.judge.line_index import LineIndex, Stretch
from kafka_trial.report.event_text import in_words, who

AROUND = 6
MARKS_MAX = 12  # events marked in one excerpt; an anomaly may have proofs without end

Slice = tuple[str, int]  # topic, partition
Order = tuple[int, str, int]

# What belongs to the life of one partition; the rest (sends, log ends, fetches) would drown it.
OF_A_PARTITION = frozenset(
    {"delivered", "processed", "effect", "assigned", "revoked", "lost", "commit", "request", "group"}
    | {"committed", "commit_tombstone", "commit_aborted", "member_assignment"}
)
OF_THE_TRIAL = frozenset(
    {
        "phase",
        "started",
        "exited",
        "stopped",
        "armed",
        "injecting",
        "injected",
        "healing",
        "healed",
        "environment",
        "end",
    }
)
QUIET_REQUESTS = frozenset({"FETCH", "LIST_OFFSETS", "METADATA", "API_VERSIONS", "FIND_COORDINATOR"})


@dataclass(frozen=True)
class Row:
    """One event of an excerpt; `at_s` is seconds since the start of the trial."""

    at_s: float
    who: str
    name: str
    text: str
    marked: bool


@dataclass(frozen=True)
class Wanted:
    """One anomaly to be shown: the events that prove it, and its partition (None: none in particular)."""

    slice: Slice | None
    events: tuple[str, ...]


def excerpts(
    lines: LineIndex,
    wanted: Sequence[Wanted],
    *,
    start_ns: int,
    around: int = AROUND,
    marks_max: int = MARKS_MAX,
) -> list[list[Row]]:
    """Returns for each wanted anomaly the events around its proofs, in order of time, which counts from `start_ns`."""
    wanted = [replace(one, events=one.events[:marks_max]) for one in wanted]
    marks = _find(lines.stretches, wanted)
    windows = [_Window(one, [marks[name] for name in one.events if name in marks], around) for one in wanted]
    _fill(windows, lines)
    return [window.rows(start_ns) for window in windows]


def _fill(windows: Sequence[_Window], lines: LineIndex) -> None:
    by_slice: dict[Slice, list[_Window]] = defaultdict(list)
    for window in windows:
        if window.wanted.slice is not None:
            by_slice[window.wanted.slice].append(window)
    times = sorted({mark.time_ns for window in windows for mark in window.marks})
    for stretch in sorted(lines.stretches, key=lambda stretch: _distance_ns(stretch, times)):
        if any(window.may_take_from(stretch) for window in windows):
            for event in stretch.events():
                for window in _concerned(event, windows, by_slice, lines.topics):
                    window.offer(event)


def _concerned(
    event: Event, windows: Sequence[_Window], by_slice: Mapping[Slice, list[_Window]], topics: Mapping[str, str]
) -> Sequence[_Window]:
    if event.kind in OF_THE_TRIAL:
        return windows
    if _is_quiet(event):
        return []
    return [window for slice_ in _slices(event, topics) for window in by_slice.get(slice_, ())]


def _distance_ns(stretch: Stretch, times: Sequence[int]) -> int:
    """Returns how far a stretch is from the nearest of some sorted times; 0 where it covers one, or there is none."""
    place = bisect_left(times, stretch.first_ns)
    before = [stretch.first_ns - times[place - 1]] if place > 0 else []
    after = [max(0, times[place] - stretch.last_ns)] if place < len(times) else []
    return min(before + after, default=0)


@dataclass
class _Window:
    """The nearest events on both sides of an anomaly's marks, kept in two bounded heaps a mark."""

    wanted: Wanted
    marks: list[Event]
    around: int
    _near: list[tuple[Order, list[_Entry], list[_Entry]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._near = [(_order(mark), [], []) for mark in self.marks]

    def offer(self, event: Event) -> None:
        order = _order(event)
        for place, before, after in self._near:
            if order < place:
                _keep(before, _Entry(order, event), self.around)
            elif order > place:
                _keep(after, _Entry(order, event, reverse=True), self.around)

    def may_take_from(self, stretch: Stretch) -> bool:
        """Tells whether a stretch may hold an event that is nearer to a mark than one that is kept."""
        return self.around > 0 and any(
            (stretch.first_ns <= mark[0] and (len(before) < self.around or stretch.last_ns >= before[0].order[0]))
            or (stretch.last_ns >= mark[0] and (len(after) < self.around or stretch.first_ns <= after[0].order[0]))
            for mark, before, after in self._near
        )

    def rows(self, start_ns: int) -> list[Row]:
        marked = {mark.name for mark in self.marks}
        events = {mark.name: mark for mark in self.marks}
        partition = self.wanted.slice[1] if self.wanted.slice else None
        for _, before, after in self._near:
            events.update({entry.event.name: entry.event for entry in (*before, *after)})
        return [
            Row(
                at_s=round((event.time_ns - start_ns) / 1e9, 3),
                who=who(event),
                name=event.name,
                text=in_words(event, partition=partition),
                marked=event.name in marked,
            )
            for event in sorted(events.values(), key=_order)
        ]


@dataclass(frozen=True)
class _Entry:
    """An event in a heap whose least is thrown out: the earliest, or with `reverse` the latest."""

    order: Order
    event: Event
    reverse: bool = False

    def __lt__(self, other: _Entry) -> bool:
        return self.order > other.order if self.reverse else self.order < other.order


def _keep(heap: list[_Entry], entry: _Entry, most: int) -> None:
    if len(heap) < most:
        heapq.heappush(heap, entry)
    elif heap[0] < entry:
        heapq.heapreplace(heap, entry)


def _find(stretches: Iterable[Stretch], wanted: Sequence[Wanted]) -> dict[str, Event]:
    """Returns the events asked for, by name."""
    names = {name for one in wanted for name in one.events}
    numbers: dict[str, set[int]] = defaultdict(set)
    for source, _, number in (name.rpartition("#") for name in names):
        if number.isdecimal():
            numbers[source].add(int(number))
    seqs = set().union(*numbers.values())
    holders = (
        stretch
        for stretch in stretches
        if any(stretch.first_seq <= number <= stretch.last_seq for number in numbers.get(stretch.file.stem, ()))
    )
    return {event.name: event for stretch in holders for event in stretch.events(seqs) if event.name in names}


def _slices(event: Event, topics: Mapping[str, str]) -> set[Slice]:
    """Returns the partitions an event is about."""
    if event.kind not in OF_A_PARTITION:
        return set()
    places = [(event.topic, event.topic_id, event.partition)]
    for name in ("entries", "pending"):
        entries = event.details.get(name)
        if isinstance(entries, list):
            places += [
                (entry.get("topic"), entry.get("topic_id"), entry.get("partition"))
                for entry in entries
                if isinstance(entry, dict)
            ]
    named = [(topic or topics.get(str(topic_id)), number) for topic, topic_id, number in places]
    return {(topic, number) for topic, number in named if isinstance(topic, str) and isinstance(number, int)}


def _is_quiet(event: Event) -> bool:
    return event.kind == "request" and str(event.details.get("api", "")).upper() in QUIET_REQUESTS


def _order(event: Event) -> Order:
    return event.time_ns, event.source, event.seq

"""Excerpts: the events around each anomaly, so that a stranger can see it in the history.

Two passes over the history: the first finds the events that prove the shown anomalies (by name, `source#seq`), the
second keeps for each of them the nearest events of the same partition before and after, in bounded memory. Order
between files is by time of receipt, ties by file and place, so that the same history gives the same page.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kafka_trial.history.event import Event
from kafka_trial.report.words import in_words, who

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
    {"phase", "started", "exited", "stopped", "injecting", "injected", "healing", "healed", "environment", "end"}
)
QUIET_REQUESTS = frozenset({"FETCH", "LIST_OFFSETS", "METADATA", "API_VERSIONS", "FIND_COORDINATOR"})


@dataclass(frozen=True)
class Row:
    """One event of an excerpt; `at_s` is seconds after the first event of the history."""

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


def excerpts(history: Iterable[Iterable[Event]], wanted: Sequence[Wanted], *, around: int = AROUND) -> list[list[Row]]:
    """Returns for each wanted anomaly the events around its proofs, in order of time.

    `history` yields the same events twice, once a pass.
    """
    first_pass, second_pass = history
    marks, topics, began_ns = _find(first_pass, wanted)
    windows = [
        _Window(one, [marks[name] for name in one.events[:MARKS_MAX] if name in marks], around) for one in wanted
    ]
    by_slice: dict[Slice, list[_Window]] = defaultdict(list)
    for window in windows:
        if window.wanted.slice is not None:
            by_slice[window.wanted.slice].append(window)
    for event in second_pass:
        if event.kind in OF_THE_TRIAL:
            concerned = windows
        elif _is_quiet(event):
            continue
        else:
            concerned = [window for slice_ in _slices(event, topics) for window in by_slice.get(slice_, ())]
        for window in concerned:
            window.offer(event)
    return [window.rows(began_ns) for window in windows]


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

    def rows(self, began_ns: int) -> list[Row]:
        marked = {mark.name for mark in self.marks}
        events = {mark.name: mark for mark in self.marks}
        partition = self.wanted.slice[1] if self.wanted.slice else None
        for _, before, after in self._near:
            events.update({entry.event.name: entry.event for entry in (*before, *after)})
        return [
            Row(
                at_s=round((event.time_ns - began_ns) / 1e9, 3),
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


def _find(events: Iterable[Event], wanted: Sequence[Wanted]) -> tuple[dict[str, Event], Mapping[str, str], int]:
    """Returns the events asked for by name, the topics by topic id, and the time of the first event."""
    names = {name for one in wanted for name in one.events[:MARKS_MAX]}
    sources = {name.rpartition("#")[0] for name in names}
    found: dict[str, Event] = {}
    topics: dict[str, str] = {}
    began_ns: int | None = None
    for event in events:
        began_ns = event.time_ns if began_ns is None else min(began_ns, event.time_ns)
        if event.topic_id and event.topic:
            topics[event.topic_id] = event.topic
        if event.source in sources and event.name in names:
            found[event.name] = event
    return found, topics, began_ns or 0


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

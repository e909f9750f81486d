"""Excerpts: the events around each anomaly, so that a stranger can see it in the history.

The line index says where the events lie that prove the shown anomalies (by name, `source#seq`). From these outwards,
one stretch of lines after the other, the nearest events of the same partition before and after are looked for, until no
further stretch can hold a nearer one. Memory is bounded. Order between files is by time of receipt, ties by file and
place, so that the same history gives the same page.

`show RUN …` prints one event with its neighbours, or all that the history says of one record. Reports name the events
that prove an anomaly as `source#number`: line `number` of `history/<source>.jsonl`, counted from 0; its neighbours are
lines of the same file. A record is named by its partition and its offset; its neighbours are the nearest events of the
same partition, in all files. Times are when the harness received an event, in seconds since the start of the trial.
What consumers wrote is made printable here.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice

import orjson

from kafka_trial.errors import InputError, unknown_name
from kafka_trial.history.event import Event, Slice, from_line
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.cache import line_index
from kafka_trial.judge.line_index import LineIndex, Stretch
from kafka_trial.report.event_text import bounded, in_words, who
from kafka_trial.report.run_metadata import base_in_words, start_ns
from kafka_trial.verdict.collect import own_events

AROUND = 6
MARKS_MAX = 12  # events marked in one excerpt; an anomaly may have proofs without end

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
LINE_MAX = 4096
EVENTS_MAX = 100  # of one record
SELECTORS = (
    "SOURCE#NUMBER (an event, as reports name it: offsets#131)",
    "partition N record OFFSET",
    "topic NAME partition N record OFFSET",
)
WORDS = ("topic", "partition", "record")


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


def show(folder: RunFolder, selectors: Sequence[str], *, around: int) -> str:
    """Returns what the selectors name, with `around` neighbours before and after.

    Raises:
        InputError: no such selector, event, partition or record.
    """
    if len(selectors) == 1 and "#" in selectors[0]:
        return _show_event(folder, selectors[0], around=around)
    named = _named(selectors)
    return _show_record(
        folder, named.get("topic"), _number(named, "partition"), _number(named, "record"), around=around
    )


def _named(selectors: Sequence[str]) -> dict[str, str]:
    """Returns the values of pairs of a word and a value.

    Raises:
        InputError: a word is no selector, has no value, or is missing.
    """
    words, given = selectors[::2], " ".join(selectors)
    unknown = [word for word in words if word not in WORDS]
    if unknown:
        raise InputError(given, f"{unknown[0]!r} is no selector; {_valid()}")
    if len(selectors) % 2 or len(set(words)) < len(words):
        raise InputError(given, f"each selector is given once, with its value; {_valid()}")
    if missing := [word for word in WORDS[1:] if word not in words]:
        raise InputError(given, f"lacks {' and '.join(missing)}; {_valid()}")
    return dict(zip(words, selectors[1::2], strict=True))


def _valid() -> str:
    return f"valid are: {'; '.join(SELECTORS)}"


def _number(named: Mapping[str, str], word: str) -> int:
    if not (named[word].isdecimal() and len(named[word]) < 19):
        raise InputError(f"{word} {named[word]}", f"must be a whole number; {_valid()}")
    return int(named[word])


def _show_event(folder: RunFolder, name: str, *, around: int) -> str:
    source, number = _parts(folder, name)
    first, begun_ns = max(0, number - around), start_ns(folder)
    with (folder.history / f"{source}.jsonl").open("rb") as file:
        lines = list(islice(file, first, number + around + 1))
    if len(lines) <= number - first:
        raise InputError(name, f"history/{source}.jsonl ends before line {number}")
    head = f"{name} and its neighbours in history/{source}.jsonl; {_base(folder)}"
    told = [
        _line(f"{source}#{first + at}", line, begun_ns=begun_ns, marked=first + at == number)
        for at, line in enumerate(lines)
    ]
    return "\n".join([head, *told, "", *_fields(lines[number - first])])


def _show_record(folder: RunFolder, topic: str | None, partition: int, offset: int, *, around: int) -> str:
    found = _of_record(folder, topic, partition, offset)
    topic = next(event.topic for event in found if event.topic)
    wanted = Wanted((str(topic), partition), tuple(event.name for event in found))
    (rows,) = excerpts(line_index(folder), [wanted], start_ns=start_ns(folder), around=around, marks_max=EVENTS_MAX)
    record = f"record {offset} of partition {partition} of {bounded(topic)}"
    more = f" (the first {EVENTS_MAX} of its {len(found)} events)" if found[EVENTS_MAX:] else ""
    told = [f"{'▶' if row.marked else ' '} {row.name}  {row.at_s:.3f} s  {row.who}: {row.text}" for row in rows]
    near = "its neighbours of the same partition, phases and faults among them"
    return "\n".join([f"{record}{more}, and {near}; {_base(folder)}", *told])


def _base(folder: RunFolder) -> str:
    try:
        run = folder.read_json("run.json")
    except InputError:
        run = {}
    return f"seconds since {base_in_words(run if isinstance(run, dict) else {})}"


def _of_record(folder: RunFolder, topic: str | None, partition: int, offset: int) -> list[Event]:
    """Returns the events that name a record, by its place or its id, and the first commit that passed it.

    Raises:
        InputError: there are none, or the record may be of several topics.
    """
    place, record = b'"partition":%d' % partition, f"partition {partition} record {offset}"
    here = [one for one in _events_with(folder, place, b'"offset":%d' % offset) if _is(one, topic, partition, offset)]
    topics = sorted({str(one.topic) for one in here if one.topic})
    if not topics:
        raise InputError(record, f"no event of the history is about it{f' in {bounded(topic)}' if topic else ''}")
    topic = topics[0] if len(topics) == 1 else _trials_topic(folder, topics)
    if topic is None:
        raise InputError(record, f"is in several topics ({', '.join(topics)}): say which; {_valid()}")
    here = [one for one in here if one.topic in (topic, None)]
    ids = {one.id for one in here if one.id is not None and one.topic == topic}
    named = [
        event
        for id_ in sorted(ids)
        for event in _events_with(folder, b'"id":%s' % orjson.dumps(id_))
        if event.id == id_ and event.partition is None
    ]
    passed = [
        event
        for event in _events_with(folder, b'"kind":"committed"', place)
        if event.topic == topic and event.partition == partition and (event.committed_offset or 0) > offset
    ]
    first = sorted(passed, key=_when)[:1]
    return sorted({event.name: event for event in (*here, *named, *first)}.values(), key=_when)


def _is(event: Event, topic: str | None, partition: int, offset: int) -> bool:
    return (event.partition, event.offset) == (partition, offset) and topic in (None, event.topic)


def _when(event: Event) -> tuple[int, str, int]:
    return event.time_ns, event.source, event.seq


def _events_with(folder: RunFolder, *parts: bytes) -> Iterator[Event]:
    """Yields the events whose lines hold all these bytes: of the others none is parsed."""
    for path in folder.history_files():
        with path.open("rb") as file:
            for line in file:
                if all(part in line for part in parts):
                    with suppress(ValueError, TypeError):
                        yield from_line(line)


def _trials_topic(folder: RunFolder, topics: Sequence[str]) -> str | None:
    """Returns which of some topics the trial sent its records to; None where it sent to several of them, or the history
    does not say."""
    named = (event.topic for event in own_events(folder) if event.kind == "topic_named")
    own = [topic for topic in dict.fromkeys(named) if topic in topics]
    return own[0] if len(own) == 1 else None


def _parts(folder: RunFolder, name: str) -> tuple[str, int]:
    source, _, number = name.rpartition("#")
    if not number.isdecimal() or len(number) > 18:
        raise InputError(name, f"is no event; {_valid()}")
    known = sorted(path.stem for path in folder.history_files())
    if source not in known:
        raise InputError(name, unknown_name("history file", source, known))
    return source, int(number)


def _line(name: str, line: bytes, *, begun_ns: int, marked: bool) -> str:
    try:
        event = from_line(line)
    except (ValueError, TypeError):
        told = f"no event: {bounded(line.decode(errors='replace'))}"
    else:
        told = f"{(event.time_ns - begun_ns) / 1e9:.3f} s  {who(event)}: {in_words(event)}"
    return f"{'▶' if marked else ' '} {name}  {told}"


def _fields(line: bytes) -> list[str]:
    try:
        body = orjson.loads(line)
    except orjson.JSONDecodeError:
        return [bounded(line.decode(errors="replace"), most=LINE_MAX)]
    if not isinstance(body, dict):
        return [bounded(line.decode(errors="replace"), most=LINE_MAX)]
    return [f"  {bounded(key)}: {bounded(orjson.dumps(value).decode(), most=LINE_MAX)}" for key, value in body.items()]

"""When each anomaly was: the instants of the events that prove it, for the timeline and its list.

Used by `timeline.py`. Events of the drawn partitions are looked up among the judge's rows, the others by the line
index. The worst anomalies of every name come first; beyond `LISTED_MAX` they are counted by instant alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kafka_trial.history.event import Event
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.cache import line_index
from kafka_trial.judge.line_index import Stretch
from kafka_trial.model.table import Table
from kafka_trial.report.event_text import bounded, in_words, who
from kafka_trial.report.timeline_clock import TimelineClock

LISTED_MAX = 20_000
PROOFS_MAX = 12  # of one anomaly
TEXTS_MAX = 1000  # events whose text is read from the history
STRETCHES_MAX = 1500  # stretches of lines that are read; an event in another one has the instant where that begins
BUCKETS = 2000

Row = Mapping[str, Any]
Place = tuple[str, int]


@dataclass(frozen=True)
class AnomalyInstants:
    """The anomalies of a run. Names, weights, where, members, partitions and proofs are places in the lists beside.

    `listed` are (name, weight, partition, instant, first instant of its proofs, proofs, sentence, where, members,
    records), the worst first: the instant is that of its last proof; both are None where no event proves it; the
    partition is None where it is not drawn. `where` names the partition, drawn or not; `members` are those that the
    anomaly or its proofs name; `records` first and last offset of each range of records that it is about. `counted`
    are (name, weight, partition, instant, count) of those beyond the list. `proofs` are (event, instant, text), the
    text empty where it was not read.
    """

    names: Sequence[str] = ()
    weights: Sequence[str] = ()
    where: Sequence[str] = ()
    members: Sequence[str] = ()
    listed: Sequence[tuple[Any, ...]] = ()
    counted: Sequence[tuple[Any, ...]] = ()
    proofs: Sequence[tuple[str, int, str]] = ()


def read_anomaly_instants(
    folder: RunFolder,
    rows: Sequence[Row],
    *,
    drawn: Sequence[Place],
    members: Sequence[str],
    times: Table,
    sources: Sequence[str],
    clock: TimelineClock,
) -> AnomalyInstants:
    """Returns the anomalies (lines of anomalies.jsonl, in the order in which they are told) with their instants.

    `drawn` are the partitions of the timeline; `times` source, seq and time_ns of their events, sorted by the first
    two; `sources` the names of the sources by number.

    Raises:
        InputError: an event is of a newer schema.
    """
    order = {id(row): number for number, row in enumerate(rows)}
    rows = _in_turn(rows)
    wanted = list(dict.fromkeys(name for row in rows for name in _events(row)))
    at_ns = _among_rows(wanted, times, sources)
    lines = _Lines(folder, wanted[:TEXTS_MAX], [name for name in wanted if name not in at_ns])
    at_ns = {name: clock.ms(time_ns) for name, time_ns in (lines.at_ns | at_ns).items()}
    names, weights = (list(dict.fromkeys(bounded(row.get(key, "")) for row in rows)) for key in ("anomaly", "weight"))
    places = {place: number for number, place in enumerate(drawn)}
    number_of = {name: number for number, name in enumerate(names)}
    weight_of = {weight: number for number, weight in enumerate(weights)}
    shown = sorted(rows[:LISTED_MAX], key=lambda row: order[id(row)])
    where = list(dict.fromkeys(map(_where, shown)))
    where_of = {name: number for number, name in enumerate(where)}
    proofs = list(dict.fromkeys(name for row in shown for name in _events(row) if name in at_ns))
    proof_of = {name: number for number, name in enumerate(proofs)}

    def placed(row: Row) -> tuple[Any, ...]:
        known = [at_ns[name] for name in _events(row) if name in at_ns]
        head = number_of[bounded(row.get("anomaly", ""))], weight_of[bounded(row.get("weight", ""))]
        partition = places.get((str(row.get("topic")), row.get("partition")))  # type: ignore[arg-type]
        return *head, partition, max(known, default=None), min(known, default=None)

    counted = Counter(_bucketed(placed(row), clock) for row in rows[LISTED_MAX:])
    return AnomalyInstants(
        names=names,
        weights=weights,
        where=where,
        members=[bounded(name, most=40) for name in members],
        listed=[
            (
                *placed(row),
                [proof_of[name] for name in _events(row) if name in proof_of],
                _message(row),
                where_of[_where(row)],
                _members(row, members),
                _records(row),
            )
            for row in shown
        ],
        counted=[(*key, count) for key, count in counted.items()],
        proofs=[(bounded(name), at_ns[name], lines.texts.get(name, "")) for name in proofs],
    )


def _in_turn(rows: Sequence[Row]) -> list[Row]:
    """Returns the anomalies by weight, and of one weight by turns of every name: so a short list has some of each."""
    order = {"ground": 0, "violation": 1, "undecided": 2}
    turns: Counter[tuple[str, str]] = Counter()
    keys = []
    for number, row in enumerate(rows):
        kind = str(row.get("weight")), str(row.get("anomaly"))
        keys.append((order.get(kind[0], 3), turns[kind], number))
        turns[kind] += 1
    return [rows[number] for *_, number in sorted(keys)]


def _events(row: Row) -> list[str]:
    events = row.get("events")
    return [str(name) for name in events[:PROOFS_MAX]] if isinstance(events, list) else []


def _where(row: Row) -> str:
    if row.get("partition") is None:
        return "the group"
    return bounded(f"partition {row['partition']} of {row.get('topic')}", most=80)


def _attributes(row: Row) -> Mapping[str, Any]:
    attributes = row.get("attributes")
    return attributes if isinstance(attributes, dict) else {}


def _members(row: Row, members: Sequence[str]) -> list[int]:
    """Returns the members that an anomaly names, itself or by the files of its proofs, as places in `members`."""
    named = {str(value) for value in _attributes(row).values()}
    named |= {_parts(event)[0].removeprefix("consumer-").rpartition("-")[0] for event in _events(row)}
    return [number for number, name in enumerate(members) if name in named]


def _records(row: Row) -> list[tuple[int, int]]:
    """Returns the ranges of records that an anomaly is about, by the names of its attributes.

    A committed offset is that of the next record; one that fell from one to another is about the records between.
    """
    offsets = {name: value for name, value in _attributes(row).items() if isinstance(value, int)}
    if {"from", "to"} <= offsets.keys() and row.get("partition") is not None:  # of a group they are epochs
        return [(offsets["to"], offsets["from"] - 1)]
    if {"offset", "last_offset"} <= offsets.keys():
        return [(offsets["offset"], offsets["last_offset"])]
    return [(value, value) for name, value in offsets.items() if name.endswith("offset") and name != "log_offset"]


def _message(row: Row) -> str:
    where = "" if row.get("partition") is None else f" (partition {row['partition']})"
    return bounded(row.get("sentence") or f"{row.get('anomaly')}{where}", most=300)


def _bucketed(placed: tuple[Any, ...], clock: TimelineClock) -> tuple[Any, ...]:
    *head, at_ms, _ = placed
    width = max(1, (clock.ms(clock.end_ns) - clock.ms(clock.begin_ns)) // BUCKETS)
    return *head, None if at_ms is None else at_ms // width * width


def _parts(name: str) -> tuple[str, int]:
    source, _, number = name.rpartition("#")
    return source, int(number) if number.isdecimal() and len(number) < 16 else -1


def _among_rows(names: Sequence[str], times: Table, sources: Sequence[str]) -> dict[str, int]:
    """Returns the instants in nanoseconds of those events that the rows hold."""
    if not len(times) or not names:
        return {}
    numbers = {source: number for number, source in enumerate(sources)}
    parts = [_parts(name) for name in names]
    wide = int(times["seq"].max()) + 2
    keys = times["source"].astype(np.int64) * wide + times["seq"]
    wanted = np.array([numbers.get(source, -1) * wide + min(seq, wide - 1) for source, seq in parts], np.int64)
    row = np.searchsorted(keys, wanted).clip(0, len(keys) - 1)
    found = np.flatnonzero(keys[row] == wanted)
    return {names[place]: int(times["time_ns"][row[place]]) for place in found.tolist()}


class _Lines:
    """What the history itself says: texts of the first events, and instants of those that no row holds."""

    def __init__(self, folder: RunFolder, told: Sequence[str], timed: Sequence[str]) -> None:
        self.at_ns: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        if not told:
            return
        holders = _with_their_names(line_index(folder).stretches, {*told, *timed})
        wanted = {*told, *timed}
        seqs = {seq for _, seq in map(_parts, wanted)}
        for number, (stretch, names) in enumerate(holders):
            if number < STRETCHES_MAX:
                self._take(event for event in stretch.events(seqs) if event.name in wanted)
            else:
                self.at_ns |= dict.fromkeys(names, stretch.first_ns)

    def _take(self, events: Iterator[Event]) -> None:
        for event in events:
            self.at_ns[event.name] = event.time_ns
            writer = "" if who(event) == event.source else f"{who(event)}: "  # the event's name tells its source
            self.texts[event.name] = writer + in_words(event)


def _with_their_names(stretches: Sequence[Stretch], names: set[str]) -> list[tuple[Stretch, list[str]]]:
    """Returns the stretches that hold some of the events, each with their names."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for source, number in map(_parts, names):
        if number >= 0:
            numbers[source].append(number)
    found = []
    ordered = {source: np.sort(np.array(those, np.int64)) for source, those in numbers.items()}
    for stretch in stretches:
        of_file = ordered.get(stretch.file.stem)
        if of_file is None:
            continue
        first, end = np.searchsorted(of_file, [stretch.first_seq, stretch.last_seq + 1]).tolist()
        if first < end:
            found.append((stretch, [f"{stretch.file.stem}#{number}" for number in of_file[first:end].tolist()]))
    return found

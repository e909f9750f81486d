"""Drawn histories: of each planted deviation, and clean ones; and the same as heard by a harness that stood still, or
whose readers were measured, and of members that buffer what they print, or tell when it was."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from kafka_trial.history.event import Event
from lab.history_strategies import SINS, WALL_OFFSET_NS, History, histories

# Enough for both judges to find every anomaly twenty times: some deviations show several, some seldom show, or not
# where it is compared.
EXAMPLES_PER_SIN = 12
MORE_EXAMPLES = {
    24: ("skip", "zombie-low", "split-by-log", "past-end", "phantom"),
    32: ("below-floor", "storm", "unassigned", "outside", "moves"),
    36: ("corrupt", "dirty-read", "lost-commit", "crash-loop", "oom", "stale-epoch", "deaf", "stays-away"),
    42: ("invents", "torn", "late", "hanging", "rolled-back"),
    48: ("starve", "retry", "block", "rogue"),
    60: ("false-lag",),
    150: ("expired",),
}
EXAMPLES_OF = {sin: examples for examples, sins in MORE_EXAMPLES.items() for sin in sins}

MS = 1_000_000
DELAYS_MS = (5, 25, 25, 25, 60, 150, 400, 700)

Sample = list[History]


def every_kind(*, clean: int, per_sin: int | None = None, seed: int | None = None) -> Sample:
    """Returns so many clean histories, and so many of each planted deviation; None: as many as show every anomaly."""
    sinning = [history for sin in SINS for history in drawn(sin, per_sin or examples_of(sin), seed=seed)]
    return drawn(None, clean, seed=seed) + sinning


def examples_of(sin: str | None) -> int:
    """Returns how many histories of a deviation the sample holds."""
    return EXAMPLES_OF.get(sin or "", EXAMPLES_PER_SIN)


def drawn(sin: str | None, examples: int, *, seed: int | None = None) -> Sample:
    """Returns so many histories with one planted deviation (None: clean): always the same, or those of the seed."""
    sample: Sample = []

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(histories(sins=(sin,)))
    def gather(history: History) -> None:
        sample.append(history)

    (gather if seed is None else seeded(seed)(gather))()
    return sample


def slept(history: History) -> History:
    """The same history, as a harness tells it that stood still from its first quarter to its last."""
    times = sorted(event.time_ns for event in history.events)
    begin_ns, end_ns = times[len(times) // 4], times[3 * len(times) // 4]
    run = [event for event in history.events if event.source == "run"]
    told = Event("run", 0, end_ns, "scheduling_delay", details={"delay_ns": end_ns - begin_ns, "every_ns": 0})
    run = sorted([*run, told], key=lambda event: event.time_ns)
    others = [event for event in history.events if event.source != "run"]
    return replace(history, events=[*others, *(replace(event, seq=seq) for seq, event in enumerate(run))])


def measured(history: History, draw: random.Random) -> History:
    """The same history, with measures of how long lines waited; some members buffer their lines, or tell the time."""
    sources = sorted({event.source for event in history.events if event.kind == "started"})
    buffered = draw.random() < 0.5
    others = [_stamped(event, draw) for event in history.events if event.source not in (*sources, "run")]
    lines: list[Event] = []
    for source in sources:
        mine = [event for event in history.events if event.source == source]
        told = _telling(mine, draw, share=draw.choice((0.0, 0.9, 1.0, 1.0)))
        lines += _flushed(told, draw) if buffered else told
    run = _with_measures(history, sources, draw)
    settings = history.settings | ({"stdout": "buffered"} if buffered else {})
    return replace(history, events=[*others, *lines, *run], settings=settings)


SMALL, SMALL_ID = "orders-small", "topic-id-2"


def in_two_topics(history: History) -> History:
    """The same history of two partitions, each of a topic of its own; whoever names a partition alone does not say of
    which topic it is."""
    about = ("topic_named", "topic", "control_read")
    told = [each for event in history.events for each in (_of_both(event) if event.kind in about else [_of_two(event)])]
    count: Counter[str] = Counter()
    numbered = []
    for event in told:
        numbered.append(replace(event, seq=count[event.source]) if event.source in ("run", "observer") else event)
        count[event.source] += 1
    return replace(history, events=numbered)


def _of_both(event: Event) -> list[Event]:
    """An event that is about a whole topic, once of each."""
    details = dict(event.details) | ({"partitions": 1} if "partitions" in event.details else {})
    ids = (event.topic_id, SMALL_ID if event.topic_id else None)
    names = (event.topic, SMALL)
    return [replace(event, topic=name, topic_id=id_, details=details) for name, id_ in zip(names, ids, strict=True)]


def _of_two(event: Event) -> Event:
    details = {name: _entries(value) if isinstance(value, list) else value for name, value in event.details.items()}
    small = event.partition == 1 or (event.partition is None and str(event.id).startswith("r1-"))
    if not small:
        return replace(event, details=details)
    return replace(
        event,
        topic=SMALL if event.topic is not None else None,
        topic_id=SMALL_ID if event.topic_id is not None else None,
        partition=None if event.partition is None else 0,
        details=details,
    )


def _entries(listed: list[Any]) -> list[Any]:
    """A list of partitions, some of which are of the second topic."""
    places = {"partition": 0}
    return [
        one
        | places
        | ({"topic": SMALL} if "topic" in one else {})
        | ({"topic_id": SMALL_ID} if "topic_id" in one else {})
        if isinstance(one, dict) and one.get("partition") == 1
        else one
        for one in listed
    ]


WAY = "orders-way"


def handing_on(history: History, draw: random.Random) -> History:
    """The same history, of a group that hands most of its records on through a topic of its own, in which some bear no
    id; it commits there as it likes."""
    times = sorted(event.time_ns for event in history.events if event.source == "offsets")
    records = [event for event in history.events if event.kind == "record" and event.id is not None]
    if not times:
        return history
    ids = [one.id for one in records for _ in range(draw.choice((0, 1, 1, 1, 2)))]
    ids += [None] * draw.choice((0, 0, 1, len(records)))
    way = [Event("through", 0, times[0], "through", topic=WAY, details={"partitions": 2, "made": True})]
    ends = [0, 0]
    for at_ns, id_ in sorted([(draw.randint(times[0], times[-1]), id_) for id_ in ids], key=lambda one: one[0]):
        partition, asked_ms = draw.randrange(2), draw.choice((5, 100, 100, 700, 3000, None))
        details = {} if asked_ms is None else {"asked_ns": at_ns - asked_ms * MS}
        told = Event("through", len(way), at_ns, "handed_on", topic=WAY, partition=partition, details=details)
        way.append(replace(told, offset=ends[partition], id=id_))
        ends[partition] += 1
    others = [event for event in history.events if event.source != "offsets"]
    return replace(history, events=[*others, *way, *_with_commits_there(history, ends, draw)])


def _with_commits_there(history: History, ends: Sequence[int], draw: random.Random) -> list[Event]:
    """The offsets log with some commits on that topic, each somewhere between two other records."""
    log = [event for event in history.events if event.source == "offsets"]
    told = [replace(one, details={**one.details, "log_offset": one.details["log_offset"] * 9}) for one in log]
    group = next(one.details["group"] for one in history.events if one.kind == "group_named")
    for partition, end in enumerate(ends):
        places = sorted(draw.sample(range(len(log)), min(len(log), draw.randint(0, 3))))
        values = sorted(draw.randint(0, end) for _ in places)
        for number, (place, value) in enumerate(zip(places, values, strict=True)):
            at_ns = told[place].time_ns
            details = {"group": group, "log_partition": 0, "commit_time_ms": (at_ns + WALL_OFFSET_NS) // MS}
            details["log_offset"] = log[place].details["log_offset"] * 9 + 1 + partition * 4 + number
            told.append(Event("offsets", 0, at_ns, "committed", topic=WAY, partition=partition, details=details))
            told[-1] = replace(told[-1], committed_offset=value)
    told.sort(key=lambda one: (one.time_ns, one.details["log_offset"]))
    return [replace(event, seq=seq) for seq, event in enumerate(told)]


def _stamped(event: Event, draw: random.Random) -> Event:
    """An event of a broker; one request in ten has a late stamp, some of them a very late one."""
    if event.kind != "request" or event.source_wall_ns is None or draw.random() > 0.1:
        return event
    return replace(event, source_wall_ns=event.source_wall_ns + draw.choice((60, 100, 300, 600, 2000, 6000)) * MS)


def _telling(mine: Sequence[Event], draw: random.Random, *, share: float) -> list[Event]:
    """A member's lines with the times they bear themselves: right but for some milliseconds, few of them false."""
    return [
        replace(event, source_wall_ns=event.time_ns + WALL_OFFSET_NS + draw.choice((0, 0, 0, -20, -300, -900, 40)) * MS)
        if event.kind not in ("started", "exited") and draw.random() < share
        else event
        for event in mine
    ]


def _flushed(mine: Sequence[Event], draw: random.Random) -> list[Event]:
    """The lines of a member as they are read when its buffer is full: several at once, at the time of the last."""
    found, first = [], 0
    while first < len(mine):
        end = min(len(mine), first + draw.randint(1, 8))
        own = next((at for at in range(first, end) if mine[at].kind in ("started", "exited")), None)
        end = end if own is None else max(own, first + 1)
        found += [replace(event, time_ns=mine[end - 1].time_ns) for event in mine[first:end]]
        first = end
    return found


def _with_measures(history: History, sources: Sequence[str], draw: random.Random) -> list[Event]:
    """The run's events with a measure of each reader a second, but for some that are missing."""
    run = [event for event in history.events if event.source == "run"]
    times = [event.time_ns for event in history.events]
    for source in sources:
        usual = draw.choice(DELAYS_MS[:5])
        for at_ns in range(min(times), max(times) + 1000 * MS, 1000 * MS):
            delay_ns = (draw.choice(DELAYS_MS) if draw.random() < 0.2 else usual) * MS
            if draw.random() < 0.8:
                run.append(Event("run", 0, at_ns, "reading_delay", details={"reader": source, "delay_ns": delay_ns}))
    run.sort(key=lambda event: event.time_ns)
    return [replace(event, seq=seq) for seq, event in enumerate(run)]

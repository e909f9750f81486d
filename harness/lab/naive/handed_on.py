"""Records that the group hands on through topics of its own, for the naive checker: where they lie, and what they end.

A record there that bears the id of one of the trial's is that record, once more; where it lay before, it is done with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kafka_trial.history.event import Event

if TYPE_CHECKING:
    from lab.naive.checker import Partition, Trial

FOREVER = float("inf")
READ_WITHIN_NS = 2_000_000_000
BY_LINES = ("redelivered", "reordered-key", "overlapping-handlers")
ON_THE_WAY = ("commit-ahead", "skipped", "unseen", "false-lag", "stuck-partition", "late-convergence", *BY_LINES)


def copies(trial: Trial) -> list[Event]:
    """The records of those topics that are some of the trial's, in the order in which they were read."""
    return [e for e in _told(trial) if _is_ours(trial, e)]


def nameless(trial: Trial) -> int:
    """How many are nobody's that anybody knows, or were deleted unread."""
    return sum(max(1, e.details.get("count", 1)) for e in _told(trial) if not _is_ours(trial, e))


def ends(p: Partition) -> dict[int, list[Event]]:
    """Offset → the record elsewhere that this one was handed on as."""
    found: dict[int, list[Event]] = {}
    last: dict[str | None, tuple[str | None, int | None, int | None]] = {}
    for copy in copies(p.trial):
        reads = [(e.topic, e.partition, e.offset) for e in p.trial.reads_of(copy.id)]
        before = last.get(copy.id, reads[0] if reads else None)
        if before is not None and before[:2] == p.tp and before[2] is not None:
            found.setdefault(before[2], []).append(copy)
        last[copy.id] = copy.topic, copy.partition, copy.offset
    return found


def completed(p: Partition) -> dict[int, list[Event]]:
    """Offset → the lines that complete its record where that lies in the trial's topic."""
    if p.tp[0] not in p.trial.through:
        return {}
    found: dict[int, list[Event]] = {}
    for offset, copy in p.records.items():
        homes = [(e.topic, e.partition, e.offset) for e in p.trial.reads_of(copy.id)][:1]
        lines = p.trial.of_kind("processed")
        found[offset] = [e for e in lines if (e.topic, e.partition, e.offset) in homes and e.outcome != "failed"]
    return found


def home(p: Partition, offset: int) -> Event | None:
    """The record of the trial's topic that a copy is of."""
    copy = p.records.get(offset)
    read = p.trial.reads_of(copy.id) if copy is not None else []
    return read[0] if read else None


def has_its_order(p: Partition, offset: int) -> bool:
    """A record of the trial's topic has the order of its partition; the only copy of one has, if all that lie before it
    here lie before it there too."""
    if p.tp[0] not in p.trial.through:
        return True
    here = home(p, offset)
    if here is None or len(p.trial.copies.get(here.id, [])) > 1:
        return False
    before = [other for at, other in _homes(p).items() if at < offset and _place(other) == _place(here)]
    return all((other.offset or 0) < (here.offset or 0) for other in before)


def of_one_order(p: Partition, one: int, other: int) -> bool:
    """Both have it, and by the same partition of the trial's topic."""
    if p.tp[0] not in p.trial.through:
        return True
    homes = [home(p, offset) for offset in (one, other)]
    places = {None if here is None else _place(here) for here in homes}
    return len(places) == 1 and has_its_order(p, one) and has_its_order(p, other)


def key(p: Partition, offset: int) -> str | None:
    """The key by which a record is to be in order: that of the record of the trial's topic."""
    if p.tp[0] not in p.trial.through:
        return p.key(offset)
    here = home(p, offset)
    return None if here is None else here.key


def overtaken(p: Partition, firsts: Mapping[int, Event]) -> Iterator[tuple[int, list[int]]]:
    """Each record that was handed on once, and completed by lines of one file that name its copy, after later ones that
    were not handed on; with these. `firsts`: the first completions of records in this partition, those of zombies left
    out."""
    if p.tp[0] in p.trial.through:
        return
    handed_on, done = ends(p), {work.offset for work in p.completions}
    for offset, record in p.records.items():
        copied = [(e.topic, e.partition, e.offset) for e in p.trial.copies.get(record.id, [])]
        processed = [e for e in p.trial.of_kind("processed") if e.outcome != "failed"]
        lines = [e for e in processed if (e.topic, e.partition, e.offset) in copied]
        by_one = len(copied) == 1 and len({e.source for e in lines}) == 1
        if not by_one or offset in done or _home_of(p, record.id) != offset:
            continue
        late = min(lines, key=lambda e: e.seq)
        there = {at: first for at, first in firsts.items() if at > offset and at not in handed_on}
        before = [at for at, first in there.items() if first.source == late.source and first.seq < late.seq]
        if before:
            yield offset, before


def _home_of(p: Partition, name: str | None) -> int | None:
    """The offset of an id's record, if that lies in this partition."""
    read = p.trial.reads_of(name)
    return read[0].offset if read and (read[0].topic, read[0].partition) == p.tp else None


def _homes(p: Partition) -> dict[int, Event]:
    return {offset: here for offset in p.records if (here := home(p, offset)) is not None}


def _place(record: Event) -> tuple[str | None, int | None]:
    return record.topic, record.partition


def absent_ns(copy: Event) -> float:
    """When its topic was known not to hold it yet; never: nobody had asked."""
    return float(copy.details.get("asked_ns", -FOREVER))


def may_be_later(p: Partition, offset: int, asked_ns: float) -> bool:
    """It is done with first by its hand-on, of which nobody knows whether it was in time."""
    told = min(p.handlings.get(offset, ()), key=lambda e: (e.time_ns, e.kind == "handed_on"), default=None)
    if told is None:
        return False
    late = told.kind == "handed_on" and told.time_ns > asked_ns + READ_WITHIN_NS
    return late and absent_ns(told) > -FOREVER


def _told(trial: Trial) -> list[Event]:
    return sorted((e for e in trial.of_kind("handed_on") if e.topic in trial.through), key=lambda e: e.seq)


def _is_ours(trial: Trial, copy: Event) -> bool:
    sent = any(e.id == copy.id and e.outcome == "ok" for e in trial.of_kind("send"))
    return copy.id is not None and (bool(trial.reads_of(copy.id)) or sent)

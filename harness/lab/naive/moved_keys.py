"""Order per key across partitions, for the naive checker: what was not done when something sent later was begun."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_trial.history.event import Event
from lab.naive import effects as naive_effects

if TYPE_CHECKING:
    from lab.naive.checker import Partition, Trial


@dataclass(frozen=True)
class Moved:
    """A record that was sent and done: where, when, and by which events; not `timed`: only their place in a file that
    both share tells what was first."""

    p: Partition
    offset: int
    key: str
    sent: Event
    acknowledged: Event
    begun: Event
    done: Event
    timed: bool


def late(trial: Trial, partitions: list[Partition]) -> Iterator[tuple[Partition, int]]:
    """The records, each once, that were not done when one of their key was begun elsewhere that was sent after them."""
    if not trial.partitions_added:
        return
    moved = [one for p in partitions for one in _moved(trial, p)]
    for p in partitions:
        found = {one.offset for one in moved if one.p is p and _is_late(trial, one, moved)}
        yield from ((p, offset) for offset in sorted(found))


def _is_late(trial: Trial, one: Moved, moved: list[Moved]) -> bool:
    after = [o for o in moved if o.key == one.key and o.p is not one.p]
    after = [o for o in after if o.sent.time_ns > one.acknowledged.time_ns]
    return any(_surely_before(trial, other, one) for other in after)


def _moved(trial: Trial, p: Partition) -> Iterator[Moved]:
    effects, lines = _by_effects(p), _by_lines(p)
    told = {work.offset for work in p.completions}
    worked = [(offset, *pair, True) for offset, pair in lines.items()]
    worked += [(offset, *pair, offset not in told) for offset, pair in effects.items()]
    for ack in p.own("send"):
        sent = trial.invoked.get(str(ack.id))
        if ack.outcome != "ok" or ack.key is None or ack.offset is None or sent is None:
            continue
        for offset, begun, done, timed in worked:
            if offset == ack.offset:
                yield Moved(p, offset, ack.key, sent, ack, begun, done, timed)


def _by_lines(p: Partition) -> dict[int, tuple[Event, Event]]:
    """Offset → its first completion, with the delivery that it ended, unless a zombie did it."""
    worked = {}
    for offset in {work.offset for work in p.completions}:
        alike = [work for work in p.completions if work.offset == offset]
        done = min(alike, key=lambda work: (work.event.time_ns, work.event.source, work.event.seq))
        at_ns = done.event.time_ns
        if p.excused(p.ownership_epoch_of_work(done), offset, at_ns, at_ns):
            continue
        begun = [handler.begun.event for handler in p.handlers if handler.ended and handler.ended.event == done.event]
        worked[offset] = (begun[0] if begun else done.event, done.event)
    return worked


def _by_effects(p: Partition) -> dict[int, tuple[Event, Event]]:
    """Offset → its first effect, twice: it begins and ends with that."""
    return {offset: (effect, effect) for offset, effect in naive_effects.firsts(p).items()}


def _surely_before(trial: Trial, first: Moved, second: Moved) -> bool:
    """By their place where they share a file; or it had been read before the other can have been written."""
    begun, done = first.begun, second.done
    if begun.source == done.source and naive_effects.of_one_file(begun, done):
        return naive_effects.stands_before(begun, done)
    if not (first.timed and second.timed):
        return False
    return begun.source not in trial.untimed and begun.time_ns < trial.written_ns(done)

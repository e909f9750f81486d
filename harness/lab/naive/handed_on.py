"""Records that the group hands on through topics of its own, for the naive checker: where they lie, and what they end.

A record there that bears the id of one of the trial's is that record, once more; where it lay before, it is done with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_trial.history.event import Event

if TYPE_CHECKING:
    from lab.naive.checker import Partition, Trial

FOREVER = float("inf")
READ_WITHIN_NS = 2_000_000_000
ON_THE_WAY = ("commit-ahead", "skipped", "unseen", "false-lag", "stuck-partition", "late-convergence")


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

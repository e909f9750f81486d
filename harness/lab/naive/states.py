"""What states show in the end, for the naive checker: the state of an older record than one before.

A state is a row of the consumer's table; where there are no rows, that of a key at the HTTP sink or in a topic.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kafka_trial.history.event import Event

if TYPE_CHECKING:
    from lab.naive.checker import Found, Partition, Trial

OF_ROWS = ("effect", "row_rewritten", "row_removed")


def stale_state(p: Partition) -> Iterator[Found | None]:
    """Every state that ended with another record than the newest it had shown, where that one is of this partition."""
    for changes in _by_state(p.trial).values():
        ends = _possible_ends(changes)
        newer = [_newer_before(p.trial, changes, ended) for ended in ends]
        if not any(newer):
            continue
        certain = all(any(shown.outcome != "info" for shown in before) for before in newer)
        ended, before = [pair for pair in zip(ends, newer, strict=True) if pair[1]][-1]
        record = _record(p.trial, max(before, key=lambda shown: _age(p.trial, shown)))
        if (record.topic, record.partition) == p.tp:
            may_come_again = p.trial.progress_in_kafka and (record.offset or 0) >= (p.final_committed or 0)
            may_come_again |= any(copy.id == record.id for copy in p.trial.of_kind("handed_on"))
            named = p.found(record.offset, same_key=record.key is not None and _place_of(p.trial, ended) == p.tp)
            yield named if certain and not may_come_again else None


def _place_of(trial: Trial, change: Event) -> tuple[str | None, int | None]:
    record = _record(trial, change)
    return record.topic, record.partition


def _by_state(trial: Trial) -> dict[tuple[Any, ...], list[Event]]:
    """The changes of each state, by partition of the output topic and their place there."""
    told = [change for change in trial.of_kind(*OF_ROWS) if change.outcome != "fail"]
    numbered = any("row" in change.details for change in told)
    if not numbered and trial.settings.get("sink") not in ("http", "topic"):
        return {}
    states: dict[tuple[Any, ...], list[Event]] = {}
    for change in sorted(told, key=_place):
        state = change.details.get("row") if numbered else _whose(trial, change)
        if state is not None:
            states.setdefault((change.source, state), []).append(change)
    return states


def _whose(trial: Trial, change: Event) -> tuple[Any, ...] | None:
    """The key or entity of its record, and the key of the output."""
    read = trial.reads_of(change.id)
    subject = _subject(trial, read[0]) if read else _entity(trial, change.id)
    return None if subject is None else (*subject, change.key if change.topic is not None else None)


def _place(change: Event) -> tuple[int, int]:
    """Its partition of the output topic, and its place there; else in the sink's file."""
    return (0, change.seq) if change.topic is None else (change.partition or 0, change.offset or 0)


def _possible_ends(changes: list[Event]) -> list[Event]:
    """With which it may have ended: in each partition the last that was acknowledged, and whatever came after it."""
    ends: list[Event] = []
    for partition in dict.fromkeys(_place(change)[0] for change in changes):
        here = [change for change in changes if _place(change)[0] == partition]
        told = [number for number, change in enumerate(here) if change.outcome != "info"]
        ends += here[told[-1] if told else 0 :]
    return ends


def _newer_before(trial: Trial, changes: list[Event], ended: Event) -> list[Event]:
    """What it may have shown before it ended so, of a newer record; of what was acknowledged alone, if there is any."""
    if ended.kind == "row_removed":
        return []
    at = _place(ended)
    before = [change for change in changes if _place(change)[0] != at[0] or _place(change) < at]
    newer = [shown for shown in before if _is_newer(trial, shown, ended)]
    return [shown for shown in newer if shown.outcome != "info"] or newer


def _record(trial: Trial, change: Event) -> Event:
    return trial.reads_of(change.id)[0]


def _age(trial: Trial, change: Event) -> tuple[int, int, int]:
    record = _record(trial, change)
    return -1 if record.source_wall_ns is None else record.source_wall_ns, record.offset or 0, change.seq


def _is_newer(trial: Trial, shown: Event, ended: Event) -> bool:
    """Of the same key or entity, and later in the partition, or sent later by every word there is."""
    both = [trial.reads_of(change.id) for change in (shown, ended)]
    if any(len(records) != 1 for records in both):
        return False
    (new,), (old,) = both
    subject = _subject(trial, new)
    if subject is None or subject != _subject(trial, old):
        return False
    if (new.topic, new.partition) == (old.topic, old.partition):
        return (new.offset or 0) > (old.offset or 0)
    sent = [trial.invoked.get(record.id or "") for record in (new, old)]
    times = [record.source_wall_ns for record in (new, old)]
    if None in sent or None in times:
        return False
    return bool(times[0] > times[1] and sent[0].seq > sent[1].seq)  # type: ignore[operator, union-attr]


def _subject(trial: Trial, record: Event) -> tuple[str, Any] | None:
    return _entity(trial, record.id) if record.key is None else ("key", record.key)


def _entity(trial: Trial, name: str | None) -> tuple[str, Any] | None:
    send = trial.invoked.get(name or "")
    entity = None if send is None else send.details.get("entity")
    return None if entity is None else ("entity", entity)

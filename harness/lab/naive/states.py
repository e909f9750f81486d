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
        ages = [[(_is_newer(p.trial, shown, ended), shown) for shown in _before(changes, ended)] for ended in ends]
        certain = all(any(newer and shown.outcome != "info" for newer, shown in before) for before in ages)
        feared = [[shown for newer, shown in before if newer or (newer is None and not certain)] for before in ages]
        if not any(feared):
            continue
        ended, before = [pair for pair in zip(ends, feared, strict=True) if pair[1]][-1]
        told = [shown for shown in before if shown.outcome != "info"] or before
        shown = max(told, key=lambda one: _by_age(p.trial, one))
        place = _lies(p.trial, shown) or _lies(p.trial, ended)
        if place is None or place[:2] != p.tp:
            continue
        may_come_again = p.trial.progress_in_kafka and place[3] >= (p.final_committed or 0)
        may_come_again |= any(copy.id == shown.id for copy in p.trial.of_kind("handed_on"))
        end_place = _lies(p.trial, ended)
        same_key = (_subject(p.trial, shown) or ("",))[0] == "key" and end_place is not None and end_place[:2] == p.tp
        yield p.found(place[3], same_key=same_key) if certain and not may_come_again else None


def anything_compared(trial: Trial) -> bool:
    """Whether any state was written with two records of one key or entity, or may have been."""
    for changes in _by_state(trial).values():
        whose = {(_subject(trial, change), change.id) for change in changes if _subject(trial, change) is not None}
        if len(whose) > len({subject for subject, _ in whose}):
            return True
        ends = _possible_ends(changes)
        if any(_is_newer(trial, shown, ended) is not False for ended in ends for shown in _before(changes, ended)):
            return True
    return False


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
    subject = _subject(trial, change)
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


def _before(changes: list[Event], ended: Event) -> list[Event]:
    """What it may have shown before it ended so; nothing if it was removed."""
    if ended.kind == "row_removed":
        return []
    at = _place(ended)
    return [change for change in changes if _place(change)[0] != at[0] or _place(change) < at]


def _by_age(trial: Trial, change: Event) -> tuple[int, int, int]:
    wall_ns, place = _stamp(trial, change), _lies(trial, change)
    return -1 if wall_ns is None else wall_ns, place[3] if place else -1, change.seq


def _lies(trial: Trial, change: Event) -> tuple[str, int, int, int] | None:
    """Topic, partition, and the first and last offset at which its id lies, or lay; None where that is unknown."""
    lines = [*trial.reads_of(change.id), *(e for e in trial.of_kind("record_aborted") if e.id == change.id)]
    lines += [e for e in trial.of_kind("send") if e.outcome == "ok" and e.id == change.id]
    found = [(str(e.topic), e.partition, e.offset) for e in lines if change.id is not None]
    there = [(t, n, o) for t, n, o in found if n is not None and o is not None and o >= 0]
    if len({one[:2] for one in there}) != 1:
        return None
    return (*there[0][:2], min(one[2] for one in there), max(one[2] for one in there))


def _is_newer(trial: Trial, shown: Event, ended: Event) -> bool | None:
    """Whether its record is newer than that of the end, of one key or entity; None: perhaps."""
    of_shown, of_end = _subject(trial, shown), _subject(trial, ended)
    unknown = [one for one in (shown, ended) if not _is_named(trial, one)]
    there, end = _lies(trial, shown), _lies(trial, ended)
    if shown.id == ended.id or (of_shown is None and of_end is None) or (there is None and end is None):
        return False
    if not unknown and of_shown != of_end:
        return False
    if there is None or end is None:
        return False if _is_last_of_key(trial, ended) else None
    if there[:2] != end[:2]:
        newer = _sent_later(trial, shown, ended)
    else:
        newer = False if there[3] <= end[3] else (True if there[2] > end[3] else None)
    return None if newer and unknown else newer


def _sent_later(trial: Trial, shown: Event, ended: Event) -> bool | None:
    """By the time of the record and by the order of the sends; None where they do not say the same."""
    new_ns, old_ns = _stamp(trial, shown), _stamp(trial, ended)
    new, old = _send_of(trial, shown), _send_of(trial, ended)
    if new_ns is not None and new_ns == old_ns:  # who reads both cannot tell which is older
        return False
    if new_ns is None or old_ns is None or new is None or old is None:
        return None
    return new > old if (new_ns > old_ns) == (new > old) else None


def _stamp(trial: Trial, change: Event) -> int | None:
    read = trial.reads_of(change.id)
    return read[0].source_wall_ns if read else None


def _send_of(trial: Trial, change: Event) -> int | None:
    """The place of its only send."""
    sends = [e.seq for e in trial.of_kind("send") if e.outcome == "invoke" and e.id == change.id]
    return sends[0] if len(sends) == 1 else None


def _is_last_of_key(trial: Trial, change: Event) -> bool:
    """Whether the log holds no later record of its key, and all of them lie in one partition."""
    subject, lies = _subject(trial, change), _lies(trial, change)
    if subject is None or subject[0] != "key" or lies is None:
        return False
    same = [(e.topic, e.partition, e.offset or 0) for e in trial.of_kind("record") if e.key == subject[1]]
    return bool(same) and {one[:2] for one in same} == {lies[:2]} and max(one[2] for one in same) == lies[3]


def _is_named(trial: Trial, change: Event) -> bool:
    return bool(trial.reads_of(change.id)) or (change.id or "") in trial.invoked


def _subject(trial: Trial, change: Event) -> tuple[str, Any] | None:
    """The key by the log, else by its send; the entity of a record without a key."""
    read, send = trial.reads_of(change.id), trial.invoked.get(change.id or "")
    key = read[0].key if read else (send.key if send else None)
    if key is not None:
        return "key", key
    entity = None if send is None else send.details.get("entity")
    return None if entity is None else ("entity", entity)

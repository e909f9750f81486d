"""When no member ran because the trial had stopped them all, and what expired meanwhile: by search, one record a time.

Shares nothing with `kafka_trial.model.absences`; the rule is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from kafka_trial.history.event import Event

FOREVER = float("inf")
ASKED = ("stop", "overdue", "kill")


def nobody_ran_at(events: Sequence[Event], at_ns: float) -> bool:
    """Everybody who had been started before was asked to go, and nobody was started again since."""
    begun = [e for e in events if e.kind == "started" and e.time_ns < at_ns]
    last = {e.member: e for e in sorted(begun, key=lambda event: event.time_ns)}
    return bool(last) and all(_sent_away_ns(events, start) <= at_ns for start in last.values())


def _sent_away_ns(events: Sequence[Event], start: Event) -> float:
    ends = [e for e in events if e.kind == "exited" and e.source == start.source]
    if not ends or ends[0].details.get("asked") not in ASKED:
        return FOREVER
    return min(float(ends[0].time_ns), float(ends[0].details.get("asked_ns", FOREVER)))


def expired_while_away(events: Sequence[Event], ack: Event, starts: Iterable[Event], ends: Iterable[Event]) -> str:
    """ "yes": all the time in which the record can have expired nobody ran; "maybe": part of that time; else "no".

    `starts`, `ends`: the `log_start` and `log_end` events of its partition.
    """
    since_ns, until_ns = _expired_between(events, ack, starts, ends)
    turns = {since_ns, until_ns}
    for e in events:
        if e.kind in ("started", "exited"):
            turns |= {at for at in (e.time_ns, e.details.get("asked_ns", -1)) if since_ns < at < until_ns}
    steps = sorted(turns)
    middles = [(a + b) / 2 for a, b in pairwise(steps)] or [since_ns]
    away = [nobody_ran_at(events, at_ns) for at_ns in middles]
    return "yes" if all(away) else "maybe" if any(away) else "no"


def expired_by_ns(events: Sequence[Event], ack: Event, starts: Iterable[Event], ends: Iterable[Event]) -> float:
    """When at the latest the record expired."""
    return _expired_between(events, ack, starts, ends)[1]


def _expired_between(
    events: Sequence[Event], ack: Event, starts: Iterable[Event], ends: Iterable[Event]
) -> tuple[float, float]:
    """It was there when it was acknowledged, and when the log start was asked for before; a fault that deletes records
    in between says more exactly when."""
    above = min((e for e in starts if (e.offset or 0) > (ack.offset or 0)), key=lambda e: (e.offset, e.seq))
    looks = [e.details.get("asked_ns", e.time_ns) for e in ends if e.seq < above.seq]
    since_ns, until_ns = max([ack.time_ns, *looks[-1:]]), above.time_ns
    for e in events:
        if e.kind != "injected" or e.details.get("fault") != "records-deleted":
            continue
        begun = [o.time_ns for o in events if o.kind == "injecting" and _number(o) == _number(e)]
        begun_ns = begun[-1] if begun else e.time_ns
        if since_ns <= begun_ns < until_ns:
            since_ns, until_ns = begun_ns, min(until_ns, e.time_ns)
    return since_ns, until_ns


def _number(event: Event) -> object:
    return event.details.get("fault_no")
